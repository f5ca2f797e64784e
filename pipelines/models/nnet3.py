"""A feed-forward net of Kaldi's nnet3 as a graph: nodes with a component each, whose inputs are terms in time.

Kaldi's descriptors (nnet3/nnet-descriptor) are brought to one form here: an input is parts side by side (Append), a
part is a sum of terms (Sum), and a term is a node times a number at a time that follows from the node's own. A
component with time offsets (TdnnComponent) is an affine one over its input at each of them.
Batch norm is in test mode, dropout does nothing; IfDefined is as its argument, as frames are repeated beyond both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from profiler.arrays import F32, I64

INPUT: Final = "input"
IVECTOR: Final = "ivector"
OUTPUT: Final = "output"


@dataclass(frozen=True, eq=False)
class Affine:
    """`weight` f32 [outputs, inputs], `bias` f32 [outputs]; `inputs` are those of all `offsets` together."""

    weight: F32
    bias: F32
    offsets: tuple[int, ...] = (0,)

    @property
    def inputs(self) -> int:
        return int(self.weight.shape[1]) // len(self.offsets)

    @property
    def outputs(self) -> int:
        return int(self.weight.shape[0])


@dataclass(frozen=True, eq=False)
class Scaling:
    """Each value times its `scale`, and its `shift` added, f32 [values]: batch norm, fixed scale or bias."""

    scale: F32
    shift: F32

    @property
    def inputs(self) -> int:
        return len(self.scale)

    outputs = inputs


@dataclass(frozen=True)
class Function:
    """A function of all values of a frame."""

    name: Literal["relu", "softmax", "log-softmax", "none"]
    inputs: int

    @property
    def outputs(self) -> int:
        return self.inputs


Component = Affine | Scaling | Function


@dataclass(frozen=True)
class Term:
    """`scale` × `node` at a time that follows from t.

    That is t + `before`, rounded down to a multiple of `every`, + `after`. `latest`: of the i-vector, at whatever time
    (ReplaceIndex); each frame comes with the one that was known for it.
    """

    node: str
    scale: float = 1.0
    before: int = 0
    every: int = 1
    after: int = 0
    latest: bool = False

    def shifted(self, by: int) -> Term:
        """The term at t + `by`."""
        return replace(self, before=self.before + by)

    def times(self, t: I64) -> I64:
        """The node's times for the times t."""
        found: I64 = (t + self.before) // self.every * self.every + self.after
        return found

    @property
    def earliest(self) -> int:
        """The lowest distance of the node's time from t."""
        return self.before + self.after - (self.every - 1)

    @property
    def last(self) -> int:
        """The highest distance of the node's time from t."""
        return self.before + self.after


Part = tuple[Term, ...]  # a sum


@dataclass(frozen=True, eq=False)
class Node:
    """A component and its input: `parts` side by side, at the component's offsets one after another."""

    name: str
    component: Component
    parts: tuple[Part, ...]

    @property
    def terms(self) -> Iterator[Term]:
        return (term for part in self.parts for term in part)


@dataclass(frozen=True, eq=False)
class Net:
    """What the output needs, each node after those that it takes; `log_priors` f32 [pdfs], zeros if it has none.

    `last`: the node that the output is. `parameters`: of the nodes that are computed. `left_out`: the file's others.
    """

    input_dim: int
    ivector_dim: int
    nodes: tuple[Node, ...]
    last: str
    log_priors: F32
    parameters: int
    left_out: tuple[str, ...] = ()
    has_priors: bool = False
    log_softmax: bool = False
    """Whether log-softmax follows, which only takes the same number from all scores of a frame and is left out."""

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @property
    def dims(self) -> Mapping[str, int]:
        return {INPUT: self.input_dim, IVECTOR: self.ivector_dim}

    @property
    def pdfs(self) -> int:
        return self.by_name[self.last].component.outputs

    @property
    def width(self) -> int:
        return self.input_dim + self.ivector_dim

    @cached_property
    def reach(self) -> Mapping[str, tuple[int, int]]:
        """How far before and after the frames of a block each node is needed, in frames; the inputs' among them."""
        found = {self.last: (0, 0)}
        for node in reversed(self.nodes):
            before, after = found[node.name]
            for term in node.terms:
                if term.latest:
                    continue
                here = before - term.earliest, after + term.last
                left, right = found.get(term.node, here)
                found[term.node] = max(left, here[0]), max(right, here[1])
        return found

    @property
    def context(self) -> tuple[int, int]:
        reach = [(0, 0), *(self.reach[name] for name in (INPUT, IVECTOR) if name in self.reach)]
        return max(left for left, _ in reach), max(right for _, right in reach)
