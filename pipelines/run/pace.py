"""The pace: frames come no sooner than their audio would have been spoken."""

from __future__ import annotations

from pipelines.run.control import Control
from profiler.clock import FRAME_S
from profiler.spans import Lane, NullLane, Recorder


class Pace:
    """Waits between blocks, and records what it waited as `idle.pace`."""

    def __init__(self, recorder: Recorder, lane: Lane | NullLane, control: Control) -> None:
        self._clock, self._lane, self._control = recorder.clock, lane, control
        self._stage = recorder.stage("idle.pace", "idle")
        self._start: tuple[int, int] | None = None  # when, frames decoded by then

    def forget(self) -> None:
        self._start = None

    def begin(self, frame: int) -> None:
        """Start the clock of live speech now at `frame`, unless it runs already."""
        if self._start is None:
            self._start = self._clock(), frame

    def keep(self, now: int, frame: int, pace: float) -> int:
        """Wait until the audio before `frame` would have been spoken, `pace` times as fast; how long that was, ns."""
        assert self._start is not None
        if self._control.other is not None:  # a comparison waits for the end of the utterance
            self._start = now, frame
            return 0
        start, start_frame = self._start
        return self.wait(now, start + int((frame - start_frame) * FRAME_S / pace * 1e9), frame)

    def wait(self, now: int, deadline: int, frame: int) -> int:
        """Wait until `deadline`, a stop or a request; how long that was, ns."""
        if deadline <= now:
            return 0
        self._control.sleep_until(deadline)
        awake = self._clock()
        self._lane.put(self._stage, now, awake, frame, 0)
        return awake - now
