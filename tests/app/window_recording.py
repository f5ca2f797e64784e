"""A session written block by block with times made up, so that every figure is known beforehand."""

from pathlib import Path

import numpy as np

from pipelines import config as settings
from profiler.recording.lanes import RING_RECORDS
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.waiting import wait_until

BLOCK = 10
WALL_PER_FRAME = 1_000_000  # 1 ms for a frame of 10 ms: RTF 0.1

SCORING, SEARCH, FRONT_END = 600_000, 300_000, 50_000
UTTERANCE = 600
WORDS = 6


class Recording:
    """Writes frames on request; every utterance of 6 s has six words, one of them wrong."""

    def __init__(self, path: Path, preset: str = "gmm", begins_ns: int = 0) -> None:
        self.path = path
        self.begins_ns = begins_ns  # of its first frame
        self.frames = 0
        self.epoch = 0
        self.recorder = Recorder()
        self.writer = SessionWriter(path, self.recorder, {"preset": preset, "asrscope_version": "0"})
        stage = self.recorder.stage
        self._front = stage("frontend.mfcc", "frontend")
        self._score = stage("score.gaussians", "scoring", ("gaussians", "senones"))
        self._emit = stage("search.emit", "search", ("tokens", "arcs", "senones"))
        self._decode = stage("decode", "decode")
        self.lane = self.recorder.lane("decode", decode=True)
        self.writer.config(0, 0, settings.to_dict(settings.Config()))
        self._utterance: int | None = None
        self._closed = False

    def write(self, frames: int) -> None:
        """Record some more frames (a multiple of the block)."""
        for first in range(self.frames, self.frames + frames, BLOCK):
            if first % UTTERANCE == 0:
                self._begin(first)
            if self.lane.waiting > RING_RECORDS // 2:
                # Written faster than any decode: what the file is behind with would be dropped.
                wait_until(lambda: self.lane.waiting < RING_RECORDS // 4)
            self._block(first)
            if (first + BLOCK) % UTTERANCE == 0:
                self._end(first + BLOCK - UTTERANCE)
        self.frames += frames

    def _block(self, first: int) -> None:
        start = self.begins_ns + first * WALL_PER_FRAME
        put, at = self.lane.put, start
        put(self._front, at, at + FRONT_END * BLOCK, first, BLOCK)
        at += FRONT_END * BLOCK
        put(self._score, at, at + SCORING * BLOCK, first, BLOCK, 16_000 * BLOCK, 5_000 * BLOCK)
        at += SCORING * BLOCK
        put(self._emit, at, at + SEARCH * BLOCK, first, BLOCK, 3_000 * BLOCK, 9_000 * BLOCK, 900)
        put(self._decode, start, start + WALL_PER_FRAME * BLOCK, first, BLOCK)

    def _begin(self, first: int) -> None:
        swing = (100 * np.abs(np.sin(np.arange(UTTERANCE) / 20))).astype(np.int8)
        peaks = np.stack([-swing, swing], axis=1)
        said = " ".join(f"word{n}" for n in range(WORDS))
        self._utterance = self.writer.utterance(
            f"voice-{first}", "voice.wav", first, UTTERANCE, UTTERANCE / 100, said, peaks
        )

    def _end(self, first: int) -> None:
        assert self._utterance is not None
        words = [(f"word{n}", first + 100 * n, 80) for n in range(WORDS - 1)]
        heard = " ".join(word for word, _, _ in words)
        self.writer.utterance_done(self._utterance, heard, words, UTTERANCE * WALL_PER_FRAME, [self.epoch], 1, WORDS)

    def marker(self, text: str, frame: int, key: str | None = None, value: object = None) -> None:
        """Set a marker that applies at ``frame``, in a new epoch."""
        marker = self.writer.marker("option" if key else "user", text, frame, key, value)
        self.epoch += 1
        self.lane.epoch = self.epoch
        self.writer.config(self.epoch, frame, settings.to_dict(settings.Config()))
        self.writer.marker_applied(marker, frame, self.epoch)

    def close(self, state: str = "closed") -> None:
        """Finish the file (once)."""
        if not self._closed:
            self._closed = True
            self.writer.close(state)
