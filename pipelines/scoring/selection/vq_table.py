"""Direct lookup: the score of every senone at every codeword is in a table, and no Gaussian is evaluated.

The dictionary of precomputed values of the VQ lore (note 0 of the project's literature), one for each stream: a
frame's score is the sum over its streams of the senone's score at the nearest codeword. As coarse as the codebook.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines import config as settings
from pipelines.scoring import cache
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.clustering.quantiser import QUANTISE, Codebook
from pipelines.scoring.clustering.shortlists import codebook_of
from pipelines.scoring.continuous import ContinuousGmm, kernels
from pipelines.scoring.costs import WAITING
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.scoring.strategy import Cancelling, Family, Made, Need, Progress, Strategy
from pipelines.scoring.thread_pool import WAIT_STAGE
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array, ArrayError
from profiler.costs import Cost
from profiler.errors import Cancelled

LOOKUP = "score.lookup"


class Table(NamedTuple):
    """`scores` f32 [streams, K, senones]: log-likelihoods of one stream at its codewords."""

    codebook: Codebook
    scores: Array


class _Lookup(Strategy[Family]):
    """Base of both kinds: all but the making of the table."""

    stages: Mapping[str, tuple[str, ...]] = {QUANTISE: ("codewords",), LOOKUP: ("lookups", "senones")}
    _table: Table

    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self._words = np.zeros((MAX_FRAMES, family.parameters.n_streams), np.int32)

    def needs(self, gmm: settings.Gmm) -> Need:
        """Codebook and table, from the cache or made now (seconds)."""
        return Need(gmm.selection.codewords, partial(self._make, gmm.selection.codewords))

    def _make(self, size: int, progress: Progress, cancelled: Cancelling) -> Table:
        p = self._family.parameters
        book = codebook_of(p.gaussians, p.identity, size, progress, cancelled)

        def make() -> dict[str, Array]:
            streams, words, dim = book.words.shape
            table = np.empty((streams, words, p.n_senones), np.float32)
            for s in range(streams):
                for at in range(0, words, MAX_FRAMES):
                    if cancelled():
                        raise Cancelled
                    progress("scoring the codewords", (s + at / words) / streams)
                    some = book.words[s, at : at + MAX_FRAMES]
                    x = np.ones((len(some), 1, 2 * dim + 1), np.float32)
                    x[:, 0, :dim], x[:, 0, dim : 2 * dim] = some**2, some
                    self._stream(s, x, table[s, at : at + MAX_FRAMES])
            return {"scores": table}

        return Table(book, cache.prepared("table", (p.identity, book.size), make)["scores"])

    @abstractmethod
    def _stream(self, s: int, x: Array, scores: Array) -> None:
        """Fill `scores` f32 [n, senones] of stream s alone from `x` f32 [n, 1, 2·D + 1]."""

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        self._table = prepared

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """There is too little to do for more threads than one."""
        words = self._words[: len(features)]
        self._table.codebook.nearest(self._family.expand(features), words)
        meter.close(QUANTISE, words.size * self._table.codebook.size)
        lookup(self._table.scores, words, scores)
        meter.close(LOOKUP, words.shape[1] * scores.size, scores.size)

    def costs(self, frames: int) -> dict[str, Cost]:
        return {
            QUANTISE: laws.quantise(self._table.codebook, False, frames),
            LOOKUP: laws.lookup(self._table.scores.nbytes),
            WAIT_STAGE: WAITING,
        }


class Continuous(_Lookup[ContinuousGmm]):
    """The table of a continuous model."""

    def _stream(self, s: int, x: Array, scores: Array) -> None:
        p = self._family.parameters
        gaussians = np.ascontiguousarray(p.gaussians[:, s : s + 1])
        tile = aligned((MAX_FRAMES, p.n_components * LANES))
        sums = aligned((2, MAX_FRAMES, LANES))
        kernels.dense(x, gaussians, tile, sums, scores, 0, p.n_groups, False)


class Tied(_Lookup[Gmm]):
    """The table of a tied-mixture model."""

    def _stream(self, s: int, x: Array, scores: Array) -> None:
        p = self._family.parameters
        for book in range(p.n_codebooks):
            panels = p.gaussians[book, s].swapaxes(0, 1).reshape(x.shape[2], -1)
            g = x[:, 0] @ panels
            best = g.max(axis=1, keepdims=True)
            begin, end = (p.n_streams * p.padded_densities * int(at) for at in p.start[book:][:2])
            weights = p.weights[begin:end].reshape(-1, p.n_streams, p.padded_densities, LANES)[:, s]
            # An exponential below float32's smallest is nothing beside the best one's.
            density = np.exp(np.maximum(g - best, np.float32(-87.0)))
            mixed = np.log(density @ weights.swapaxes(0, 1).reshape(p.padded_densities, -1)) + best
            mine = np.flatnonzero(p.book_of_senone == book)
            scores[:, mine] = mixed[:, p.column_of_senone[mine] - int(p.start[book])]


@njit(nogil=True, cache=True)
def lookup(table: Array, words: Array, scores: Array) -> None:
    """scores[t] = Σ over streams table[s, words[t, s]]."""
    n, streams = words.shape
    if len(table) != streams or streams == 0 or scores.shape != (n, table.shape[2]):
        raise ArrayError("lookup: table, codewords and scores do not fit each other")
    for t in range(n):
        for s in range(streams):
            if not 0 <= words[t, s] < table.shape[1]:
                raise ArrayError("lookup: a codeword that is not in the table")
    for t in range(n):
        row, first = scores[t], table[0, words[t, 0]]
        for i in range(len(row)):
            row[i] = first[i]
        for s in range(1, streams):
            more = table[s, words[t, s]]
            for i in range(len(row)):
                row[i] += more[i]
