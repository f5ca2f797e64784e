"""The phonetic decision tree in `tree`: a window of phones and an HMM state to a pdf (Kaldi's tree/).

ContextDependency: N phones, the P-th (from 0) of them is the one spoken. The tree is an EventMap of three kinds: CE, a
leaf with its answer; SE, a question whether a key's value lies in a set; TE, a table by a key's value. Keys are the
places of the window, and −1 for the pdf class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.models.kaldi.binary import Reader
from profiler.arrays import I32, I64

PDF_CLASS = -1
MAX_WIDTH = 16
MAX_NODES = 1_000_000
MAX_DEPTH = 200  # of questions below each other: trees of a hundred thousand leaves have some thirty
NONE = -1  # answer where a table has no entry
MAX_PDFS = 65_536


@dataclass(frozen=True)
class Split:
    """`yes` where the value of `key` is one of `values`, else `no`."""

    key: int
    values: frozenset[int]
    yes: Node
    no: Node


@dataclass(frozen=True)
class Table:
    """The entry that the value of `key` is the number of."""

    key: int
    entries: tuple[Node, ...]


Node = int | Split | Table  # a leaf is its answer, a pdf


@dataclass(frozen=True)
class Tree:
    """A decision tree over windows of `width` phones around the one at place `centre`."""

    width: int
    centre: int
    root: Node
    n_pdfs: int

    def pdf(self, phones: Sequence[int], pdf_class: int) -> int:
        """The pdf of the phone in the middle of `phones` (0: none, at an utterance's end); NONE if it has none."""
        return int(self.pdfs(np.array([phones], np.int32), pdf_class)[0])

    def pdfs(self, windows: I32, pdf_class: int) -> I32:
        """`pdf` of each row of `windows` int32 [n, width], int32 [n]."""
        result = np.full(len(windows), NONE, np.int32)
        _answer(self.root, windows, pdf_class, np.arange(len(windows)), result)
        return result


def _answer(node: Node, windows: I32, pdf_class: int, rows: I64, result: I32) -> None:
    if isinstance(node, int) or not len(rows):
        result[rows] = node if isinstance(node, int) else NONE
        return
    values = np.full(len(rows), pdf_class, np.int32) if node.key == PDF_CLASS else windows[rows, node.key]
    if isinstance(node, Split):
        yes = np.isin(values, list(node.values))
        _answer(node.yes, windows, pdf_class, rows[yes], result)
        _answer(node.no, windows, pdf_class, rows[~yes], result)
        return
    for value in np.unique(values).tolist():
        entry = node.entries[value] if 0 <= value < len(node.entries) else NONE
        _answer(entry, windows, pdf_class, rows[values == value], result)


def read(reader: Reader) -> Tree:
    """Read the file `tree` to its end; ModelError when it is unsound."""
    reader.expect("ContextDependency")
    width = reader.integer("width of the context", 1, MAX_WIDTH)
    centre = reader.integer("central place", 0, width - 1)
    reader.expect("ToPdf")
    left, largest = MAX_NODES, NONE

    def node(depth: int) -> Node:
        nonlocal left, largest
        left -= 1
        if depth > MAX_DEPTH or left < 0:
            reader.wrong(f"it has over {MAX_NODES:,} nodes, or {MAX_DEPTH} below each other")
        kind = reader.expect("CE", "SE", "TE", "NULL")
        if kind == "NULL":
            return NONE
        if kind == "CE":
            pdf = reader.integer("pdf of a leaf", NONE, MAX_PDFS - 1)
            largest = max(largest, pdf)
            return pdf
        key = reader.integer("key of a question", PDF_CLASS, width - 1)
        if kind == "SE":
            values = frozenset(reader.integers("values of a question").tolist())
            reader.expect("{")
            split = Split(key, values, node(depth + 1), node(depth + 1))
            reader.expect("}")
            return split
        count = reader.integer("size of a table", 0, reader.left, size=-4)
        reader.expect("(")
        table = Table(key, tuple(node(depth + 1) for _ in range(count)))
        reader.expect(")")
        return table

    root = node(0)
    reader.expect("EndContextDependency")
    reader.finished("the tree")
    return Tree(width, centre, root, largest + 1)
