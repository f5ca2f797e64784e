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
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tests.bench.campaign import _damage
from tests.bench.campaign._damage import Damage
from tests.bench.campaign.attack import SPEECH, Attack

CACHE = "cache"
RUN = (
    *("run", "--preset", "gmm-continuous", "--audio", SPEECH, "--no-profile", "--json"),
    *("--set", "gmm.components=8", "--set", "graph.vocabulary=60", "--set", "graph.bigrams=200"),
    *("--set", "gmm.selection.enabled=true", "--set", "gmm.selection.method=vq"),
    *("--set", "gmm.selection.codewords=32"),
)
"""Uses a graph, a derived model and tables of a selection."""
UNCACHED_PATIENCE = 3.0
"""Without a cache each run compiles its kernels and clusters the model: 17 s on two idle cores."""
VERBS = (RUN, ("doctor", "--json"), ("doctor", "--empty-cache", "--json"))


def words(cache: Path) -> list[str]:
    """The hypotheses of the run with this cache, in this process."""
    from app.cli.main import main

    out = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"ASRSCOPE_CACHE": str(cache)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        status = main(list(RUN))
    assert status == 0, out.getvalue()
    return [one["hypothesis"] for one in json.loads(out.getvalue())["utterances"]]


@functools.cache
def clean() -> tuple[Path, list[str]]:
    """A whole cache, made once by a run, and the words of that run; nobody may change it."""
    folder = Path(tempfile.mkdtemp(prefix="asrscope-clean-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder, words(folder)


def files(cache: Path) -> list[Path]:
    """All files of a cache, in order."""
    return sorted(path for path in cache.rglob("*.kept") if path.is_file())


def smaller_shape(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"[8, ", b"[7, ", 1).replace(b"5126, ", b"5125, ", 1))


def swapped(path: Path, rng: random.Random) -> None:
    others = [p for p in files(path.parent) if p != path] or [path]
    shutil.copyfile(rng.choice(others), path.with_name("other"))
    path.with_name("other").replace(path)


def linked(path: Path, rng: random.Random) -> None:
    path.rename(path.with_suffix(".aside"))
    path.symlink_to(path.with_suffix(".aside"))


def unreadable(path: Path, rng: random.Random) -> None:
    path.chmod(0)


LIKE_OTHERS = (_damage.mutate, _damage.missing, _damage.large_number, _damage.empty)
DAMAGES: tuple[Damage, ...] = (
    *(damage for damage in _damage.DAMAGES if damage not in LIKE_OTHERS),
    *(smaller_shape, swapped, linked, unreadable),
)


def damaged(place: Path, which: int, damage: Damage, seed: int) -> None:
    """A cache in `place` of which one file (by its number) is damaged."""
    shutil.copytree(clean()[0], place / CACHE, symlinks=True)
    kept = files(place / CACHE)
    damage(kept[which % len(kept)], random.Random(seed))


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


def attacks(rng: random.Random, count: int) -> Iterator[Attack]:
    """Every damage of every kind of file first, then at random."""
    attack = functools.partial(Attack, commands=VERBS, environment={"ASRSCOPE_CACHE": CACHE}, may_fail=True)
    for how in ("file", "dangling", "read-only", "kinds"):
        yield attack(f"no cache: {how}", functools.partial(no_cache, how=how), patience=UNCACHED_PATIENCE)
    kinds = len(files(clean()[0]))  # a run of seconds, which those above need not
    purpose = [(which, damage) for damage in DAMAGES for which in range(kinds)]
    for number in range(count):
        chosen = purpose[number] if number < len(purpose) else rng.choice(purpose)
        which, damage = chosen
        seed = rng.randrange(1 << 30)
        make = functools.partial(damaged, which=which, damage=damage, seed=seed)
        yield attack(f"cache file {which}: {damage.__name__} ({seed})", make)
