"""Which part of their time stages waited for data that were in no cache, from the hot replays of a session.

A replay says what one block took with its data hot. Two witnesses say what that is of the time of all blocks around it:
the time that the same block had taken, and the work that its law counts in it, of which all blocks' time is known. The
first goes wrong where that block was a slow or a fast one, the second where the law leaves out what differs from block
to block. Some of each goes less wrong than either.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.conditions import other_of
from profiler.analysis.law import law_of_cached
from profiler.analysis.nesting import pick
from profiler.analysis.per_frame import grains
from profiler.analysis.recorded import Recorded
from profiler.arrays import Array
from profiler.costs import Cost, Linear
from profiler.spans import TILING

REPLAYED: Final = "replay."
"""Stages whose spans are hot times of the stage named after it, their count the time that the same block had taken."""

DISTURBED: Final = 0.02
"""A block, or a pass over it, of which another program took more than this part is not compared."""

LATEST: Final = 16
"""So many replays of a stage are taken together: one alone is too uncertain."""

BY_TIME: Final = {"scoring": 0.25, "search": 0.5}
"""So much is told by the time that the replayed block had taken, by group of stages: scoring does what its law counts,
blocks of the search differ in more than that. Which quarter puts a single one nearest changes from run to run
(`python -m tests.bench.constants --only replays`)."""

ONE_REPLAY: Final = {"scoring": 0.3, "search": 0.29}
"""So far from what many replays of a stage say lies a single one, as a part of the time; nineteen of twenty are nearer
(`python -m tests.bench.constants --only replays`)."""

FEWEST: Final = 3
SURE: Final = 3.0
"""From so few replays on they tell how uncertain they are, by so many standard errors on either side: of three they
hold the truth in 90 of 100 cases, of eight or more in 98 (Student's distribution)."""

_ROUNDED: Final = 0.01
"""A block whose spans add up to what its replay says it took, but for this part, is that block."""


class Waited(NamedTuple):
    """Which part of the time of spans was waiting for data, each [n] of 0…1: at least, likely, at most."""

    least: Array
    likely: Array
    most: Array


class _Replays(NamedTuple):
    """Of a stage under one law, in order, float64 [replays].

    `times`: when each ended. `hot`, `timed`: what it took, and what its block had taken, in ns. `work`: what the law
    says of that block, in ns; 0 where it says nothing. `all_ns`, `all_work`: the same of all blocks before it together
    that nothing disturbed.
    """

    times: Array
    hot: Array
    timed: Array
    work: Array
    all_ns: Array
    all_work: Array


class _Some(NamedTuple):
    """Some of a session's spans, and their positions among those that are looked at."""

    positions: Array
    spans: Array

    def under(self, epochs: list[int]) -> _Some:
        """Those of some epochs."""
        chosen = np.isin(self.spans["epoch"], epochs)
        if chosen.all():
            return self
        return _Some(self.positions[chosen], pick(self.spans, np.flatnonzero(chosen)))


class _Tiles:
    """The tiles among `spans`: a block's spans come before its tile, and its replay after it."""

    def __init__(self, session: Recorded, spans: Array, stages: Array) -> None:
        """`stages`: the column of `spans`."""
        is_tile = np.zeros(max(session.stages) + 1, bool)
        is_tile[[n for n, stage in session.stages.items() if stage.group in TILING]] = True
        tile_here = is_tile[stages]
        self._before = np.cumsum(tile_here, dtype=np.int32) - tile_here
        self.positions = np.flatnonzero(tile_here)
        tiles = pick(spans, self.positions)
        self._starts = tiles["start_ns"]
        self._calm = other_of(tiles, session.stages) <= DISTURBED * tiles["duration_ns"]

    def calm(self, positions: Array, start_ns: Array) -> Array:
        """Whether the spans there, which began then, lie in a tile that other programs left alone, bool [n]."""
        tile = self._before[positions]
        known = tile < len(self._starts)
        if not len(self._starts):
            return known
        tile = np.minimum(tile, len(self._starts) - 1)
        return np.asarray(known & self._calm[tile] & (start_ns >= self._starts[tile]))

    def block(self, positions: Array) -> Array:
        """From which position on the spans of the last tile before each lie, int64 [n]; itself where there is none."""
        last = self._before[positions] - 1
        ends = np.concatenate([[0, 0], self.positions + 1])
        return np.where(last < 0, positions, ends[last + 1])


class _OfLaw:
    """The replays of a stage under one cost law, and what all of its blocks took."""

    def __init__(self, cost: Cost | None, group: str) -> None:
        """`group`: of the stage, a key of BY_TIME."""
        self.cost, self.group = cost, group
        self.replays = _Replays(*(np.zeros(0) for _ in _Replays._fields))
        self._all = np.zeros(2)

    def add(self, own: _Some, work: Linear, replays: _Some, tiles: _Tiles, done: int) -> None:
        """Take in `replays` and the stage's `own` spans; those before the position `done` do not come again."""
        ns = own.spans["duration_ns"].astype(np.float64)
        each = np.stack([ns, grains(np.maximum(work.of(own.spans), 0.0))])
        calm = tiles.calm(own.positions, own.spans["start_ns"])
        undisturbed = _up_to(each * calm)
        if len(replays.positions):
            whole = undisturbed if calm.all() else _up_to(each)
            place, block = (
                np.searchsorted(own.positions, at)
                for at in (replays.positions, tiles.block(replays.positions))
            )
            hot, timed = (
                replays.spans[name].astype(np.float64) for name in ("duration_ns", "work0")
            )
            took, counted = whole[:, place] - whole[:, block]
            same = np.abs(took - timed) <= _ROUNDED * timed
            new = _Replays(
                replays.spans["start_ns"] + replays.spans["duration_ns"],
                hot,
                timed,
                np.where(same, counted, 0.0),
                *(self._all[:, None] + undisturbed[:, place]),
            )
            self.replays = _Replays(*map(np.concatenate, zip(self.replays, new, strict=True)))
        self._all += undisturbed[:, np.searchsorted(own.positions, done)]


def _up_to(values: Array) -> Array:
    """The sums of the first 0, 1, … n of `values` [k, n], float64 [k, n + 1]."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


class Waiting:
    """What the hot replays of a session say, kept up with it at the roofs that it has.

    A replay tells of blocks under the same cost law: a kernel that takes more rows at once, or leaves some of them
    out, waits for another part of its time.
    """

    def __init__(self) -> None:
        self._consumed = 0
        self._summed = 0
        self._known: dict[str, list[_OfLaw]] = {}

    def update(self, session: Recorded) -> bool:
        """Take in the replays among the spans read since the last call.

        True where they say something of earlier spans too, as the first FEWEST do: those are to be taken in once more.
        """
        first, self._consumed = self._consumed, len(session.spans)
        fresh = np.ascontiguousarray(session.spans["stage"][first:])
        found = {
            stage.name.removeprefix(REPLAYED): np.flatnonzero(fresh == number)
            for number, stage in session.stages.items()
            if stage.name.startswith(REPLAYED)
        }
        if not any(map(len, found.values())):
            return False
        spans = session.spans[self._summed :]
        replays = {
            name: _Some(at + first - self._summed, pick(spans, at + first - self._summed))
            for name, at in found.items()
        }
        stages = np.ascontiguousarray(spans["stage"])
        tiles = _Tiles(session, spans, stages)
        # A replay comes after its block: the last tile is looked at once more.
        done = int(tiles.positions[-2]) + 1 if len(tiles.positions) > 1 else 0
        numbers = {stage.name: n for n, stage in session.stages.items() if stage.group in BY_TIME}
        backwards = False
        for name in {**numbers, **replays}:
            at = np.flatnonzero(stages == numbers.get(name, -1))
            own = _Some(at, pick(spans, at))
            mine = replays.get(name, _Some(at[:0], spans[:0]))
            for law, epochs in self._laws(session, name, numbers.get(name, -1), own, mine):
                before = len(law.replays.times)
                law.add(
                    own.under(epochs), _work(law.cost, session), mine.under(epochs), tiles, done
                )
                backwards |= before < min(FEWEST, len(law.replays.times))
        self._summed += done
        return backwards

    def _laws(
        self, session: Recorded, name: str, number: int, *spans: _Some
    ) -> list[tuple[_OfLaw, list[int]]]:
        """The laws that any of the `spans` of a stage are under, with their epochs."""
        laws = self._known.setdefault(name, [])
        found: dict[int, list[int]] = {}
        for epoch in np.unique(np.concatenate([each.spans["epoch"] for each in spans])).tolist():
            cost = session.costs.get((number, epoch))
            at = next((i for i, law in enumerate(laws) if law.cost == cost), len(laws))
            if at == len(laws):
                # `number` is of a stage of these groups, or none where only its replays are known.
                group = session.stages[number].group if number in session.stages else "search"
                laws.append(_OfLaw(cost, group))
            found.setdefault(at, []).append(epoch)
        return [(laws[at], epochs) for at, epochs in found.items()]

    def _of(self, stage: str, cost: Cost | None) -> _OfLaw | None:
        found = (law for law in self._known.get(stage, ()) if law.cost == cost)
        return next((law for law in found if len(law.replays.times)), None)

    def replayed(self, stage: str, cost: Cost | None) -> int:
        """How often the stage was replayed under a law."""
        known = self._of(stage, cost)
        return 0 if known is None else len(known.replays.times)

    def hot(
        self, stage: str, cost: Cost | None, latest: int, by_time: float | None = None
    ) -> Array:
        """Return which part of its time a stage takes hot by the last `latest` of each count of replays, [replays].

        `by_time`: how much the time of the replayed blocks tells, else as much as for its group of stages.
        """
        law = self._of(stage, cost)
        if law is None:
            return np.zeros(0)
        known = np.arange(1, len(law.replays.times) + 1)
        return _hot(law.replays, known, latest, law.group, by_time)[0]

    def share(self, stage: str, cost: Cost | None, start_ns: Array) -> Waited | None:
        """Return what of each span's time under a law the last LATEST replays before it say; None without any at all.

        Of the spans before the first FEWEST these tell.
        """
        law = self._of(stage, cost)
        if law is None:
            return None
        replays = law.replays
        # Of every count of replays that is met, as there are far fewer of them than of spans.
        place = np.searchsorted(replays.times, start_ns, side="right")
        place = np.maximum(place, min(FEWEST, len(replays.times)))
        least, most = (int(place.min()), int(place.max())) if len(place) else (1, 1)
        known, place = np.arange(least, most + 1), place - least
        ratio, error = _hot(replays, known, LATEST, law.group)
        ends = (np.clip(1.0 - ratio + by * error, 0.0, 1.0)[place] for by in (-1, 0, 1))
        return Waited(*ends)


def _work(cost: Cost | None, session: Recorded) -> Linear:
    """What a law says that a span takes, in ns; nothing where there is no saying."""
    if cost is None or cost.unmodelled or not session.calibration:
        return Linear()
    return law_of_cached(cost, session.calibration).likely


def _hot(
    replays: _Replays, known: Array, latest: int, group: str, part: float | None = None
) -> tuple[Array, Array]:
    """Return which part of its time a stage takes hot, by the last `latest` of so many `known` replays [n], and SURE
    standard errors of it, float64 [n] each. `part`: of BY_TIME, if not that of the `group`."""
    number = known[:, None] - 1 - np.arange(latest)
    there = number >= 0
    hot, timed, work = (
        np.where(there, values[np.maximum(number, 0)], 0.0)
        for values in (replays.hot, replays.timed, replays.work)
    )
    count, whole = there.sum(axis=1), timed.sum(axis=1)
    # All blocks since the replay before those.
    all_ns, all_work = (
        values[known - 1] - np.where(known > latest, values[np.maximum(known - 1 - latest, 0)], 0.0)
        for values in (replays.all_ns, replays.all_work)
    )
    usable = (work.min(axis=1, where=there, initial=np.inf) > 0) & (all_ns > 0) & (all_work > 0)
    # Where the work is not known, the time stands in its place.
    work = np.where(usable[:, None], work, timed)
    per_ns = np.divide(all_work, all_ns, out=np.ones(len(known)), where=usable)
    sums, worked = hot.sum(axis=1), work.sum(axis=1)
    by_time, by_work = (
        np.divide(sums, total, out=np.ones(len(known)), where=total > 0)
        for total in (whole, worked)
    )
    part = BY_TIME[group] if part is None else part
    ratio = part * by_time + (1.0 - part) * by_work * per_ns
    # The standard error of a ratio of sums (Cochran 1977, 2.11), from what single replays are off.
    off = hot - part * by_time[:, None] * timed - (1.0 - part) * by_work[:, None] * work
    squares = (off**2).sum(axis=1) * count
    several = (count > 1) & (whole > 0)
    error = np.sqrt(np.divide(squares, count - 1, out=np.zeros(len(known)), where=several))
    to_share = np.divide(part, whole, out=np.zeros(len(known)), where=whole > 0)
    to_share += np.divide((1.0 - part) * per_ns, worked, out=np.zeros(len(known)), where=worked > 0)
    # Of fewer their own differences say nothing.
    alone = ONE_REPLAY[group] / np.sqrt(count)
    error = np.where(count < FEWEST, alone, SURE * error * to_share)
    return ratio, error
