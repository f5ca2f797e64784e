"""Names of arrays in signatures, and checks of arrays before compiled code touches them.

Kernels run without bounds checks, so whoever binds arrays to a kernel checks them once, outside the hot loop; a
mismatch is a mistake of this program, raised as `ArrayError` before any memory is touched.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = np.ndarray[Any, Any]  # Of any elements: of several kinds, or of a dtype known only at run time
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I8 = NDArray[np.int8]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
Bool = NDArray[np.bool_]


class ArrayError(ValueError):
    """An array that does not fit the kernel it was meant for: a mistake of the program, not of a person."""


def check(
    name: str,
    array: Array,
    dtype: DTypeLike,
    shape: Sequence[int | None],
    *,
    writable: bool = False,
    contiguous: bool = True,
) -> None:
    """Raise ArrayError unless `array` has this dtype and shape (None: any length), in C order, and is writable if
    required.

    With `contiguous` false only the last axis has to be dense, as kernels ask that take a row stride.
    """
    if not isinstance(array, np.ndarray):
        raise ArrayError(f"{name} is a {type(array).__name__}, not an array")
    if array.dtype != np.dtype(dtype):
        raise ArrayError(f"{name} holds {array.dtype}, the kernel wants {np.dtype(dtype)}")
    if array.ndim != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape, strict=False)
    ):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ArrayError(f"{name} has shape {array.shape}, the kernel wants ({wanted})")
    dense = array.ndim == 0 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize
    if not (array.flags.c_contiguous if contiguous else dense):
        raise ArrayError(f"{name} is not contiguous, as the kernel reads it")
    if writable and not array.flags.writeable:
        raise ArrayError(f"{name} is read-only, and the kernel writes it")


def check_indices(name: str, array: Array, limit: int) -> None:
    """ArrayError unless every element of an integer array lies in 0 … limit − 1."""
    if array.size and (int(array.min()) < 0 or int(array.max()) >= limit):
        raise ArrayError(f"{name} holds {int(array.min())} to {int(array.max())}, and only 0 to {limit - 1} exist")


def check_offsets(name: str, array: Array, end: int) -> None:
    """ArrayError unless an array of row starts begins with 0, never falls and ends with `end`."""
    # Compared, not subtracted: a difference of two int32 may not be one.
    falls = (array[1:] < array[:-1]).any()
    if not array.size or int(array[0]) != 0 or int(array[-1]) != end or falls:
        raise ArrayError(f"{name} is not a rising list of starts from 0 to {end}")
