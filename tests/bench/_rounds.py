"""What benches share that hold several ways of scoring against each other on the same speech.

Turns: every utterance goes through all sides, in the order of `interleave`. Kept results: what
does not depend on the machine lies in the cache under the digest of all that decides it, so that an interrupted
table goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pipelines
from pipelines import config as settings
from pipelines.config import Config
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from profiler.files.outputs import writing
from profiler.files.paths import cache_dir
from profiler.spans import NullLane

Progress = Callable[[str, float | None], None]

LANE = NullLane()
SCORES_BY = ("scoring", "search", "models", "frontend", "config")
"""The folders of `pipelines` that decide scores and words."""


@dataclass
class Side:
    """One way to do the work: seconds that an utterance takes, and of each round over all of them."""

    name: str
    take: Callable[[Any], float]
    seconds: list[float] = field(default_factory=list)


def interleave(
    sides: Sequence[Side],
    speech: Sequence[Any],
    rounds: int,
    told: Callable[[float], None] = lambda fraction: None,
) -> None:
    """Every utterance through all sides, one after the other, the first side turning."""
    for side in sides:
        side.take(speech[0])
        side.seconds = [0.0] * rounds
    for turn, place, number in turns(len(sides), len(speech), range(rounds)):
        told(turn / rounds)
        sides[number].seconds[turn] += sides[number].take(speech[place])


def paired(slow: Side, fast: Side) -> list[float]:
    """Ratio of the times of two sides in each round."""
    return [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]


class Kept:
    """JSON values in the cache, by what decides them."""

    def __init__(self, bench: str, decides: Iterable[str]) -> None:
        self._folder = cache_dir("bench", bench)
        self._digest = digest_of("\n".join(decides).encode())

    def get(self, key: str) -> Any | None:
        """What was kept under `key`, None if nothing was."""
        file = self._file(key)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def put(self, key: str, value: Any) -> None:
        """Keep `value`, whole or not at all."""
        with writing(self._file(key), "the result") as draft:
            draft.write_text(json.dumps(value), encoding="utf-8")

    def _file(self, key: str) -> Path:
        return self._folder / f"{digest_of(f'{self._digest}{key}'.encode())[:24]}.json"


def said(items: Iterable[Item]) -> list[str]:
    """Which speech it is: names of the files and what was said in them."""
    return [f"{item.name}:{item.reference}" for item in items]


def key_of(config: Config) -> str:
    """A configuration as text."""
    return json.dumps(settings.to_dict(config), sort_keys=True)


def digest_of(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sources(*files: str) -> list[str]:
    """Digests of what decides scores and words, and of other files of `pipelines` by name."""
    folder = Path(str(pipelines.__file__)).parent
    found = sorted(file for room in SCORES_BY for file in (folder / room).rglob("*.py"))
    return [digest_of(file.read_bytes()) for file in (*found, *(folder / name for name in files))]
