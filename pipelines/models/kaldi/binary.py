"""Kaldi's binary files: tokens, numbers, vectors and matrices (base/io-funcs, matrix/kaldi-matrix of Kaldi).

A file begins with `\\0B`. A token ends with a space. A number is a byte with its size, negative if it has no sign, and
its value; a vector of integers is the size of one, an int32 count without such a byte, and the values. Matrices and
vectors begin with a token: `FM DM FV DV`, packed symmetric matrices with `FP DP`. Every size is checked against the
bytes that are left before anything is allocated.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NoReturn

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import LARGEST, LARGEST_TEXT, Cursor, read_file
from profiler.arrays import F32, F64, I32, Array
from profiler.plain import one_line

BINARY = b"\0B"
LONGEST_TOKEN = 64
MOST = 1 << 27  # values of a vector or matrix: of 4 bytes, more than a file of LARGEST holds
BEYOND = 1e10  # of a parameter; larger ones are none of a model
MOST_SUM = 1e18  # of a sum in statistics; squares of cepstra over ten thousand hours add up to some 1e14
_FLOATS = {"F": "f4", "D": "f8"}


class Reader(Cursor):
    """A position in one binary file of Kaldi; every read names the field it is for and raises ModelError."""

    def __init__(self, data: bytes, path: Path) -> None:
        super().__init__(data, path)
        if self.take(2, "the mark of a binary file") != BINARY:
            raise ModelError(
                f"{path} is not a binary file of Kaldi; a model in text form is converted by "
                f"gmm-copy or copy-tree with --binary=true"
            )

    @classmethod
    def of(cls, path: Path, limit: int = LARGEST) -> Reader:
        """A reader at the beginning of the file `path`."""
        return cls(read_file(path, limit), path)

    def wrong(self, sentence: str) -> NoReturn:
        """Raise ModelError for this file."""
        raise ModelError(f"{self.path}: {sentence}")

    def token(self) -> str:
        end = self.data.find(b" ", self.at, min(self.at + LONGEST_TOKEN, self.end))
        raw = self.data[self.at : end] if end >= 0 else b""
        if not raw or not raw.isascii() or not raw.decode("ascii").isprintable():
            raise ModelError(f"{self.path} is cut short or corrupt: there is no token at byte {self.at:,}")
        self.at = end + 1
        return raw.decode("ascii")

    def expect(self, *names: str) -> str:
        """The next token, which must be one of `names`."""
        found = self.token()
        if found not in names:
            self.wrong(f"{' or '.join(names)} is expected, found {one_line(found)}")
        return found

    def peek(self) -> str:
        """The next token, which is not consumed."""
        at = self.at
        found = self.token()
        self.at = at
        return found

    def integer(self, field: str, low: int = 0, high: int = 2**31 - 1, size: int = 4) -> int:
        """One int32 (uint32 if `size` is -4) with its size before it; it must lie in low … high."""
        found = int.from_bytes(self.take(1, field), "little", signed=True)
        if found != size:
            self.wrong(f"{field} has a number of {found} bytes, expected {size}")
        return self.i32(field, low, high)

    def real(self, field: str) -> float:
        """One float or double with its size before it; it must be finite."""
        size = self.take(1, field)[0]
        if size not in (4, 8):
            self.wrong(f"{field} has a number of {size} bytes, expected 4 or 8")
        value = float(self.array(f"f{size}", 1, field)[0])
        if not np.isfinite(value):
            self.wrong(f"{field} is not a finite number")
        return value

    def integers(self, field: str) -> I32:
        if (size := self.take(1, field)[0]) != 4:
            self.wrong(f"{field} has numbers of {size} bytes, expected 4")
        return self.array("i4", self.i32(f"number of {field}", 0, MOST), field)

    def values(self, kind: str, dimensions: int, field: str, beyond: float = BEYOND) -> tuple[list[int], Array]:
        """The shape and the values, f32 or f64 [n], of a vector, a matrix or a packed one (`kind` V, M or P)."""
        mark = self.token()
        if mark in ("CM", "CM2", "CM3"):
            self.wrong(f"{field} is a compressed matrix; copy-matrix --compress=false writes a plain one")
        if len(mark) != 2 or mark[1] != kind or mark[0] not in _FLOATS:
            self.wrong(f"{field} is expected as F{kind} or D{kind}, found {one_line(mark)}")
        shape = [self.integer(f"size of {field}", 0, MOST) for _ in range(dimensions)]
        # A packed matrix is the lower triangle of a symmetric one, by rows.
        count = shape[0] * (shape[0] + 1) // 2 if kind == "P" else math.prod(shape)
        values = self.array(_FLOATS[mark[0]], count, field)
        # Without a comparison of nothing: not a number fails both.
        if not bool((np.abs(values) <= beyond).all()):
            self.wrong(f"{field} has a value that is no number or beyond ±{beyond:.0e}")
        return shape, values

    def vector(self, field: str) -> F32:
        return self.values("V", 1, field)[1].astype(np.float32, copy=False)

    def matrix(self, field: str) -> F32:
        shape, values = self.values("M", 2, field)
        return values.reshape(shape).astype(np.float32, copy=False)

    def symmetric(self, field: str, most: int) -> F32:
        """A packed symmetric matrix (`FP DP`) as f32 [n, n], n at most `most`."""
        (n,), values = self.values("P", 1, field)
        if n > most:
            self.wrong(f"{field} has {n:,} rows, at most {most:,} are read")
        matrix = np.empty((n, n), np.float32)
        rows, columns = np.tril_indices(n)
        matrix[rows, columns] = matrix[columns, rows] = values
        return matrix


def transform(path: Path) -> F32:
    """The matrix in a file, f32 [rows, columns], neither of them 0; ModelError."""
    reader = Reader.of(path)
    matrix = reader.matrix("the transform")
    reader.finished("the transform")
    if not matrix.size:
        reader.wrong("the transform has no rows or columns")
    return matrix


def statistics(path: Path, field: str) -> F64:
    """The matrix in a file, in binary or text form, as f64 [rows, columns]: sums, which may be large; ModelError."""
    data = read_file(path, LARGEST_TEXT)
    if data.startswith(BINARY):
        reader = Reader(data, path)
        shape, values = reader.values("M", 2, field, MOST_SUM)
        reader.finished(field)
        return values.astype(np.float64).reshape(shape)
    body = data.decode("utf-8", "replace").strip()
    rows = [line.split() for line in body.removeprefix("[").removesuffix("]").splitlines() if line.split()]
    try:
        matrix = np.array(rows, np.float64)
    except ValueError:
        matrix = np.full((1, 1), np.nan)
    if matrix.ndim != 2 or not bool((np.abs(matrix) <= MOST_SUM).all()):
        raise ModelError(f"{path}: {field} are no matrix of numbers within ±{MOST_SUM:.0e}")
    return matrix
