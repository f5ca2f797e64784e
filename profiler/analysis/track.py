"""The cost of every frame, kept up with a live session.

Tiles and leaves are spread evenly over the frames they name, into the seven categories that add up to the
wall time. Contributions are rounded to 2^-16 ns, so that all sums are exact in float64: the arrays are the
same bit for bit whether the session is read at once or in pieces, and the categories of any stretch of
frames add up to its wall time without a rest.
"""

from typing import Final

import numpy as np

from profiler.analysis import attribution
from profiler.analysis.stage_sums import StageSums
from profiler.analysis.tiles import group_codes, tile
from profiler.session.reader import Session
from profiler.spans import GROUPS, SPAN

CATEGORIES: Final = (
    "compute",
    "memory",
    "unexplained",
    "transfer",
    "search",
    "frontend",
    "overhead",
)
"""What the user sees; `compute`, `memory` and `unexplained` are the scoring time."""

GRAIN: Final = 1.0 / (1 << 16)
"""ns. A sum of multiples of it is exact in float64 up to 2^37 ns, 137 s for a single frame."""

CHUNK_SPANS: Final = 1 << 16
"""Spans handled at once: bounds the temporary arrays to some megabytes."""

MAX_FRAMES: Final = 1 << 25
"""93 hours of audio; together with SLACK_FRAMES it keeps a damaged file from asking for all memory."""

SLACK_FRAMES: Final = 1 << 20
"""How far ahead of the decoded frames (2.9 hours) a span may lie: features are made per utterance."""

SUMMED_TOGETHER: Final = 64
"""Frames that `CostTrack.total_ns` takes for one row."""

LONG: Final = 4
"""A span of more than so many times the usual frames is spread by itself …"""

MOST_LONG: Final = 1024
"""… as long as such spans are few, and cover the frames no more often than this."""

_DECODE: Final = GROUPS.index("decode")
_WORK_NAMES: Final = {
    ("scoring", "senones"): "senones scored",
    ("search", "senones"): "senones asked",
}


class CostTrack:
    """Per-frame arrays of one session, grown by `update`.

    `n_frames`: frames decoded so far. `categories_ns`: float64 [n_frames, 7], columns CATEGORIES;
    `wall_ns`: float64 [n_frames], their sum. `work`: name → float64 [n_frames]; counts of one name are
    added up over the stages that report it, except that senones scored and senones asked are two names.
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
        self._expected = 0
        self._waiting: dict[int, np.ndarray] = {}
        self._categories = _PerFrame(len(CATEGORIES))
        self._wall = _PerFrame(1)
        self._work: dict[str, _PerFrame] = {}

    @property
    def categories_ns(self) -> np.ndarray:
        """Time per frame and category, float64 [n_frames, 7] in ns."""
        return self._categories.first(self.n_frames)

    def total_ns(self, first: int, last: int) -> np.ndarray:
        """Sum of the categories over the frames first … last − 1, float64 [7] in ns."""
        rows = self.categories_ns[first:last]
        # Wide rows are summed up with vector instructions, rows of seven are not: six times as fast.
        wide = len(rows) // SUMMED_TOGETHER * SUMMED_TOGETHER
        folded = rows[:wide].reshape(-1, SUMMED_TOGETHER * len(CATEGORIES)).sum(axis=0)
        total: np.ndarray = folded.reshape(SUMMED_TOGETHER, -1).sum(axis=0)
        return total + rows[wide:].sum(axis=0)

    @property
    def wall_ns(self) -> np.ndarray:
        """Wall time of the decode lane per frame, float64 [n_frames] in ns."""
        return self._wall.first(self.n_frames)[:, 0]

    @property
    def work(self) -> dict[str, np.ndarray]:
        """Work counts per frame by name, float64 [n_frames] each."""
        return {name: sums.first(self.n_frames)[:, 0] for name, sums in self._work.items()}

    def update(self, session: Session) -> bool:
        """Take in what `session` has read since the last call; True if any frame was added or changed.

        Starts again when a cost law or a roof has been replaced.
        """
        if session.generation != self._generation:
            self._reset()
            self._generation = session.generation
        spans = session.spans
        changed = False
        codes = group_codes(session.stages)
        lanes = [lane.id for lane in session.lanes.values() if lane.decode]
        if len(spans) - self._consumed > CHUNK_SPANS:
            self._expect(spans[self._consumed :], codes)
        while self._consumed < len(spans):
            fresh = spans[self._consumed : self._consumed + CHUNK_SPANS]
            self._consumed += len(fresh)
            for lane in lanes:
                waiting = self._waiting.get(lane, np.empty(0, SPAN))
                mine = np.concatenate([waiting, fresh[fresh["lane"] == lane]])
                tiled = tile(mine, codes)
                self._waiting[lane] = mine[tiled.used :]
                if tiled.used:
                    self._add(session, tiled.tiles, tiled.leaves, tiled.tile_of, codes)
                    changed = True
        return changed

    def _add(
        self,
        session: Session,
        tiles: np.ndarray,
        leaves: np.ndarray,
        tile_of: np.ndarray,
        codes: np.ndarray,
    ) -> None:
        duration = leaves["duration_ns"].astype(np.float64)
        covered = np.bincount(tile_of, weights=duration, minlength=len(tiles))
        overhead = tiles["duration_ns"] - covered
        limit = self._limit(tiles, codes)

        columns = np.zeros((len(leaves), len(CATEGORIES)))
        group = codes[leaves["stage"]]
        for name in ("transfer", "search", "frontend"):
            of_group = group == GROUPS.index(name)
            columns[of_group, CATEGORIES.index(name)] = duration[of_group]
        scored = np.flatnonzero(group == GROUPS.index("scoring"))
        compute, memory = scoring_split(session, leaves[scored])
        columns[scored, 0] = compute
        columns[scored, 1] = memory
        columns[scored, 2] = duration[scored] - compute - memory

        placed = self._places(leaves, limit[tile_of])
        if not placed.all():
            leaves, columns = leaves[placed], columns[placed]
        self._spread(self._categories, leaves, columns)
        rest = np.zeros((len(tiles), len(CATEGORIES)))
        rest[:, CATEGORIES.index("overhead")] = overhead
        sound = self._places(tiles, limit)
        if not sound.all():
            tiles, rest = tiles[sound], rest[sound]
        self._spread(self._categories, tiles, rest)
        self._sum_up(leaves, tiles)
        self._count_work(session, leaves)
        self._advance(tiles, codes)

    def _expect(self, spans: np.ndarray, codes: np.ndarray) -> None:
        """Make room for all frames that `spans` decode, before they are taken in chunk by chunk."""
        decoded = spans["frames"].sum(where=codes[spans["stage"]] == _DECODE)
        # Some more, for the utterance whose features are made and that is not decoded to its end.
        self._expected = min(self._decoded + int(decoded) + CHUNK_SPANS, MAX_FRAMES)
        self._categories.reserve(self._expected)
        self._wall.reserve(self._expected)

    def _limit(self, tiles: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the frame that each tile and its leaves may reach; grows with what was decoded."""
        blocks = codes[tiles["stage"]] == _DECODE
        decoded = self._decoded + np.cumsum(np.where(blocks, tiles["frames"], 0).astype(np.int64))
        self._decoded = int(decoded[-1])
        return np.minimum(2 * decoded + SLACK_FRAMES, MAX_FRAMES)

    def _places(self, spans: np.ndarray, limit: np.ndarray) -> np.ndarray:
        inside = spans["first_frame"].astype(np.int64) + spans["frames"] < limit
        self.misplaced += int(np.count_nonzero(~inside))
        return inside

    def _spread(self, sums: "_PerFrame", spans: np.ndarray, amounts: np.ndarray) -> None:
        """Add `amounts` [n, columns] evenly over the frames of `spans`; one frame where they name none."""
        if len(spans):
            sums.add(
                spans["first_frame"].astype(np.int64),
                np.maximum(spans["frames"], 1).astype(np.int64),
                amounts,
            )

    def _sum_up(self, *changed: np.ndarray) -> None:
        """Make the wall time of the frames of `changed` spans the sum of their categories."""
        stretches = [
            (int(first.min()), int((first + np.maximum(spans["frames"], 1)).max()))
            for spans in changed
            if len(first := spans["first_frame"].astype(np.int64))
        ]
        if stretches:
            low, high = min(low for low, _ in stretches), max(high for _, high in stretches)
            rows = self._categories.first(high)[low:]
            # Column by column: summing rows of seven takes numpy ten times as long.
            total = rows[:, 0].copy()
            for column in range(1, rows.shape[1]):
                total += rows[:, column]
            self._wall.set(low, total[:, None])

    def _count_work(self, session: Session, leaves: np.ndarray) -> None:
        if not len(leaves):
            return
        stages = leaves["stage"]
        first = leaves["first_frame"].astype(np.int64)
        frames = np.maximum(leaves["frames"], 1).astype(np.int64)
        for number in np.flatnonzero(np.bincount(stages)).tolist():
            stage = session.stages[number]
            if not stage.work:
                continue
            chosen = np.flatnonzero(stages == number)
            for i, name in enumerate(stage.work):
                key = _WORK_NAMES.get((stage.group, name), name)
                sums = self._work.setdefault(key, _PerFrame(1))
                sums.reserve(self._expected)
                amounts = leaves[f"work{i}"][chosen].astype(np.float64)
                sums.add(first[chosen], frames[chosen], amounts[:, None])

    def _advance(self, tiles: np.ndarray, codes: np.ndarray) -> None:
        blocks = tiles[codes[tiles["stage"]] == _DECODE]
        if len(blocks):
            reached = blocks["first_frame"].astype(np.int64) + blocks["frames"]
            self.n_frames = max(self.n_frames, int(reached.max()))


def scoring_split(session: Session, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (compute ns, memory ns) of scoring spans of any stages and epochs, multiples of GRAIN [n]."""
    compute, memory = np.zeros(len(spans)), np.zeros(len(spans))
    for picked, stage, epoch in by_stage_and_epoch(spans):
        compute[picked], memory[picked] = attribution.split(
            spans[picked], session.costs.get((stage, epoch)), session.calibration
        )
    # Downwards, so that the rest is never negative.
    return np.floor(compute / GRAIN) * GRAIN, np.floor(memory / GRAIN) * GRAIN


def by_stage_and_epoch(spans: np.ndarray) -> list[tuple[np.ndarray, int, int]]:
    """Return (positions, stage, epoch) for each pair that occurs, positions rising."""
    key = spans["stage"].astype(np.int64) << 16 | spans["epoch"]
    order = np.argsort(key, kind="stable")
    values, starts = np.unique(key[order], return_index=True)
    pieces = np.split(order, starts[1:]) if len(values) else []
    return [
        (piece, int(value) >> 16, int(value) & 0xFFFF)
        for piece, value in zip(pieces, values, strict=True)
    ]


class _PerFrame:
    """Sums per frame and column that grow; amounts are multiples of GRAIN and stay so when spread."""

    def __init__(self, columns: int) -> None:
        self._store = np.zeros((0, columns))

    def first(self, frames: int) -> np.ndarray:
        """Return the first `frames` rows, read-only."""
        self._reserve(frames)
        view = self._store[:frames]
        view.flags.writeable = False
        return view

    def add(self, first: np.ndarray, frames: np.ndarray, amounts: np.ndarray) -> None:
        """Spread `amounts` [n, columns] over `frames` [n] frames from `first` [n] on."""
        self._reserve(int((first + frames).max()))
        # The leaves of a block follow each other and name the same frames: one run instead of them.
        begins = np.ones(len(first), bool)
        np.not_equal(first[1:], first[:-1], out=begins[1:])
        begins[1:] |= frames[1:] != frames[:-1]
        runs = np.flatnonzero(begins)
        whole = frames * GRAIN
        first_of, frames_of = first[runs], frames[runs]
        # Blocks are alike and follow each other; what is much longer was done for a whole utterance.
        long = frames_of > LONG * np.median(frames_of)
        apart = np.flatnonzero(long)
        few = len(apart) <= MOST_LONG and frames_of[apart].sum() < frames_of.sum() * MOST_LONG
        if not few:
            apart, long = apart[:0], np.zeros(len(runs), bool)
        first_short, frames_short = first_of[~long], frames_of[~long]
        ends = first_short + frames_short
        in_a_row = bool((first_short[1:] == ends[:-1]).all())
        for column in np.flatnonzero(amounts.any(axis=0)).tolist():
            amount = amounts[:, column]
            share = np.floor(amount / whole) * GRAIN
            rest = np.add.reduceat(amount - share * frames, runs)
            share = np.add.reduceat(share, runs)
            store = self._store[:, column]
            for i in apart.tolist():
                if share[i] or rest[i]:
                    store[first_of[i] : first_of[i] + frames_of[i]] += share[i]
                    store[first_of[i]] += rest[i]
            if len(apart):
                share, rest = share[~long], rest[~long]
            if not in_a_row:
                _add_steps(store, first_short, frames_short, share, rest)
            elif len(ends):
                store[first_short[0] : ends[-1]] += np.repeat(share, frames_short)
                store[first_short] += rest

    def reserve(self, frames: int) -> None:
        """Make room for `frames` rows at once, where their number is known beforehand."""
        if frames > len(self._store):
            store = np.zeros((frames, self._store.shape[1]))
            store[: len(self._store)] = self._store
            self._store = store

    def set(self, low: int, values: np.ndarray) -> None:
        """Replace the rows from `low` on by `values`."""
        self._reserve(low + len(values))
        self._store[low : low + len(values)] = values

    def _reserve(self, frames: int) -> None:
        if frames > len(self._store):
            self.reserve(max(frames, 2 * len(self._store), 1024))


def _add_steps(
    sums: np.ndarray, first: np.ndarray, frames: np.ndarray, share: np.ndarray, rest: np.ndarray
) -> None:
    """Add spans that lie anyhow: steps up where one begins and down where it ends, summed up."""
    low, high = int(first.min()), int((first + frames).max())
    begin = first - low
    step = np.zeros(high - low + 1)
    np.add.at(step, begin, share + rest)
    np.add.at(step, begin + 1, -rest)
    np.add.at(step, begin + frames, -share)
    sums[low:high] += np.cumsum(step[:-1])
