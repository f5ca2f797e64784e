"""Conditional down-sampling: a frame is skipped only while the sound stays the same.

Chan, Ravishankar and Rudnicky (2004), Sphinx-3's `-cond_ds`: a frame repeats the scores of the last computed one
if its nearest codeword is that of the frame before and fewer than k − 1 frames in a row were skipped.
Finding the codeword is a stage of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import Meter
from pipelines.scoring.clustering.quantiser import STAGE, Codewords, codewords_of
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.frames import FrameRule
from pipelines.scoring.strategy import Cancelling, Progress
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines.config import Config

NONE = -1  # no codeword: no frame before


class Rule(FrameRule):
    """Skips repetitions of a codeword, at most `skip` − 1 in a row."""

    stages: Mapping[str, tuple[str, ...]] = {STAGE: ("codewords",)}

    def __init__(self, model: AcousticModel) -> None:
        super().__init__(model)
        self._codebook: Codewords | None = None
        self.reset()

    def needs(self, config: Config) -> Hashable:
        return int(config.frames.codewords)

    def prepare(self, config: Config, progress: Progress, cancelled: Cancelling) -> Codewords:
        """The codebook of `frames.codewords` codewords, with what finds the nearest one compiled."""
        found = codewords_of(self._model, config.frames.codewords, progress, cancelled)
        found.nearest(np.zeros((1, found.book.words.shape[2]), np.float32), Meter())
        return found

    def configure(self, config: Config, prepared: Codewords | None = None) -> None:
        if prepared is not self._codebook:
            self._codebook = prepared
            self.reset()

    def reset(self) -> None:
        self._codeword = NONE
        self._skipped = 0

    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        """Bool [n]: whether each of these frames is scored; stage `score.frames`."""
        assert self._codebook is not None, "configure gives it a codebook before the first frame"
        codewords = self._codebook.nearest(features, meter)
        chosen = np.empty(len(codewords), np.bool_)
        for t, codeword in enumerate(codewords.tolist()):
            scored = codeword != self._codeword or self._skipped >= skip - 1
            self._skipped = 0 if scored else self._skipped + 1
            self._codeword = codeword
            chosen[t] = scored
        return chosen

    def costs(self, frames: int) -> dict[str, Cost]:
        return {} if self._codebook is None else {STAGE: laws.frame_codewords(self._codebook.book)}
