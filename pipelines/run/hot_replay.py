"""Hot replay: a block done once more with its data hot, so that waiting for caches and memory is measured.

Between two blocks, and outside the wall time, the block just decoded is scored and searched again, each until it gets
no faster: a cache may take data back only after they were asked for several times. What the block took longer, it
waited for data that what lies between (the other of the two, other programs) had pushed out. The spans are compared
stage by stage; the result is recorded on the decode lane as spans of the stages "replay.…" in the group `setup`: their
duration is the hot time, their count the time that the block had taken.

Only where scoring is a pure function of the block (`LayeredScorer.again`); the search is done again on its state as it
was before (`SearchReplay`), which is kept when the block is chosen. For at most `share` of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from pipelines.scoring.layered import LayeredScorer
from pipelines.scoring.scorer import Scorer, Scores
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.analysis.conditions import REPLAYED
from profiler.lanes import Lane
from profiler.machine.run_queue import RunQueue
from profiler.spans import Recorder

LIMIT = (1 << 32) - 1
MOST_TIMES: Final = 8
GAIN: Final = 0.03
IN_VAIN: Final = 2
"""So many passes in a row that take less by no more than the part GAIN were hot already. Data that were pushed out of
a large last cache need more than one pass to be back in it, and a pass may gain nothing before the next one does
(`python -m tests.bench.constants --only system`)."""

DISTURBED = 0.02
"""A block, or a pass over it, of which another program took more than this part is not compared."""


Stage = TypeVar("Stage")


def hot(once: Callable[[], dict[Stage, int]]) -> tuple[dict[Stage, int], int]:
    """Do `once` again and again until it takes no less; returns the ns by stage of the fastest, and how often that was.

    Where it gives nothing, that time does not count.
    """
    least: dict[Stage, int] = {}
    times = in_vain = 0
    while times < MOST_TIMES and in_vain < IN_VAIN:
        found, times = once(), times + 1
        before, after = sum(least.values()), sum(found.values())
        if before:
            in_vain = in_vain + 1 if after > (1.0 - GAIN) * before else 0
        if found and (not least or after < before):
            least = found
    return least, times


class HotReplay:
    """Replays a block now and then."""

    def __init__(self, recorder: Recorder, lane: Lane, queue: RunQueue, share: float) -> None:
        """`queue`: of the thread that decodes. `share`: of the time that may go into it, 0…1."""
        self._queue = queue
        self._recorder, self._lane, self._share = recorder, lane, share
        self._clock = recorder.clock
        self._own = Lane(0, "replay", "cpu", decode=False, capacity=1 << 12)
        self._began: int | None = None
        self._spent = 0
        self._stage = recorder.stage("setup.replay", "setup")
        self._of: dict[int, int] = {}
        self._chosen = False
        # Until one has been taken, it may be as many passes as there can be.
        self._times = MOST_TIMES
        self._search: SearchReplay | None = None

    def forget(self) -> None:
        """The block that comes next is not to be done again."""
        self._chosen = False

    def plan(self, search: Viterbi | DeviceViterbi | None, took_ns: int) -> int:
        """Choose the block that comes next, if there is time; returns when its state was kept, 0 if it is not chosen.

        `took_ns`: what the last block took. `search`: None where it would not do the same again.
        """
        self._chosen = False
        if not self._share:
            return 0
        start = self._clock()
        if self._began is None:
            # With the first block: what was prepared before it earned no time.
            self._began = start
        # Scoring and search as often as the last time, and the search's state copied as often.
        if self._spent + (self._times + 1) * took_ns > self._share * (start - self._began):
            return 0
        self._chosen = True
        if isinstance(search, Viterbi):
            if self._search is None or self._search.viterbi is not search:
                self._search = SearchReplay(search)
            self._search.keep()
        else:
            self._search = None
        end = self._clock()
        self._lane.put(self._stage, start, end)
        self._spent += end - start
        return end

    def take(self, scorer: Scorer, scores: Scores | None, recorded: int, frame: int) -> int:
        """Do the chosen block again, from `frame` on, that was decoded last; returns when that ended, 0 without one.

        `scores`: of the block, as the search had them; None where it had them frame by frame or went on since.
        `recorded`: spans that the lane had before it.
        """
        if not self._chosen or scores is None:
            return 0
        start = self._clock()
        timed = self._sums(self._lane, self._lane.recorded - recorded)
        found = self._scored(scorer, frame) | self._searched(scores, frame)
        at = end = self._clock()
        for stage, ns in found.items():
            if timed.get(stage):
                # One after another and to the end, so that all of set-up's spans together are its time.
                replayed, at = self._replayed(stage), at - ns
                self._lane.put(replayed, at, at + ns, frame, 0, min(timed[stage], LIMIT))
        self._lane.put(self._stage, start, max(at, start), frame, 0)
        self._spent += end - start
        self._chosen = False
        return end

    def _scored(self, scorer: Scorer, frame: int) -> dict[int, int]:
        if not isinstance(scorer, LayeredScorer) or not scorer.replayable:
            return {}

        def once() -> dict[int, int]:
            self._own.take()
            scorer.again(frame, self._own)
            return self._sums(self._own, self._own.waiting)

        found, self._times = hot(lambda: self._calm(once))
        return found

    def _searched(self, scores: Scores, frame: int) -> dict[int, int]:
        search = self._search
        if search is None or not isinstance(scores, np.ndarray):
            return {}
        found, times = hot(lambda: self._calm(lambda: search.again(scores, frame, self._own)))
        self._times = max(self._times, times)
        return {self._recorder.stage_id(name): ns for name, ns in found.items()}

    def _calm(self, once: Callable[[], dict[Stage, int]]) -> dict[Stage, int]:
        """What `once` gives; nothing where another program disturbed it."""
        self._queue.waited_ns()
        start = self._clock()
        found = once()
        return found if self._queue.waited_ns() <= DISTURBED * (self._clock() - start) else {}

    @staticmethod
    def _sums(lane: Lane, count: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for span in lane.latest(count):
            stage = int(span["stage"])
            found[stage] = found.get(stage, 0) + int(span["end_ns"] - span["start_ns"])
        return found

    def _replayed(self, stage: int) -> int:
        if stage not in self._of:
            name = REPLAYED + self._recorder.stages[stage].name
            self._of[stage] = self._recorder.stage(name, "setup", ("timed_ns",))
        return self._of[stage]
