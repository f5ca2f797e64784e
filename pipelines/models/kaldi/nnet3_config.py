"""The text config of an nnet3 net: lines of nodes, and the descriptors of their inputs (nnet3/nnet-descriptor).

    component-node name=tdnn1 component=tdnn1 input=Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))

Append, Sum, Scale, Offset, IfDefined, Round and ReplaceIndex (of the i-vector) are read. Whatever is nested is brought
to parts of sums of terms (`models.nnet3`); lengths and depths are bounded, for a config is a stranger's text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from pipelines.models.kaldi.binary import Reader
from pipelines.models.nnet3 import INPUT, IVECTOR, OUTPUT, Part, Term
from profiler.plain import one_line

COMPONENT: Final = "component-node"
OUTPUT_NODE: Final = "output-node"
KINDS: Final = (COMPONENT, "input-node", OUTPUT_NODE, "dim-range-node")
LONGEST: Final = 4 << 20
"""Bytes of the config; the largest of Kaldi's recipes are below 100 kB."""
MOST_LINES: Final = 20_000
MOST_TERMS: Final = 256
"""Of one input."""
DEEPEST: Final = 20
FARTHEST: Final = 1000
"""Frames of an offset."""
LARGEST_SCALE: Final = 1e6
LARGEST_DIM: Final = 1 << 16
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w-]*)=")
_TOKEN = re.compile(r"\s*([(),]|[^\s(),]+)")


@dataclass(frozen=True)
class Line:
    """A node; `dim` of an input, `component` and `parts` (of an output also) of others."""

    kind: str
    name: str
    component: str = ""
    parts: tuple[Part, ...] = ()
    dim: int = 0


def read(reader: Reader) -> dict[str, Line]:
    """Read lines up to an empty one; by the names of their nodes. ModelError for what is not a config or not read."""
    end = reader.data.find(b"\n\n", reader.at, min(reader.at + LONGEST, reader.end))
    if end < 0 or reader.data[reader.at : reader.at + 1] != b"\n":
        reader.wrong("there is no config of a net with an empty line at its end")
    text = reader.take(end + 2 - reader.at, "config of the net").decode("utf-8", "replace")
    lines = text.strip("\n").split("\n")
    if len(lines) > MOST_LINES:
        reader.wrong(f"its config has {len(lines):,} lines, at most {MOST_LINES:,} are read")
    found: dict[str, Line] = {}
    for number, content in enumerate(lines, start=1):
        line = _line(reader, number, content)
        if line.name in found:
            reader.wrong(f"its config has the node {one_line(line.name)} twice")
        found[line.name] = line
    if OUTPUT not in found or found[OUTPUT].kind != OUTPUT_NODE:
        reader.wrong(f"its config has no output-node called {OUTPUT}")
    if INPUT not in found or found[INPUT].kind != "input-node":
        reader.wrong(f"its config has no input-node called {INPUT}")
    return found


def _line(reader: Reader, number: int, content: str) -> Line:
    def wrong(sentence: str) -> NoReturn:
        reader.wrong(f"line {number} of its config {sentence}")

    kind, _, rest = content.strip().partition(" ")
    if kind not in KINDS:
        wrong(f"begins with {one_line(kind, 40)!r}, expected {', '.join(KINDS)}")
    pieces = _FIELD.split(rest)
    fields = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    name = fields.get("name", "")
    if not name:
        wrong("has no name=")
    if kind == "dim-range-node":
        wrong(f"takes a part of a node's values ({kind}), as recurrent nets do (LSTM), which are not computed")
    if kind == "input-node":
        dim = fields.get("dim", "")
        if name not in (INPUT, IVECTOR):
            wrong(f"has the input {one_line(name)}; {INPUT} and {IVECTOR} are computed")
        if not (dim.isascii() and dim.isdigit() and len(dim) < 9 and 0 < int(dim) <= LARGEST_DIM):
            wrong(f"has dim={one_line(dim, 40)}, expected 1 to {LARGEST_DIM:,}")
        return Line(kind, name, dim=int(dim))
    parts = _Descriptor(fields.get("input", ""), wrong).parts()
    return Line(kind, name, fields.get("component", ""), parts)


class _Descriptor:
    """The input of one node, as it is read from left to right."""

    def __init__(self, text: str, wrong: Callable[[str], NoReturn]) -> None:
        self._wrong = wrong
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = 0

    def parts(self) -> tuple[Part, ...]:
        """All of it."""
        found = self._expression(0)
        if self._at != len(self._tokens):
            self._wrong(f"has {one_line(self._tokens[self._at], 40)!r} after its input")
        return found

    def _next(self) -> str:
        if self._at == len(self._tokens):
            self._wrong("has an input that ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, *wanted: str) -> str:
        found = self._next()
        if found not in wanted:
            self._wrong(f"has {one_line(found, 40)!r} in its input, expected {' or '.join(map(repr, wanted))}")
        return found

    def _number(self, what: str, low: int, high: int) -> int:
        text = self._next()
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not low <= int(text) <= high:
            self._wrong(f"has {what} of {one_line(text, 40)}, expected {low} to {high}")
        return int(text)

    def _expression(self, depth: int) -> tuple[Part, ...]:
        if depth > DEEPEST:
            self._wrong(f"has an input nested more than {DEEPEST} deep")
        name = self._next()
        if name in "(),":
            self._wrong(f"has {name!r} in its input where a node or a descriptor is expected")
        if self._at == len(self._tokens) or self._tokens[self._at] != "(":
            return ((Term(name),),)
        self._expect("(")
        method = {
            "Append": self._append,
            "Sum": self._sum,
            "Scale": self._scale,
            "Offset": self._offset,
            "Round": self._round,
            "ReplaceIndex": self._replace,
            "IfDefined": self._if_defined,
        }.get(name)
        if method is None:
            self._wrong(f"has the descriptor {one_line(name, 40)}, which is not computed")
        parts = method(depth + 1)
        if sum(map(len, parts)) > MOST_TERMS:
            self._wrong(f"has an input of more than {MOST_TERMS} terms")
        return parts

    def _listed(self, depth: int) -> list[tuple[Part, ...]]:
        found = [self._expression(depth)]
        while self._expect(",", ")") == ",":
            found.append(self._expression(depth))
            if len(found) > MOST_TERMS:
                self._wrong(f"has an input of more than {MOST_TERMS} terms")
        return found

    def _append(self, depth: int) -> tuple[Part, ...]:
        return tuple(part for parts in self._listed(depth) for part in parts)

    def _sum(self, depth: int) -> tuple[Part, ...]:
        listed = self._listed(depth)
        if len({len(parts) for parts in listed}) > 1:
            self._wrong("adds up inputs of different numbers of parts")
        return tuple(tuple(term for part in together for term in part) for together in zip(*listed, strict=True))

    def _if_defined(self, depth: int) -> tuple[Part, ...]:
        parts = self._expression(depth)
        self._expect(")")
        return parts

    def _scale(self, depth: int) -> tuple[Part, ...]:
        text = self._next()
        try:
            factor = float(text)
        except ValueError:
            factor = math.nan
        if not abs(factor) <= LARGEST_SCALE:
            self._wrong(f"has a scale of {one_line(text, 40)}, expected a number within ±{LARGEST_SCALE:.0e}")
        self._expect(",")
        parts = self._if_defined(depth)
        return _each(parts, lambda term: replace(term, scale=term.scale * factor))

    def _offset(self, depth: int) -> tuple[Part, ...]:
        parts = self._expression(depth)
        self._expect(",")
        by = self._number("an offset", -FARTHEST, FARTHEST)
        if self._expect(",", ")") == ",":
            self._number("an offset in x", 0, 0)
            self._expect(")")
        return _each(parts, lambda term: term.shifted(by))

    def _round(self, depth: int) -> tuple[Part, ...]:
        parts = self._expression(depth)
        self._expect(",")
        to = self._number("a multiple of Round", 1, FARTHEST)
        self._expect(")")
        if any(term.every > 1 for part in parts for term in part):
            self._wrong("has Round in Round, which is not computed")
        return _each(parts, lambda term: replace(term, before=0, every=to, after=term.before + term.after))

    def _replace(self, depth: int) -> tuple[Part, ...]:
        parts = self._expression(depth)
        self._expect(",")
        self._expect("t")
        self._expect(",")
        self._number("a time of ReplaceIndex", -FARTHEST, FARTHEST)
        self._expect(")")
        if any(term.node != IVECTOR for part in parts for term in part):
            self._wrong("has ReplaceIndex of another node than ivector, which is not computed")
        return _each(parts, lambda term: Term(term.node, term.scale, latest=True))


def _each(parts: tuple[Part, ...], change: Callable[[Term], Term]) -> tuple[Part, ...]:
    return tuple(tuple(change(term) for term in part) for part in parts)
