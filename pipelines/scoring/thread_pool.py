"""Threads that share one piece of work: a block's codebooks, or the rows of a product.

Codebooks are independent down to the last logarithm, so a block needs one hand-over to the other threads and one wait
for them, not one per stage.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, lru_cache, partial
from itertools import pairwise
from threading import Lock, Thread
from weakref import finalize

import numpy as np

from pipelines.scoring.blocks import Meter
from profiler.arrays import Array

WAIT_STAGE = "score.wait"

SHARE_SECONDS = 150e-6
"""A thread's share of work that is worth handing over, which wakes the other thread and waits for it. What that takes,
and from what time on two threads are quicker than one: `python -m tests.bench.constants --only threads`."""

Range = tuple[int, int]  # First, and one beyond the last
Part = Callable[[int, int, int], None]
"""Does its share of the work: part(thread, first, last), releasing the GIL to gain by it."""


class _Other:
    """Another thread, which does what it is handed, one piece after the other.

    Two locks wake it and its caller: a queue of futures takes twice as long, where scoring has pushed its code out of
    the caches. What counts are the numbers of what was handed over, so that a caller who was interrupted while it
    waited finds things as they should be the next time.
    """

    def __init__(self) -> None:
        self._go, self._back = Lock(), Lock()
        self._go.acquire()
        self._back.acquire()
        self._handed: tuple[int, Callable[[], None] | None] = 0, _nothing
        self._finished = 0
        self._failed: BaseException | None = None
        Thread(target=self._serve, name="scoring", daemon=True).start()

    def hand(self, work: Callable[[], None] | None) -> None:
        """Give the thread `work`, which the caller then waits for with `finish`; None ends it."""
        self._handed = self._handed[0] + 1, work
        _wake(self._go)

    def finish(self) -> None:
        """Wait until it has done what it was handed; raises what that raised."""
        number = self._handed[0]
        while self._finished != number:
            self._back.acquire()
        # Work holds on to the caller, and an exception to what it was raised in.
        self._handed = number, _nothing
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            number, work = self._handed
            if work is None:
                return
            failed = None
            try:
                work()
            except BaseException as error:
                failed = error
            self._failed = failed
            del work, failed
            self._finished = number
            _wake(self._back)


def _nothing() -> None:
    """Stands for work that was done."""


def _wake(lock: Lock) -> None:
    """Release the thread that waits for `lock`, or will next."""
    if lock.locked():
        lock.release()


class ThreadPool:
    """`threads` threads, of which the caller's is one."""

    def __init__(self, threads: int) -> None:
        self._others = [_Other() for _ in range(threads - 1)]
        self._busy = Lock()
        for other in self._others:
            finalize(self, other.hand, None)

    def share(self, part: Part, ranges: Sequence[Range], handed_over: Callable[[], None] = lambda: None) -> None:
        """Call part(i, first, last) for range number i; returns when all are done.

        No more ranges than threads; the first is the caller's. `handed_over` is called when the others have theirs.
        Where they are busy, the caller does it all.
        """
        if not self._others or not self._busy.acquire(blocking=False):
            for i, each in enumerate(ranges):
                part(i, *each)
            return
        others = self._others[: len(ranges) - 1]
        try:
            for i, other in enumerate(others, 1):
                other.hand(partial(part, i, *ranges[i]))
            handed_over()
            part(0, *ranges[0])
        finally:
            # They write into the caller's arrays: all are waited for, also when one raises.
            with ExitStack() as stack:
                stack.callback(self._busy.release)
                for other in others:
                    stack.callback(other.finish)


def shared(part: Part, count: int, threads: int) -> None:
    """Call part(thread, first, last) for even ranges of 0 … count − 1, one per thread; see `ThreadPool.share`."""
    if threads <= 1:
        part(0, 0, count)
        return
    _pool(threads).share(part, _even(count, threads))


def worthwhile(threads: int, seconds: float) -> int:
    """Number of `threads` that should share work which takes one thread about `seconds`."""
    return max(1, min(threads, int(seconds / SHARE_SECONDS)))


@lru_cache
def _even(count: int, threads: int) -> list[Range]:
    return list(pairwise(count * i // threads for i in range(threads + 1)))


@cache
def _pool(threads: int) -> ThreadPool:
    return ThreadPool(threads)


class BlockPool:
    """Runs the parts of a block; with one thread, in the caller's.

    Spans come from the calling thread and carry the work of all; the shares are balanced. What the caller takes to
    hand the others theirs, and what it waits for them in the end, is the stage `score.wait`.
    """

    def __init__(self, threads: int, work: Array) -> None:
        """`work` [codebooks]: relative cost of each codebook, which the ranges share out evenly."""
        threads = max(1, min(threads, len(work)))
        middles = (np.cumsum(work) - work / 2) / work.sum()
        edges = [0, *np.searchsorted(middles, np.arange(1, threads) / threads).tolist(), len(work)]
        # Where one codebook is as much work as several threads should have, there is nothing left for one of them:
        # every range has something in it, and a workspace is known by where its range begins.
        self.ranges = [(a, b) for a, b in pairwise(edges) if a < b]
        self.threads = len(self.ranges)
        self._pool = ThreadPool(self.threads)

    def run(self, part: Callable[[int, int, Meter], None], meter: Meter) -> None:
        """Let `part` run all stages of the codebooks of each range, closing a span of its meter after each stage."""
        if self.threads == 1:
            part(*self.ranges[0], meter)
            return
        waiting = partial(meter.close, WAIT_STAGE)
        self._pool.share(lambda i, first, last: part(first, last, Meter() if i else meter), self.ranges, waiting)
        waiting()
