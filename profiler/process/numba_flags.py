"""How numba compiles kernels that only kernels call, and those of the search.

References to arrays are not counted in the search (`_nrt`, so kernels cannot allocate): the caller keeps the arrays
alive. Counting costs time in each call (0.4 µs for ten arrays) and an atomic operation for each array that an inner
loop takes out of a NamedTuple.
"""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


class Njit(Protocol):
    """A decorator that leaves the types as they are."""

    def __call__(self, kernel: Callable[P, R], /) -> Callable[P, R]: ...


njit_part: Njit = numba.njit(nogil=True, no_cpython_wrapper=True)  # type: ignore[call-overload]
"""For a part of kernels, which Python must not call: numba makes no code of it alone."""
njit_called: Njit = numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload]
_INNER = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True}
njit_inner: Njit = numba.njit(**_INNER)  # type: ignore[call-overload]
njit_reducing: Njit = numba.njit(**_INNER, fastmath={"nnan", "nsz"})  # type: ignore[call-overload]
"""As `njit_inner`, for reductions over floats that are never NaN, which LLVM leaves as they stand otherwise."""
njit_inlined: Njit = numba.njit(**_INNER, forceinline=True)  # type: ignore[call-overload]
"""As `njit_inner`, for what belongs into the loop that calls it."""
