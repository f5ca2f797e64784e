"""Threads that share one block of scoring: each does a range of codebooks from features to scores.

Codebooks are independent down to the last logarithm, so a block needs one hand-over to the other
threads and one wait for them, not one per stage. Threads of the BLAS library gain nothing here:
the products are too small for it, and the kernels do not call it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Protocol

import numpy as np

from pipelines.scoring.meter import Meter
from profiler.arrays import Array

WAIT_STAGE = "score.wait"


class Part(Protocol):
    """All stages of a block for the codebooks first … last − 1."""

    def __call__(self, first: int, last: int, meter: Meter) -> None:
        """Run the stages, closing one span of `meter` after each."""


class Team:
    """Runs the parts of a block; with one thread, in the caller's.

    Spans come from the calling thread and carry the work of all; the shares are balanced, and what
    the caller waits for the others is the stage `score.wait`.
    """

    def __init__(self, threads: int, work: Array) -> None:
        """`work` [codebooks]: relative cost of each codebook, which the ranges share out evenly."""
        threads = max(1, min(threads, len(work)))
        ends = np.cumsum(work) / work.sum()
        middles = ends - work / work.sum() / 2
        cuts = np.searchsorted(middles, np.arange(1, threads) / threads)
        edges = [0, *(int(cut) for cut in cuts), len(work)]
        # Where one codebook is as much work as several threads should have, there is nothing left for one of them:
        # every range has something in it, and a workspace is known by where its range begins.
        self.ranges = [(a, b) for a, b in pairwise(edges) if a < b]
        self.threads = len(self.ranges)
        self._pool: ThreadPoolExecutor | None = None
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="scoring")

    def run(self, part: Part, meter: Meter) -> None:
        """Run `part` for every range; returns when all are done."""
        if self._pool is None:
            part(*self.ranges[0], meter)
            return
        others = [self._pool.submit(part, *share, Meter()) for share in self.ranges[1:]]
        try:
            part(*self.ranges[0], meter)
        finally:
            wait(others)  # they write into the caller's arrays
        for other in others:
            other.result()
        meter.done(WAIT_STAGE)
