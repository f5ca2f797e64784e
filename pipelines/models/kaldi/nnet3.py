"""The net behind the transition model in `final.mdl`: Kaldi's nnet3 (nnet3/nnet-nnet, am-nnet-simple of Kaldi).

A text config up to an empty line names the nodes and their inputs; components in binary form follow, the contexts,
which are computed anew, and the priors. What the output named `output` does not need is left out: `output-xent` and
its branch are for training alone. `nnet3_components` reads components, `nnet3_config` the config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pipelines.models.kaldi import nnet3_components, nnet3_config
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.nnet3_config import Line
from pipelines.models.nnet3 import INPUT, IVECTOR, OUTPUT, Affine, Component, Function, Net, Node, Part, Scaling, spread
from profiler.arrays import F64
from profiler.plain import one_line

MARK = "<Nnet3>"
MOST_COMPONENTS = 10_000
LARGEST_CONTEXT = 500  # frames on one side; those of Kaldi's recipes are below 50
MOST_HELD = 1 << 26  # values of all nodes in a block with its context: a quarter of a gigabyte
BLOCK = 64
PRIOR_FLOOR = 1e-10


def read(reader: Reader) -> Net:
    """Read a net from where `reader` stands to the end of the file; ModelError if it is unsound or not computed."""
    reader.expect(MARK)
    lines = nnet3_config.read(reader)
    needed = _needed(reader, lines)
    reader.expect("<NumComponents>")
    components: dict[str, Component] = {}
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
        nodes.append(_node(reader, lines[name], components, dims))
        dims[name] = nodes[-1].component.outputs
    return _net(reader, lines, dims, nodes, np.asarray(priors, np.float64))


def _needed(reader: Reader, lines: Mapping[str, Line]) -> list[str]:
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
            if node not in lines or lines[node].kind == nnet3_config.OUTPUT_NODE:
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
    return [name for name in order if lines[name].kind == nnet3_config.COMPONENT]


def _node(reader: Reader, line: Line, components: Mapping[str, Component], dims: Mapping[str, int]) -> Node:
    shown = one_line(line.name)
    component = components.get(line.component)
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
    return Node(line.name, component, spread(line.parts, offsets))


def _net(reader: Reader, lines: Mapping[str, Line], dims: Mapping[str, int], nodes: list[Node], priors: F64) -> Net:
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
        left_out=tuple(n for n, line in lines.items() if line.kind == nnet3_config.COMPONENT and n not in kept),
        log_softmax=log_softmax,
    )
    if len(priors):
        if len(priors) != net.pdfs or (priors < 0).any():
            reader.wrong(f"it has {len(priors)} priors for {net.pdfs} pdfs, or one below 0")
        net = replace(net, log_priors=np.log(np.maximum(priors, PRIOR_FLOOR)).astype(np.float32), has_priors=True)
    if max(net.context) > LARGEST_CONTEXT:
        reader.wrong(f"its context is {max(net.context)} frames, at most {LARGEST_CONTEXT} are computed")
    # An affine component takes its inputs at each of its offsets.
    widest = sum(
        1 + n.component.inputs * len(getattr(n.component, "offsets", "1")) + n.component.outputs for n in nodes
    )
    if widest * (BLOCK + sum(net.context)) > MOST_HELD:
        reader.wrong(f"its {len(nodes)} nodes have {widest:,} values, more than a block of frames can hold")
    return net


def _end(reader: Reader, output: Line, nodes: list[Node]) -> tuple[str, bool]:
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
