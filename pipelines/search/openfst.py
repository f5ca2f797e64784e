"""Search graphs between numpy and OpenFst, through OpenFst's binary `vector` files.

`kaldifst` has no bulk access to states and arcs, so they travel as files: a header, then per state
its final weight, its number of arcs and the arcs (fst/vector-fst.h of OpenFst 1.6 and later).
"""

from __future__ import annotations

import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import kaldifst

MAGIC = 2125659606
_HEADER = struct.Struct("<iQqqq")  # flags, properties, start, states, arcs
_VERSION = 2
_MUTABLE_EXPANDED = 0x3  # the two static property bits of a vector FST; the rest "unknown"

Words = NDArray[np.int32]


@dataclass
class Fst:
    """A weighted transducer in the tropical semiring as arrays; the arcs of a state are contiguous.

    `final` float32 [n] (inf: not final), `first` int64 [n + 1] offsets into the arcs,
    `ilabel`, `olabel`, `target` int32 [arcs], `weight` float32 [arcs]. Label 0 is epsilon.
    """

    start: int
    final: NDArray[np.float32]
    first: NDArray[np.int64]
    ilabel: Words
    olabel: Words
    weight: NDArray[np.float32]
    target: Words

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.final)

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.target)

    @property
    def source(self) -> Words:
        """State that each arc leaves, int32 [arcs]."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.first))


def from_arcs(
    n_states: int,
    start: int,
    final: NDArray[np.float32],
    source: NDArray[Any],
    ilabel: NDArray[Any],
    olabel: NDArray[Any],
    weight: NDArray[Any],
    target: NDArray[Any],
) -> Fst:
    """An Fst from arcs in any order, which is kept within each state."""
    # A stable sort merges runs, and the arcs mostly come as a few sorted runs.
    order = np.argsort(source, kind="stable")
    first = np.zeros(n_states + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=n_states), out=first[1:])
    return Fst(
        start,
        np.asarray(final, dtype=np.float32),
        first,
        np.asarray(ilabel, dtype=np.int32)[order],
        np.asarray(olabel, dtype=np.int32)[order],
        np.asarray(weight, dtype=np.float32)[order],
        np.asarray(target, dtype=np.int32)[order],
    )


def write(fst: Fst, path: str | os.PathLike[str]) -> None:
    """Writes `fst` as an OpenFst vector file."""
    # A state is 3 words of 32 bits (final, arc count as 64 bits), an arc is 4.
    body = np.empty(3 * fst.n_states + 4 * fst.n_arcs, dtype="<i4")
    states = 3 * np.arange(fst.n_states, dtype=np.int64) + 4 * fst.first[:-1]
    body[states] = fst.final.view(np.int32)
    body[states + 1] = np.diff(fst.first)
    body[states + 2] = 0
    arcs = 3 * (fst.source.astype(np.int64) + 1) + 4 * np.arange(fst.n_arcs, dtype=np.int64)
    body[arcs] = fst.ilabel
    body[arcs + 1] = fst.olabel
    body[arcs + 2] = fst.weight.view(np.int32)
    body[arcs + 3] = fst.target
    with Path(path).open("wb") as out:
        out.write(struct.pack("<i", MAGIC))
        out.writelines(struct.pack("<i", len(text)) + text for text in (b"vector", b"standard"))
        out.write(struct.pack("<i", _VERSION))
        out.write(_HEADER.pack(0, _MUTABLE_EXPANDED, fst.start, fst.n_states, fst.n_arcs))
        out.write(body.tobytes())


def read(path: str | os.PathLike[str]) -> Fst:
    """Reads an OpenFst vector file that this program or OpenFst just wrote; ValueError if not."""
    data = Path(path).read_bytes()
    at = 4
    if struct.unpack_from("<i", data)[0] != MAGIC:
        raise ValueError(f"{path} is not an OpenFst file")
    for wanted in (b"vector", b"standard"):
        (length,) = struct.unpack_from("<i", data, at)
        if data[at + 4 : at + 4 + length] != wanted:
            raise ValueError(f"{path} is not a {wanted.decode()} FST")
        at += 4 + length
    flags, _, start, n_states, _ = _HEADER.unpack_from(data, at + 4)
    if flags:
        raise ValueError(f"{path} carries symbol tables or alignment; neither is expected here")
    at += 4 + _HEADER.size
    body = np.frombuffer(data, dtype="<i4", offset=at).copy()
    if n_states < 0 or 3 * n_states > len(body):
        raise ValueError(f"{path} is cut short")
    first = np.zeros(n_states + 1, dtype=np.int64)
    if _count(body, first) != len(body):
        raise ValueError(f"{path} is cut short")
    states = 3 * np.arange(n_states, dtype=np.int64) + 4 * first[:-1]
    arcs = np.ones(len(body), dtype=bool)
    for word in range(3):
        arcs[states + word] = False
    table = body[arcs].reshape(-1, 4)
    return Fst(
        int(start),
        body[states].view(np.float32),
        first,
        table[:, 0].copy(),
        table[:, 1].copy(),
        table[:, 2].copy().view(np.float32),
        table[:, 3].copy(),
    )


@numba.njit(cache=True, nogil=True)
def _count(body: Words, first: NDArray[np.int64]) -> int:  # pragma: no cover - compiled
    """Fill `first` by walking the states; returns the words walked, -1 on nonsense."""
    at = 0
    for state in range(len(first) - 1):
        if at + 3 > len(body):
            return -1
        arcs = body[at + 1]
        at += 3 + 4 * arcs
        if arcs < 0 or at > len(body):
            return -1
        first[state + 1] = first[state] + arcs
    return at


def to_kaldifst(fst: Fst) -> kaldifst.StdVectorFst:
    """The same transducer as an OpenFst object."""
    import kaldifst

    with tempfile.TemporaryDirectory(prefix="asrscope-") as folder:
        path = os.path.join(folder, "in.fst")
        write(fst, path)
        result = kaldifst.StdVectorFst.read(path)
    if result is None:
        raise ValueError("OpenFst refused a transducer that was written for it")
    return result


def from_kaldifst(fst: kaldifst.StdVectorFst) -> Fst:
    """An OpenFst object as arrays."""
    with tempfile.TemporaryDirectory(prefix="asrscope-") as folder:
        path = os.path.join(folder, "out.fst")
        if not fst.write(path):
            raise OSError(f"OpenFst cannot write to {folder}; is the disk full?")
        return read(path)
