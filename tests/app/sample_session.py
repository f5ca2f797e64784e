"""A SYNTHETIC session, invented figures through the real `SessionWriter`: for tests of the views only.

Its clock is fake, so every span is known exactly; the shape follows a real run: blocks of 16 frames,
front end per utterance, scoring that gets cheaper when Gaussian selection is switched on and again
when frames are skipped, a search that works harder in one stretch, one dear frame.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from profiler.costs import CHASE, Accesses, Cost, Linear
from profiler.machine.roofs.table import Roof, RoofTable
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, Recorder
from tests.fake_clock import FakeClock
from tests.waiting import wait_until

BLOCK = 16
SAID = "and mister john dashwood had then leisure to consider how much there might be"
HEARD = "and mister john guess would had then leisure consider how much there might be uh"
SELECTION_ON, SKIP_ON = 0.36, 0.63  # Shares of the run at which the two toggles are flipped
SHARES = (1.0, 0.21, 0.105)  # Of the Gaussians, by epoch: those that are scored
OTHERS = 0.03  # Of every block: the time in which another program had its processor
ROOF_TABLE = RoofTable(
    (
        Roof("rate", "gemm", "float32", 1, 0, 100e9, 99e9, 104e9, "op/s"),
        Roof("rate", "fma", "float32", 1, 0, 40e9, 39e9, 41e9, "op/s"),
        Roof("rate", "exp", "float32", 1, 0, 1.2e9, 1.1e9, 1.3e9, "op/s"),
        Roof("rate", "scalar", "float32", 1, 0, 2e9, 1.9e9, 2.1e9, "op/s"),
        Roof("rate", "log", "float32", 1, 0, 1e9, 0.9e9, 1.1e9, "op/s"),
        Roof("kernel", "sample gaussians", "float32", 1, 0, 400e6, 390e6, 405e6, "1/s"),
        Roof("kernel", "sample exp", "float32", 1, 0, 1.1e9, 1.05e9, 1.15e9, "1/s"),
        Roof("kernel", "sample emit", "float32", 1, 0, 40e6, 38e6, 42e6, "1/s"),
        Roof("latency", "chase", "float32", 1, 1 << 14, 1.5, 1.4, 1.6, "ns"),
        Roof("latency", "chase", "float32", 1, 1 << 26, 60.0, 50.0, 75.0, "ns"),
        Roof("overhead", "numpy", "float32", 1, 0, 900.0, 850.0, 1000.0, "ns"),
        Roof("bandwidth", "read", "float32", 1, 1 << 14, 150e9, 140e9, 160e9, "B/s"),
        Roof("bandwidth", "read", "float32", 1, 1 << 20, 97e9, 95e9, 99e9, "B/s"),
        Roof("bandwidth", "read", "float32", 1, 1 << 28, 33e9, 31e9, 36e9, "B/s"),
    )
)


@dataclass
class Sample:
    """Writes the synthetic session step by step, so that tests can read it while it grows."""

    path: Path
    frames: int = 4096
    utterance_frames: int = 512
    seed: int = 1
    clock: FakeClock = field(default_factory=lambda: FakeClock(1_000_000_000))
    written: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.recorder = Recorder(self.clock)
        self.lane: Lane = self.recorder.lane("decode", decode=True)
        stage = self.recorder.stage
        self.mfcc = stage("frontend.mfcc", "frontend")
        self.gaussians = stage("score.gaussians", "scoring", ("gaussians", "senones"))
        self.exp = stage("score.exp", "scoring", ())
        self.emit = stage("search.emit", "search", ("tokens", "arcs", "senones"))
        self.prune = stage("search.prune", "search", ("tokens",))
        self.prepare = stage("prepare", "prepare")
        self.decode = stage("decode", "decode", ("other_programs_ns",))
        for epoch in range(3):
            law = Linear(per_work=(78.0, 0.0, 0.0))
            traffic = Linear(fixed=20e6, per_work=(135.0, 0.0, 0.0))
            calls = {"numpy": Linear(fixed=2.0)}
            cost = Cost({"fma": law}, traffic, traffic, working_set_bytes=64e6, calls=calls)
            self.recorder.cost(self.gaussians, epoch, cost)
            count = Linear(per_frame=90_000.0 * SHARES[epoch])
            self.recorder.cost(self.exp, epoch, Cost({"exp": count}))
            tokens = Linear(per_work=(1.0, 0.0, 0.0))
            accesses = (Accesses(tokens, 8e6, CHASE),)
            self.recorder.cost(self.emit, epoch, Cost({"scalar": tokens}, accesses=accesses))
        about = {
            "asrscope_version": "0.1.0",
            "preset": "synthetic sample",
            "argv": ["asrscope", "run", "--preset", "synthetic"],
            "machine": {"cpu": "Imaginary CPU", "cores": 2},
            "versions": {"numpy": np.__version__},
        }
        self.writer = SessionWriter(self.path, self.recorder, about)
        self.writer.calibration(ROOF_TABLE.rows())
        self._configure(0, 0)
        self._utterance: int | None = None
        self._markers: dict[str, int] = {}

    def _configure(self, epoch: int, frame: int) -> None:
        tree = {"device": "cpu", "threads": 1, "search": {"device": "cpu"}, "epoch": epoch}
        self.writer.config(epoch, frame, tree)
        self.lane.epoch = epoch

    def write(self, until: int | None = None) -> None:
        """Record blocks up to frame `until` (a multiple of BLOCK), then wait until they are in the file."""
        until = self.frames if until is None else min(until, self.frames)
        while self.written < until:
            self._toggles(self.written)
            if self.written % self.utterance_frames == 0:
                self._begin(self.written)
            self._block(self.written)
            self.written += BLOCK
            if self.written % 128 == 0 or self.written % self.utterance_frames == 0:
                self._words()
        self._settle()

    def close(self, state: str = "closed") -> Path:
        """Finish the session."""
        self.writer.close(state)
        return self.path

    def _settle(self) -> None:
        """Wait until the writer's thread has taken everything (it looks every 45 ms)."""
        wait_until(lambda: self.lane.waiting == 0 and self.writer._rounds._commands.empty())
        time.sleep(0.1)  # one more round: what was taken may not be committed yet

    def _toggles(self, frame: int) -> None:
        for name, share, text, value in (
            ("gmm.selection.enabled", SELECTION_ON, "selection on", True),
            ("frames.skip", SKIP_ON, "skip ×2", 2),
        ):
            applied = round(share * self.frames) // BLOCK * BLOCK
            if frame == applied - 2 * BLOCK:
                self._markers[name] = self.writer.marker("option", text, frame, name, value)
            if frame == applied:
                epoch = self.lane.epoch + 1
                self._configure(epoch, frame)
                self.writer.marker_applied(self._markers[name], frame, epoch)
        if frame == round(0.83 * self.frames) // BLOCK * BLOCK:
            self.writer.marker("user", "noise", frame)

    def _begin(self, frame: int) -> None:
        frames = min(self.utterance_frames, self.frames - frame)
        wave = np.abs(np.sin(np.arange(frames) / 23 + frame)) ** 2
        loud = (wave * self.random.uniform(60, 120, frames)).astype(np.int8)
        number = frame // self.utterance_frames
        self._utterance = self.writer.utterance(
            f"synthetic-{number:04d}",
            f"/nowhere/synthetic-{number:04d}.wav",
            frame,
            frames,
            frames * 0.01,
            SAID,
            np.stack([-loud, loud], axis=1),
        )
        self._first, self._length = frame, frames
        start = self.clock()
        self.lane.put(self.mfcc, start, self.clock.advance(frames * 38_000), frame, frames)
        self.lane.put(self.prepare, start, self.clock.advance(900), frame, frames)

    def _leaf(self, stage: int, ns: float, frame: int, *work: int) -> None:
        start = self.clock()
        end = self.clock.advance(int(ns * self.random.uniform(0.93, 1.07)))
        self.lane.put(stage, start, end, frame, BLOCK, *work)

    def _block(self, frame: int) -> None:
        at = frame / self.frames
        epoch = self.lane.epoch
        share = SHARES[epoch]
        gaussians = int(42 * 5126 * share * BLOCK * self.random.uniform(0.97, 1.03))
        hard = float(np.exp(-(((at - 0.83) / 0.03) ** 2)))
        start = self.clock()
        spike = 12 if abs(frame - 0.2 * self.frames) < BLOCK / 2 + 1 else 1
        self._leaf(self.gaussians, gaussians * 4.7 * spike, frame, gaussians, 5126 * BLOCK)
        self._leaf(self.exp, 95_000 * share * BLOCK, frame)
        tokens = int(BLOCK * (2600 + 900 * np.sin(frame / 90) + 9000 * hard))
        asked = int(BLOCK * self.random.uniform(1000, 1400))
        self._leaf(self.emit, tokens * 60.0, frame, tokens, 3 * tokens, asked)
        self._leaf(self.prune, tokens * 9.0, frame, tokens)
        end = self.clock.advance(BLOCK * 11_000)
        self.lane.put(self.decode, start, end, frame, BLOCK, int(OTHERS * (end - start)))

    def _words(self) -> None:
        assert self._utterance is not None
        end = min(self.written, self._first + self._length)
        heard = HEARD.split()
        step = self._length / (len(heard) + 1)
        words = [(w, int(self._first + (i + 0.5) * step), int(step * 0.9)) for i, w in enumerate(heard)]
        done = end == self._first + self._length
        words = [word for word in words if word[1] + word[2] <= end or done]
        text = " ".join(word for word, _, _ in words)
        if done:
            self.writer.utterance_done(self._utterance, text, words, 10**9, [self.lane.epoch], 4, len(SAID.split()))
        else:
            self.writer.utterance_partial(self._utterance, text, words)


def write_sample(path: Path, frames: int = 4096, **rest: int) -> Path:
    """Write a whole synthetic session and return its path."""
    sample = Sample(path, frames=frames, **rest)
    try:
        sample.write()
    finally:
        sample.close()
    return path
