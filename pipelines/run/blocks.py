"""A block of frames on its way through scorer and search.

A dense scorer hands its scores to the search block by block. A lazy scorer and the search alternate frame by frame,
because the search must finish a frame before it knows which senones it needs next.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from pipelines.run.recogniser import Recogniser
from pipelines.run.stream import Rows
from pipelines.scoring import MAX_FRAMES
from pipelines.scoring.strategy import Scores
from profiler.arrays import F32, Array
from profiler.spans import SPAN, WORK_COUNTS, Lane, NullLane

TALLIED_FROM = 4  # Frames from which adding spans up costs less than recording them one by one
CAPACITY: Final = 1 << 12  # Spans that can wait: some sixty for each frame of the largest block


class Tally(Lane):
    """Adds the spans of single frames up, stage by stage, until `pour` hands the sums to the lane that is recorded.

    Where scoring and search take turns, some ten spans for each frame would fill the session tenfold.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0, "tally", "cpu", False, CAPACITY)

    def pour(self, lane: Lane, start_ns: int, first_frame: int, frames: int) -> None:
        """Put one span per stage, one after another from `start_ns` on, wherever they ran, and begin anew."""
        spans = np.frombuffer(self.take(), SPAN)
        stage = spans["stage"]
        ns = np.bincount(stage, spans["duration_ns"]).astype(np.int64).tolist()
        work = [np.bincount(stage, spans[f"work{i}"]).astype(np.int64).tolist() for i in range(WORK_COUNTS)]
        at = start_ns
        for number in np.flatnonzero(np.bincount(stage)).tolist():
            end = at + ns[number]
            lane.put(number, at, end, first_frame, frames, *(counts[number] for counts in work))
            at = end


class Blocks:
    """Scores and searches blocks, recorded on `lane`; spans of single frames are added up."""

    def __init__(self, lane: Lane | NullLane, clock: Callable[[], int]) -> None:
        self._lane, self._clock = lane, clock
        self._tally = Tally() if isinstance(lane, Lane) else None

    def decode(
        self, recogniser: Recogniser, rows: Rows, first: int, *, ahead: bool = True
    ) -> Scores | list[F32] | None:
        """Take frames of an utterance through scorer and search; `first`: the run's number of the first of them.

        `ahead`: a device is given the block that follows before this one is searched. Returns the scores f32 [rows,
        senones], one row for each `subsampling` frames, or where the two took turns those of each row, f32 [senones];
        None where there are no longer those of all frames.
        """
        padded, begin, count = rows
        beyond = sum(recogniser.scorer.context)
        block = padded[begin : begin + count + beyond]
        if recogniser.scorer.lazy:
            return self._take_turns(recogniser, block, first)
        lane = self._lane
        scores: Array = recogniser.scorer.score(block, first, lane)
        if ahead and recogniser.scorer.looks_ahead:
            after = begin + count
            left = len(padded) - beyond - after
            if left > 0:
                end = after + min(recogniser.block, left) + beyond
                recogniser.scorer.ahead(padded[after:end], first + count, lane)
        recogniser.search.advance(scores, first, lane, count)
        return scores

    def _take_turns(self, recogniser: Recogniser, block: Array, first: int) -> list[F32] | None:
        """Score and search frame by frame; before each, the scorer gets the search's active senones."""
        scorer, search = recogniser.scorer, recogniser.search
        rows: list[F32] = []
        beyond, each = sum(scorer.context), scorer.subsampling
        most = MAX_FRAMES // each * each
        for at in range(0, len(block) - beyond, most):
            part = block[at : at + most + beyond]
            n = len(part) - beyond
            tally = self._tally if n >= TALLIED_FROM else None
            steps = tally or self._lane
            rows = []  # a part is scored where the one before it was
            start = self._clock()
            state = scorer.prepare(part, first + at, steps)
            for t in range(0, n, each):
                frame, covered = first + at + t, min(each, n - t)
                active = search.active_senones(steps, covered)
                row = scorer.frame(state, t // each, active)
                search.advance(row[None], frame, steps, covered)
                rows.append(row)
            if tally is not None:
                assert isinstance(self._lane, Lane)
                tally.pour(self._lane, start, first + at, n)
        return rows if len(block) - beyond <= most else None
