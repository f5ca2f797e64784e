"""Threads that share one piece of work: a block's codebooks, or the rows of a product.

Codebooks are independent down to the last logarithm, so a block needs one hand-over to the other
threads and one wait for them, not one per stage. Threads of the BLAS library gain nothing here:
the products are too small for it, and the kernels do not call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from pipelines.scoring.meter import Meter
from profiler.arrays import Array

WAIT_STAGE = "score.wait"

SHARE_SECONDS = 150e-6
"""A thread's share of work that is worth handing over, which wakes the other thread and waits for it. What that takes,
and from what time on two threads are quicker than one: `python -m tests.bench.constants --only threads`."""

Range = tuple[int, int]
"""First, and one beyond the last."""


class ThreadPool:
    """So many threads, of which the caller's is one."""

    def __init__(self, threads: int) -> None:
        self._others: ThreadPoolExecutor | None = None
        if threads > 1:
            self._others = ThreadPoolExecutor(threads - 1, thread_name_prefix="scoring")

    def share(
        self,
        part: Callable[[int, int, int], None],
        ranges: Sequence[Range],
        handed_over: Callable[[], None] | None = None,
    ) -> None:
        """Call part(i, first, last) for range number i; returns when all are done.

        No more ranges than threads; the first is the caller's. `part` must release the GIL to gain by it.
        `handed_over` is called when the others have theirs.
        """
        if self._others is None:
            part(0, *ranges[0])
            return
        others = [self._others.submit(part, i, *ranges[i]) for i in range(1, len(ranges))]
        try:
            if handed_over is not None:
                handed_over()
            part(0, *ranges[0])
        finally:
            wait(others)  # they write into the caller's arrays
        for other in others:
            other.result()


def shared(part: Callable[[int, int, int], None], count: int, threads: int) -> None:
    """Call part(thread, first, last) for even ranges of 0 … count − 1, one per thread; see `ThreadPool.share`."""
    if threads <= 1:
        part(0, 0, count)
        return
    _pool(threads).share(part, _even(count, threads))


def worthwhile(threads: int, seconds: float) -> int:
    """Of so many threads, how many should share work that takes one of them about so many `seconds`."""
    return max(1, min(threads, int(seconds / SHARE_SECONDS)))


@lru_cache
def _even(count: int, threads: int) -> list[Range]:
    return list(pairwise(count * i // threads for i in range(threads + 1)))


@cache
def _pool(threads: int) -> ThreadPool:
    """One for all layers of nets, which take turns."""
    return ThreadPool(threads)


class Part(Protocol):
    """All stages of a block for the codebooks first … last − 1."""

    def __call__(self, first: int, last: int, meter: Meter) -> None:
        """Run the stages, closing one span of `meter` after each."""


class BlockPool:
    """Runs the parts of a block; with one thread, in the caller's.

    Spans come from the calling thread and carry the work of all; the shares are balanced. What the caller takes to
    hand the others theirs, and what it waits for them in the end, is the stage `score.wait`.
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
        self._pool = ThreadPool(self.threads)

    def run(self, part: Part, meter: Meter) -> None:
        """Run `part` for every range; returns when all are done."""
        if self.threads == 1:
            part(*self.ranges[0], meter)
            return
        self._pool.share(
            lambda i, first, last: part(first, last, Meter() if i else meter),
            self.ranges,
            lambda: meter.done(WAIT_STAGE),
        )
        meter.done(WAIT_STAGE)
