"""Search graphs between numpy and OpenFst, through OpenFst's binary `vector` and `const` files.

`kaldifst` has no bulk access to states and arcs, so they travel as files (fst/vector-fst.h of OpenFst 1.6 and later).
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from pipelines.search.graph import _arcs
from profiler.arrays import F32, I32, I64, Array, ArrayError, Bool, check, check_indices, check_offsets

if TYPE_CHECKING:
    import kaldifst

MAGIC = 2125659606
_HEADER = struct.Struct("<iQqqq")  # flags, properties, start, states, arcs
_LONGEST_HEADER = 128
_MUTABLE_EXPANDED = 0x3  # the two static property bits of a vector FST; the rest "unknown"

_INPUT_SYMBOLS, _OUTPUT_SYMBOLS, _ALIGNED = 0x1, 0x2, 0x4
_FLAGS = _INPUT_SYMBOLS | _OUTPUT_SYMBOLS | _ALIGNED
_ALIGNED_VERSION, _ALIGNMENT = 1, 16  # Version and bytes of const files whose parts are aligned
_SYMBOLS_MAGIC = 2125658996
_SYMBOLS, _COUNTS, _LENGTH, _NUMBER = map(struct.Struct, ("<ii", "<qq", "<i", "<q"))
_CONST_STATE = np.dtype([("final", "<f4"), ("first", "<u4"), ("arcs", "<u4"), ("in", "<u4"), ("out", "<u4")])
"""Of const files; the last two count epsilons."""
_CONST_ARC = np.dtype([("ilabel", "<i4"), ("olabel", "<i4"), ("weight", "<f4"), ("target", "<i4")])

LABELS = 1 << 31  # Labels, states and arcs are int32


@dataclass
class Fst:
    """A weighted transducer in the tropical semiring as arrays; the arcs of a state are contiguous.

    `final` float32 [n] (inf: not final), `first` int64 [n + 1] offsets into the arcs,
    `ilabel`, `olabel`, `target` int32 [arcs], `weight` float32 [arcs]. Label 0 is epsilon.
    ArrayError where the arrays do not fit each other: the kernels below check no bounds.
    """

    start: int
    final: F32
    first: I64
    ilabel: I32
    olabel: I32
    weight: F32
    target: I32

    def __post_init__(self) -> None:
        n, m = len(self.final), len(self.target)
        check("final", self.final, np.float32, (n,))
        check("first", self.first, np.int64, (n + 1,))
        check_offsets("first", self.first, m)
        for name in ("ilabel", "olabel", "weight", "target"):
            kind = np.float32 if name == "weight" else np.int32
            check(name, getattr(self, name), kind, (m,))
        check_indices("ilabel", self.ilabel, LABELS)
        check_indices("target", self.target, n)
        if n and not 0 <= self.start < n:
            raise ArrayError(f"start is {self.start}, and only 0 to {n - 1} exist")

    @property
    def n_states(self) -> int:
        return len(self.final)

    @property
    def n_arcs(self) -> int:
        return len(self.target)

    @property
    def source(self) -> I32:
        """State that each arc leaves, int32 [arcs]."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.first))

    def labels(self, arcs: Array) -> tuple[I32, I32, F32]:
        """Input labels, output labels and weights of `arcs`, which index or choose them."""
        return self.ilabel[arcs], self.olabel[arcs], self.weight[arcs]


def from_arcs(
    n_states: int, start: int, final: F32, source: Array, ilabel: Array, olabel: Array, weight: Array, target: Array
) -> Fst:
    """An Fst from arcs in any order, which is kept within each state."""
    sources = np.ascontiguousarray(source, dtype=np.int64)
    check_indices("source", sources, n_states)
    first = np.append(0, np.cumsum(np.bincount(sources, minlength=n_states)))
    order = np.argsort(sources, kind="stable")
    return Fst(
        start,
        np.asarray(final, dtype=np.float32),
        first,
        np.asarray(ilabel, dtype=np.int32)[order],
        np.asarray(olabel, dtype=np.int32)[order],
        np.asarray(weight, dtype=np.float32)[order],
        np.asarray(target, dtype=np.int32)[order],
    )


def reached(fst: Fst) -> Bool:
    """Which states paths from the start come to, bool [states]."""
    found = np.zeros(fst.n_states, dtype=bool)
    if fst.n_states:
        _arcs.reach(fst.first, fst.target, fst.start, found)
    return found


def ranges(first: Array, counts: Array) -> I64:
    """first … first + count − 1 of each, one after another."""
    ends = np.cumsum(counts)
    result: I64 = np.arange(int(counts.sum())) + np.repeat(first - (ends - counts), counts)
    return result


def _places(first: I64) -> tuple[I64, I64]:
    """Return where each state and each arc begins in the 32-bit words of a file: a state has 3 words, an arc 4."""
    n, degree = len(first) - 1, np.diff(first)
    states = 3 * np.arange(n) + 4 * first[:-1]
    return states, 3 * np.repeat(np.arange(1, n + 1), degree) + 4 * np.arange(first[-1])


def write(fst: Fst, path: str | os.PathLike[str]) -> None:
    # Of a state its final weight and number of arcs (64 bits), then those of its arcs.
    body = np.zeros(3 * fst.n_states + 4 * fst.n_arcs, dtype="<i4")
    states, arcs = _places(fst.first)
    body[states], body[states + 1] = fst.final.view(np.int32), np.diff(fst.first)
    for i, column in enumerate((fst.ilabel, fst.olabel, fst.weight.view(np.int32), fst.target)):
        body[arcs + i] = column
    with Path(path).open("wb") as out:
        out.write(struct.pack("<i", MAGIC))
        out.writelines(struct.pack("<i", len(text)) + text for text in (b"vector", b"standard"))
        out.write(struct.pack("<i", 2))
        out.write(_HEADER.pack(0, _MUTABLE_EXPANDED, fst.start, fst.n_states, fst.n_arcs))
        out.write(body.data)


@dataclass(frozen=True)
class Header:
    """What stands before the states of an OpenFst file (fst.cc): kind, version, start, counts, symbol tables.

    `body`: where the states begin, from the file's begin on; `symbols`: names by number of the output symbols (of the
    input symbols if it has no others), None where it has none.
    """

    path: str
    size: int
    kind: str
    version: int
    aligned: bool
    start: int
    n_states: int
    n_arcs: int
    body: int
    symbols: Mapping[int, str] | None

    def array(self, kind: DTypeLike, count: int, at: int) -> Array:
        """`count` values at a place of the file; ValueError where it ends before them."""
        if count < 0 or at + count * np.dtype(kind).itemsize > self.size:
            raise ValueError(f"{self.path} is cut short")
        return np.fromfile(self.path, kind, count, offset=at)


def read(path: str | os.PathLike[str]) -> Fst:
    """Reads an OpenFst file of kind vector or const, whoever wrote it; ValueError (one sentence) if it is none."""
    found = header(path)
    if found.kind not in ("vector", "const"):
        raise ValueError(f"{path} is not a vector or const FST of standard arcs, but {found.kind!r}")
    fst, end = states_of(found)
    if end != found.size:
        raise ValueError(f"{path} is cut short, or longer than its {found.n_states:,} states and {found.n_arcs:,} arcs")
    return fst


def header(path: str | os.PathLike[str], at: int = 0) -> Header:
    """The header that begins at `at`; ValueError (one sentence) if there is none of standard arcs."""
    size = os.path.getsize(path)
    with Path(path).open("rb") as handle:
        handle.seek(at)
        data = handle.read(_LONGEST_HEADER).ljust(_LONGEST_HEADER, b"\0")
    if struct.unpack_from("<i", data)[0] != MAGIC:
        raise ValueError(f"{path} is not an OpenFst file")
    kind, place = _text(data, 4)
    arcs, place = _text(data, place)
    if not kind or arcs != "standard":
        raise ValueError(f"{path} is not an FST of standard arcs, but {kind!r} of {arcs!r}")
    (version,) = struct.unpack_from("<i", data, place)
    flags, _, start, n_states, n_arcs = _HEADER.unpack_from(data, place + 4)
    body, symbols = at + place + 4 + _HEADER.size, None
    for flag in (_INPUT_SYMBOLS, _OUTPUT_SYMBOLS):
        if flags & flag:
            symbols, length = _symbols(path, body)
            body += length
    aligned = bool(flags & _ALIGNED) or (kind == "const" and version == _ALIGNED_VERSION)
    if flags & ~_FLAGS or (aligned and kind == "vector"):
        raise ValueError(f"{path} has a header with unknown flags ({flags})")
    if not 0 <= n_states <= size or n_states >= LABELS or not 0 <= n_arcs < LABELS:
        raise ValueError(f"{path} is cut short")
    return Header(str(path), size, kind, version, aligned, start, n_states, n_arcs, body, symbols)


def _symbols(path: str | os.PathLike[str], at: int) -> tuple[Mapping[int, str], int]:
    """The symbol table at a place of a file, and how many bytes it takes; ValueError if it is none.

    (symbol-table.cc: a magic number, a name, the next free number, n; then length, name and number of each symbol.)
    """
    with Path(path).open("rb") as file:
        file.seek(at)
        text = file.read()
    names: dict[int, str] = {}
    try:
        magic, length = _SYMBOLS.unpack_from(text)
        place = _SYMBOLS.size + max(length, 0)
        _, n = _COUNTS.unpack_from(text, place)
        place += _COUNTS.size
        if magic != _SYMBOLS_MAGIC or length < 0:
            raise struct.error
        for _ in range(n):
            begin = place + _LENGTH.size
            place = begin + max(_LENGTH.unpack_from(text, place)[0], 0)
            (number,) = _NUMBER.unpack_from(text, place)
            names[number] = text[begin:place].decode("utf-8", "replace")
            place += _NUMBER.size
    except struct.error:
        raise ValueError(f"{path} is cut short in its symbol table") from None
    return names, place


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return a text of the header and where it ends; "" where it would be too long for one."""
    (length,) = struct.unpack_from("<i", data, at)
    if not 0 <= length <= 16:
        return "", at + 4
    return data[at + 4 : at + 4 + length].decode("latin-1"), at + 4 + length


def states_of(head: Header) -> tuple[Fst, int]:
    return _read_vector(head) if head.kind == "vector" else _read_const(head)


def _read_vector(head: Header) -> tuple[Fst, int]:
    path, n_states = head.path, head.n_states
    body = np.fromfile(path, dtype="<i4", offset=head.body)
    first = np.zeros(n_states + 1, dtype=np.int64)
    if 3 * n_states > len(body) or (head.size - head.body) % 4 or _arcs.count(body, first) != len(body):
        raise ValueError(f"{path} is cut short")
    states, arcs = _places(first)
    if body[states + 2].any():  # the upper halves of the numbers of arcs
        raise ValueError(f"{path} has a state of more arcs than it is long")
    final = body[states].view(np.float32)
    ilabel, olabel, weight, target = (body[arcs + i] for i in range(4))
    return Fst(head.start, final, first, ilabel, olabel, weight.view(np.float32), target), head.size


def _read_const(head: Header) -> tuple[Fst, int]:
    """States one after another, then arcs (fst/const-fst.h); both may begin at a multiple of the alignment."""
    alignment = _ALIGNMENT if head.aligned else 1
    at = head.body + -head.body % alignment
    of_arcs = at + head.n_states * _CONST_STATE.itemsize
    of_arcs += -of_arcs % alignment
    states = head.array(_CONST_STATE, head.n_states, at)
    arcs = head.array(_CONST_ARC, head.n_arcs, of_arcs)
    first = np.zeros(head.n_states + 1, dtype=np.int64)
    np.cumsum(states["arcs"], out=first[1:])
    if first[-1] != head.n_arcs or (states["first"] != first[:-1])[states["arcs"] > 0].any():
        raise ValueError(f"{head.path}: the arcs of its states do not follow each other")
    columns = [np.ascontiguousarray(arcs[name]) for name in ("ilabel", "olabel", "weight", "target")]
    fst = Fst(head.start, np.ascontiguousarray(states["final"]), first, *columns)
    return fst, of_arcs + arcs.nbytes


def to_kaldifst(fst: Fst) -> kaldifst.StdVectorFst:
    import kaldifst

    with tempfile.TemporaryDirectory(prefix="asrscope-") as folder:
        path = os.path.join(folder, "in.fst")
        write(fst, path)
        result = kaldifst.StdVectorFst.read(path)
    if result is None:
        raise ValueError("OpenFst refused a transducer that was written for it")
    return result


def from_kaldifst(fst: kaldifst.StdVectorFst) -> Fst:
    with tempfile.TemporaryDirectory(prefix="asrscope-") as folder:
        path = os.path.join(folder, "out.fst")
        if not fst.write(path):
            raise OSError(f"OpenFst cannot write to {folder}; is the disk full?")
        return read(path)
