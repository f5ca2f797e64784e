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
from profiler.costs import Cost
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


class _Replays(NamedTuple):
    """Of a stage under one law, in order: when each replay ended, what it took, and what the block had taken, in ns."""

    times: Array
    hot: Array
    timed: Array


class Waiting:
    """Which part of their time stages waited for data that were in no cache, from the hot replays of a session.

    A replay tells of blocks under the same cost law: a kernel that takes more rows at once, or leaves some of them
    out, waits for another part of its time.
    """

    def __init__(self) -> None:
        self._consumed = 0
        self._known: dict[str, list[tuple[Cost | None, _Replays]]] = {}

    def update(self, session: Recorded) -> bool:
        """Take in the replays among the spans read since the last call.

        True where they say something of earlier spans too, as the first FEWEST do: those are to be taken in once more.
        """
        fresh = session.spans[self._consumed :]
        if not len(fresh):
            return False
        self._consumed = len(session.spans)
        numbers = {stage.name: number for number, stage in session.stages.items()}
        backwards = False
        for number, stage in session.stages.items():
            if not stage.name.startswith(REPLAYED):
                continue
            name = stage.name.removeprefix(REPLAYED)
            found = pick(fresh, np.flatnonzero(fresh["stage"] == number))
            for epoch in np.unique(found["epoch"]).tolist():
                spans = pick(found, np.flatnonzero(found["epoch"] == epoch))
                cost = session.costs.get((numbers.get(name, -1), epoch))
                backwards |= self._add(name, cost, spans)
        return backwards

    def _add(self, name: str, cost: Cost | None, spans: Array) -> bool:
        new = _Replays(
            spans["start_ns"] + spans["duration_ns"],
            spans["duration_ns"].astype(np.float64),
            spans["work0"].astype(np.float64),
        )
        laws = self._known.setdefault(name, [])
        for i, (law, known) in enumerate(laws):
            if law == cost:
                laws[i] = cost, _Replays(*map(np.concatenate, zip(known, new, strict=True)))
                return len(known.times) < FEWEST
        laws.append((cost, new))
        return True

    def _of(self, stage: str, cost: Cost | None) -> _Replays | None:
        return next((known for law, known in self._known.get(stage, ()) if law == cost), None)

    def replayed(self, stage: str, cost: Cost | None) -> int:
        """How often the stage was replayed under a law."""
        known = self._of(stage, cost)
        return 0 if known is None else len(known.times)

    def share(self, stage: str, cost: Cost | None, start_ns: Array) -> Waited | None:
        """Return what of each span's time under a law the last LATEST replays before it say; None without any at all.

        Of the spans before the first FEWEST these tell.
        """
        replays = self._of(stage, cost)
        if replays is None:
            return None
        # Of every count of replays that is met, as there are far fewer of them than of spans.
        place = np.searchsorted(replays.times, start_ns, side="right")
        place = np.maximum(place, min(FEWEST, len(replays.times)))
        least, most = (int(place.min()), int(place.max())) if len(place) else (1, 1)
        known, place = np.arange(least, most + 1), place - least
        latest = known[:, None] - 1 - np.arange(LATEST)
        there = latest >= 0
        hot, timed = (
            np.where(there, values[np.maximum(latest, 0)], 0.0)
            for values in (replays.hot, replays.timed)
        )
        count, whole = there.sum(axis=1), timed.sum(axis=1)
        ratio = np.divide(hot.sum(axis=1), whole, out=np.ones(len(known)), where=whole > 0)
        # The standard error of a ratio of sums (Cochran 1977, 2.11), from what single replays are off.
        off = ((hot - ratio[:, None] * timed) ** 2).sum(axis=1) * count
        several = (count > 1) & (whole > 0)
        error = np.sqrt(np.divide(off, count - 1, out=np.zeros(len(known)), where=several))
        error = np.divide(SURE * error, whole, out=np.zeros(len(known)), where=whole > 0)
        # Of fewer their own differences say nothing.
        error = np.where(count < FEWEST, ONE_REPLAY / np.sqrt(count), error)
        ends = (np.clip(1.0 - ratio + by * error, 0.0, 1.0)[place] for by in (-1, 0, 1))
        return Waited(*ends)
