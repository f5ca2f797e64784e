"""Bounds-checked reading of a model file that a stranger may have written.

Every size is checked against the bytes that are there before anything is allocated, so a
truncated or corrupted file ends in one `ModelError` and never in a huge allocation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipelines.models.errors import ModelError

# The largest published CMUSphinx models are below 200 MB; anything far above is no model file.
MAX_FILE_BYTES = 2_000_000_000


def read_file(path: Path) -> bytes:
    """The whole of `path`; ModelError when it is missing, unreadable, empty or absurdly large."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ModelError(f"{path} is not a regular file; a model file is expected here")
        if size > MAX_FILE_BYTES:
            raise ModelError(f"{path} has {size} bytes; no model file is that large")
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; the model directory needs it") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    if not data:
        raise ModelError(f"{path} is empty; a model file is expected here")
    return data


class Cursor:
    """A position in the bytes of one file; every read names the field it is for."""

    def __init__(self, data: bytes, path: Path, big_endian: bool = False) -> None:
        self.data = data
        self.path = path
        self.at = 0
        self.order = ">" if big_endian else "<"

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return len(self.data) - self.at

    def take(self, count: int, field: str) -> bytes:
        """The next `count` bytes."""
        if count < 0:
            raise ModelError(f"{self.path}: the size of {field} is negative ({count})")
        if count > self.left:
            raise ModelError(
                f"{self.path} is cut short or corrupt: {field} needs {count} bytes, "
                f"{self.left} are left"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def i32(self, field: str, low: int = 0, high: int = 2**31 - 1) -> int:
        """One 32-bit integer that must lie in low … high."""
        raw = self.take(4, field)
        value = int.from_bytes(raw, "little" if self.order == "<" else "big", signed=True)
        if not low <= value <= high:
            raise ModelError(f"{self.path}: {field} is {value}, expected {low} to {high}")
        return value

    def array(self, kind: str, count: int, field: str) -> np.ndarray[Any, Any]:
        """`count` values of numpy kind `kind` ("f4", "u2" …) as a native-endian array."""
        dtype = np.dtype(self.order + kind)
        raw = self.take(count * dtype.itemsize, field)
        return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="), copy=False)

    def finished(self, field: str) -> None:
        """ModelError unless every byte has been read; `field` was the last one."""
        if self.left:
            raise ModelError(f"{self.path}: {self.left} bytes too many after {field}")
