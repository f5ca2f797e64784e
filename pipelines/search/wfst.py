"""The compiled search graph in memory and as one flat, memory-mapped file.

File: magic, version, length and CRC-32 of a JSON header, the header, then the arrays, each aligned
to 64 bytes. The header holds the arrays' places and checksums, the words and how the graph was
made. A reader maps the arrays, so that processes share their pages, and checks everything that the
kernels rely on (they do not check bounds) before it hands a graph out.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.search import _check
from pipelines.search.openfst import Fst, from_arcs
from profiler.errors import BadInput

MAGIC = b"ASRSGRPH"
VERSION = 2
"""Of this layout; part of the cache key, so that an older cache is rebuilt and not misread."""
ALIGNMENT = 64
PIECE = 1 << 20
MAX_HEADER = 64 * 1024 * 1024
_PREAMBLE = struct.Struct("<8sIII")

STATE = np.dtype(
    [("first", "<i4"), ("epsilon", "<i4"), ("loop_label", "<i4"), ("loop_weight", "<f4")]
)
"""A state's emitting arcs are first … epsilon, its epsilon arcs epsilon … next state's first."""
ARC = np.dtype([("target", "<i4"), ("ilabel", "<i4"), ("olabel", "<i4"), ("weight", "<f4")])


class GraphError(BadInput):
    """A search graph that cannot be built, read or used, in one sentence."""


@dataclass(frozen=True, eq=False)
class Graph:
    """HCLG ready for token passing. Labels: senone + 1 and word + 1; 0 is epsilon.

    `states` STATE [n + 1] (the last one only closes the ranges), `arcs` ARC [m] without self-loops,
    `final` float32 [n], states below `n_epsilon_states` are those with epsilon arcs. `words` by
    word number. Pronunciations for word times: those of word w are `pron_first[w]` …
    `pron_first[w + 1]`, pronunciation p holds `pron_phones[phone_first[p] : phone_first[p + 1]]`.
    `senone_phone`, `senone_state` [n_senones]; `filler` bool [phones].
    """

    start: int
    n_epsilon_states: int
    n_senones: int
    states: NDArray[Any]
    arcs: NDArray[Any]
    final: NDArray[np.float32]
    words: tuple[str, ...]
    pron_first: NDArray[np.int32]
    phone_first: NDArray[np.int32]
    pron_phones: NDArray[np.uint8]
    senone_phone: NDArray[np.uint8]
    senone_state: NDArray[np.uint8]
    filler: NDArray[np.bool_]
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.final)

    @property
    def n_arcs(self) -> int:
        """Number of arcs, self-loops included."""
        return len(self.arcs) + int((self.states["loop_label"] > 0).sum())

    @property
    def n_bytes(self) -> int:
        """Bytes of states and arcs."""
        return int(self.states.nbytes + self.arcs.nbytes + self.final.nbytes)

    def to_fst(self) -> Fst:
        """The same graph with its self-loops as arcs (for OpenFst and other decoders)."""
        n = self.n_states
        first = self.states["first"].astype(np.int64)
        degree = first[1:] - first[:-1]
        source = np.repeat(np.arange(n), degree)
        loops = np.nonzero(self.states["loop_label"][:-1] > 0)[0]
        return from_arcs(
            n,
            self.start,
            self.final,
            np.concatenate([source, loops]),
            np.concatenate([self.arcs["ilabel"], self.states["loop_label"][loops]]),
            np.concatenate([self.arcs["olabel"], np.zeros(len(loops), dtype=np.int32)]),
            np.concatenate([self.arcs["weight"], self.states["loop_weight"][loops]]),
            np.concatenate([self.arcs["target"], loops]),
        )


def from_fst(
    fst: Fst,
    loop_label: NDArray[np.int32],
    loop_weight: NDArray[np.float32],
    n_senones: int,
    words: tuple[str, ...],
    pronunciations: list[list[tuple[int, ...]]],
    senone_phone: NDArray[Any],
    senone_state: NDArray[Any],
    filler: NDArray[Any],
    made: Mapping[str, Any] | None = None,
) -> Graph:
    """Packs a transducer without self-loops whose states with epsilon arcs come first.

    `pronunciations`: per word its pronunciations as phone numbers. GraphError when it is unsound.
    """
    # The records want a state's epsilon arcs last.
    epsilon = fst.ilabel == 0
    source = fst.source
    order = np.argsort(2 * source.astype(np.int64) + epsilon, kind="stable")
    arcs = np.empty(fst.n_arcs, dtype=ARC)
    for name, column in (
        ("target", fst.target),
        ("ilabel", fst.ilabel),
        ("olabel", fst.olabel),
        ("weight", fst.weight),
    ):
        arcs[name] = column[order]
    n_epsilon = np.bincount(source[epsilon], minlength=fst.n_states)
    states = np.zeros(fst.n_states + 1, dtype=STATE)
    states["first"] = fst.first
    states["epsilon"][:-1] = fst.first[1:] - n_epsilon
    states["epsilon"][-1] = fst.first[-1]
    states["loop_label"][:-1] = loop_label
    states["loop_weight"][:-1] = loop_weight
    with_epsilon = np.nonzero(n_epsilon)[0]
    prons = [p for word in pronunciations for p in word]
    graph = Graph(
        start=fst.start,
        n_epsilon_states=int(with_epsilon[-1]) + 1 if len(with_epsilon) else 0,
        n_senones=n_senones,
        states=states,
        arcs=arcs,
        final=np.ascontiguousarray(fst.final, dtype=np.float32),
        words=words,
        pron_first=_offsets([len(word) for word in pronunciations]),
        phone_first=_offsets([len(p) for p in prons]),
        pron_phones=np.array([phone for p in prons for phone in p], dtype=np.uint8),
        senone_phone=np.asarray(senone_phone, dtype=np.uint8),
        senone_state=np.asarray(senone_state, dtype=np.uint8),
        filler=np.asarray(filler, dtype=bool),
        made=dict(made or {}),
    )
    check(graph, "The graph")
    return graph


_ARRAYS = (
    ("states", STATE),
    ("arcs", ARC),
    ("final", np.dtype("<f4")),
    ("pron_first", np.dtype("<i4")),
    ("phone_first", np.dtype("<i4")),
    ("pron_phones", np.dtype("u1")),
    ("senone_phone", np.dtype("u1")),
    ("senone_state", np.dtype("u1")),
    ("filler", np.dtype("?")),
)


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes the graph beside `path` and renames it there, so that no half file is ever found."""
    target = Path(path)
    places, at = {}, 0
    for name, _ in _ARRAYS:
        array = getattr(graph, name)
        places[name] = [at, len(array), _checksum(array)]
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = json.dumps(
        {
            "start": graph.start,
            "n_epsilon_states": graph.n_epsilon_states,
            "n_senones": graph.n_senones,
            "arrays": places,
            "words": list(graph.words),
            "made": dict(graph.made),
            "bytes": at,
        }
    ).encode()
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(_PREAMBLE.pack(MAGIC, VERSION, len(header), zlib.crc32(header)))
            out.write(header)
            out.write(b"\0" * (_body_start(len(header)) - out.tell()))
            for name, _ in _ARRAYS:
                data = np.ascontiguousarray(getattr(graph, name)).tobytes()
                out.write(data + b"\0" * (-len(data) % ALIGNMENT))
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Graph:
    """Maps a graph from its file; GraphError (one sentence) for anything but a sound graph."""
    file = Path(path)
    try:
        with file.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            preamble = handle.read(_PREAMBLE.size)
            if len(preamble) < _PREAMBLE.size or preamble[: len(MAGIC)] != MAGIC:
                raise GraphError(f"{file} is not a search graph of this program.")
            _, version, length, checksum = _PREAMBLE.unpack(preamble)
            if version != VERSION:
                raise GraphError(f"{file} has graph version {version}, wanted is {VERSION}.")
            raw = handle.read(min(length, MAX_HEADER))
        if len(raw) != length or zlib.crc32(raw) != checksum:
            raise GraphError(f"{file} is damaged: its header does not match its checksum.")
        header = json.loads(raw)
        start = _body_start(length)
        if size != start + header["bytes"]:
            raise GraphError(
                f"{file} is damaged: it has {size} bytes and should have {start + header['bytes']}."
            )
        mapped = np.memmap(file, dtype=np.uint8, mode="r")
    except OSError as error:
        raise GraphError(f"{file} cannot be read: {error.strerror or error}.") from error
    try:
        arrays: dict[str, Any] = {}
        for name, dtype in _ARRAYS:
            at, count, checksum = header["arrays"][name]
            piece = mapped[start + at : start + at + count * dtype.itemsize]
            arrays[name] = np.asarray(piece).view(dtype)
            if min(at, count) < 0 or len(arrays[name]) != count:
                raise ValueError(name)
            if _checksum(arrays[name]) != checksum:
                raise ValueError(f"{name} does not match its checksum")
        graph = Graph(
            start=int(header["start"]),
            n_epsilon_states=int(header["n_epsilon_states"]),
            n_senones=int(header["n_senones"]),
            words=tuple(str(w) for w in header["words"]),
            made=header["made"],
            **arrays,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise GraphError(f"{file} is damaged: its arrays are not as announced ({error}).") from None
    check(graph, str(file))
    return graph


def check(graph: Graph, name: str) -> None:
    """GraphError unless every index that the kernels follow stays inside its array."""
    if not (0 <= graph.start < graph.n_states and len(graph.states) == graph.n_states + 1):
        raise GraphError(f"{name} is damaged: its states and its start state do not fit.")
    wrong = _check.fault(
        graph.states.view(np.int32).reshape(-1, 4),
        graph.arcs.view(np.int32).reshape(-1, 4),
        graph.n_senones,
        len(graph.words),
        graph.n_epsilon_states,
    )
    if wrong != _check.SOUND:
        raise GraphError(f"{name} is damaged: {_FAULTS[wrong]}.")
    sound = {
        "its final weights": not np.isnan(graph.final).any(),
        "its pronunciations": len(graph.pron_first) == len(graph.words) + 1
        and _ascends(graph.pron_first, len(graph.phone_first) - 1)
        and _ascends(graph.phone_first, len(graph.pron_phones))
        and _within(graph.pron_phones, 0, len(graph.filler) - 1),
        "its senones": len(graph.senone_phone) == len(graph.senone_state) == graph.n_senones
        and _within(graph.senone_phone, 0, len(graph.filler) - 1),
    }
    for what, good in sound.items():
        if not good:
            raise GraphError(f"{name} is damaged: {what} do not fit its other arrays.")


_FAULTS = {
    _check.RANGES: "its states' arcs do not follow each other",
    _check.LOOPS: "a self-loop has a senone that there is not",
    _check.TARGETS: "an arc leads to a state that there is not",
    _check.WORDS: "an arc has a word that there is not",
    _check.SENONES: "an arc has a senone that there is not",
    _check.WEIGHTS: "a weight is not a finite number",
    _check.EPSILONS: "an epsilon arc lies where emitting ones should, or the reverse",
    _check.ORDER: "states with epsilon arcs do not come first",
}


def _checksum(array: NDArray[Any]) -> int:
    """CRC-32 of the sums of pieces of PIECE bytes: any changed bit shows, at the speed of memory.

    (zlib's CRC-32 of all bytes takes ten times as long.)
    """
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    whole = len(raw) // 8 * 8
    words = raw[:whole].view("<u8")
    pieces = np.arange(0, len(words), PIECE // 8)
    sums = np.add.reduceat(words, pieces) if len(words) else words
    return zlib.crc32(raw[whole:].tobytes(), zlib.crc32(sums.tobytes()))


def _within(values: NDArray[Any], low: int, high: int) -> bool:
    return not len(values) or bool(values.min() >= low and values.max() <= high)


def _ascends(offsets: NDArray[Any], last: int) -> bool:
    return bool(
        len(offsets) and offsets[0] == 0 and offsets[-1] == last and (np.diff(offsets) >= 0).all()
    )


def _offsets(counts: list[int]) -> NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32)


def _body_start(header_length: int) -> int:
    return -(-(_PREAMBLE.size + header_length) // ALIGNMENT) * ALIGNMENT
