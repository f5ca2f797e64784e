"""An nnet3 net on the processor: each step a product for the frames of a block at which it is needed.

A block comes with the net's context. *Again*: everything is computed for each block, as in decoding by chunks, and an
output does not depend on what came before. *Looped*: what the next block needs of a step is kept, so that each frame is
computed once; a block that does not follow the one before (its context is another) is computed as a whole. Both give
the same scores. Where the input takes the latest i-vector (ReplaceIndex), that of the frame is taken.

The softmax at the end is left out: it takes the same from all senones of a frame.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from pipelines.models.nnet3 import IVECTOR
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.costs import nets as laws
from pipelines.scoring.dnn import integers
from pipelines.scoring.dnn.dense import ACTIVE_STAGE, SPLICE_STAGE, Arithmetic
from pipelines.scoring.dnn.nnet3.plan import Plan, Step, finish, gather, softmax
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.dnn.quantised import OPERATION, Quantised, quantise, restore
from pipelines.scoring.dnn.rows import ByteRows, FloatRows, room
from profiler.arrays import I64, Array, check_indices
from profiler.spans import Cost

NO_SCALE = np.empty(0, np.float32)


class _Floats:
    """Weights of a step in float32, multiplied by one of `products`."""

    def __init__(self, weight: Array, threads: int, most: int, product: str) -> None:
        self._product = PRODUCTS[product](weight, threads, most)
        self.nbytes = float(self._product.nbytes)

    def bind(self, x: Array, y: Array) -> Callable[[], None]:
        """What computes y f32 [n, outputs] from x f32 [n, inputs + 1], whose last column is ones."""
        if self._product.into_rows:
            return self._product.bind(x.T, y.T)
        columns = np.empty(y.shape[::-1], np.float32)
        multiply = self._product.bind(x.T, columns)

        def once() -> None:
            multiply()
            y[:] = columns.T

        return once

    def cost(self, frames: int, frame: float, net_bytes: float) -> Cost:
        """Law of one call of about `frames` frames, for 1/`frame` work counts a frame."""
        moved = 0.0 if self._product.into_rows else self._product.shape[0] * frame
        return laws.dense_layer(self._product, frames, net_bytes, frame, 1.0, moved, 0.0)


class _Bytes:
    """The same in 8-bit integers, with a scale for each output; each frame of the input gets one."""

    def __init__(self, weight: Array, threads: int, most: int) -> None:
        self._layer = Quantised(weight[:, :-1], weight[:, -1], False, threads, most)
        self.nbytes = float(self._layer.nbytes)

    def bind(self, x: Array, y: Array) -> Callable[[], None]:
        layer, inputs = self._layer, self._layer.shape[1]
        whole, scales = np.zeros((len(x), integers.filled(inputs)), np.int8), np.empty(len(x), np.float32)

        def once() -> None:
            quantise(x, whole[:, :inputs], scales)
            restore(layer.sums(whole), scales, layer.scale, layer.bias, y)

        return once

    def cost(self, frames: int, frame: float, net_bytes: float) -> Cost:
        return laws.integer_layer(self._layer, OPERATION, frames, net_bytes, frame, 1.0, 4)


_Term = tuple[Array | None, int, int, Array, np.float32, int, bool]
"""Source (None: the block itself), its first column and how many, rows, scale, column of the input, whether added."""


class _Call(NamedTuple):
    """A step of a block: `terms` are put `into` its input, and it is `run`; `frames` at which it is computed."""

    stage: str
    terms: tuple[_Term, ...]
    into: Array
    run: Callable[[], None]
    frames: int

    def fill(self, block: Array) -> None:
        for source, first, width, rows, scale, column, added in self.terms:
            gather(block if source is None else source, first, width, rows, scale, self.into, column, added)


class _Block(NamedTuple):
    """A block of one size at one place of the period: `calls`; rows of each step's room that are kept, and in all."""

    calls: tuple[_Call, ...]
    kept: tuple[int, ...]
    rows: tuple[int, ...]
    x: Array


class Nnet3Net(Arithmetic):
    """A net of Kaldi, for at most MAX_FRAMES frames at a time."""

    def __init__(self, plan: Plan, threads: int, product: str, *, int8: bool, looped: bool) -> None:
        """`product`: who multiplies, a name of `scoring.dnn.products`; none with `int8`."""
        self.plan, self.context = plan, plan.net.context
        self.n_senones, self.subsampling = plan.net.pdfs, plan.subsampling
        self.begin = 0
        """Frames of the utterance before the block that comes next."""
        self._looped = looped
        self._most = MAX_FRAMES // self.subsampling * self.subsampling
        largest = self._most + sum(self.context)
        outputs = -(-self._most // self.subsampling)

        def weights(step: Step, most: int) -> _Floats | _Bytes | None:
            if step.weight is None:
                return None
            return _Bytes(step.weight, threads, most) if int8 else _Floats(step.weight, threads, most, product)

        self._weights = {step: weights(step, largest) for step in plan.trunk}
        self._weights |= {step: weights(step, outputs) for step in plan.head}
        self._bytes = sum(each.nbytes for each in self._weights.values() if each is not None)
        most = [len(plan.times(step, 0, self._most)) + plan.period for step in plan.trunk]
        self._rooms = [np.zeros((n, step.outputs), np.float32) for n, step in zip(most, plan.trunk, strict=True)]
        self._blocks: dict[tuple[int, int, bool], _Block] = {}
        self._inputs: dict[int, Array] = {}
        self._heads: dict[int, tuple[Array, tuple[_Call, ...], Array]] = {}
        self._latest: tuple[Array, _Block, int] | None = None
        last = plan.head[-1]
        assert last.weight is not None, "the reader refuses others"
        self._scales = np.empty(outputs, np.float32)
        if int8:
            self._rows = Quantised(last.weight[:, :-1], last.weight[:, -1], False, 1, 1).rows(self._scales)
            self._activations = room(outputs, integers.filled(last.inputs), np.int8)
        else:
            self._rows, self._activations = FloatRows(last.weight), room(outputs, last.inputs + 1)
        by_frames = (*(step.stage for step in (*plan.trunk, *plan.head[:-1])), SPLICE_STAGE)
        by_senones = {last.stage: ("senones",), ACTIVE_STAGE: ("senones", "rows")}
        self.stages = {**dict.fromkeys(by_frames, ("frames",)), **by_senones}

    def reset(self) -> None:
        self._latest, self.begin = None, 0

    def splice(self, padded: Array, meter: Meter) -> Array:
        """All that looks at several times: the input of the last layers f32 [outputs, values + 1].

        `padded` f32 [before + n + after, features], in C order; the same array once more is the same block again. The
        result is valid until the next call.
        """
        block = self._block_of(padded)
        for call in block.calls:
            call.fill(padded)
            call.run()
            meter.close(call.stage, call.frames)
        return block.x

    def _block_of(self, padded: Array) -> _Block:
        """The block with what is kept of the one before in its place."""
        latest, beyond, period = self._latest, sum(self.context), self.plan.period
        if latest is not None and latest[0] is padded:
            return latest[1]
        follows = (
            self._looped
            and latest is not None
            and (latest[2] + len(latest[0]) - beyond) % period == self.begin % period
            and np.array_equal(latest[0][len(latest[0]) - beyond :], padded[:beyond])
        )
        kind = self.begin % period, len(padded) - beyond, follows
        block = self._blocks.get(kind)
        if block is None:
            block = self._blocks[kind] = self._bind(*kind)
        if follows:
            assert latest is not None
            for values, count, rows in zip(self._rooms, block.kept, latest[1].rows, strict=True):
                values[:count] = values[rows - count : rows]
        self._latest = padded, block, self.begin
        return block

    def score(self, x: Array, scores: Array, meter: Meter) -> None:
        """Log posteriors or a chain's scores, up to a constant per frame, f32 [n, senones], of what `splice` gave."""
        last = self.plan.head[-1]
        x = self._through(x, meter)
        if len(x):
            weights = self._weights[last]
            assert weights is not None
            weights.bind(x, scores)()
        meter.close(last.stage, len(x) * self.n_senones)

    def begin_some(self, x: Array, meter: Meter) -> None:
        """All but the last layer of a block, for `score_some`."""
        self.begun = len(x)
        x = self._through(x, meter)
        inputs = self.plan.head[-1].inputs
        if isinstance(self._rows, ByteRows):
            quantise(x, self._activations[: len(x), :inputs], self._scales)
        else:
            self._activations[: len(x), : inputs + 1] = x

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score`, by the frames at which a step is computed and by senones."""
        last = self.plan.head[-1]
        return self._hidden_costs(frames) | {last.stage: self._law(last, frames, 1.0 / self.n_senones)}

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        plan = self.plan
        costs = {step.stage: self._law(step, frames) for step in (*plan.trunk, *plan.head[:-1])}
        return costs | {SPLICE_STAGE: laws.joined(plan, plan.head[0])}

    def _law(self, step: Step, frames: int, frame: float = 1.0) -> Cost:
        weights, gathers = self._weights[step], step is not self.plan.head[0]
        product = None if weights is None else weights.cost(frames, frame, self._bytes)
        return laws.step(self.plan, step, product, self._bytes, gathers=gathers, frame=frame)

    def _through(self, x: Array, meter: Meter) -> Array:
        """The input of the last layer f32 [n, values + 1], from that of the first one of the head."""
        bound = self._heads.get(len(x))
        if bound is None or bound[0] is not x:
            bound = self._heads[len(x)] = self._bind_head(x)
        for call in bound[1]:
            call.run()
            call.fill(x)
            meter.close(call.stage, call.frames)
        return bound[2]

    def _bind_head(self, x: Array) -> tuple[Array, tuple[_Call, ...], Array]:
        """The layers after the trunk but the last: what comes out of each goes into the next one's input."""
        calls, begun, n = [], x, len(x)
        for step in self.plan.head[:-1] if n else ():
            y, following = np.empty((n, step.outputs), np.float32), _with_ones(n, step.outputs)
            terms = ((y, 0, step.outputs, np.arange(n), np.float32(1), 0, False),)
            calls.append(_Call(step.stage, terms, following, self._run(step, x, y), n))
            x = following
        return begun, tuple(calls), x

    def _bind(self, begin: int, n: int, follows: bool) -> _Block:
        """A block of `n` frames from `begin` on, of which only what is new is computed if it `follows` another."""
        plan = self.plan
        times = {step: plan.times(step, begin, begin + n) for step in (*plan.trunk, plan.head[0])}
        calls, kept, rows = [], [], []
        for step, values in zip(plan.trunk, self._rooms, strict=True):
            t, (_, after) = times[step], step.reach or (0, 0)
            # The block before has computed what its last frame needs.
            count = int(np.count_nonzero(t < begin + after)) if follows else 0
            kept.append(count)
            rows.append(len(t))
            if count < len(t):
                y = values[count : len(t)]
                into = y if step.weight is None else _with_ones(len(y), step.inputs)
                terms = self._terms(step, t[count:], times, begin, n)
                calls.append(_Call(step.stage, terms, into, self._run(step, into, y), len(y)))
        first = plan.head[0]
        x = self._inputs.setdefault(len(times[first]), _with_ones(len(times[first]), first.inputs))
        calls.append(_Call(SPLICE_STAGE, self._terms(first, times[first], times, begin, n), x, lambda: None, len(x)))
        return _Block(tuple(calls), tuple(kept), tuple(rows), x)

    def _terms(self, step: Step, t: I64, times: Mapping[Step, I64], begin: int, n: int) -> tuple[_Term, ...]:
        """What is put into the input of `step` at the times `t`."""
        plan, (before, after) = self.plan, self.context
        found, column = [], 0
        for part in step.parts:
            width = 0
            for i, term in enumerate(part):
                source = plan.by_node.get(term.node)
                at, first = term.times(t), 0
                if source is not None:
                    width, values = source.outputs, self._rooms[plan.trunk.index(source)]
                    rows = np.searchsorted(times[source], at)
                    check_indices("rows", rows, len(times[source]))
                else:
                    width, values = plan.net.dims[term.node], None
                    first = plan.net.input_dim if term.node == IVECTOR else 0
                    rows = np.clip(at - (begin - before), 0, before + n + after - 1)
                found.append((values, first, width, rows, np.float32(term.scale), column, i > 0))
            column += width
        return tuple(found)

    def _run(self, step: Step, x: Array, y: Array) -> Callable[[], None]:
        """What computes y f32 [n, outputs] from the input x f32 [n, inputs + 1]; without weights in place."""
        weights, scale, shift = self._weights[step], step.scale, step.shift
        calls: list[Callable[[], None]] = []
        if weights is not None:
            calls.append(weights.bind(x, y))
        if step.relu or scale is not None:
            scaled = (NO_SCALE, NO_SCALE) if scale is None or shift is None else (scale, shift)
            calls.append(partial(finish, y, step.relu, *scaled))
        if step.function:
            calls.append(partial(softmax, y, log=step.function == "log-softmax"))

        def once() -> None:
            for call in calls:
                call()

        return once


def _with_ones(n: int, inputs: int) -> Array:
    """Room for inputs f32 [n, inputs + 1], whose last column is ones."""
    return np.ones((n, inputs + 1), np.float32)
