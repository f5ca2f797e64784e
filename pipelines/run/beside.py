"""What a recorded run measures beside its stages: other programs, the machine's speed, and hot replays.

All of it between blocks and outside the wall time, but for reading how long the thread waited for its processor (1 µs a
block).
"""

from __future__ import annotations

from pipelines.run.hot_replay import LIMIT, HotReplay
from profiler.lanes import Lane
from profiler.machine.roofs.probe import Probe
from profiler.machine.run_queue import RunQueue
from profiler.spans import Recorder


class Beside:
    """Made and used on the thread that decodes; how fast the machine is, is known before the first block."""

    def __init__(self, recorder: Recorder, lane: Lane, replay: float) -> None:
        """`replay`: share of the time that hot replays may take, 0…1."""
        self._lane = lane
        self._queue = RunQueue()
        self._probe = Probe(recorder, lane)
        self._replay = HotReplay(recorder, lane, replay)
        self._recorded = 0
        self._probe.take(recorder.clock(), 0)

    def close(self) -> None:
        """Give the file of the run queue back."""
        self._queue.close()

    def begin(self) -> None:
        """What is counted begins anew: a block follows."""
        self._recorded = self._lane.recorded
        self._queue.waited_ns()

    def other_programs_ns(self) -> int:
        """For how long another program had the processor since the last call or `begin`; at most what a span holds."""
        return min(self._queue.waited_ns(), LIMIT)

    def between(self, scorer: object, now: int, frame: int, took_ns: int) -> int:
        """A block has ended `now`, which took `took_ns`; returns when the next one may begin."""
        replayed = self._replay.take(scorer, self._recorded, frame, took_ns)
        after = self._probe.take(max(now, replayed), frame)
        if after != now:
            self._queue.waited_ns()
        self._recorded = self._lane.recorded
        return after
