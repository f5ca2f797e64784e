"""The net behind the transition model in `final.mdl`: Kaldi's nnet3 (nnet3/nnet-nnet, am-nnet-simple of Kaldi).

A text config up to an empty line names the nodes and the descriptors of their inputs (nnet3/nnet-descriptor):

    component-node name=tdnn1 component=tdnn1 input=Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))

Whatever is nested is brought to parts of sums of terms (`models.nnet3`). Components in binary form follow
(`nnet3_components`), the contexts, which are computed anew, and the priors. What the output named `output` does not
need is left out: `output-xent` and its branch are for training alone.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from pipelines.models.kaldi import nnet3_components
from pipelines.models.kaldi.binary import Reader
from pipelines.models.nnet3 import INPUT, IVECTOR, OUTPUT, Affine, Function, Net, Node, Part, Scaling, Term
from profiler.arrays import F64
from profiler.plain import one_line

MARK = "<Nnet3>"
MOST_COMPONENTS = 10_000
LARGEST_CONTEXT = 500  # frames on one side; those of Kaldi's recipes are below 50
MOST_HELD = 1 << 26  # values of all nodes in a block with its context: a quarter of a gigabyte
BLOCK = 64
COMPONENT: Final = "component-node"
OUTPUT_NODE: Final = "output-node"
KINDS: Final = (COMPONENT, "input-node", OUTPUT_NODE, "dim-range-node")
LONGEST: Final = 4 << 20  # bytes of the config; the largest of Kaldi's recipes are below 100 kB
MOST_LINES: Final = 20_000
MOST_TERMS: Final = 256  # of one input
DEEPEST: Final = 20
FARTHEST: Final = 1000  # frames of an offset
LARGEST_SCALE: Final = 1e6
LARGEST_DIM: Final = 1 << 16
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w-]*)=")
_TOKEN = re.compile(r"\s*([(),]|[^\s(),]+)")


def read(reader: Reader) -> Net:
    """Read a net from where `reader` stands to the end of the file; ModelError if it is unsound or not computed."""
    reader.expect(MARK)
    lines = _config(reader)
    needed = _needed(reader, lines)
    reader.expect("<NumComponents>")
    components: dict[str, Affine | Scaling | Function] = {}
    # None is shorter than its tokens.
    for _ in range(reader.integer("number of components", 0, min(MOST_COMPONENTS, reader.left // 20))):
        reader.expect("<ComponentName>")
        name = reader.token()
        if name in components:
            reader.wrong(f"it has the component {one_line(name)} twice")
        components[name] = nnet3_components.read(reader, name)
    reader.expect("</Nnet3>")
    for field in ("LeftContext", "RightContext"):
        reader.expect(f"<{field}>")
        reader.integer(field)
    reader.expect("<Priors>")
    priors = reader.vector("priors")
    reader.finished("the priors")
    dims: dict[str, int] = {name: lines[name].dim for name in (INPUT, IVECTOR) if name in lines}
    nodes = []
    for name in needed:
        nodes.append(_node(reader, lines[name], components.get(lines[name].component), dims))
        dims[name] = nodes[-1].component.outputs
    return _net(reader, lines, dims, nodes, np.asarray(priors, np.float64))


def _needed(reader: Reader, lines: Mapping[str, NodeLine]) -> list[str]:
    """The component nodes that the output needs, each after those that it takes."""
    found: dict[str, bool] = {}
    order, left = [], [OUTPUT]
    while left:
        name = left[-1]
        terms = [term.node for part in lines[name].parts for term in part]
        fresh = [node for node in terms if node not in found]
        if name not in found:
            found[name] = False
        for node in terms:
            if node not in lines or lines[node].kind == OUTPUT_NODE:
                reader.wrong(f"the node {one_line(name)} takes {one_line(node)}, which is no node with values")
            if found.get(node) is False:
                reader.wrong(
                    f"it is a recurrent net (LSTM): the node {one_line(node)} depends on itself; only feed-forward "
                    "nets are computed"
                )
        if fresh:
            left.append(fresh[0])
            continue
        found[name] = True
        order.append(left.pop())
    if INPUT not in found:
        reader.wrong("its output does not depend on its input")
    return [name for name in order if lines[name].kind == COMPONENT]


def _node(
    reader: Reader, line: NodeLine, component: Affine | Scaling | Function | None, dims: Mapping[str, int]
) -> Node:
    shown = one_line(line.name)
    if component is None:
        reader.wrong(f"the node {shown} has the component {one_line(line.component)}, which there is not")
    width = 0
    for part in line.parts:
        sizes = {dims[term.node] for term in part}
        if len(sizes) > 1:
            reader.wrong(f"the node {shown} adds up {' and '.join(map(str, sorted(sizes)))} values")
        width += sizes.pop()
    if width != component.inputs:
        reader.wrong(f"the node {shown} gets {width} values, its component takes {component.inputs}")
    offsets = component.offsets if isinstance(component, Affine) else (0,)
    return Node(
        line.name, component, tuple(tuple(t.shifted(by) for t in part) for by in offsets for part in line.parts)
    )


def _net(reader: Reader, lines: Mapping[str, NodeLine], dims: Mapping[str, int], nodes: list[Node], priors: F64) -> Net:
    last, log_softmax = _end(reader, lines[OUTPUT], nodes)
    kept = {last}
    for node in reversed(nodes):
        if node.name in kept:
            kept |= {term.node for term in node.terms}
    nodes = [node for node in nodes if node.name in kept]
    net = Net(
        input_dim=dims[INPUT],
        ivector_dim=dims.get(IVECTOR, 0),
        nodes=tuple(nodes),
        last=last,
        log_priors=np.zeros(dims[last], np.float32),
        parameters=sum(part.size for n in nodes for part in vars(n.component).values() if isinstance(part, np.ndarray)),
        left_out=tuple(n for n, line in lines.items() if line.kind == COMPONENT and n not in kept),
        log_softmax=log_softmax,
    )
    if len(priors):
        if len(priors) != net.pdfs or (priors < 0).any():
            reader.wrong(f"it has {len(priors)} priors for {net.pdfs} pdfs, or one below 0")
        net = replace(net, log_priors=np.log(np.maximum(priors, 1e-10)).astype(np.float32), has_priors=True)
    if max(net.context) > LARGEST_CONTEXT:
        reader.wrong(f"its context is {max(net.context)} frames, at most {LARGEST_CONTEXT} are computed")
    # An affine component takes its inputs at each of its offsets.
    widest = sum(
        1 + n.component.inputs * len(getattr(n.component, "offsets", "1")) + n.component.outputs for n in nodes
    )
    if widest * (BLOCK + sum(net.context)) > MOST_HELD:
        reader.wrong(f"its {len(nodes)} nodes have {widest:,} values, more than a block of frames can hold")
    return net


def _end(reader: Reader, output: NodeLine, nodes: list[Node]) -> tuple[str, bool]:
    """The node that gives the scores, whose way from an affine component leads over scaling alone; and log-softmax."""
    by_name = {node.name: node for node in nodes}

    def only(parts: tuple[Part, ...]) -> Node | None:
        if len(parts) != 1 or len(parts[0]) != 1:
            return None
        term = parts[0][0]
        plain = (term.scale, term.before, term.every, term.after, term.latest) == (1.0, 0, 1, 0, False)
        return by_name.get(term.node) if plain else None

    def passes(node: Node | None, *names: str) -> bool:
        return node is not None and isinstance(node.component, Function) and node.component.name in names

    log_softmax, node = False, only(output.parts)
    while passes(node, "log-softmax", "none"):
        assert node is not None
        log_softmax |= passes(node, "log-softmax")
        node = only(node.parts)
    last = node
    while node is not None and (isinstance(node.component, Scaling) or passes(node, "none")):
        node = only(node.parts)
    if last is None or node is None or not isinstance(node.component, Affine):
        reader.wrong("its output is not that of an affine component, as it is or as log-softmax")
    return last.name, log_softmax


@dataclass(frozen=True)
class NodeLine:
    """A node; `dim` of an input, `component` and `parts` (of an output also) of others."""

    kind: str
    name: str
    component: str = ""
    parts: tuple[Part, ...] = ()
    dim: int = 0


def _config(reader: Reader) -> dict[str, NodeLine]:
    """Read lines up to an empty one; by the names of their nodes. ModelError for what is not a config or not read."""
    end = reader.data.find(b"\n\n", reader.at, min(reader.at + LONGEST, reader.end))
    if end < 0 or reader.data[reader.at : reader.at + 1] != b"\n":
        reader.wrong("there is no config of a net with an empty line at its end")
    text = reader.take(end + 2 - reader.at, "config of the net").decode("utf-8", "replace")
    lines = text.strip("\n").split("\n")
    if len(lines) > MOST_LINES:
        reader.wrong(f"its config has {len(lines):,} lines, at most {MOST_LINES:,} are read")
    found: dict[str, NodeLine] = {}
    for number, content in enumerate(lines, start=1):
        try:
            line = _line(content)
        except _Unread as why:
            reader.wrong(f"line {number} of its config {why}")
        if line.name in found:
            reader.wrong(f"its config has the node {one_line(line.name)} twice")
        found[line.name] = line
    for kind, name in (("output-node", OUTPUT), ("input-node", INPUT)):
        if name not in found or found[name].kind != kind:
            reader.wrong(f"its config has no {kind} called {name}")
    return found


class _Unread(Exception):
    """What is wrong with a line, as the rest of a sentence."""


def _line(content: str) -> NodeLine:
    kind, _, rest = content.strip().partition(" ")
    if kind not in KINDS:
        raise _Unread(f"begins with {one_line(kind, 40)!r}, expected {', '.join(KINDS)}")
    pieces = _FIELD.split(rest)
    fields = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    name = fields.get("name", "")
    if not name:
        raise _Unread("has no name=")
    if kind == "dim-range-node":
        raise _Unread(f"takes a part of a node's values ({kind}), as recurrent nets do (LSTM), which are not computed")
    if kind == "input-node":
        dim = fields.get("dim", "")
        if name not in (INPUT, IVECTOR):
            raise _Unread(f"has the input {one_line(name)}; {INPUT} and {IVECTOR} are computed")
        if not re.fullmatch("[0-9]{1,8}", dim) or not 0 < int(dim) <= LARGEST_DIM:
            raise _Unread(f"has dim={one_line(dim, 40)}, expected 1 to {LARGEST_DIM:,}")
        return NodeLine(kind, name, dim=int(dim))
    tokens = _TOKEN.findall(fields.get("input", ""))[::-1]
    parts = _parts(_call(tokens))
    if tokens:
        raise _Unread(f"has {one_line(tokens[-1], 40)!r} after its input")
    if sum(map(len, parts)) > MOST_TERMS:
        raise _Unread(f"has an input of more than {MOST_TERMS} terms")
    return NodeLine(kind, name, fields.get("component", ""), parts)


class _Call(NamedTuple):
    """A name with its arguments in parentheses; a node or a number has none."""

    name: str
    arguments: list[_Call]


def _call(tokens: list[str], depth: int = 0) -> _Call:
    """Take a descriptor from the end of `tokens`, which are in reverse order."""
    if depth > DEEPEST:
        raise _Unread(f"has an input nested more than {DEEPEST} deep")
    name, arguments = _take(tokens), list[_Call]()
    if name in "(),":
        raise _Unread(f"has {name!r} in its input where a node or a descriptor is expected")
    if tokens and tokens[-1] == "(":
        while tokens.pop() != ")":
            arguments.append(_call(tokens, depth + 1))
            if (mark := _take(tokens)) not in ",)":
                raise _Unread(f"has {one_line(mark, 40)!r} in its input, expected ',' or ')'")
            tokens.append(mark)
    return _Call(name, arguments)


def _take(tokens: list[str]) -> str:
    if not tokens:
        raise _Unread("has an input that ends too early")
    return tokens.pop()


def _parts(call: _Call) -> tuple[Part, ...]:
    match call:
        case _Call(node, []):
            return ((Term(node),),)
        case _Call("Append", listed):
            return tuple(part for each in listed for part in _parts(each))
        case _Call("Sum", listed):
            added = [_parts(each) for each in listed]
            if len(set(map(len, added))) > 1:
                raise _Unread("adds up inputs of different numbers of parts")
            return tuple(tuple(itertools.chain(*together)) for together in zip(*added, strict=True))
        case _Call("IfDefined", [of]):
            return _parts(of)
        case _Call("Scale", [factor, of]):
            scale = _scale(factor.name)
            return _each(of, lambda term: replace(term, scale=term.scale * scale))
        case _Call("Offset", [of, by, *x]):
            offset = _number(by, "an offset", -FARTHEST, FARTHEST)
            for each in x:
                _number(each, "an offset in x", 0, 0)
            return _each(of, lambda term: term.shifted(offset))
        case _Call("Round", [of, to]):
            every = _number(to, "a multiple of Round", 1, FARTHEST)
            if any(term.every > 1 for part in _parts(of) for term in part):
                raise _Unread("has Round in Round, which is not computed")
            return _each(of, lambda term: replace(term, before=0, every=every, after=term.before + term.after))
        case _Call("ReplaceIndex", [of, _Call("t", []), at]):
            _number(at, "a time of ReplaceIndex", -FARTHEST, FARTHEST)
            if any(term.node != IVECTOR for part in _parts(of) for term in part):
                raise _Unread("has ReplaceIndex of another node than ivector, which is not computed")
            return _each(of, lambda term: Term(term.node, term.scale, latest=True))
    raise _Unread(f"has the descriptor {one_line(call.name, 40)}, which is not computed with these arguments")


def _scale(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not abs(factor) <= LARGEST_SCALE:
        raise _Unread(f"has a scale of {one_line(text, 40)}, expected a number within ±{LARGEST_SCALE:.0e}")
    return factor


def _number(call: _Call, what: str, low: int, high: int) -> int:
    text = call.name
    if call.arguments or not re.fullmatch(r"-?[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise _Unread(f"has {what} of {one_line(text, 40)}, expected {low} to {high}")
    return int(text)


def _each(of: _Call, change: Callable[[Term], Term]) -> tuple[Part, ...]:
    return tuple(tuple(map(change, part)) for part in _parts(of))
