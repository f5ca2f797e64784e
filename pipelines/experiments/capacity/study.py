"""The measurements of a study, one after the other, as far as memory goes.

The number of streams is doubled until one fails, then bisected, with repeats at the bend. The folder keeps what was
measured, and with which settings, so that the same command goes on:

study.json     what is measured, on which sound and how many cores, by which version
first/1.json   a run of the sound as fast as possible: how many words it has
levels/8-2/    the second measurement of 8 streams: the report of each, and result.json, written last
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import psutil

from pipelines.experiments.capacity import streams
from pipelines.experiments.capacity.streams import RESULT, Bench, Level
from pipelines.experiments.sweep.folder import held
from profiler.errors import BadInput
from profiler.files import outputs, paths
from profiler.files.inputs import MIB, InputError, read_struct
from profiler.files.paths import demand_room
from profiler.plain import counted, duration_text, one_line

LEVELS: Final = "levels"


class About(msgspec.Struct, frozen=True):
    """What makes two studies the same: settings as text by key, sound as digest."""

    version: str
    machine: str
    cores: int
    seconds: float | None
    settings: dict[str, str]
    sound: str


class Kept(NamedTuple):
    """A measurement and the folder of its reports."""

    level: Level
    folder: Path


def opened(folder: Path, about: About) -> AbstractContextManager[None]:
    """Hold the study in `folder`, or make it. BadInput where it is another one, or another process works on it."""
    return held(folder, about, "capacity", _difference)


def kept(folder: Path) -> dict[int, list[Kept]]:
    """The measurements that have ended, by number of streams and in their order; what has no result is removed."""
    measured: dict[int, list[Kept]] = {}
    for n, _, each in paths.numbered(folder / LEVELS):
        with suppress(InputError):
            level = read_struct(each / RESULT, Level, "a measurement")
            if level.n == n:
                measured.setdefault(n, []).append(Kept(level, each))
                continue
        shutil.rmtree(each, ignore_errors=True)
    return measured


def _difference(kept: About, now: About) -> str:
    if kept.settings != now.settings:
        key = next(key for key in now.settings if kept.settings.get(key) != now.settings[key])
        return f"a study with other settings ({key} is {one_line(kept.settings.get(key, 'unknown'))} there)"
    titles = {"version": "version of asrscope", "machine": "machine", "cores": "number of cores"}
    titles |= {"seconds": "length of a measurement", "sound": "sound"}
    return "a study with another " + next(t for name, t in titles.items() if getattr(kept, name) != getattr(now, name))


REPEATS: Final = 3  # Measurements of the largest number that holds and of the smallest that fails; most of them decide
RESOLUTION: Final = 0.05  # The bend is known to this share of the number of streams, or to one stream
Outcomes = Mapping[int, Sequence[bool]]  # Whether each measurement held, by number of streams


def holds(outcomes: Sequence[bool]) -> bool:
    return sum(outcomes) * 2 > len(outcomes)


def capacity(outcomes: Outcomes) -> int:
    """The largest number that holds, of those below the first that fails; 0: none does."""
    failing = first_failing(outcomes)
    return max((n for n, each in outcomes.items() if holds(each) and (failing is None or n < failing)), default=0)


def first_failing(outcomes: Outcomes) -> int | None:
    """The smallest number that fails; None: none does."""
    return min((n for n, each in outcomes.items() if not holds(each)), default=None)


def interval(outcomes: Outcomes) -> tuple[int, int]:
    """The largest number up to which every measurement held, and the largest of which any did; 0: none."""
    doubtful = min((n for n, each in outcomes.items() if not all(each)), default=None)
    sure = max((n for n in outcomes if doubtful is None or n < doubtful), default=0)
    return sure, max((n for n, each in outcomes.items() if any(each)), default=0)


def following(outcomes: Outcomes, low: int, high: int) -> int | None:
    """The number to measure next, from `low` to `high`; None: the bend is known, or lies outside."""
    if not outcomes:
        return low
    failing, held = first_failing(outcomes), capacity(outcomes)
    if failing is None:
        top = max(outcomes)
        if top < high:
            return min(2 * top, high)
        return top if len(outcomes[top]) < REPEATS else None
    below = held or low - 1
    if failing - below > max(1, int(held * RESOLUTION)):
        return (below + failing) // 2
    return next((n for n in (held, failing) if n and len(outcomes[n]) < REPEATS), None)


def remaining(outcomes: Outcomes, low: int, high: int, guess: int) -> list[int]:
    """The measurements that are still to come if up to `guess` streams hold, as far as what was measured allows it."""
    failing = first_failing(outcomes)
    guess = max(guess if failing is None else min(guess, failing - 1), capacity(outcomes))
    known = {n: list(each) for n, each in outcomes.items()}
    coming = []
    while (n := following(known, low, high)) is not None:
        known.setdefault(n, []).append(n <= guess)
        coming.append(n)
    return coming


WORDS: Final = 400  # Words of a measurement: p99 then rests on the longest four
LEAST_S: Final = 20.0  # Seconds of a measurement at least, for a queue to be seen
RESERVE_BYTES: Final = 1_000_000_000
"""Memory that the streams leave free: for the cache of files and for programs that grow."""

FIRST: Final = "first"
LARGEST: Final = 64 * MIB  # Bytes of the report of a run
SETUP_S, END_S = 3.0, 0.3
"""Seconds that a stream takes to prepare and to end, for the time left: about those on one core of a server."""

Seconds = Annotated[float, msgspec.Meta(gt=0.0, le=1e9)]


class First(msgspec.Struct, frozen=True):
    """The whole sound, decoded as fast as possible by one process; `memory_bytes` with the model loaded."""

    words: Annotated[int, msgspec.Meta(ge=1)]
    audio_s: Seconds
    wall_s: Seconds
    memory_bytes: Annotated[int, msgspec.Meta(ge=0)] | None


class _Utterance(msgspec.Struct, frozen=True):
    hypothesis: str
    audio_s: float
    wall_s: float


class _Report(msgspec.Struct, frozen=True):
    utterances: list[_Utterance]


@dataclass
class Study:
    """The study in `folder`, which is held (`opened`), of `low` to `high` streams.

    `seconds`: of each measurement; None: for WORDS words. `holds`: whether a measurement does.
    """

    folder: Path
    bench: Bench
    low: int
    high: int
    seconds: float | None
    holds: Callable[[Kept], bool]
    measured: dict[int, list[Kept]] = field(init=False)
    short_of_memory: bool = field(default=False, init=False)
    """Whether more streams would have been tried if there had been room."""

    def __post_init__(self) -> None:
        self.measured = kept(self.folder)
        self._first: First | None = None

    @property
    def outcomes(self) -> Outcomes:
        return {n: [self.holds(each) for each in kept] for n, kept in self.measured.items()}

    def run(self, command: Sequence[str], progress: Callable[[str, float | None], None]) -> None:
        """Measure until the bend is known; `command` decodes a sound file, `Bench.sound`, once.

        Raises Cancelled, and BadInput where a run fails or memory is too short for the fewest streams.
        """
        first = self._first = self._decoded_once(command, progress)
        while True:
            outcomes = self.outcomes
            most = min(self.high, max(self._room(), max(outcomes, default=0)))
            if most < self.low:
                raise BadInput(
                    f"There is no memory for {counted(self.low, 'stream', 'streams')}: {self.memory_text()}."
                )
            n = following(outcomes, self.low, most)
            if n is None:
                self.short_of_memory = most < self.high and first_failing(outcomes) is None
                return
            window_s = self._window_s(n, first)
            left_s = self._left_s(outcomes, most, first)

            def step(what: str, n: int = n, left_s: float = left_s) -> None:
                progress(f"{counted(n, 'stream', 'streams')}: {what}, about {duration_text(left_s)} left", None)

            last = max((attempt for of, attempt, _ in paths.numbered(self.folder / LEVELS) if of == n), default=0)
            folder = self.folder / LEVELS / f"{n}-{last + 1}"
            level = self.bench.measure(n, window_s, folder, step)
            self.measured.setdefault(n, []).append(Kept(level, folder))

    def memory_text(self) -> str:
        per_stream = self._per_stream() or 0
        free = psutil.virtual_memory().available
        return (
            f"each takes {per_stream / 1e6:.0f} MB, and {free / 1e9:.1f} GB are free, of which "
            f"{RESERVE_BYTES / 1e9:.0f} GB stay so"
        )

    def _per_stream(self) -> int | None:
        """Bytes of a stream among the most that were measured, or of one alone; None where that is not known."""
        with_memory = [level for level in self._levels() if level.memory_bytes]
        if with_memory:
            largest = max(with_memory, key=lambda level: level.n)
            return (largest.memory_bytes or 0) // largest.n
        return self._first.memory_bytes if self._first else None

    def _levels(self) -> list[Level]:
        return [each.level for kept in self.measured.values() for each in kept]

    def _room(self) -> int:
        if not (per_stream := self._per_stream()):
            return self.high
        return max(int(psutil.virtual_memory().available) - RESERVE_BYTES, 0) // per_stream

    def _decoded_once(self, command: Sequence[str], progress: Callable[[str, float | None], None]) -> First:
        """The sound decoded once: its words, and everything in its cache."""
        place = self.folder / FIRST
        file = place / streams.RESULT
        try:
            return read_struct(file, First, "a measurement")
        except InputError:
            shutil.rmtree(place, ignore_errors=True)
        demand_room(self.folder, streams.REPORT_BYTES)
        place.mkdir()
        progress("decoding the sound once", None)
        memory = streams.run_once(command, place, self.bench.machine.cores, self.bench.cancelled)
        utterances = read_struct(place / "1.json", _Report, "the report of a run", LARGEST).utterances
        first = First(
            sum(len(one.hypothesis.split()) for one in utterances),
            sum(one.audio_s for one in utterances),
            sum(one.wall_s for one in utterances),
            memory,
        )
        if not first.words:
            raise BadInput("No word is recognised in the sound, so there is no latency of words; give other --audio.")
        with outputs.writing(file, "the study") as draft:
            draft.write_bytes(msgspec.json.encode(first))
        return first

    def _window_s(self, n: int, first: First) -> float:
        if self.seconds is not None:
            return self.seconds
        return max(WORDS / n * first.audio_s / first.words, LEAST_S)

    def _left_s(self, outcomes: Outcomes, most: int, first: First) -> float:
        """Seconds that the measurements to come take, if the cores are shared until nothing of them is left."""
        cores = len(self.bench.machine.cores)
        share, setup_s = first.wall_s / first.audio_s, SETUP_S / cores
        if self.measured:
            last = max(self._levels(), key=lambda level: level.n)
            share, setup_s = last.cpu_s / last.n / last.window_s, last.setup_s / last.n
        coming = remaining(outcomes, self.low, most, int(cores / max(share, 1e-6)))
        fixed_s = streams.WARM_UP_S + streams.AFTER_S
        return sum(self._window_s(n, first) + fixed_s + n * (setup_s + streams.APART_S + END_S) for n in coming)
