"""Damaged caches: every kind of file cut, flipped, swapped or replaced; a run must say the same words."""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import assets
from tests.bench.campaign.attack import Attack

Damage = Callable[[Path, random.Random], None]

CACHE = "cache"
SPEECH = str(assets.path("speech", "08-kal16-short.flac"))
RUN = (
    *("run", "--preset", "gmm-continuous", "--audio", SPEECH, "--no-profile", "--json"),
    *("--set", "gmm.components=8", "--set", "graph.vocabulary=60", "--set", "graph.bigrams=200"),
    *("--set", "gmm.selection.enabled=true", "--set", "gmm.selection.method=vq"),
    *("--set", "gmm.selection.codewords=32"),
)
"""Uses a graph, a derived model and tables of a selection."""
VERBS = (RUN, ("doctor", "--json"), ("doctor", "--empty-cache", "--json"))


def words(cache: Path) -> list[str]:
    """What the run hears with this cache, in this process."""
    from app.cli.main import main

    said = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"ASRSCOPE_CACHE": str(cache)}),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        status = main(list(RUN))
    assert status == 0, said.getvalue()
    return [one["hypothesis"] for one in json.loads(said.getvalue())["utterances"]]


@functools.cache
def clean() -> tuple[Path, list[str]]:
    """A whole cache, made once by a run, and what that run heard; nobody may change it."""
    folder = Path(tempfile.mkdtemp(prefix="asrscope-clean-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, words(folder)


def files(cache: Path) -> list[Path]:
    """All that is kept, in order."""
    return sorted(path for path in cache.rglob("*.kept") if path.is_file())


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 4)):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_header(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(min(400, len(content)))] ^= rng.randrange(1, 256)
    path.write_bytes(content)


def one_more_one_less(path: Path, rng: random.Random) -> None:
    """Sums stay the same."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content) // 2, len(content) - 16) // 8 * 8
    for place, change in ((at, 1), (at + 8, -1)):
        word = int.from_bytes(content[place : place + 8], "little") + change
        content[place : place + 8] = (word % (1 << 64)).to_bytes(8, "little")
    path.write_bytes(content)


def zeros(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) // 4, len(content) // 2)
    path.write_bytes(content[:at] + bytes(len(content) - at))


def smaller_shape(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"[8, ", b"[7, ", 1).replace(b"5126, ", b"5125, ", 1))


def noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(200)))


def archive(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"PK\x03\x04" + rng.randbytes(99))


def sparse(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def swapped(path: Path, rng: random.Random) -> None:
    others = [p for p in files(path.parent) if p != path] or [path]
    shutil.copyfile(rng.choice(others), path.with_name("other"))
    path.with_name("other").replace(path)


def link(path: Path, rng: random.Random) -> None:
    path.rename(path.with_suffix(".aside"))
    path.symlink_to(path.with_suffix(".aside"))


def device(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "means.npy").write_bytes(b"half")


def unreadable(path: Path, rng: random.Random) -> None:
    path.chmod(0)


DAMAGES: tuple[Damage, ...] = (
    *(cut, flip, flip_header, one_more_one_less, zeros, smaller_shape, noise, archive, sparse),
    *(swapped, link, device, pipe, folder, unreadable),
)


def damaged(place: Path, which: int, damage: Damage, seed: int) -> None:
    """A cache in `place` of which one file (by its number) is damaged."""
    shutil.copytree(clean()[0], place / CACHE, symlinks=True)
    found = files(place / CACHE)
    damage(found[which % len(found)], random.Random(seed))


def no_cache(place: Path, how: str) -> None:
    """A place where no cache can be."""
    if how == "file":
        (place / CACHE).write_text("")
    elif how == "dangling":
        (place / CACHE).symlink_to(place / "nowhere" / "at all")
    elif how == "read-only":
        (place / CACHE).mkdir(mode=0o500)
    else:
        (place / CACHE).mkdir()
        for kind in ("graphs", "models", "selection", "peaks"):
            (place / CACHE / kind).write_text("")


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """Every damage of every kind of file first, then at random."""
    environment = {"ASRSCOPE_CACHE": CACHE}
    for how in ("file", "dangling", "read-only", "kinds"):
        yield Attack(
            f"no cache: {how}", functools.partial(no_cache, how=how), VERBS, environment=environment,
            may_fail=True,
        )  # fmt: skip
    kinds = len(files(clean()[0]))  # a run of seconds, which those above need not
    purpose = [(which, damage) for damage in DAMAGES for which in range(kinds)]
    for number in range(count):
        if number < len(purpose):
            which, damage = purpose[number]
        else:
            which, damage = random.randrange(kinds), random.choice(DAMAGES)
        seed = random.randrange(1 << 30)
        make = functools.partial(damaged, which=which, damage=damage, seed=seed)
        name = f"cache file {which}: {damage.__name__} ({seed})"
        yield Attack(name, make, VERBS, environment=environment, may_fail=True)
