"""Codewords of whole feature vectors, by which the frame layer sees whether the sound has changed.

The codebook is trained (`quantiser`) on one vector for each senone, the mean of its mixture: it tells as many
sounds apart as it has codewords, whether a model has one stream or three.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import cache
from pipelines.scoring.clustering import quantiser
from pipelines.scoring.clustering.quantiser import Codebook
from pipelines.scoring.gaussians.expansion import expand
from pipelines.scoring.meter import Meter
from pipelines.scoring.strategy import Cancelling, Progress
from profiler.arrays import Array

STAGE = "score.frames"
"""Work count `codewords`: how many a frame was compared with."""


class Codewords:
    """Finds the nearest codeword of each frame."""

    def __init__(self, codebook: Codebook, centre: Array) -> None:
        """`codebook` of one stream, about `centre` f32 [dim]."""
        self.book, self._centre = codebook, centre

    def nearest(self, features: Array, meter: Meter) -> Array:
        """Number of the nearest codeword of `features` f32 [n, dim], int32 [n]; stage `score.frames`."""
        n, dim = features.shape
        x = np.empty((n, 1, 2 * dim + 1), np.float32)
        expand(features, self._centre, x)
        found = np.empty((n, 1), np.int32)
        self.book.nearest(x, found)
        meter.close(STAGE, n * self.book.size)
        return found[:, 0]


def codewords_of(model: AcousticModel, size: int, progress: Progress, cancelled: Cancelling) -> Codewords:
    """The codebook of `size` codewords for `model` (an AcousticModel), from the cache or trained now.

    Raises Cancelled. It has fewer codewords where the model has fewer senones.
    """
    points = _senone_means(model)
    centre = points.mean(0)
    variance = model.variances.mean(axis=(0, 2), dtype=np.float64).ravel()
    scale = (1.0 / (variance * len(variance)))[None].astype(np.float32)

    def make() -> dict[str, Array]:
        made = quantiser.train([points - centre], scale, size, progress, cancelled)
        return quantiser.stored(made)

    arrays = cache.prepared("codewords", (cache.digest(points, scale), size), make)
    return Codewords(quantiser.restore(arrays), centre)


def _senone_means(model: AcousticModel) -> Array:
    """f32 [n_senones, dim]: the mean of each senone's mixture, streams side by side."""
    n_senones = len(model.senone_codebook)
    result = np.empty((n_senones, model.means.shape[1], model.means.shape[3]), np.float32)
    order = np.argsort(model.senone_codebook, kind="stable")
    edges = np.searchsorted(model.senone_codebook[order], np.arange(model.n_codebooks + 1))
    for book, (begin, end) in enumerate(pairwise(edges)):
        mine = order[begin:end]
        weights = model.weights[:, :, mine]
        result[mine] = np.einsum("skn,skd->nsd", weights, model.means[book])
    return result.reshape(n_senones, -1)
