"""Hot replay: a block scored once more with its data hot, so that waiting for caches and memory is measured.

Between two blocks, and outside the wall time, the block just scored is scored again twice: the first time brings its
data into the caches as far as they go, the second is timed. What the block took longer, it waited for data that what
lies between two blocks (search, other programs) had pushed out. The spans are compared stage by stage; the result is
recorded on the decode lane as spans of the stages "replay.…" in the group `setup`: their duration is the hot time,
their count the time that the block had taken.

Only where scoring is a pure function of the block (`LayeredScorer.again`), and for at most `share` of the time.
"""

from __future__ import annotations

from pipelines.scoring.layered import LayeredScorer
from profiler.analysis.conditions import REPLAYED
from profiler.lanes import Lane
from profiler.spans import Recorder

LIMIT = (1 << 32) - 1
TIMES = 2
"""Passes over the block: the last is timed."""


class HotReplay:
    """Replays a block now and then."""

    def __init__(self, recorder: Recorder, lane: Lane, share: float) -> None:
        """`share`: of the time that may go into it, 0…1."""
        self._recorder, self._lane, self._share = recorder, lane, share
        self._clock = recorder.clock
        self._own = Lane(0, "replay", "cpu", decode=False, capacity=1 << 12)
        self._began = self._clock()
        self._spent = 0
        self._stage = recorder.stage("setup.replay", "setup")
        self._of: dict[int, int] = {}

    def take(self, scorer: object, recorded: int, frame: int, took_ns: int) -> int:
        """Replay the block that was decoded last, if it may be; returns when that ended, 0 without.

        `recorded`: spans that the lane had before it. `took_ns`: what it took, for judging whether there is time.
        """
        if not self._share or not isinstance(scorer, LayeredScorer) or not scorer.replayable:
            return 0
        start = self._clock()
        if self._spent + TIMES * took_ns > self._share * (start - self._began):
            return 0
        own = self._own
        for _ in range(TIMES):
            own.take()
            scorer.again(frame, own)
        hot = self._sums(own, own.waiting)
        timed = self._sums(self._lane, self._lane.recorded - recorded)
        at = end = self._clock()
        for stage, ns in hot.items():
            if timed.get(stage):
                # One after another and to the end, so that all of set-up's spans together are its time.
                replayed, at = self._replayed(stage), at - ns
                self._lane.put(replayed, at, at + ns, frame, 0, min(timed[stage], LIMIT))
        self._lane.put(self._stage, start, max(at, start), frame, 0)
        self._spent += end - start
        return end

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
