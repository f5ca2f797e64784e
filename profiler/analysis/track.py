"""The cost of every frame and of every stage, kept up with a live session in one pass over its spans.

Tiles and leaves are spread evenly over the frames they name, into the categories that add up to the wall time, and
summed up by stage. What was not their own (`conditions`) leaves every category; what stood still is in none. What
scoring took of each frame is kept by stage and law, and `attribution` shares it out to compute, memory and not
attributed, anew whenever its shares change. Contributions are rounded to 2^-16 ns, so that all sums are exact in
float64: they are the same bit for bit whether the session is read at once or in pieces, and the categories of any
stretch of frames add up to its wall time.
"""

from typing import Final, TypeVar

import numpy as np

from profiler.analysis import stage_sums
from profiler.analysis.attribution import GROUPS as ATTRIBUTED
from profiler.analysis.attribution import SHARES, Attribution, Shares
from profiler.analysis.categories import CATEGORIES, NOT_ATTRIBUTED, NOT_OWN, OVERHEAD, UNEXPLAINED
from profiler.analysis.machine_costs import Sums
from profiler.analysis.per_frame import FrameRow, PerFrame, Spread, grains
from profiler.analysis.recorded import Recorded
from profiler.analysis.stage_sums import by_stage_and_epoch, lost_shares, nest, pick
from profiler.analysis.verdict import COMPUTE_PARTS
from profiler.arrays import Array, Bool
from profiler.session.format.grow import Growing, sweep
from profiler.spans import GROUPS

CHUNK_SPANS: Final = 1 << 15  # Spans handled at once: bounds the temporary arrays to some megabytes
MAX_FRAMES: Final = 1 << 25  # 93 hours; with SLACK_FRAMES it keeps a damaged file from asking for all memory
SLACK_FRAMES: Final = 1 << 20  # How far ahead of the decoded frames a span may lie: features are per utterance
SCORING_BYTES: Final = "scoring bytes"  # A work count: what scoring must move at least, by the cost laws
ROW_GROUPS: Final = (*stage_sums.LEAF_GROUPS, OVERHEAD)  # Leaves with sums: taken off a tile, or explaining the rest
_DECODE: Final = GROUPS.index("decode")
_OVERHEAD: Final = GROUPS.index(OVERHEAD)

# By code of the group; the last entry is for stages without one.
_IS_OUTSIDE: Final = np.array([group in ("idle", "setup") for group in (*GROUPS, "")])
_HAS_SUMS: Final = _IS_OUTSIDE | np.array([group in ROW_GROUPS for group in (*GROUPS, "")])

STEPS: Final = 1024  # Shares are rounded to this many steps: those of a long session then hardly ever change

_MIXED: Final = tuple(CATEGORIES.index(name) for name in ("compute", "memory", UNEXPLAINED))

_WALL: Final = len(CATEGORIES)  # The row after those of the categories: their sum
_STOPPED: Final = _WALL + 1  # And after that: for how long the process stood still

Named = TypeVar("Named", str, tuple[int, int])


class Decoding:
    """How far decoding has come, and when; `n_frames`: frames decoded so far."""

    def __init__(self) -> None:
        self.n_frames = 0
        self._decoded = 0
        self._ends, self._reached = Growing(np.int64), Growing(np.int64)

    def limit(self, frames: Array) -> Array:
        """Return the frame that each new tile may reach, [tiles]; `frames`: how many each decodes."""
        decoded = self._decoded + np.cumsum(frames, dtype=np.int64)
        self._decoded = int(decoded[-1])
        return np.minimum(2 * decoded + SLACK_FRAMES, MAX_FRAMES)

    def add(self, blocks: Array) -> None:
        """Take in the spans of new blocks."""
        if len(blocks):
            reached = blocks["first_frame"].astype(np.int64) + blocks["frames"]
            self.n_frames = max(self.n_frames, int(reached.max()))
            self._ends.extend(blocks["start_ns"] + blocks["duration_ns"])
            self._reached.extend(reached)

    def frames_at(self, t_ns: Array) -> Array:
        """Return how many frames were decoded at times of the session's clock, int64 [n]."""
        ended = np.searchsorted(self._ends.view, t_ns, side="right")
        frames, any_ended = np.zeros(len(t_ns), np.int64), ended > 0
        frames[any_ended] = self._reached.view[ended[any_ended] - 1]
        return frames


class CostTrack:
    """Per-frame rows and sums by stage of one session, grown by `update`.

    `n_frames`: frames decoded so far. `category_rows`: ns by CATEGORIES; `wall_row`: their sum; `work_rows`: by "group
    name", where counts of one name are added up over a group, and SCORING_BYTES, which follow from the cost laws. They
    give arrays for slices of frames, and hold until the next update. `tiles`: how many there are. `misplaced`: spans
    beyond anything decoded, in no figure. `attribution`: what each stage's time consists of. `stages`: sums by stage.
    `decoding`: when frames were decoded. `generation` grows when earlier frames change.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._generation = -1
        self._reset()

    def _reset(self) -> None:
        self.generation += 1
        self.misplaced = 0
        self.tiles = 0
        self.decoding = Decoding()
        self._consumed = self._swept = 0
        self._waiting: dict[int, Array] = {}
        self.attribution = Attribution()
        self.stages = stage_sums.StageSums()
        self._rows: dict[tuple[int, int], int] = {}  # Place among `_sums` by stage of scoring and epoch
        self._factors: dict[int, tuple[float, float]] = {}
        self._sums = PerFrame(_STOPPED + 1)
        self._work: dict[str, int] = {}

    @property
    def n_frames(self) -> int:
        return self.decoding.n_frames

    @property
    def category_rows(self) -> list[FrameRow]:
        return [self._sums.row(number, self.n_frames) for number in range(_WALL)]

    @property
    def wall_row(self) -> FrameRow:
        return self._sums.row(_WALL, self.n_frames)

    @property
    def work_rows(self) -> dict[str, FrameRow]:
        return {name: self._sums.row(row, self.n_frames) for name, row in self._work.items()}

    def total_ns(self, first: int, last: int) -> Array:
        """Sum of the categories over the frames first … last − 1, float64 [categories] in ns."""
        return np.array([row.total(first, last) for row in self.category_rows])

    def own_ns(self, first: int, last: int) -> Array:
        """Wall time of each of the frames first … last − 1 without NOT_OWN, float64 [frames] in ns."""
        rows, own = self.category_rows, self.wall_row[first:last]
        for name in NOT_OWN:
            own = own - rows[CATEGORIES.index(name)][first:last]
        return own

    def stopped_ns(self, first: int, last: int) -> float:
        """For how long the process stood still in the frames first … last − 1, ns; no part of the wall time."""
        return self._sums.row(_STOPPED, self.n_frames).total(first, last)

    def update(self, session: Recorded) -> bool:
        """Take in what is new; True if any frame changed. Starts again when a cost law or roof was replaced."""
        if session.generation != self._generation:
            self._reset()
            self._generation = session.generation
        spans = session.spans
        changed = False
        codes = stage_sums.group_codes(session.stages)
        if len(spans) - self._consumed > CHUNK_SPANS:
            # Room for all of it at once, and some more, for gaps and for what is cut otherwise; pages that nobody
            # writes to take no memory.
            tiles = int(np.count_nonzero(codes[spans["stage"][self._consumed :]] == _DECODE))
            self._sums.reserve(self._sums.stretches + tiles + tiles // 4)
        while self._consumed < len(spans):
            fresh = np.arange(self._consumed, min(self._consumed + CHUNK_SPANS, len(spans)), dtype=np.uint32)
            lane_of = spans["lane"][self._consumed : self._consumed + len(fresh)]
            self._consumed += len(fresh)
            for lane in session.lanes.values():
                on_lane = fresh[lane_of == lane.id]
                # In no tile, but in the sums of their stages.
                shown = _IS_OUTSIDE if lane.decode else _HAS_SUMS
                alone = on_lane[shown[codes[spans["stage"][on_lane]]]]
                for at, stage, epoch in by_stage_and_epoch(spans["stage"][alone], spans["epoch"][alone]):
                    self.stages.add((lane.id, stage, epoch), spans, alone[at])
                if lane.decode:
                    changed |= self._take(session, lane.id, on_lane, codes)
        changed |= self._attribute(session)
        if self._consumed - self._swept >= CHUNK_SPANS:
            self._swept = self._consumed
            sweep()
        return changed

    def _attribute(self, session: Recorded) -> bool:
        """Share out what scoring took; True where something else is said of frames that were there before."""
        totals: dict[tuple[int, int], Sums] = {}
        for (lane, stage, epoch), sums in self.stages.totals():
            if session.lanes[lane].decode and session.stages[stage].group in ATTRIBUTED:
                key = stage, epoch
                totals[key] = totals[key].plus(sums) if key in totals else sums
        self.attribution.update(session, totals)
        factors = {row: _factors(self.attribution.of(*key, draws=0)) for key, row in self._rows.items()}
        anew = any(factors[row] != before for row, before in self._factors.items())
        self._factors = factors
        self._sums.mix(_MIXED[:2], _MIXED[2], factors, anew=anew)
        self.generation += anew
        return anew

    def _take(self, session: Recorded, lane: int, fresh: Array, codes: Array) -> bool:
        """Take in new spans of a decode lane, what lies in a tile when its tile has come; True where one has."""
        waiting = self._waiting.get(lane)
        numbers = fresh if waiting is None else np.concatenate([waiting, fresh])
        outer, leaves, outer_of, _, leaf_positions, used = nest(pick(session.spans, numbers), codes, ROW_GROUPS)
        self._waiting[lane] = numbers[used:]
        if not used:
            return False
        self.tiles += len(outer)
        positions = numbers[leaf_positions]
        # Overhead with a name is taken off no tile.
        duration = leaves["duration_ns"] * (codes[leaves["stage"]] != _OVERHEAD)
        overhead = outer["duration_ns"] - np.bincount(outer_of, duration, len(outer))
        # What was lost is the same part of the leaves of a tile and of what lies between them.
        share = lost_shares(outer, session.stages)
        lost, taken = np.zeros((len(share), len(leaves))), grains(overhead * share)
        if share.any():
            lost = grains(leaves["duration_ns"] * share[:, outer_of])
        limit = self.decoding.limit(np.where(codes[outer["stage"]] == _DECODE, outer["frames"], 0))
        placed = self._places(leaves, limit[outer_of])
        if not placed.all():
            leaves, lost = pick(leaves, np.flatnonzero(placed)), lost[:, placed]
            positions = positions[placed]
        sound = self._places(outer, limit)
        if not sound.all():
            outer, overhead = pick(outer, np.flatnonzero(sound)), overhead[sound]
            taken = taken[:, sound]
        of_leaves, of_tiles = Spread(leaves), Spread(outer)
        self._share_out(session, lane, leaves, positions, lost, of_leaves)
        of_tiles.give(CATEGORIES.index(OVERHEAD), overhead - taken.sum(axis=0))
        _give_lost(of_tiles, taken)
        for spread in (of_leaves, of_tiles):
            # The wall time is the sum of the categories.
            spread.give_sum(_WALL, (*range(_WALL), *self._rows.values()))
            self._sums.add(spread)
        self.decoding.add(outer[codes[outer["stage"]] == _DECODE])
        return True

    def _share_out(
        self, session: Recorded, lane: int, leaves: Array, positions: Array, lost: Array, spread: Spread
    ) -> None:
        """Give every leaf's time to its categories, its counts and bytes to the work they are, all to its stage's sums.

        `positions` [leaves]: among all spans. `lost` [COUNTS, leaves]: ns of each that were not its own.
        """
        for at, number, epoch in by_stage_and_epoch(leaves["stage"], leaves["epoch"]):
            stage, spans = session.stages[number], pick(leaves, at)
            taken = lost[:, at]
            self.stages.add((lane, number, epoch), session.spans, positions[at], taken)
            if stage.group == OVERHEAD:
                continue
            own = spans["duration_ns"] - taken.sum(axis=0)
            _give_lost(spread, taken, at)
            if stage.group == "scoring":
                spread.give(self._row(self._rows, (number, epoch)), own, at)
                cost = session.costs.get((number, epoch))
                if cost is not None and not cost.is_empty:
                    spread.give(self._row(self._work, SCORING_BYTES), grains(cost.bytes_min.of(spans)), at)
            else:
                spread.give(CATEGORIES.index(stage.group), own, at)
            for i, name in enumerate(stage.work):
                row = self._row(self._work, f"{stage.group} {name}")
                spread.give(row, spans[f"work{i}"].astype(np.float64), at)

    def _row(self, rows: dict[Named, int], name: Named) -> int:
        """The number of that one of `rows`, made the first time."""
        if name not in rows:
            rows[name] = self._sums.new_row()
        return rows[name]

    def _places(self, spans: Array, limit: Array) -> Array:
        """Which of the spans stay below their limits; the others are misplaced."""
        inside: Bool = spans["first_frame"].astype(np.int64) + spans["frames"] < limit
        self.misplaced += int(np.count_nonzero(~inside))
        return inside


def _give_lost(spread: Spread, lost: Array, at: Array | None = None) -> None:
    """Give what was lost, [COUNTS, n], to its categories and to what stood still."""
    for row, number in zip(lost, (*map(CATEGORIES.index, NOT_OWN), _STOPPED), strict=True):
        spread.give(number, row, at)


def _factors(shares: Shares | None) -> tuple[float, float]:
    """How much of a stage's own time is compute and memory, in STEPS; where that is unknown, none."""
    if shares is None:
        return 0.0, 0.0
    by_name = dict(zip(SHARES, shares.likely.tolist(), strict=True))
    compute = round(STEPS * sum(by_name[name] for name in COMPUTE_PARTS))
    unexplained = round(STEPS * by_name[NOT_ATTRIBUTED])
    return compute / STEPS, max(STEPS - compute - unexplained, 0) / STEPS
