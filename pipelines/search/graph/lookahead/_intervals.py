"""The compiled loop that reads the look-ahead data of HCLr.fst; see `files.hcl`."""

from __future__ import annotations

import numba

from profiler.arrays import I32, I64


@numba.njit(cache=True, nogil=True)
def intervals(words: I32, limit: int, first: I64, begin: I32, end: I32) -> int:  # pragma: no cover - compiled
    """Read the interval sets of all states from the 32-bit `words` of a file; returns the words read, -1 on nonsense.

    Of each state a 64-bit count, begin and end of each interval, and the number of labels in them.
    """
    at, n = 0, 0
    first[0] = 0
    for state in range(len(first) - 1):
        if at + 3 > len(words):
            return -1
        count = words[at]
        if count < 0 or words[at + 1] != 0 or count > (len(words) - at - 3) >> 1 or n + count > len(begin):
            return -1
        at += 2
        last = 0
        for _ in range(count):
            if not last <= words[at] <= words[at + 1] <= limit:
                return -1
            begin[n], end[n] = words[at], words[at + 1]
            last = end[n]
            n += 1
            at += 2
        at += 1
        first[state + 1] = n
    return at
