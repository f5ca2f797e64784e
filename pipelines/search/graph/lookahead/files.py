"""The files of a look-ahead folder: HCLr.fst, Gr.fst and the disambiguation symbols' transition-ids.

HCLr.fst is of OpenFst's kind `olabel_lookahead` (add-on.h, label-reachable.h): a header, a magic number, a const FST
with a header of its own, then for the output side whether there is a map of labels, the map, the label that stands for
a final state, and for each state which labels come first on its paths. Gr.fst has those labels, so the map is not used.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import read_file
from pipelines.search.graph import openfst
from pipelines.search.graph.lookahead import _intervals, ngram
from pipelines.search.graph.lookahead.compose import LookAhead
from pipelines.search.graph.openfst import Fst, Header
from pipelines.search.graph.wfst import GraphError
from profiler.arrays import I32, ArrayError, Bool
from profiler.files.inputs import InputError, open_input, there
from profiler.plain import one_line

LARGEST = 1 << 30
"""Bytes of a file."""
LARGEST_TEXT = 1 << 20
KIND = "olabel_lookahead"
_MAGIC = struct.pack("<i", 446681434)
_FLAGS = 5
_MAP_ENTRY = 8


def hcl(path: Path) -> tuple[Fst, LookAhead, list[str]]:
    """HCLr.fst: the transducer, its look-ahead data, and the names of its output labels, if any."""
    found = _header(path)
    if found.kind != KIND:
        raise GraphError(f"{path} is an FST of kind {found.kind}, and not {KIND}, as mkgraph_lookahead.sh makes it.")
    try:
        return _hcl(found)
    except (ArrayError, ValueError) as error:
        raise GraphError(one_line(str(error), 400)) from None


def _hcl(head: Header) -> tuple[Fst, LookAhead, list[str]]:
    if head.array("u1", 4, head.body).tobytes() != _MAGIC:
        raise ValueError(f"{head.path} has no FST where look-ahead data are announced")
    inner = openfst.header(head.path, head.body + len(_MAGIC))
    if inner.kind != "const":
        raise ValueError(f"{head.path} wraps an FST of kind {inner.kind}; const is read")
    fst, at = openfst.states_of(inner)
    # Whether there are data at all, of the input side, of the output side; whether they are of inputs; whether a map.
    present, of_inputs, of_outputs, inputs, mapped = head.array("u1", _FLAGS, at).tolist()
    if not (present == of_outputs == 1 and of_inputs == inputs == 0 and mapped in (0, 1)):
        raise ValueError(f"{head.path} has no look-ahead data of output labels")
    at += _FLAGS
    if mapped:
        count = int(head.array("<i8", 1, at)[0])
        if not 0 <= count <= head.size // _MAP_ENTRY:
            raise ValueError(f"{head.path} is cut short in its map of labels")
        at += 8 + count * _MAP_ENTRY
    end_label = int(head.array("<i4", 1, at)[0])
    count = int(head.array("<i8", 1, at + 4)[0])
    if count != fst.n_states or (head.size - at - 12) % 4:
        raise ValueError(f"{head.path} has look-ahead data of {count:,} states, it has {fst.n_states:,}")
    words = np.fromfile(head.path, "<i4", offset=at + 12)
    most = (len(words) - 3 * count) // 2
    if most < 0:
        raise ValueError(f"{head.path} is cut short in its look-ahead data")
    first, begin, end = np.zeros(count + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int32)
    if _intervals.intervals(words, ngram.LARGEST_LABEL, first, begin, end) != len(words):
        raise ValueError(f"{head.path} is damaged: the labels ahead of its states are no ascending intervals")
    begin, end = begin[: first[-1]], end[: first[-1]]
    final: Bool = np.zeros(count, np.bool_)
    final[np.searchsorted(first, np.flatnonzero((begin <= end_label) & (end_label < end)), side="right") - 1] = True
    if len(fst.olabel) and int(fst.olabel.min()) < 0:
        raise ValueError(f"{head.path} has a negative output label")
    names = inner.symbols or head.symbols
    return fst, LookAhead(first, begin, end, final), _names(names)


def g(path: Path) -> tuple[Fst, list[str]]:
    """Gr.fst, of kind ngram, const or vector: the model, and the names of its labels, if any."""
    found = _header(path)
    try:
        if found.kind == "ngram":
            fst = ngram.read(found)
        elif found.kind in ("const", "vector"):
            fst, end = openfst.states_of(found)
            if end != found.size:
                raise ValueError(f"{path} is longer than its {found.n_states:,} states and {found.n_arcs:,} arcs")
        else:
            raise GraphError(f"{path} is an FST of kind {found.kind}; ngram, const and vector are read.")
        for labels in (fst.ilabel, fst.olabel) if fst.n_arcs else ():
            if not 0 <= int(labels.min()) <= int(labels.max()) <= ngram.LARGEST_LABEL:
                raise ValueError(f"{path} has label {int(labels.max()):,}; 0 to {ngram.LARGEST_LABEL:,} are read")
        return fst, _names(found.symbols)
    except (ArrayError, ValueError) as error:
        raise GraphError(one_line(str(error), 400)) from None


def disambiguation(path: Path) -> I32:
    """The transition-ids of `disambig_tid.int` that stand for disambiguation symbols; none where there is no file."""
    try:
        text = read_file(path, LARGEST_TEXT).decode("ascii", "replace").split() if there(path) else []
    except ModelError as error:
        raise GraphError(str(error)) from None
    if not all(word.isdigit() and len(word) < 10 for word in text):
        raise GraphError(f"{path} has more than whole numbers.")
    return np.array([int(word) for word in text], np.int32)


def _header(path: Path) -> Header:
    try:
        open_input(path, "a graph", LARGEST).close()
        return openfst.header(path)
    except (InputError, ValueError) as error:
        raise GraphError(one_line(str(error), 400)) from None


def _names(table: openfst.Symbols | None) -> list[str]:
    """Names by number, "" where there is none."""
    if table is None:
        return []
    names = table.names()
    numbers = table.numbers
    if not len(numbers) or not 0 <= int(numbers.min()) <= int(numbers.max()) <= ngram.LARGEST_LABEL:
        raise ValueError("a symbol table has numbers that are none")
    made = [""] * (int(numbers.max()) + 1)
    for number, name in zip(numbers.tolist(), names, strict=True):
        made[number] = name
    return made
