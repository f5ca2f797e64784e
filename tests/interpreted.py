"""Kernels as the Python that they are written in, on arrays whose indices are checked: numpy refuses one beyond.

numba can check indices too, but compiles every kernel anew for it, which takes a hundred times as long as the calls.
Integers are read as Python's: numba computes in 64 bits where numpy keeps to the 8, 16 or 32 of the array.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from pipelines.search.kernels.table import GROUPS
from profiler.arrays import I64, Array
from profiler.process.kernel_cache import PACKAGES
from profiler.recording import kernel_spans

PUT = kernel_spans.put.py_func


def _arrays_at(table: I64) -> tuple[tuple[Array, ...], ...]:
    """Arrays where a table says, as long as it says."""
    rows = iter(table.tolist())
    return tuple(tuple(_lying_at(*next(rows), kind) for kind in kinds) for kinds in GROUPS)


def _lying_at(address: int, length: int, kind: np.dtype[Any]) -> Array:
    memory = (ctypes.c_char * (length * kind.itemsize)).from_address(address)
    return np.ndarray((length, *kind.shape), kind.base, memory).view(Checked)


STEPS: dict[str, Callable[..., Any]] = {
    "_read_clock": lambda: divmod(time.perf_counter_ns(), 10**9),
    "arrays_at": _arrays_at,
    # As compiled: an address, which may lie outside.
    "prefetch": lambda array, index: None,
}
"""What is written in LLVM, in Python."""


class _Record:
    """One record of an array, whose fields are read and written by name."""

    def __init__(self, held: np.void) -> None:
        object.__setattr__(self, "_held", held)

    def __getattr__(self, name: str) -> Any:
        return _wide(self._held[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._held[name] = value


class Checked(np.ndarray):
    """An array as kernels see it; IndexError, where a compiled kernel would read what lies behind it."""

    def __getitem__(self, at: Any) -> Any:
        return _wide(super().__getitem__(at))

    def __setitem__(self, at: Any, value: Any) -> None:
        # As compiled: what does not fit is cut to the array's width.
        if isinstance(value, int) and self.dtype.kind in "iu":
            value = np.array(value, np.int64).astype(self.dtype)
        super().__setitem__(at, value)


def _wide(value: Any) -> Any:
    if isinstance(value, np.void):
        return _Record(value)
    return int(value) if isinstance(value, np.integer) else value


def _put(spans: tuple[Array, Array], *span: int) -> None:
    """Into the ring that a lane has lent, which no test has made."""
    PUT((spans[0].view(Checked), spans[1]), *span)


@contextmanager
def interpreted() -> Iterator[None]:
    """While it lasts, the program's modules hold Python functions in the place of compiled ones."""
    changed: list[tuple[ModuleType, str, Any]] = []
    mine = [m for name, m in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    try:
        put = kernel_spans.put
        for module in mine:
            for name, value in list(vars(module).items()):
                if value is put:
                    instead = _put
                elif isinstance(value, Dispatcher):
                    instead = value.py_func
                elif isinstance(value, _Intrinsic) and name in STEPS:
                    instead = STEPS[name]
                else:
                    continue
                changed.append((module, name, value))
                setattr(module, name, instead)
        # Hashes wrap around, and a score that is no number is compared.
        with np.errstate(all="ignore"):
            yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)
