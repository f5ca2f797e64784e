"""The spans that tile the decoding time without a gap, with the time in each that was not the run's own, and the pace.

At a pace frames come no sooner than their audio would have been spoken.
"""

from typing import Final

from pipelines.run.control import Control
from pipelines.run.measurements import RunMeasurements
from pipelines.run.request import RunResult
from profiler.analysis.stage_sums import COUNTS
from profiler.clock import FRAME_S
from profiler.machine.run_queue import NOTHING, Lost
from profiler.session.writer import Journal
from profiler.spans import Lane, NullLane, Recorder

UTTERANCE, CHUNK, BLOCK = "decode.utterance", "decode.chunk", "decode.block"
GROUPS: Final = {UTTERANCE: "prepare", CHUNK: "prepare", BLOCK: "decode"}
MS: Final = 1_000_000


class Tiles:
    """`at`: when the next tile begins; `wall_ns`: of the utterance so far; `stopped_ns`: it stood still. All in ns."""

    def __init__(
        self,
        recorder: Recorder,
        lane: Lane | NullLane,
        journal: Journal,
        result: RunResult,
        measurements: RunMeasurements | None,
    ) -> None:
        self._clock, self._lane, self._journal, self._result = recorder.clock, lane, journal, result
        self._measurements = measurements
        self._stage = {name: recorder.stage(name, group, COUNTS) for name, group in GROUPS.items()}
        self.at = self.wall_ns = self.stopped_ns = 0

    def begin(self) -> None:
        self.at, self.wall_ns, self.stopped_ns = self._clock(), 0, 0

    def own(self) -> None:
        """Leave time that was lost until now out of the next tile."""
        if self._measurements is not None:
            self._measurements.begin()

    def idle(self, ns: int) -> None:
        """The next tile begins so much later: the run waited."""
        self.at += ns
        self._result.idle_ns += ns

    def end(self, name: str, first: int, frames: int, *, surely: bool) -> tuple[int, Lost]:
        """Record a tile that ends now; returns its wall time, ns, without a standstill, and what it lost.

        `surely`: what it lost is read however short it was.
        """
        start, self.at = self.at, self._clock()
        # Asked when the tile is over: with cold caches the answer takes 30 µs, which are none of the recogniser's.
        lost = NOTHING if self._measurements is None else self._measurements.lost(self.at, surely=surely)
        if lost.stopped_ns:  # perhaps between the end of the tile and the answer: it belongs to this tile then
            self.at = self._clock()
        took = self.at - start
        stopped_ms = min(lost.stopped_ns, took) // MS
        self._lane.put(self._stage[name], start, self.at, first, frames, lost.other_ns, lost.throttled_ns, stopped_ms)
        if stopped_ms:
            self.stopped_ns += stopped_ms * MS
            self._result.stopped_ns += stopped_ms * MS
            self._journal.marker("note", f"The process stood still for {stopped_ms / 1e3:.1f} s", first)
        wall_ns = took - stopped_ms * MS
        self.wall_ns += wall_ns
        return wall_ns, lost


class Pace:
    """Waits between blocks, and records what it waited as `idle.pace`; the next tile begins when that is over."""

    def __init__(self, recorder: Recorder, lane: Lane | NullLane, control: Control, tiles: Tiles) -> None:
        self._clock, self._lane, self._control, self._tiles = recorder.clock, lane, control, tiles
        self._stage = recorder.stage("idle.pace", "idle")
        self._start: tuple[int, int] | None = None  # when, frames decoded by then

    def forget(self) -> None:
        self._start = None

    def begin(self, frame: int) -> None:
        """Start the clock of live speech now at `frame`, unless it runs already."""
        if self._start is None:
            self._start = self._clock(), frame

    def keep(self, frame: int, pace: float) -> None:
        """Wait until the audio before `frame` would have been spoken, `pace` times as fast."""
        assert self._start is not None
        if self._control.other is not None:  # a comparison waits for the end of the utterance
            self._start = self._tiles.at, frame
            return
        start, start_frame = self._start
        self.wait(start + int((frame - start_frame) * FRAME_S / pace * 1e9), frame)

    def wait(self, deadline: int, frame: int) -> bool:
        """Wait until `deadline`, a stop or a request; whether there was anything to wait for."""
        now = self._tiles.at
        if deadline <= now:
            return False
        self._control.sleep_until(deadline)
        # With cold caches this takes 60 µs: a part of the wait, not of the block that follows.
        self._tiles.own()
        awake = self._clock()
        self._lane.put(self._stage, now, awake, frame, 0)
        self._tiles.idle(awake - now)
        return True
