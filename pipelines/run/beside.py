"""What a recorded run measures beside its stages: other programs, the machine's speed, and hot replays.

All of it between blocks and outside the wall time, but for reading how long the thread waited for its processor (1 µs a
block).
"""

from __future__ import annotations

from pipelines.run.hot_replay import DISTURBED, LIMIT, HotReplay
from pipelines.run.recogniser import Recogniser
from pipelines.scoring.scorer import Scores
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
        self._replay = HotReplay(recorder, lane, self._queue, replay)
        self._recorded = self._other_ns = 0
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
        self._other_ns = min(self._queue.waited_ns(), LIMIT)
        return self._other_ns

    def forget(self) -> None:
        """What was kept of the search for the next block no longer is its state."""
        self._replay.forget()

    def between(
        self, recogniser: Recogniser, scores: Scores | None, now: int, frame: int, took_ns: int
    ) -> int:
        """A block from `frame` on has ended `now`, which took `took_ns`; returns when the next one may begin.

        `scores`: what the search was given of it at once; None where it went frame by frame, or has gone on since.
        """
        replay = self._replay
        if self._other_ns > DISTURBED * took_ns:
            replay.forget()
        after = replay.take(recogniser.scorer, scores, self._recorded, frame) or now
        after = self._probe.take(after, frame)
        # A beam that follows the time is another one when the block is done again.
        fixed = not recogniser.config.search.adaptive_beam
        after = replay.plan(recogniser.search if fixed else None, took_ns) or after
        if after != now:
            self._queue.waited_ns()
        self._recorded = self._lane.recorded
        return after
