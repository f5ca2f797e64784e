"""The steps that compute an nnet3 net, and at which times each is needed.

Into the step of an affine component goes what follows it, where nothing else takes what lies in between: a scale or
batch norm directly behind it into its weights (exact up to rounding), ReLU and a scale behind that as they are; no-op
and dropout are nothing. The stage bears the names of all that computes. A no-op that adds up is a step without weights.

Only every third frame of many nets is scored (frame subsampling), and most layers look in steps of three: the times at
which a step is needed repeat with a period, and it is computed at no others.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.models.errors import ModelError
from pipelines.models.nnet3 import Affine, Function, Net, Node, Part, Scaling, Term
from profiler.arrays import F32, I64, Array, ArrayError
from profiler.plain import one_line

LONGEST_PERIOD = 1000
LONGEST_NAME = 60


@dataclass(eq=False)
class Step:
    """A stage of the net. `weight` f32 [outputs, inputs + 1], the bias in the last column; None: the input as it is.

    What comes out goes through ReLU if `relu`, then is multiplied by `scale` and `shift` is added (f32 [outputs]), then
    through `function`. `residues`: of the times t at which it is needed, modulo the plan's period; `reach`: how far
    before the first and after the last frame of a block.
    """

    stage: str
    parts: tuple[Part, ...]
    inputs: int
    outputs: int
    weight: F32 | None = None
    relu: bool = False
    scale: F32 | None = None
    shift: F32 | None = None
    function: str = ""
    residues: tuple[int, ...] = ()
    reach: tuple[int, int] | None = None

    @property
    def terms(self) -> Iterable[Term]:
        return (term for part in self.parts for term in part)


class Plan(NamedTuple):
    """`trunk`: steps that look at several times; `head`: those after, with weights, each of which takes the one before.

    The first of the head may look at several times of the trunk, whose values are put side by side for it. `period`: of
    the times at which steps are needed; `subsampling`: frames from one output to the next.
    """

    net: Net
    trunk: tuple[Step, ...]
    head: tuple[Step, ...]
    period: int
    subsampling: int
    by_node: Mapping[str, Step]  # Steps by every node whose value they have

    def times(self, step: Step, begin: int, end: int) -> I64:
        """When `step` is needed for the frames begin … end − 1 of an utterance, ascending."""
        before, after = step.reach or (0, 0)
        t = np.arange(begin - before, end + after)
        return t[np.isin(t % self.period, step.residues)]


def plan(net: Net, subsampling: int) -> Plan:
    """The steps of `net` where every `subsampling`-th frame is scored. ModelError if they repeat too rarely."""
    steps, by_node = _steps(net)
    period = math.lcm(subsampling, *(term.every for step in steps for term in step.terms))
    if period > LONGEST_PERIOD:
        raise ModelError(f"the net's inputs repeat every {period:,} frames, at most {LONGEST_PERIOD:,} are computed")
    last = steps[-1]
    assert last.weight is not None, "the reader refuses others"
    last.weight[:, -1] -= net.log_priors
    last.residues, last.reach = tuple(range(0, period, subsampling)), (0, 0)
    for step in reversed(steps):
        for term in step.terms:
            if (source := by_node.get(term.node)) is not None:
                times = term.times(np.array(step.residues, np.int64)) % period
                source.residues = tuple(sorted({*source.residues, *times.tolist()}))
                left, right = step.reach or (0, 0)
                before, after = left - term.earliest, right + term.last
                known = source.reach or (before, after)
                source.reach = max(known[0], before), max(known[1], after)
    takers = _takers(step.parts for step in steps)
    first = len(steps) - 1
    while first and steps[first - 1].weight is not None:
        names = [name for name, step in by_node.items() if step is steps[first - 1]]
        if _plain(steps[first].parts) not in names or sum(takers[name] for name in names) > 1:
            break
        first -= 1
    return Plan(net, tuple(steps[:first]), tuple(steps[first:]), period, subsampling, by_node)


def _plain(parts: tuple[Part, ...]) -> str:
    if len(parts) == 1 and len(parts[0]) == 1 and parts[0][0] == Term(parts[0][0].node):
        return parts[0][0].node
    return ""


def _takers(inputs: Iterable[tuple[Part, ...]]) -> Counter[str]:
    return Counter(name for parts in inputs for name in {term.node for part in parts for term in part})


def _steps(net: Net) -> tuple[list[Step], dict[str, Step]]:
    """The steps in order, and each by the nodes whose value it has; values in between belong to none."""
    takers = _takers(node.parts for node in net.nodes)
    steps: list[Step] = []
    found: dict[str, Step] = {}
    names: dict[int, list[str]] = {}
    for node in net.nodes:
        source = found.get(_plain(node.parts))
        nothing = isinstance(node.component, Function) and node.component.name == "none"
        if source is not None and nothing:
            found[node.name] = source
            continue
        alone = source is not None and sum(takers[name] for name, step in found.items() if step is source) == 1
        if source is not None and alone and _joined(source, node):
            for name in [name for name, step in found.items() if step is source]:
                del found[name]
        else:
            source = _step(node)
            steps.append(source)
        found[node.name] = source
        names.setdefault(id(source), []).append(node.name)
    used: Counter[str] = Counter()
    for step in steps:
        stage = _stage(names[id(step)])
        used[stage] += 1
        step.stage = stage if used[stage] == 1 else f"{stage} {used[stage]}"
    # The last node's value is the last step's: nodes come in the order in which they are needed.
    return steps, found


def _step(node: Node) -> Step:
    component = node.component
    if isinstance(component, Affine):
        weight = np.column_stack([component.weight, component.bias]).astype(np.float32)
        return Step("", node.parts, component.weight.shape[1], component.outputs, weight)
    made = Step("", node.parts, component.inputs, component.outputs)
    if isinstance(component, Scaling):
        made.scale, made.shift = component.scale.copy(), component.shift.copy()
    elif component.name == "relu":
        made.relu = True
    elif component.name != "none":
        made.function = component.name
    return made


def _joined(step: Step, node: Node) -> bool:
    """Whether the component of `node`, which takes the value of `step` as it is, could be added to the step."""
    component = node.component
    if step.function or isinstance(component, Affine):
        return False
    if isinstance(component, Function):
        if component.name != "relu" or step.relu or step.scale is not None:
            return False
        step.relu = True
        return True
    if step.weight is not None and not step.relu:
        step.weight *= component.scale[:, None]
        step.weight[:, -1] += component.shift
    elif step.scale is None or step.shift is None:
        step.scale, step.shift = component.scale.copy(), component.shift.copy()
    else:
        step.scale, step.shift = step.scale * component.scale, step.shift * component.scale + component.shift
    return True


def _stage(names: Sequence[str]) -> str:
    """The stage of nodes: `tdnn1.affine`, `tdnn1.relu` is score.tdnn1.affine+relu."""
    first, *others = (one_line(name, LONGEST_NAME) for name in names)
    common = first.rpartition(".")[0] + "."
    return "score." + "+".join([first, *(name.removeprefix(common) for name in others)])


@njit(nogil=True, cache=True, fastmath={"contract"})
def gather(source, first, width, rows, scale, into, column, added):  # type: ignore[no-untyped-def]
    """Put `scale` × source[rows, first : first + width] into f32 [n, …] from `column` on, or add it if `added`.

    `source` f32 [m, values], `rows` int64 [n].
    """
    n = len(rows)
    if (
        len(into) != n
        or first < 0
        or column < 0
        or width < 0
        or first + width > source.shape[1]
        or column + width > into.shape[1]
    ):
        raise ArrayError("gather: values and the input that they are for do not fit each other")
    for t in range(n):
        row = rows[t]
        if not 0 <= row < len(source):
            raise ArrayError("gather: a frame that there is none")
        if added:
            for i in range(width):
                into[t, column + i] += scale * source[row, first + i]
        elif scale == np.float32(1):
            for i in range(width):
                into[t, column + i] = source[row, first + i]
        else:
            for i in range(width):
                into[t, column + i] = scale * source[row, first + i]


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "contract"})
def finish(values: Array, relu: bool, scale: Array, shift: Array) -> None:
    """ReLU if `relu`, then scale and shift f32 [k], in place of `values` f32 [n, k]; none where they are empty."""
    n, k = values.shape
    scaled = len(scale) > 0
    if scaled and (len(scale) != k or len(shift) != k):
        raise ArrayError("finish: values and their scales do not fit each other")
    for t in range(n):
        if relu:
            for i in range(k):
                values[t, i] = max(values[t, i], np.float32(0))
        if scaled:
            for i in range(k):
                values[t, i] = values[t, i] * scale[i] + shift[i]


def softmax(values: Array, *, log: bool) -> None:
    """Softmax of each row of f32 [n, k], or its logarithm, in place."""
    values -= values.max(axis=1, keepdims=True)
    sums = np.exp(values).sum(axis=1, keepdims=True)
    if log:
        values -= np.log(sums)
    else:
        np.exp(values, out=values)
        values /= sums
