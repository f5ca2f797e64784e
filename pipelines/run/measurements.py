"""What a recorded run measures in addition to its stages: time that was not its own, and hot replays.

Everything runs between blocks and outside the wall time, except reading how long the thread waited for its processor.
"""

from typing import Final

from pipelines.run.hot_replay import LIMIT, HotReplay
from pipelines.run.recogniser import Recogniser
from pipelines.scoring.strategy import Scores
from profiler.machine import cpu_limit
from profiler.machine.run_queue import NOTHING, Lost, Pulse, RunQueue
from profiler.recording.lanes import Lane
from profiler.spans import Recorder

OTHERS_EVERY_NS: Final = 4_000_000
"""Least time between two readings of how long other programs ran: the system call takes ten microseconds and more when
scoring has evicted its code. A block in which another program had the processor for longer is longer itself."""

LEAST_SHARE, LEAST_NS = 0.02, 500_000_000
"""There is no note on what held a run up for a smaller share of its time, or for less: on a virtual machine, something
always does."""


class RunMeasurements:
    """Made and used on the thread that decodes."""

    def __init__(self, recorder: Recorder, lane: Lane, replay: float) -> None:
        """`replay`: share of the time that hot replays may take in the long run, 0…1."""
        self._lane = lane
        self.pulse = Pulse(recorder.clock)
        self._queue = RunQueue(self.pulse)
        self.replay = HotReplay(recorder, lane, self._queue, replay)
        self._recorded = self._asked_ns = self._throttled_ns = 0
        self._lost = NOTHING

    def close(self) -> None:
        self._queue.close()

    def begin(self) -> None:
        self._recorded = self._lane.recorded
        self._queue.waited_ns()

    def lost(self, now: int, *, surely: bool = False) -> Lost:
        """What was not the thread's own since the last answer or `begin`; at most what a span holds.

        Nothing without a reading before OTHERS_EVERY_NS have passed, unless `surely` or the block is to be replayed.
        """
        self._lost = NOTHING
        if surely or self.replay.chosen or now - self._asked_ns >= OTHERS_EVERY_NS:
            self._asked_ns = now
            other, throttled, stopped = self._queue.lost()
            self._lost = Lost(min(other, LIMIT), min(throttled, LIMIT), stopped)
            self._throttled_ns += throttled
        return self._lost

    def notes(self, wall_ns: int) -> list[str]:
        """What held a run of `wall_ns` up besides other programs."""
        stolen = self._queue.steal.total_ns
        causes = {
            f"its CPU limit ({cpu_limit.text()}) held it up": self._throttled_ns - stolen,
            "the host of this machine took its processor": stolen,
        }
        least = max(LEAST_NS, LEAST_SHARE * wall_ns)
        return [f"{cause} for {ns / 1e9:.1f} s while it decoded" for cause, ns in causes.items() if ns >= least]

    def changed(self) -> None:
        self.replay.forget_search()
        self.replay.begin_again()

    def between(self, recogniser: Recogniser, scores: Scores | None, now: int, frame: int, took_ns: int) -> int:
        """A block from `frame` on has ended `now`, which took `took_ns`; returns when the next one may begin.

        `scores`: what the search was given of it, at once or frame by frame; None where it has gone on since.
        """
        replay, after = self.replay, now
        if replay.waits(now, took_ns):
            return now  # most blocks
        if replay.chosen:
            own = 1.0 - sum(self._lost) / max(took_ns, 1)
            after = replay.take(recogniser.scorer, scores, self._recorded, frame, own) or now
        # A beam that follows the time is another one when the block is done again.
        same = not recogniser.config.search.adaptive_beam
        after = replay.plan(recogniser.scorer, recogniser.search if same else None, self._recorded, took_ns) or after
        if after != now:
            self._queue.waited_ns()
        self._recorded = self._lane.recorded
        return after
