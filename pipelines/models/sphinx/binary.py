"""Reading of a stranger's model file: every size is checked against its bytes before anything is allocated."""

import hashlib
import os
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from profiler.arrays import Array
from profiler.files.inputs import InputError, read_bytes, there

LARGEST = 200 << 20  # bytes of a parameter file; the largest published CMUSphinx models are below
LARGEST_DEFINITION = 32 << 20  # bytes of a model definition: a million triphones
LARGEST_TEXT = 64 << 10  # bytes of `feat.params`: some hundred lines at most


def first_there(folder: Path, *names: str) -> Path | None:
    """The first of these files in a folder that there is."""
    return next((folder / name for name in names if there(folder / name)), None)


def read_file(path: Path, limit: int = LARGEST, may_be_empty: bool = False) -> bytes:
    """The whole of `path`; ModelError when it is missing, no regular file, absurdly large or (mostly) empty."""
    try:
        data = read_bytes(path, "a file of an acoustic model", limit)
    except InputError as error:
        if not os.path.lexists(path):
            raise ModelError(f"{path} is missing; the model directory needs it") from None
        raise ModelError(str(error)) from error
    if not data and not may_be_empty:
        raise ModelError(f"{path} is empty; a model file is expected here")
    return data


def checksum(*files: Path) -> str:
    """SHA-256 over names, sizes and bytes of files: the identity of a model for caches."""
    digest = hashlib.sha256()
    for file in files:
        data = read_file(file)
        digest.update(f"{file.name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


class Cursor:
    """A position in the bytes of one file; every read names the field it is for."""

    def __init__(self, data: bytes, path: Path, big_endian: bool = False) -> None:
        self.data = data
        self.path = path
        self.at = 0
        self.end = len(data)
        self.order = ">" if big_endian else "<"

    @property
    def left(self) -> int:
        return self.end - self.at

    def take(self, count: int, field: str) -> bytes:
        at = self._skip(count, field)
        return self.data[at : at + count]

    def _skip(self, count: int, field: str) -> int:
        if count < 0:
            raise ModelError(f"{self.path}: the size of {field} is negative ({count})")
        if count > self.left:
            raise ModelError(f"{self.path} is cut short or corrupt: {field} needs {count} bytes, {self.left} are left")
        self.at += count
        return self.at - count

    def i32(self, field: str, low: int = 0, high: int = 2**31 - 1) -> int:
        """One 32-bit integer that must lie in low … high."""
        raw = self.take(4, field)
        value = int.from_bytes(raw, "little" if self.order == "<" else "big", signed=True)
        if not low <= value <= high:
            raise ModelError(f"{self.path}: {field} is {value}, expected {low} to {high}")
        return value

    def array(self, kind: str, count: int, field: str) -> Array:
        """`count` values of numpy kind `kind` ("f4", "u2" …) as a native-endian array."""
        dtype = np.dtype(self.order + kind)
        at = self._skip(count * dtype.itemsize, field)
        # In place: these are the largest parts of a model.
        values = np.frombuffer(self.data, dtype, count, at)
        return values.astype(dtype.newbyteorder("="), copy=False)

    def finished(self, field: str) -> None:
        """Raise ModelError unless every byte has been read; `field` was the last one."""
        if self.left:
            raise ModelError(f"{self.path}: {self.left} bytes too many after {field}")
