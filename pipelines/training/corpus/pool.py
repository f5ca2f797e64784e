"""Frames of many shards in memory, taken in random order with their context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.training.corpus import data
from pipelines.training.corpus.data import Frames
from profiler.arrays import F32, I64, Array


class Pool:
    """All frames of some shards. Context never reaches into another utterance: its outermost frame repeats."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        lengths = np.diff(frames.ends, prepend=0)
        self._last = np.repeat(frames.ends - 1, lengths)
        self._first = np.repeat(frames.ends - lengths, lengths)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Pool:
        """The pool of the shards `paths`."""
        return cls(data.joined([data.read(path) for path in paths]))

    def __len__(self) -> int:
        return len(self.frames)

    def heard(self, at: Array, left: int, right: int) -> F32:
        """What the pupil hears around the frames `at` [n]: f32 [n, left + 1 + right, 39]."""
        return self._around(self.frames.heard, at, left, right)

    def clean(self, at: Array, left: int = 0, right: int = 0) -> F32:
        """What the teacher hears, in the same form."""
        return self._around(self.frames.clean, at, left, right)

    def later(self, at: Array, frames: int) -> Array:
        """The frames that many after `at`, or the last of the utterance."""
        later: Array = np.minimum(at + frames, self._last[at])
        return later

    def _around(self, source: Array, at: Array, left: int, right: int) -> F32:
        where = at[:, None] + np.arange(-left, right + 1)
        where = np.clip(where, self._first[at][:, None], self._last[at][:, None])
        return source[where].astype(np.float32)


def order(frames: int, seed: int, epoch: int, run: int = 1) -> I64:
    """The order in which an epoch takes the frames, `run` that follow each other at a time."""
    starts = np.random.default_rng([seed, epoch]).permutation(-(-frames // run)) * run
    taken = (starts[:, None] + np.arange(run)).ravel()
    return taken[taken < frames]
