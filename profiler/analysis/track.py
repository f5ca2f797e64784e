"""The cost of every frame, kept up with a live session.

Tiles and leaves are spread evenly over the frames they name, into the seven categories that add up to the
wall time. Contributions are rounded to 2^-16 ns, so that all sums are exact in float64: the arrays are the
same bit for bit whether the session is read at once or in pieces, and the categories of any stretch of
frames add up to its wall time without a rest.
"""

from typing import Final

import numpy as np

from profiler.analysis import attribution
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
    `misplaced`: spans whose frames lie beyond anything decoded; they are in no array.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._reset()

    def _reset(self) -> None:
        self.n_frames = 0
        self.misplaced = 0
        self._decoded = 0
        self._consumed = 0
        self._waiting: dict[int, np.ndarray] = {}
        self._categories = _PerFrame(len(CATEGORIES))
        self._wall = _PerFrame(1)
        self._work: dict[str, _PerFrame] = {}

    @property
    def categories_ns(self) -> np.ndarray:
        """Time per frame and category, float64 [n_frames, 7] in ns."""
        return self._categories.first(self.n_frames)

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
        self._spread(self._categories, leaves[placed], columns[placed])
        rest = np.zeros((len(tiles), len(CATEGORIES)))
        rest[:, CATEGORIES.index("overhead")] = overhead
        sound = self._places(tiles, limit)
        self._spread(self._categories, tiles[sound], rest[sound])
        self._sum_up(leaves[placed], tiles[sound])
        self._count_work(session, leaves[placed])
        self._advance(tiles[sound], codes)

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
        spans = np.concatenate(changed)
        if len(spans):
            first = spans["first_frame"].astype(np.int64)
            low, high = int(first.min()), int((first + np.maximum(spans["frames"], 1)).max())
            self._wall.set(low, self._categories.first(high)[low:].sum(axis=1, keepdims=True))

    def _count_work(self, session: Session, leaves: np.ndarray) -> None:
        for number in np.unique(leaves["stage"]):
            stage = session.stages[int(number)]
            if not stage.work:
                continue
            of_stage = leaves[leaves["stage"] == number]
            for i, name in enumerate(stage.work):
                key = _WORK_NAMES.get((stage.group, name), name)
                sums = self._work.setdefault(key, _PerFrame(1))
                self._spread(sums, of_stage, of_stage[f"work{i}"].astype(np.float64)[:, None])

    def _advance(self, tiles: np.ndarray, codes: np.ndarray) -> None:
        blocks = tiles[codes[tiles["stage"]] == _DECODE]
        if len(blocks):
            reached = blocks["first_frame"].astype(np.int64) + blocks["frames"]
            self.n_frames = max(self.n_frames, int(reached.max()))


def scoring_split(session: Session, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (compute ns, memory ns) of scoring spans of any stages and epochs, multiples of GRAIN [n]."""
    compute, memory = np.zeros(len(spans)), np.zeros(len(spans))
    threads = threads_by_epoch(session)
    for picked, stage, epoch in by_stage_and_epoch(spans):
        compute[picked], memory[picked] = attribution.split(
            spans[picked],
            session.costs.get((stage, epoch)),
            session.calibration,
            threads.get(epoch, 1),
        )
    # Downwards, so that the rest is never negative.
    return np.floor(compute / GRAIN) * GRAIN, np.floor(memory / GRAIN) * GRAIN


def threads_by_epoch(session: Session) -> dict[int, int]:
    """Return the thread count each configuration epoch ran with, where its tree names one."""
    found = {}
    for config in session.configs:
        threads = config.tree.get("threads")
        if isinstance(threads, int) and threads > 0:
            found[config.epoch] = threads
    return found


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
        low, high = int(first.min()), int((first + frames).max())
        self._reserve(high)
        share = np.floor(amounts / (frames[:, None] * GRAIN)) * GRAIN
        rest = amounts - share * frames[:, None]
        # Steps up where a span begins and down where it ends; their running sum is the amount per frame.
        steps = np.zeros((high - low + 1, amounts.shape[1]))
        begin = first - low
        for column in range(amounts.shape[1]):
            used = amounts[:, column] != 0.0
            if not used.any():
                continue
            b, n = begin[used], frames[used]
            step = steps[:, column]
            np.add.at(step, b, share[used, column] + rest[used, column])
            np.add.at(step, b + 1, -rest[used, column])
            np.add.at(step, b + n, -share[used, column])
        self._store[low:high] += np.cumsum(steps[:-1], axis=0)

    def set(self, low: int, values: np.ndarray) -> None:
        """Replace the rows from `low` on by `values`."""
        self._reserve(low + len(values))
        self._store[low : low + len(values)] = values

    def _reserve(self, frames: int) -> None:
        if frames > len(self._store):
            store = np.zeros((max(frames, 2 * len(self._store), 1024), self._store.shape[1]))
            store[: len(self._store)] = self._store
            self._store = store
