"""CMUSphinx folders of strangers: each file missing, cut, changed, huge, or no file at all."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import assets
from tests.bench.campaign.attack import Attack
from tests.bench.campaign.caches import pipe
from tests.pipelines import sphinx_writer as writer

FILES = ("feat.params", "mdef", "means", "variances", "transition_matrices", "sendump", "noisedict")
SPEECH = str(assets.path("speech", "08-kal16-short.flac"))
Damage = Callable[[Path, random.Random], None]


def run(form: str) -> tuple[str, ...]:
    """A run with the folder `model` as its acoustic model, as it is or derived from, over words of its phones."""
    words = ("--set", "graph.dictionary=words.dict", "--set", "graph.grammar=words.gram")
    chosen = ("--set", f"model={form}", "--set", "model_directory=model", "--audio", SPEECH)
    return "run", "--preset", "gmm", *chosen, *words, "--no-profile", "--json"


def missing(path: Path, rng: random.Random) -> None:
    path.unlink()


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def more(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 99)))


def flips(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 6)):
        reach = len(content) if rng.random() < 0.3 else min(200, len(content))
        content[rng.randrange(reach)] = rng.randrange(256)
    path.write_bytes(content)


def large_numbers(path: Path, rng: random.Random) -> None:
    """Counts in a header that promise more than there is."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(max(1, min(120, len(content) - 4)))
    content[at : at + 4] = rng.choice((2**31 - 1, 2**30, 0x7FFFFFF0, 10**6)).to_bytes(4, "little")
    path.write_bytes(content)


def sparse(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 36)


def huge_within_limits(path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(30 << 20)


def noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(5000)))


def text(path: Path, rng: random.Random) -> None:
    lines = ("a\n" * 1_000_000, "a " * 1_000_000, "\n" * 3_000_000, "-x 1\n" * 9000, "9" * 60_000)
    head = "0.3\n4 n_base\n5 n_tri\n36 n_state_map\n15 n_tied_state\n12 n_tied_ci_state\n4 n_tied_tmat\n"
    path.write_text(head * rng.randrange(2) + rng.choice(lines))


def option(path: Path, rng: random.Random) -> None:
    """Of the front end; other files have no such line."""
    names = (
        "nfilt",
        "nfft",
        "wlen",
        "lifter",
        "frate",
        "lowerf",
        "upperf",
        "alpha",
        "ncep",
        "\x1b[2J",
    )
    values = ("1e304", "9" * 4000, "-1", "nan", "inf", "0", "1_0", "１", "1e-300")
    path.write_text(f"-feat 1s_c_d_dd\n-nfft 0\n-{rng.choice(names)} {rng.choice(values)}\n")


def values(path: Path, rng: random.Random) -> None:
    """Numbers that are none, or beyond what any model has."""
    value = rng.choice((np.nan, np.inf, 3e38, -3e38, 1e-45, 0.0))
    path.write_bytes(writer.gaussians(np.full((4, 3, 20, 13), value)))


def link(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice(("/dev/zero", "/dev/tty", "nowhere", path.name)))


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: tuple[Damage, ...] = (
    *(missing, empty, cut, more, flips, large_numbers, sparse, huge_within_limits, noise, text),
    *(option, values, link, pipe, folder),
)


def damaged(place: Path, name: str, damage: Damage, seed: int) -> None:
    """A small sound model of which one file is damaged."""
    rng = random.Random(seed)
    model = writer.write_model(place / "model", codebooks=rng.choice((1, 4)))
    if rng.random() < 0.3:
        (model / "mdef").write_bytes(writer.text_mdef())
    (model / "noisedict").write_text("<s> SIL\n</s> SIL\n<sil> SIL\n[NOISE] +NSN+\n")
    (place / "words.dict").write_text("ab AA B\nba B AA\n")
    (place / "words.gram").write_text("#JSGF V1.0;\ngrammar words;\npublic <words> = (ab | ba)+;\n")
    damage(model / name, rng)


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """Every damage of every file first, then at random."""
    purpose = [(name, damage) for damage in DAMAGES for name in FILES]
    for number in range(count):
        if number < len(purpose):
            name, damage = purpose[number]
        else:
            name, damage = random.choice(FILES), random.choice(DAMAGES)
        seed = random.randrange(1 << 30)
        make = functools.partial(damaged, name=name, damage=damage, seed=seed)
        form = random.choice(("ptm", "continuous"))
        yield Attack(f"model, {name}: {damage.__name__} ({seed})", make, (run(form),))
