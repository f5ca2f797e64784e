"""Sessions for the benches: spans, samples and words made up on a fake clock, recorded by the real writer.

Stages, counts and durations are those of the preset `gmm` at block 16 (13 sentences, 2 222 blocks).
"""

import queue
import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from profiler.machine.roofs.table import RoofTable
from profiler.session import writer
from profiler.session.database import EVERY_SECONDS, checkpoint
from profiler.session.writer import SessionWriter
from profiler.spans import Cost, Linear, Recorder
from tests.fake_clock import FakeClock
from tests.profiler.profiler_sessions import ROOF_TABLE as PLAIN
from tests.profiler.profiler_sessions import roof

FRAME_NS: Final = 10_000_000
SECOND: Final = 1_000_000_000
UTTERANCE_FRAMES: Final = 1000
WORDS_PER_SECOND: Final = 2.5
FLUSH_NS: Final = 45_000_000
SAMPLE_NS: Final = 100_000_000
ROOF_TABLE: Final = PLAIN.merged(
    RoofTable((roof("rate", "fma", 40e9), roof("rate", "log", 1e9), roof("rate", "scalar", 2e9)))
)
LEAVES: Final = (
    ("score.gaussians", "scoring", ("gaussians",), 34_000, (16_128,)),
    ("score.exp", "scoring", ("exponentials",), 7_000, (16_128,)),
    ("score.mixture", "scoring", ("components",), 96_000, (1_968_384,)),
    ("score.log", "scoring", ("senones",), 6_800, (5_126,)),
    ("search.emit", "search", ("tokens", "arcs", "senones"), 300_000, (4_400, 16_500, 2_300)),
    ("search.epsilon", "search", ("arcs",), 80_000, (1_000,)),
    ("search.prune", "search", ("tokens",), 94_000, (5_300,)),
)
"""Name, group, names of counts, ns per frame, and counts per frame."""
SAMPLES: Final = (
    *(f"process.{name}" for name in ("cpu_percent", "rss_bytes", "threads", "faults_minor", "faults_major")),
    *(f"process.switches_{kind}" for kind in ("voluntary", "involuntary")),
    *("system.cpu_percent", "system.memory_available_bytes"),
)
COST: Final = Cost(
    {"fma": Linear(per_work=(2.0, 0.0, 0.0))},
    Linear(fixed=1e6, per_work=(4.0, 0.0, 0.0)),
    Linear(fixed=1e6, per_work=(8.0, 0.0, 0.0)),
    working_set_bytes=2.7e6,
)


class Stepped(SessionWriter):
    """The writer, its thread flushing on `step()`: one round at the fake time."""

    def __init__(self, path: Path, recorder: Recorder, meta: dict[str, Any]) -> None:
        self._steps: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._clock_s = self._checkpointed_s = 0.0
        writer.time = SimpleNamespace(monotonic=lambda: self._clock_s)  # type: ignore[assignment]
        super().__init__(path, recorder, meta)
        self._rounds._wake = SimpleNamespace(wait=self._wait, set=lambda: self._steps.put(False))  # type: ignore[assignment]
        self._rounds._checkpointer.stop()
        self._beside = sqlite3.connect(path, isolation_level=None)

    def step(self, now_s: float) -> None:
        """Flush once, as if `now_s` had come."""
        self._clock_s = now_s
        self._steps.put(True)
        self._done.get()
        if now_s - self._checkpointed_s >= EVERY_SECONDS:
            self._checkpointed_s = now_s
            checkpoint(self._beside)

    def close(self, state: str = "closed") -> None:
        self._beside.close()
        super().close(state)

    def _wait(self, seconds: float) -> None:
        self._done.put(True)
        self._steps.get()


class Pipeline:
    """Records as the pipeline does, block by block, on a clock of its own."""

    def __init__(self, writer_class: type[SessionWriter], path: Path, block: int = 16) -> None:
        self.clock = FakeClock(SECOND)
        self.recorder = Recorder(self.clock)
        self.block = block
        self.frame = 0
        self.start_ns = self.clock()
        self.writer = writer_class(path, self.recorder, {"preset": "bench", "argv": ["bench"]})
        self.writer.calibration(ROOF_TABLE.rows())
        stage = self.recorder.stage
        self._prepare = stage("decode.utterance", "prepare")
        self._tile = stage("decode.block", "decode")
        self._idle = stage("idle.pace", "idle")
        self._mfcc = stage("frontend.mfcc", "frontend")
        self._leaves = []
        for name, group, work, ns, counts in LEAVES:
            number = stage(name, group, work)
            self._leaves.append((number, ns * block, *(c * block for c in counts)))
            self.recorder.cost(number, 0, COST)
        self.lane = self.recorder.lane("decode", decode=True)
        self.writer.config(0, 0, {"threads": 1, "block": block, "search": {"device": "cpu"}})
        self._random = np.random.default_rng(1)
        self._jitter = self._random.uniform(0.9, 1.2, 4096).tolist()
        self._utterance = 0
        self._words: list[tuple[str, int, int]] = []
        self._partial_due = self._sample_due = 0

    def run_block(self, utterance_frames: int = UTTERANCE_FRAMES, pace: bool = True) -> None:
        """Decode one block; with `pace` the clock then waits for the audio."""
        clock, lane = self.clock, self.lane
        if self.frame % utterance_frames == 0:
            self._begin(utterance_frames)
        count = min(self.block, utterance_frames - self.frame % utterance_frames)
        tile, jitter = clock(), self._jitter
        for i, (stage, ns, *work) in enumerate(self._leaves):
            start = clock()
            took = int(ns * jitter[(self.frame * 7 + i) & 4095])
            lane.put(stage, start, clock.advance(took), self.frame, count, *work)
        lane.put(self._tile, tile, clock.advance(9_000), self.frame, count)
        self.frame += count
        self._speak(utterance_frames)
        if pace:
            now = clock()
            due = self.start_ns + self.frame * FRAME_NS
            if due > now:
                lane.put(self._idle, now, clock.advance(due - now), self.frame, 0)
            while self._sample_due <= clock() - self.start_ns:
                self.writer.sample(clock(), {name: float(clock() % 1013) for name in SAMPLES})
                self._sample_due += SAMPLE_NS

    def _begin(self, frames: int) -> None:
        start = self.clock()
        for first in range(0, frames, 500):
            n = min(500, frames - first)
            begin = self.clock()
            self.lane.put(self._mfcc, begin, self.clock.advance(n * 5_000), self.frame + first, n)
        self.lane.put(self._prepare, start, self.clock.advance(9_000), self.frame, frames)
        wave = self._random.integers(-90, 90, (frames, 2)).astype(np.int8)
        self._words = []
        name = f"utterance-{self.frame // frames:05d}"
        self._utterance = self.writer.utterance(
            name, f"/speech/{name}.flac", self.frame, frames, frames / 100, "she said so", wave
        )

    def _speak(self, frames: int) -> None:
        into, done = self.frame % frames, self.frame % frames == 0
        while len(self._words) < (into or frames) / 100 * WORDS_PER_SECOND:
            first = self.frame - into + int(len(self._words) * 100 / WORDS_PER_SECOND)
            self._words.append((f"word{len(self._words) % 97}", first, 35))
        text = " ".join(word for word, _, _ in self._words)
        if done:
            self.writer.utterance_done(self._utterance, text, self._words, SECOND, [0], 1, 3)
        elif self.frame * FRAME_NS >= self._partial_due:
            self._partial_due = self.frame * FRAME_NS + SAMPLE_NS
            self.writer.utterance_partial(self._utterance, text, self._words)


def record(path: Path, blocks: int, block: int = 16, **how: Any) -> Pipeline:
    """Record `blocks` blocks as fast as the writer takes them; the writer is not yet closed."""
    pipeline = Pipeline(SessionWriter, path, block)
    for i in range(blocks):
        pipeline.run_block(**how)
        while i % 256 == 0 and pipeline.lane.waiting > 30_000:
            time.sleep(0.002)
    taken(pipeline, pipeline.lane)
    return pipeline


def taken(pipeline: Pipeline, lane: Any) -> None:
    while lane.waiting or not pipeline.writer._rounds._commands.empty():
        time.sleep(0.005)
