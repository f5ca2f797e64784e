"""The cost of every frame, kept up with a live session.

Tiles and leaves are spread evenly over the frames they name, into the categories that add up to the
wall time. Contributions are rounded to 2^-16 ns, so that all sums are exact in float64: the arrays are the
same bit for bit whether the session is read at once or in pieces, and the categories of any stretch of
frames add up to its wall time without a rest.
"""

from typing import Final

import numpy as np

from profiler.analysis.attribution import GRAIN, assign, grains
from profiler.analysis.categories import CATEGORIES, OTHER_PROGRAMS, OVERHEAD
from profiler.analysis.conditions import Speed, Waiting, shared_out, shared_out_rest
from profiler.analysis.nesting import by_stage_and_epoch, group_codes, nest, pick
from profiler.analysis.recorded import Recorded
from profiler.analysis.stage_sums import StageSums
from profiler.arrays import Array, Bool
from profiler.beside import side_by_side
from profiler.spans import GROUPS

CHUNK_SPANS: Final = 1 << 15
"""Spans handled at once: bounds the temporary arrays to some megabytes."""

MORE_ROWS: Final = 8
"""Rows of work counts per block."""

MAX_FRAMES: Final = 1 << 25
"""93 hours of audio; together with SLACK_FRAMES it keeps a damaged file from asking for all memory."""

SLACK_FRAMES: Final = 1 << 20
"""How far ahead of the decoded frames (2.9 hours) a span may lie: features are made per utterance."""

LONG: Final = 4
"""A span of more than so many times the usual frames is spread by itself …"""

MAX_LONG: Final = 1024
"""… as long as such spans are few, and cover the frames no more often than this."""

SCORING_BYTES: Final = "scoring bytes"
"""Name among the work counts of what scoring must move at least: modelled by the cost laws, not counted."""

_DECODE: Final = GROUPS.index("decode")

_WALL: Final = len(CATEGORIES)
"""The row after those of the categories: their sum."""


class CostTrack:
    """Per-frame arrays of one session, grown by `update`.

    `n_frames`: frames decoded so far. `categories_ns`: float64 [n_frames, categories], columns CATEGORIES;
    `wall_ns`: float64 [n_frames], their sum. `work`: "group name" → float64 [n_frames]; counts of one name are
    added up over the stages of a group that report it; SCORING_BYTES among them follows from the cost laws, where
    there are any.
    `misplaced`: spans whose frames lie beyond anything decoded; they are in no array. `stages`: the sums
    by stage of the same session, which `breakdown` keeps up to date.
    """

    def __init__(self) -> None:
        self._generation = -1
        self.stages = StageSums()
        self._reset()

    def _reset(self) -> None:
        self.n_frames = 0
        self.misplaced = 0
        self._decoded = 0
        self._consumed = 0
        self._waiting: dict[int, Array] = {}
        self._speed = Speed()
        self._replays = Waiting()
        self._sums = _PerFrame(len(CATEGORIES) + 1)
        self._work: dict[str, int] = {}
        self._ends: list[tuple[Array, Array]] = []

    @property
    def categories_ns(self) -> Array:
        """Time per frame and category, float64 [n_frames, categories] in ns; a category's frames lie in a row."""
        return _read_only(self._sums.block[:_WALL, : self.n_frames].T)

    def total_ns(self, first: int, last: int) -> Array:
        """Sum of the categories over the frames first … last − 1, float64 [categories] in ns."""
        total: Array = self.categories_ns[first:last].sum(axis=0)
        return total

    @property
    def wall_ns(self) -> Array:
        """Wall time of the decode lane per frame, float64 [n_frames] in ns."""
        return _read_only(self._sums.block[_WALL, : self.n_frames])

    @property
    def work(self) -> dict[str, Array]:
        """Work counts per frame by name, float64 [n_frames] each."""
        return {
            name: _read_only(self._sums.row(row)[: self.n_frames])
            for name, row in self._work.items()
        }

    def frames_at(self, t_ns: Array) -> Array:
        """Return how many frames were decoded at times of the session's clock, int64 [n]."""
        if len(self._ends) > 1:
            self._ends = [tuple(np.concatenate(part) for part in zip(*self._ends, strict=True))]  # type: ignore[list-item]
        if not self._ends:
            return np.zeros(len(t_ns), np.int64)
        ends, reached = self._ends[0]
        after = np.searchsorted(ends, t_ns, side="right")
        return np.concatenate([[0], reached])[after]

    def update(self, session: Recorded) -> bool:
        """Take in what `session` has read since the last call; True if any frame was added or changed.

        Starts again when a cost law or a roof has been replaced.
        """
        if session.generation != self._generation:
            self._reset()
            self._generation = session.generation
        self._speed.update(session)
        self._replays.update(session)
        spans = session.spans
        changed = False
        codes = group_codes(session.stages)
        lanes = [lane.id for lane in session.lanes.values() if lane.decode]
        if len(spans) - self._consumed > CHUNK_SPANS:
            self._expect(spans[self._consumed :], codes)
        while self._consumed < len(spans):
            begin = self._consumed
            fresh = spans[begin : begin + CHUNK_SPANS]
            self._consumed += len(fresh)
            for lane in lanes:
                mine = np.flatnonzero(fresh["lane"] == lane) + begin
                if (waiting := self._waiting.get(lane)) is not None:
                    mine = np.concatenate([waiting, mine])
                nested = nest(pick(spans, mine), codes)
                self._waiting[lane] = mine[nested.used :]
                if nested.used:
                    self._add(session, nested.outer, nested.leaves, nested.outer_of, codes)
                    changed = True
        return changed

    def _add(
        self,
        session: Recorded,
        outer: Array,
        leaves: Array,
        outer_of: Array,
        codes: Array,
    ) -> None:
        duration = leaves["duration_ns"].astype(np.float64)
        covered = np.bincount(outer_of, weights=duration, minlength=len(outer))
        overhead = outer["duration_ns"] - covered
        other = shared_out(leaves, outer, outer_of, session.stages)
        # Kernels take the processor away where a program calls them, and between the stages it does.
        taken = grains(shared_out_rest(overhead, outer, session.stages))
        limit = self._limit(outer, codes)
        placed = self._places(leaves, limit[outer_of])
        if not placed.all():
            leaves, other = pick(leaves, np.flatnonzero(placed)), other[placed]
        sound = self._places(outer, limit)
        if not sound.all():
            outer, overhead = pick(outer, np.flatnonzero(sound)), overhead[sound]
            taken = taken[sound]
        if len(leaves):
            spread = _Spread(leaves)
            self._share_out(session, leaves, other, spread)
            self._sums.add(spread)
        if len(outer):
            spread = _Spread(outer)
            spread.give(CATEGORIES.index(OVERHEAD), overhead - taken)
            spread.give(CATEGORIES.index(OTHER_PROGRAMS), taken)
            self._sums.add(spread)
        self._advance(outer, codes)

    def _share_out(self, session: Recorded, leaves: Array, other: Array, spread: "_Spread") -> None:
        """Give every leaf's time to its categories, its counts and bytes to the work they are.

        `other` [leaves]: ns of each in which other programs ran.
        """
        for at, number, epoch in by_stage_and_epoch(leaves["stage"], leaves["epoch"]):
            stage, spans = session.stages[number], pick(leaves, at)
            cost = session.costs.get((number, epoch))
            start = spans["start_ns"]
            shares = assign(
                stage.group,
                spans,
                cost,
                session.calibration,
                other[at],
                self._speed.at(start),
                self._replays.share(stage.name, start),
            )
            for category, ns in shares.items():
                spread.give(CATEGORIES.index(category), ns, at)
            if stage.group == "scoring" and cost is not None and not cost.is_empty:
                spread.give(self._row(SCORING_BYTES), grains(cost.bytes_min.of(spans)), at)
            for i, name in enumerate(stage.work):
                row = self._row(f"{stage.group} {name}")
                spread.give(row, spans[f"work{i}"].astype(np.float64), at)

    def _row(self, name: str) -> int:
        """The row of work count `name`, made the first time."""
        row = self._work.get(name)
        if row is None:
            row = self._work[name] = self._sums.new_row()
        return row

    def _expect(self, spans: Array, codes: Array) -> None:
        """Make room for all frames that `spans` decode, before they are taken in chunk by chunk."""
        decoded = spans["frames"].sum(where=codes[spans["stage"]] == _DECODE)
        # Some more, for the utterance whose features are made and that is not decoded to its end.
        self._sums.reserve(min(self._decoded + int(decoded) + CHUNK_SPANS, MAX_FRAMES))

    def _limit(self, outer: Array, codes: Array) -> Array:
        """Return the frame that each tile and its leaves may reach; grows with what was decoded."""
        blocks = codes[outer["stage"]] == _DECODE
        decoded = self._decoded + np.cumsum(np.where(blocks, outer["frames"], 0).astype(np.int64))
        self._decoded = int(decoded[-1])
        return np.minimum(2 * decoded + SLACK_FRAMES, MAX_FRAMES)

    def _places(self, spans: Array, limit: Array) -> Array:
        inside: Bool = spans["first_frame"].astype(np.int64) + spans["frames"] < limit
        self.misplaced += int(np.count_nonzero(~inside))
        return inside

    def _advance(self, outer: Array, codes: Array) -> None:
        blocks = outer[codes[outer["stage"]] == _DECODE]
        if len(blocks):
            reached = blocks["first_frame"].astype(np.int64) + blocks["frames"]
            self.n_frames = max(self.n_frames, int(reached.max()))
            self._ends.append((blocks["start_ns"] + blocks["duration_ns"], reached))


def _read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values


class _Spread:
    """Amounts of spans, to be spread evenly over the frames they name (over one where they name none).

    The spans of a block follow each other and name the same frames: they make one run. `share` and `rest`:
    by row, what every frame of a run gets and what its first one gets on top, [runs], multiples of GRAIN.
    """

    def __init__(self, spans: Array) -> None:
        first = spans["first_frame"].astype(np.int64)
        frames = np.maximum(spans["frames"], 1).astype(np.int64)
        begins = np.ones(len(spans), bool)
        np.not_equal(first[1:], first[:-1], out=begins[1:])
        begins[1:] |= frames[1:] != frames[:-1]
        runs = np.flatnonzero(begins)
        self.first, self.frames = first[runs], frames[runs]
        self.share: dict[int, Array] = {}
        self.rest: dict[int, Array] = {}
        self._run_of = np.cumsum(begins) - 1
        self._frames = frames.astype(np.float64)

    def give(self, row: int, amounts: Array, at: Array | slice = slice(None)) -> None:
        """Add `amounts`, multiples of GRAIN, of the spans `at` to what `row` is to get."""
        if not amounts.any():
            return
        frames, run_of = self._frames[at], self._run_of[at]
        share = np.floor(amounts / (frames * GRAIN)) * GRAIN
        for sums, parts in ((self.share, share), (self.rest, amounts - share * frames)):
            found = np.bincount(run_of, parts, len(self.first))
            if row in sums:
                found += sums[row]
            sums[row] = found

    def sum_up(self) -> None:
        """Give the row of the wall time the sum of the categories: exact, so it is theirs in every frame."""
        for sums in (self.share, self.rest):
            rows = [sums[row] for row in range(_WALL) if row in sums]
            if rows:
                sums[_WALL] = np.sum(rows, axis=0)


class _PerFrame:
    """Sums per frame that grow: rows 0 … of a block, float64 [rows, frames], and rows added later, in blocks too.

    Pages that nobody has written to take no memory, and in large pieces memory is had in large pages.
    """

    def __init__(self, rows: int) -> None:
        self.block = np.zeros((rows, 0))
        self._more: list[Array] = []
        self._rows = rows
        self._reached: dict[int, int] = {}
        """The frame before which a row may have been added to."""

    def row(self, number: int) -> Array:
        """The sums of a row, float64 [frames there is room for]."""
        block, row = divmod(number - len(self.block), MORE_ROWS)
        found: Array = self.block[number] if block < 0 else self._more[block][row]
        return found

    def new_row(self) -> int:
        """Add a row of zeros and return its number."""
        self._rows += 1
        if self._rows > len(self.block) + MORE_ROWS * len(self._more):
            self._more.append(np.zeros((MORE_ROWS, self.block.shape[1])))
        return self._rows - 1

    def add(self, spread: _Spread) -> None:
        """Add what the runs of `spread` got."""
        spread.sum_up()
        first, frames = spread.first, spread.frames
        low, high = int(first.min()), int((first + frames).max())
        room = self.block.shape[1]
        if high > room:
            self.reserve(max(high, 2 * room, 1024))
        # Blocks are alike and follow each other; what is much longer was done for a whole utterance.
        long = frames > LONG * np.median(frames)
        apart = np.flatnonzero(long)
        if len(apart) > MAX_LONG or frames[apart].sum() >= frames.sum() * MAX_LONG:
            apart, long = apart[:0], np.zeros(len(frames), bool)
        short = np.flatnonzero(~long)
        first_short, frames_short = first[short], frames[short]
        ends = first_short + frames_short
        in_a_row = bool((first_short[1:] == ends[:-1]).all())
        # Blocks of one length: a row of the table is a block.
        alike = in_a_row and len(short) > 0 and bool((frames_short == frames_short[0]).all())

        def put(number: int) -> None:
            share = spread.share[number]
            rest, store = spread.rest[number], self.row(number)
            long_here = apart[(share[apart] != 0) | (rest[apart] != 0)]
            for i in long_here.tolist():
                store[first[i] : first[i] + frames[i]] += share[i]
                store[first[i]] += rest[i]
            share_short, rest_short = share[short], rest[short]
            if not in_a_row:
                _add_steps(store, first_short, frames_short, share_short, rest_short)
            elif len(short):
                stretch = store[first_short[0] : ends[-1]]
                if alike:
                    stretch, values = stretch.reshape(len(short), -1), share_short[:, None]
                else:
                    values = np.repeat(share_short, frames_short)
                # Zeros that nobody has touched are had for half when they are only written to.
                if not len(long_here) and first_short[0] >= self._reached.get(number, 0):
                    stretch[...] = values
                else:
                    stretch += values
                store[first_short] += rest_short
            end = high if len(long_here) or not in_a_row else ends[-1] if len(short) else 0
            self._reached[number] = max(self._reached.get(number, 0), int(end))

        side_by_side(put, spread.share, high - low)

    def reserve(self, frames: int) -> None:
        """Make room for `frames` frames at once, where their number is known beforehand."""
        if frames > self.block.shape[1]:
            self.block = _wider(self.block, len(self.block), frames)
            left = self._rows - len(self.block)
            for i, block in enumerate(self._more):
                self._more[i] = _wider(block, min(left - i * MORE_ROWS, MORE_ROWS), frames)


def _wider(values: Array, used: int, frames: int) -> Array:
    """`values` [rows, fewer frames], of which the first rows are used, with zeros for the frames that follow."""
    wider = np.zeros((len(values), frames))
    wider[:used, : values.shape[1]] = values[:used]
    return wider


def _add_steps(sums: Array, first: Array, frames: Array, share: Array, rest: Array) -> None:
    """Add spans that lie anyhow: steps up where one begins and down where it ends, summed up."""
    low, high = int(first.min()), int((first + frames).max())
    begin = first - low
    step = np.zeros(high - low + 1)
    np.add.at(step, begin, share + rest)
    np.add.at(step, begin + 1, -rest)
    np.add.at(step, begin + frames, -share)
    sums[low:high] += np.cumsum(step[:-1])
