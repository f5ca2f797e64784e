"""Files of 1 s to 3 h, the shipped speech again and again: each second of them costs what a second of a minute costs.

The same settings decode a minute and the longer file. Time and memory of each second must not grow with the length.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

import assets
from tests.bench.campaign.attack import Attack

RATE: Final = 16_000
MINUTE: Final = 60
LENGTHS: Final = (1, 10, 300, 1_200, 3_600, 7_200, 10_800)
SETTINGS: Final = (
    (),
    ("search.lattice=true",),
    ("search.lattice=true", "search.nbest=20", "search.lattice_beam=8"),
    ("block=1",),
    ("block=256", "search.beam=15"),
    ("gmm.selection.enabled=true", "gmm.selection.method=top-n", "frames.skip=2"),
    ("search.adaptive_beam=true",),
)
DEARER: Final = 4.0
"""Times what a second of a minute costs: a busy machine doubles it, what is quadratic passes it within the hour."""
FROM_S: Final = 300
"""Shorter files are too quick to say what a second costs."""
MEMORY_BYTES: Final = 4_000_000_000
SECONDS_PER_SECOND: Final = 1 / 100
"""What a second of sound may take of the driver's limit of time."""


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """A second first; then lengths and settings in every combination, the shortest first, then at random."""
    del count
    for length, chosen in itertools.product(LENGTHS, SETTINGS):
        yield _attack(length, chosen, "run")
    while True:
        length = round(10 ** random.uniform(0, np.log10(LENGTHS[-1])))
        yield _attack(length, random.choice(SETTINGS), random.choice(("run", "record")))


def _attack(length: int, chosen: tuple[str, ...], verb: str) -> Attack:
    words = tuple(word for text in chosen for word in ("--set", text))
    common = ("run", "--preset", "gmm-quick", *words, "--json", "--audio")
    how: tuple[tuple[str, ...], tuple[str, ...]] = (("--no-profile",), ("--no-profile",))
    if verb == "record":
        how = ("--out", "short.asrs"), ("--out", "long.asrs")
    long = (*common, "long.flac", *how[1])
    # A file that says nothing of its cost is not compared.
    commands = ((*common, "short.flac", *how[0]), long) if length >= FROM_S else (long,)
    return Attack(
        f"{length} s, {' '.join(chosen) or 'as shipped'}, {verb}",
        functools.partial(_write, length),
        commands,
        patience=1.0 + length * SECONDS_PER_SECOND,
        memory_bytes=MEMORY_BYTES,
        check=_dearer if length >= FROM_S else None,
    )


def _dearer(outputs: list[bytes]) -> str | None:
    short, long = (json.loads(out)["rtf"] for out in outputs)
    if long > DEARER * short:
        return f"a second costs {long / short:.1f} times as much as one of a minute (RTF {long:.4f})"
    return None


def _write(length: int, folder: Path) -> None:
    speech = assets.path("speech")
    once = np.concatenate([soundfile.read(path, dtype="int16")[0] for path in sorted(speech.glob("*.flac"))])
    for name, seconds in (("short.flac", MINUTE), ("long.flac", length)):
        with soundfile.SoundFile(folder / name, "w", RATE, 1, "PCM_16") as file:
            left = seconds * RATE
            while left > 0:
                file.write(once[:left])
                left -= len(once)
