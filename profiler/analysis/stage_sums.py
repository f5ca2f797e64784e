"""Sums over a session's spans by lane, stage and epoch, filled by `CostTrack` and read for any stretch of frames.

Spans of one kind are summed up CHUNK at a time. A stretch takes the chunks that lie within it as they are and looks at
single spans only on its edges, so a selection in an hour of recording takes about as long as in a minute. Nothing
depends on the order of the frames: where chunks overlap the edge, more spans are looked at.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.machine_costs import Sums
from profiler.arrays import Array
from profiler.session.format.grow import Growing
from profiler.spans import GROUPS, SPAN, TILING, WORK_COUNTS, Stage

OTHER_COUNT: Final = "other_programs_ns"
STOPPED_COUNT: Final = "stopped_ms"
COUNTS: Final = (OTHER_COUNT, "throttled_ns", STOPPED_COUNT)
"""Of a tile: the categories NOT_OWN in their order, then for how long the process stood still, which may be for longer
than a count holds in ns."""

_NS: Final = {STOPPED_COUNT: 1e6}


def lost_shares(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return the part of each tile lost to COUNTS, float64 [counts, tiles], at most 1, what stood still first."""
    lost = np.zeros((len(COUNTS), len(tiles)))
    for number, stage in stages.items():
        for row, name in enumerate(COUNTS):
            if name in stage.work:
                count = tiles[f"work{stage.work.index(name)}"] * _NS.get(name, 1.0)
                lost[row] = np.where(tiles["stage"] == number, count, lost[row])
    if not lost.any():
        return lost
    left = tiles["duration_ns"].astype(np.float64)
    for row in reversed(lost):
        np.minimum(row, left, out=row)
        left -= row
    shares = np.zeros(lost.shape)
    np.divide(lost, tiles["duration_ns"], out=shares, where=lost > 0)
    return shares


LEAF_GROUPS: Final = ("frontend", "scoring", "search", "transfer")  # Taken off a tile; the rest is overhead

# By code of the group; the last entry is for stages without one.
_IS_TILE: Final = np.array([group in TILING for group in (*GROUPS, "")])


class Nested(NamedTuple):
    """Tiles [t] and leaves [l] (dtype SPAN), the tile of each leaf [l], positions of both in the array given.

    `used`: how many spans are dealt with; those after the last tile must wait.
    """

    outer: Array
    leaves: Array
    outer_of: Array
    outer_positions: Array
    leaf_positions: Array
    used: int


def group_codes(stages: Mapping[int, Stage]) -> Array:
    """Return the index in GROUPS of each stage's group, int8 [highest stage + 1]."""
    codes = np.full(max(stages, default=-1) + 1, -1, np.int8)
    for number, stage in stages.items():
        codes[number] = GROUPS.index(stage.group)
    return codes


def pick(spans: Array, positions: Array) -> Array:
    """Return spans[positions], faster: as bytes, numpy copies whole records."""
    rows = np.ascontiguousarray(spans).view(np.uint8).reshape(len(spans), SPAN.itemsize)
    return rows.take(positions, axis=0).view(SPAN)[:, 0]


def by_stage_and_epoch(stages: Array, epochs: Array) -> Iterator[tuple[Array, int, int]]:
    """Give (positions, stage, epoch) of spans for each pair that occurs, positions rising; uint16 [spans] each."""
    for stage in _occurring(stages):
        of_stage = np.flatnonzero(stages == stage)
        of_epoch = epochs[of_stage]
        for epoch in _occurring(of_epoch):
            yield of_stage[of_epoch == epoch], stage, epoch


def _occurring(numbers: Array) -> list[int]:
    """The numbers that occur, rising: those of 16 bits are counted in less time than sorted."""
    found: list[int] = np.flatnonzero(np.bincount(numbers)).tolist()
    return found


def nest(spans: Array, codes: Array, groups: tuple[str, ...] = LEAF_GROUPS) -> Nested:
    """Sort out the spans of one decode lane (dtype SPAN [n], in order of arrival); `groups`: of the leaves."""
    is_leaf = np.array([group in groups for group in (*GROUPS, "")])
    group = codes[spans["stage"]]
    outer_positions = np.flatnonzero(_IS_TILE[group])
    used = int(outer_positions[-1]) + 1 if len(outer_positions) else 0
    outer = pick(spans, outer_positions)
    positions = np.flatnonzero(is_leaf[group[:used]])
    outer_of = np.searchsorted(outer_positions, positions)
    leaves = pick(spans, positions)
    begin, end = leaves["start_ns"], leaves["start_ns"] + leaves["duration_ns"]
    opens, closes = outer["start_ns"], outer["start_ns"] + outer["duration_ns"]
    inside = (begin >= opens[outer_of]) & (end <= closes[outer_of])
    if not inside.all():
        leaves, outer_of, positions = leaves[inside], outer_of[inside], positions[inside]
    return Nested(outer, leaves, outer_of, outer_positions, positions, used)


def nested_in_pieces(spans: Array, codes: Array, size: int) -> Iterator[Nested]:
    """`nest` of the spans of one decode lane, about `size` of them at a time."""
    at, taken = 0, size
    while at < len(spans):
        found = nest(spans[at : at + taken], codes)
        if found.used:
            yield found
            at, taken = at + found.used, size
        elif at + taken < len(spans):
            taken *= 2  # a tile with more leaves than that
        else:
            return


CHUNK: Final = 256  # Spans per sum: a selection looks at two chunks of spans per stage; a chunk costs 80 bytes
_COLUMNS: Final = 5 + WORK_COUNTS  # Those of `Sums`

Kind = tuple[int, int, int]  # Lane, stage and epoch


class StageSums:
    """The sums of one session. `spans` is always all of its spans; `positions` are numbers among them."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, _Kind] = {}
        self._lost = _Lost()

    def add(self, kind: Kind, spans: Array, positions: Array, lost_ns: Array | None = None) -> None:
        """Append spans of one kind; `lost_ns` [COUNTS, n]: what of each was not its own, in GRAINs."""
        if lost_ns is not None:
            self._lost.add(positions, lost_ns)
        self._kinds.setdefault(kind, _Kind()).add(spans, positions, self._lost)

    def totals(self) -> Iterator[tuple[Kind, Sums]]:
        return ((key, _sums(kind.total)) for key, kind in self._kinds.items())

    def within(self, spans: Array, first: int, last: int) -> Iterator[tuple[Kind, Sums]]:
        """Give the sums of the frames first … last − 1 of each kind that has any."""
        found = ((key, _sums(kind.within(spans, first, last, self._lost))) for key, kind in self._kinds.items())
        return ((key, sums) for key, sums in found if sums.calls > 0)


class _Lost:
    """ns that were not their own, [COUNTS], by the position of a span; kept of those with any."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Array, Array]] = []

    def add(self, positions: Array, lost_ns: Array) -> None:
        some = np.flatnonzero(lost_ns.any(axis=0))
        if len(some):
            self._pieces.append((positions[some].astype(np.int64), lost_ns[:, some]))

    def of(self, positions: Array) -> Array:
        if not self._pieces:
            return np.zeros((len(COUNTS), len(positions)))
        if len(self._pieces) > 1:
            at, ns = (np.concatenate(part, axis=-1) for part in zip(*self._pieces, strict=True))
            order = np.argsort(at, kind="stable")
            self._pieces = [(at[order], ns[:, order])]
        at, ns = self._pieces[0]
        place = np.minimum(np.searchsorted(at, positions), len(at) - 1)
        found: Array = np.where(at[place] == positions, ns[:, place], 0.0)
        return found


class _Kind:
    """Positions of the spans of one kind, with sums, first frame and frame after the last of each full chunk."""

    def __init__(self) -> None:
        self._positions = Growing(np.uint32)
        # The spans of the last chunk, which is not full: rare ones lie all over a session.
        self._rest: Array = np.empty(0, SPAN)
        self._sums, self._reach = Growing(np.float64, _COLUMNS), Growing(np.int64, 2)
        self._full: Array = np.zeros(_COLUMNS)
        self.total: Array = np.zeros(_COLUMNS)

    def add(self, spans: Array, positions: Array, lost: _Lost) -> None:
        chosen = np.concatenate([self._rest, pick(spans, positions)])
        self._positions.extend(positions)
        amounts = _amounts(chosen, self._positions.view[len(self._positions) - len(chosen) :], lost)
        whole = len(chosen) // CHUNK * CHUNK
        if whole:
            sums = amounts[:, :whole].reshape(_COLUMNS, -1, CHUNK).sum(axis=2).T
            self._sums.extend(sums)
            self._full = self._full + sums.sum(axis=0)
            first, end = (edge.reshape(-1, CHUNK) for edge in _frames(chosen[:whole]))
            self._reach.extend(np.stack([first.min(axis=1), end.max(axis=1)], axis=1))
        self._rest = chosen[whole:].copy()
        self.total = self._full + amounts[:, whole:].sum(axis=1)

    def within(self, spans: Array, first: int, last: int, lost: _Lost) -> Array:
        """Sum up the frames first … last − 1, float64 [columns]."""
        begin, end = self._reach.view.T
        inside = (begin >= first) & (end <= last)
        edge = ~inside & (end > first) & (begin < last)
        at = np.flatnonzero(edge)[:, None] * CHUNK + np.arange(CHUNK)
        positions = self._positions.view
        edges = np.concatenate([positions[at.ravel()], positions[len(positions) - len(self._rest) :]])
        chosen = np.concatenate([pick(spans, edges[: at.size]), self._rest])
        begin, end = _frames(chosen)
        part = np.clip(np.minimum(end, last) - np.maximum(begin, first), 0, None) / (end - begin)
        return np.asarray(self._sums.view[inside].sum(axis=0) + _amounts(chosen, edges, lost) @ part)


def _sums(columns: Array) -> Sums:
    time, other, throttled, calls, frames, *work = columns.tolist()
    return Sums(time, other, calls, frames, (work[0], work[1], work[2]), throttled)


def _amounts(spans: Array, positions: Array, lost: _Lost) -> Array:
    """What each span, at its position, adds to the sums, float64 [columns, n]."""
    amounts = np.ones((_COLUMNS, len(spans)))
    other, throttled, stopped = lost.of(positions)
    amounts[:3] = spans["duration_ns"] - stopped, other, throttled
    for row, name in enumerate(("frames", "work0", "work1", "work2"), 4):
        amounts[row] = spans[name]
    return amounts


def _frames(spans: Array) -> tuple[Array, Array]:
    """First frame and the one after the last, int64 [n]; a span that names no frames takes one."""
    begin = spans["first_frame"].astype(np.int64)
    return begin, begin + np.maximum(spans["frames"], 1)
