"""What else the machine did while spans were recorded: other programs on its processor, and how fast it was.

A tile of the decode lane may carry, as a work count OTHER_COUNT, for how long its thread was ready and another program
ran; its leaves share that by their length. Between tiles the run may time two small kernels whose roofs are known
(PROBES): how much slower they ran than their roofs is how much slower the machine was.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.nesting import pick
from profiler.analysis.recorded import Recorded
from profiler.arrays import Array
from profiler.machine.roofs.table import (
    LEAST_SLOWNESS,
    MOST_SLOWNESS,
    PROBES,
    PROBES_TOGETHER,
)
from profiler.spans import Stage

OTHER_COUNT: Final = "other_programs_ns"

REPLAYED: Final = "replay."
"""Stages whose spans are hot times of the stage named after it, their count the time that the same block had taken."""

LATEST: Final = 8
"""So many replays of a stage are taken together: one alone is too uncertain."""

ONE_REPLAY: Final = 0.2
"""So far from what many replays of a stage say lies a single one, as a part of the time; nineteen of twenty are nearer
(`python -m tests.bench.constants --only replays`)."""

FEWEST: Final = 3
SURE: Final = 3.0
"""From so few replays on they tell how uncertain they are, by so many standard errors on either side: of three they
hold the truth in 90 of 100 cases, of eight in 98 (Student's distribution)."""


def other_of(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return the ns in which another program ran instead, float64 [tiles]; 0 where nothing was counted."""
    found = np.zeros(len(tiles))
    for number, stage in stages.items():
        if OTHER_COUNT in stage.work:
            count = tiles[f"work{stage.work.index(OTHER_COUNT)}"]
            found = np.where(tiles["stage"] == number, count, found)
    return np.asarray(np.minimum(found, tiles["duration_ns"]))


def shared_out(leaves: Array, tiles: Array, tile_of: Array, stages: Mapping[int, Stage]) -> Array:
    """Return what of their tiles' other programs falls to `leaves`, float64 [leaves] in ns."""
    share = _share(tiles, stages)
    return np.asarray(leaves["duration_ns"] * share[tile_of]) if len(leaves) else np.zeros(0)


def shared_out_rest(rest: Array, tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return what of their other programs falls to the `rest` of tiles that no leaf covers, float64 [tiles] in ns."""
    return np.asarray(rest * _share(tiles, stages))


def _share(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Which part of their time other programs had the processor, float64 [tiles] of 0…1."""
    other = other_of(tiles, stages)
    share: Array = np.zeros(len(tiles))
    np.divide(other, tiles["duration_ns"], out=share, where=other > 0)
    return share


class Speed:
    """How much slower than its roofs the machine was, from the probes of a session, kept up with it."""

    def __init__(self) -> None:
        self._consumed = 0
        self._generation = -1
        self._times: tuple[Array, ...] = tuple(np.zeros(0, np.int64) for _ in PROBES)
        self._values: tuple[Array, ...] = tuple(np.zeros(0) for _ in PROBES)

    def update(self, session: Recorded) -> None:
        """Take in the probes among the spans read since the last call; all again where a roof was replaced."""
        if session.generation != self._generation:
            self.__init__()  # type: ignore[misc]
            self._generation = session.generation
        fresh = session.spans[self._consumed :]
        if not len(fresh):
            return
        self._consumed = len(session.spans)
        times, values = list(self._times), list(self._values)
        for number, stage in session.stages.items():
            if stage.name not in PROBES:
                continue
            probe = PROBES.index(stage.name)
            at = np.flatnonzero(fresh["stage"] == number)
            roof = session.calibration.kernel(stage.name)
            if roof is None or not len(at):
                continue
            spans = pick(fresh, at)
            slowness = spans["duration_ns"] * roof.median / (1e9 * np.maximum(spans["work0"], 1))
            sound = (slowness >= LEAST_SLOWNESS) & (slowness <= MOST_SLOWNESS)
            ends = spans["start_ns"] + spans["duration_ns"]
            times[probe] = np.concatenate([times[probe], ends[sound]])
            values[probe] = np.concatenate([values[probe], slowness[sound]])
        self._times, self._values = tuple(times), tuple(values)

    def at(self, start_ns: Array) -> Array | None:
        """Return the slowness of arithmetic and memory at those times, float64 [2, n]; None without any probe.

        The last PROBES_TOGETHER probes that had ended count. Before the first one the machine is taken to be as fast as
        its roofs, so that what is read in pieces gives the same.
        """
        if not any(len(times) for times in self._times):
            return None
        found = np.ones((len(PROBES), len(start_ns)))
        for row, times, values in zip(found, self._times, self._values, strict=True):
            if len(times):
                before = np.searchsorted(times, start_ns, side="right") - 1
                # The least of the last few: a probe may itself have been disturbed, it is never too fast.
                steady = np.min(
                    [values[np.maximum(before - back, 0)] for back in range(PROBES_TOGETHER)],
                    axis=0,
                )
                row[:] = np.where(before >= 0, steady, 1.0)
        return found

    def mean(self) -> tuple[float, float] | None:
        """The median slowness of arithmetic and memory over the session; None where it was not probed."""
        if not all(len(values) for values in self._values):
            return None
        arithmetic, memory = (float(np.median(values)) for values in self._values)
        return arithmetic, memory


class Waited(NamedTuple):
    """Which part of the time of spans was waiting for data, each [n] of 0…1: at least, likely, at most."""

    least: Array
    likely: Array
    most: Array


class Waiting:
    """Which part of their time stages waited for data that were in no cache, from the hot replays of a session."""

    def __init__(self) -> None:
        self._consumed = 0
        self._times: dict[str, Array] = {}
        self._hot: dict[str, Array] = {}
        self._timed: dict[str, Array] = {}

    def update(self, session: Recorded) -> None:
        """Take in the replays among the spans read since the last call."""
        fresh = session.spans[self._consumed :]
        if not len(fresh):
            return
        self._consumed = len(session.spans)
        for number, stage in session.stages.items():
            if not stage.name.startswith(REPLAYED):
                continue
            at = np.flatnonzero(fresh["stage"] == number)
            if not len(at):
                continue
            spans, name = pick(fresh, at), stage.name.removeprefix(REPLAYED)
            for store, values in (
                (self._times, spans["start_ns"] + spans["duration_ns"]),
                (self._hot, spans["duration_ns"].astype(np.float64)),
                (self._timed, spans["work0"].astype(np.float64)),
            ):
                known = store.get(name)
                store[name] = values if known is None else np.concatenate([known, values])

    def replayed(self, stage: str) -> int:
        """How often the stage was replayed."""
        return len(self._times.get(stage, ()))

    def share(self, stage: str, start_ns: Array) -> Waited | None:
        """Return what of each span's time the last LATEST replays before it say; None without any at all."""
        times = self._times.get(stage)
        if times is None:
            return None
        # Of every count of replays that is met, as there are far fewer of them than of spans.
        place = np.searchsorted(times, start_ns, side="right")
        least, most = (int(place.min()), int(place.max())) if len(place) else (0, 0)
        known, place = np.arange(least, most + 1), place - least
        latest = known[:, None] - 1 - np.arange(LATEST)
        there = latest >= 0
        hot, timed = (
            np.where(there, values[stage][np.maximum(latest, 0)], 0.0)
            for values in (self._hot, self._timed)
        )
        count, whole = there.sum(axis=1), timed.sum(axis=1)
        ratio = np.divide(hot.sum(axis=1), whole, out=np.ones(len(known)), where=whole > 0)
        # The standard error of a ratio of sums (Cochran 1977, 2.11), from what single replays are off.
        off = ((hot - ratio[:, None] * timed) ** 2).sum(axis=1) * count
        several = (count > 1) & (whole > 0)
        error = np.sqrt(np.divide(off, count - 1, out=np.zeros(len(known)), where=several))
        error = np.divide(SURE * error, whole, out=np.zeros(len(known)), where=whole > 0)
        # Of fewer their own differences say nothing; before the first there is nothing to be wrong about.
        fewer = (count > 0) & (count < FEWEST)
        error = np.where(fewer, ONE_REPLAY / np.sqrt(np.maximum(count, 1)), error)
        ends = (np.clip(1.0 - ratio + by * error, 0.0, 1.0)[place] for by in (-1, 0, 1))
        return Waited(*ends)
