"""The sum of two vectors in compiled code, for the lab `call-costs`; whoever calls gives vectors of one length."""

from __future__ import annotations

import numba

from profiler.arrays import F32


@numba.njit(cache=True, nogil=True)
def add(a: F32, b: F32, out: F32) -> None:
    """out = a + b over float32 [n]."""
    for i in range(out.size):
        out[i] = a[i] + b[i]
