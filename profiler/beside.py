"""The same work on several arrays, side by side where they are large: numpy lets go of the interpreter meanwhile."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")

LARGE: Final = 1 << 16
"""Elements of each array from which threads are worth starting: some 100 µs for all of them."""

MOST: Final = 4
"""The memory of a machine is busy with so many."""


def side_by_side(do: Callable[[Item], object], items: Iterable[Item], size: int) -> None:
    """Call `do` with every item, in any order, each on about `size` elements of an array of its own."""
    threads = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, MOST)
    if size < LARGE or threads < 2:
        for item in items:
            do(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(do, items):
            pass
