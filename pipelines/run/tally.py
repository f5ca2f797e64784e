"""A lane that adds up: the spans of single frames become one span per stage for all of them.

A lazy scorer takes turns with the search frame by frame, some ten spans each time. Recorded as they are they
would fill the session tenfold and say nothing more: where in a block of a tenth of a second a microsecond lay.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from profiler.spans import SPAN, WORK_COUNTS, Lane

CAPACITY: Final = 1 << 12
"""Spans that can wait: some sixty for each frame of the largest block."""


class Tally(Lane):
    """Holds the spans of a block until `pour` hands their sums to the lane that is recorded."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0, "tally", "cpu", False, CAPACITY)

    def pour(self, lane: Lane, start_ns: int, first_frame: int, frames: int) -> None:
        """Put one span per stage, one after another from `start_ns` on, and begin anew.

        A stage is charged from the end of the one before it, so with what calling it costs. Where in the
        block it ran is lost: each begins where another ends.
        """
        spans = np.frombuffer(self.take(), SPAN)
        stage = spans["stage"]
        ends = spans["start_ns"] + spans["duration_ns"]
        charged = np.diff(np.maximum.accumulate(ends), prepend=start_ns)
        ns = np.bincount(stage, charged).astype(np.int64).tolist()
        work = [
            np.bincount(stage, spans[f"work{i}"]).astype(np.int64).tolist()
            for i in range(WORK_COUNTS)
        ]
        at = start_ns
        for number in np.flatnonzero(np.bincount(stage)).tolist():
            end = at + ns[number]
            lane.put(number, at, end, first_frame, frames, *(counts[number] for counts in work))
            at = end
