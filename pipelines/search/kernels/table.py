"""One table of addresses and lengths, by which the arrays of a search cross from Python into its kernels.

Given one by one, numba inspects every array in every call, in several places of memory each; after scoring has emptied
the caches, a call waits for all of them. The arrays are checked once, when the table is made. The table keeps nothing
alive: its owner keeps the arrays.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipelines.search.kernels.intrinsics import arrays_in
from pipelines.search.kernels.layout import KINDS, Arrays
from profiler.arrays import I64, Array, check

GROUPS: Final = tuple(tuple(np.dtype(kind) for kind in KINDS[group]) for group in Arrays._fields)
arrays_at = arrays_in(GROUPS)
"""For kernels: the arrays of a `table`, in plain tuples group by group."""


def table(arrays: Arrays) -> I64:
    """[arrays, 2]: address and length of each, group by group; ArrayError where one is not what KINDS says."""
    # Declared, since mypy does not find in every one of its runs what such unlike tuples have in common.
    groups: tuple[tuple[Array, ...], ...] = arrays
    rows = []
    for name, group, kinds in zip(Arrays._fields, groups, GROUPS, strict=True):
        for column, (array, kind) in enumerate(zip(group, kinds, strict=True)):
            # The graph is only read, and kernels write all else.
            writable = name != "graph"
            check(f"{name}[{column}]", array, kind.base, (None, *kind.shape), writable=writable)
            rows.append((array.ctypes.data, len(array)))
    return np.array(rows, np.int64)
