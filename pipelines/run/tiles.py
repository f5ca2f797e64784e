"""The spans that tile the decoding time without a gap, with the time in each that was not the run's own."""

from __future__ import annotations

from typing import Final

from pipelines.run.measurements import RunMeasurements
from pipelines.run.null_writer import NullWriter
from pipelines.run.request import Result
from profiler.analysis.conditions import COUNTS
from profiler.machine.run_queue import NOTHING, Lost
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder

Journal = SessionWriter | NullWriter

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
        result: Result,
        measurements: RunMeasurements | None,
    ) -> None:
        self._clock, self._lane, self._journal, self._result = recorder.clock, lane, journal, result
        self._measurements = measurements
        self._stage = {name: recorder.stage(name, group, COUNTS) for name, group in GROUPS.items()}
        self.at = self.wall_ns = self.stopped_ns = 0

    def begin(self) -> None:
        """An utterance begins now."""
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

        `surely`: what it lost is asked for however short it was.
        """
        # Asked by the time now: what held a tile up for long belongs to it.
        lost = NOTHING if self._measurements is None else self._measurements.lost(self._clock(), surely=surely)
        start, self.at = self.at, self._clock()
        stopped_ms = min(lost.stopped_ns, self.at - start) // MS
        self._lane.put(self._stage[name], start, self.at, first, frames, lost.other_ns, lost.throttled_ns, stopped_ms)
        if stopped_ms:
            self.stopped_ns += stopped_ms * MS
            self._result.stopped_ns += stopped_ms * MS
            self._journal.marker("note", f"The process stood still for {stopped_ms / 1e3:.1f} s", first)
        wall_ns = self.at - start - stopped_ms * MS
        self.wall_ns += wall_ns
        return wall_ns, lost
