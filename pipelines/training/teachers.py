"""Teachers: who says, for a frame of clean speech, how well each senone fits. Natural log, up to a constant."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from pipelines.config import Config
from pipelines.models.nets import Net
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import build_scorer
from pipelines.training.corpus.data import Pool
from pipelines.training.module import FeedForward
from profiler.arrays import Array
from profiler.spans import NullLane

GMM_BLOCK = 64
"""Frames that the mixtures are given at a time; more does not make them faster."""


class Teacher(Protocol):
    """A source of targets for the frames of a pool."""

    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        """Return log likelihoods f32 [n, senones] of the clean frames `at` [n]."""


class Mixtures:
    """The tied mixtures themselves, every senone and every density."""

    def __init__(self, model: AcousticModel) -> None:
        self._scorer = build_scorer(Config(), model)

    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        """Log likelihoods f32 [n, senones]."""
        features = pool.clean(at)[:, 0]
        scores = np.empty((len(at), self._scorer.n_senones), np.float32)
        for first in range(0, len(at), GMM_BLOCK):
            block = features[first : first + GMM_BLOCK]
            scores[first : first + len(block)] = self._scorer.score(block, 0, NullLane())
        return torch.from_numpy(scores)


class LargerNet:
    """A trained net on clean input, without the changes of the student's (Li et al. 2014)."""

    def __init__(self, net: Net, device: torch.device) -> None:
        self._card = net.card
        self._module = FeedForward(net.card).to(device)
        self._module.take(net.tensors)

    @torch.no_grad()
    def scores(self, pool: Pool, at: Array) -> torch.Tensor:
        """Log posteriors f32 [n, senones] of its first head."""
        inputs = torch.from_numpy(pool.clean(at, self._card.left, self._card.right))
        return self._module.answers(inputs)[0]
