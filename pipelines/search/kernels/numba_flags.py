"""How numba compiles the search's kernels.

References to arrays are not counted (`_nrt`, so kernels cannot allocate): the caller keeps the arrays alive. Counting
costs time in each call (`python -m tests.bench.constants --only calls`) and an atomic operation for each array that an
inner loop takes out of a NamedTuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def njit_called(kernel: Callable[P, R]) -> Callable[P, R]:
    made = numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload]
    return made(kernel)  # type: ignore[no-any-return]


def njit_inner(kernel: Callable[P, R]) -> Callable[P, R]:
    made = numba.njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True)  # type: ignore[call-overload]
    return made(kernel)  # type: ignore[no-any-return]


def njit_reducing(kernel: Callable[P, R]) -> Callable[P, R]:
    """As `njit_inner`, for reductions over floats that are never NaN, which LLVM leaves as they stand otherwise."""
    made = numba.njit(  # type: ignore[call-overload]
        error_model="numpy", fastmath={"nnan", "nsz"}, _nrt=False, no_cpython_wrapper=True
    )
    return made(kernel)  # type: ignore[no-any-return]


def njit_inlined(kernel: Callable[P, R]) -> Callable[P, R]:
    """As `njit_inner`, for what belongs into the loop that calls it."""
    made = numba.njit(  # type: ignore[call-overload]
        error_model="numpy", forceinline=True, _nrt=False, no_cpython_wrapper=True
    )
    return made(kernel)  # type: ignore[no-any-return]
