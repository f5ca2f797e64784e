"""Threads that share the rows of one product."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache


def shared(part: Callable[[int, int, int], None], count: int, threads: int) -> None:
    """Call part(thread, first, last) for ranges of 0 … count − 1, one per thread; returns when all are done.

    The last range is the caller's. `part` must release the GIL to gain by it.
    """
    if threads <= 1:
        part(0, 0, count)
        return
    edges = [count * i // threads for i in range(threads + 1)]
    others = [
        _pool(threads - 1).submit(part, i, edges[i], edges[i + 1]) for i in range(threads - 1)
    ]
    try:
        part(threads - 1, edges[-2], edges[-1])
    finally:
        wait(others)  # they write into the caller's arrays
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """One for all layers, which take turns."""
    return ThreadPoolExecutor(threads, thread_name_prefix="product")
