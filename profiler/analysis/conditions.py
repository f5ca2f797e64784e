"""What else the machine did while spans were recorded: other programs on its processor, and how fast it was.

A tile of the decode lane may carry, as a work count OTHER_COUNT, for how long its thread was ready and another program
ran; its leaves share that by their length. Between tiles the run may time two small kernels whose roofs are known
(PROBES): how much slower they ran than their roofs is how much slower the machine was.
"""

from collections.abc import Mapping
from typing import Final

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
            roof = session.calibration.probe(stage.name)
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
