"""A feed-forward net: one matrix product per layer for the frames of a block, all senones or the wanted ones.

From the first layer on frames are columns: weights [outputs, inputs] times activations [inputs, frames]; who
multiplies them is a choice (`products`). A last row of ones carries the bias into the product. The softmax is left
out: its denominator is the same for all senones of a frame, and the search compares senones.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.models.nets import Card, Net
from pipelines.scoring.blocks import FLOAT, Meter
from pipelines.scoring.costs import nets as laws
from pipelines.scoring.dnn.products import PRODUCTS
from pipelines.scoring.dnn.products.base import Product
from pipelines.scoring.dnn.rows import ByteRows, FloatRows, room
from pipelines.scoring.strategy import FrameScorer
from profiler.arrays import Array
from profiler.spans import Cost

SPLICE_STAGE = "score.splice"
OUTPUT_STAGE = "score.output"
ACTIVE_STAGE = "score.active outputs"
NET_STAGE = "score.net"  # The stage of a net that a library computes as a whole


def layer_stage(number: int) -> str:
    return f"score.layer {number}"


class Arithmetic(FrameScorer):
    """Weights and workspace of one net, in one number type. Scores are log posteriors, up to a constant per frame.

    `score` and `begin_some` take frames as `splice` gives them; `costs` include those of `splice`.
    """

    n_senones: int
    context: tuple[int, int]  # Frames that `splice` wants before and after those of a block
    can_choose = True  # Whether it computes chosen senones after the hidden layers of a block (`begin_some`)
    _rows: FloatRows | ByteRows
    _activations: Array  # Of the last hidden layer, for the frames of the block begun, as the rows take them
    has_heads = False  # Whether it also computes several heads after the hidden layers of a block
    heads_used = 1  # Output layers that a call goes through: more than one where `score_by_heads` is called
    begun = 0  # Frames of the block that `begin_some` was last given
    notes: tuple[str, ...] = ()  # Sentences on what was read differently from the file

    def reset(self) -> None:
        """An utterance begins."""

    @abstractmethod
    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each frame of `padded` f32 [left + n + right, features] with its context; valid until the next call."""

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        self._rows.score(self._activations, first, last, senones, scores)
        meter.close(ACTIVE_STAGE, (last - first) * len(senones), len(senones))

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        return self._hidden_costs(frames) | {ACTIVE_STAGE: self._rows.cost()}

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and the hidden layers."""
        raise NotImplementedError

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] by the head for as many frames as each lies behind its source.

        `source` int [n]: its frame of the block begun, −1 for the last frame of the one before; `since` int [n].
        """
        raise NotImplementedError


class Splicer(Arithmetic):
    """Puts frames and their context side by side: the input of a net."""

    def __init__(self, card: Card, max_frames: int) -> None:
        self.card = card
        self.n_senones = card.senones
        self.context = card.left, card.right
        # The last column is ones; of every number of frames one view, so that what is prepared for it is known again.
        self._input = np.ones((max_frames, card.inputs + 1), np.float32)
        self._spliced = [self._input[:n] for n in range(max_frames + 1)]
        by_frames = dict.fromkeys((SPLICE_STAGE, *(layer_stage(i + 1) for i in range(len(card.layers)))), ("frames",))
        self.stages = {**by_frames, OUTPUT_STAGE: ("senones",), ACTIVE_STAGE: ("senones", "rows")}

    def splice(self, padded: Array, meter: Meter) -> Array:
        spliced = self._spliced[len(padded) - sum(self.context)]
        spliced[:, :-1] = self.windows(np.ascontiguousarray(padded, np.float32))
        meter.close(SPLICE_STAGE, len(spliced))
        return spliced

    def windows(self, padded: Array) -> Array:
        """A view of `padded`, in C order, as f32 [n, inputs]: neighbouring rows overlap, one frame apart."""
        shape = len(padded) - sum(self.context), self.card.inputs
        return np.ndarray(shape, np.float32, padded, 0, (FLOAT * self.card.dimension, FLOAT))


class _Passage(NamedTuple):
    """The hidden `layers` bound to the frames of one size of block, with their stages, and their last activations."""

    spliced: Array
    layers: list[tuple[str, Callable[[], None]]]
    hidden: Array


class DenseNet(Splicer):
    """A net in float32, for at most `max_frames` at a time."""

    has_heads = True

    def __init__(self, net: Net, threads: int, max_frames: int, product: str = "simd") -> None:
        """`product`: who multiplies, a name of `scoring.dnn.products`."""
        super().__init__(net.card, max_frames)
        card, kind = net.card, PRODUCTS[product]
        layers = ((_with_bias(weight, bias), relu) for weight, bias, relu in net.matrices())
        self._layers = [(kind(weight, threads, max_frames), relu) for weight, relu in layers]
        heads = [_with_bias(*net.head(i)) for i in range(card.heads)]
        self._rows = FloatRows(heads[0])
        self._heads = [kind(head, threads, max_frames) for head in heads]
        self._hidden = [np.empty((layer.outputs + 1) * max_frames, np.float32) for layer in card.layers]
        self._passages: dict[int, _Passage] = {}
        self._logits = np.empty(card.senones * max_frames, np.float32)
        # Row 0 is the last frame of the block before the one begun.
        rows = room(1 + max_frames, heads[0].shape[1])
        self._last, self._activations = rows[:, : heads[0].shape[1]], rows[1:]

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        self._multiply(self._heads[0], self._through(spliced, meter), scores)
        meter.close(OUTPUT_STAGE, len(spliced) * self.n_senones)

    def begin_some(self, spliced: Array, meter: Meter) -> None:
        last = self._last
        last[0] = last[self.begun]
        self.begun = len(spliced)
        last[1 : 1 + len(spliced)] = self._through(spliced, meter).T

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        for head in np.unique(since):
            mine = np.flatnonzero(since == head)
            x, apart = self._last[1 + source[mine]].T, set(np.diff(mine).tolist())
            if len(apart) < 2:
                # At even distances: every K-th row, written where it belongs.
                self._multiply(self._heads[head], x, scores[mine[0] : mine[-1] + 1 : max(apart, default=1)])
            else:
                found = np.empty((len(mine), self.n_senones), np.float32)
                self._multiply(self._heads[head], x, found)
                scores[mine] = found
        meter.close(OUTPUT_STAGE, len(scores) * self.n_senones)

    def _multiply(self, head: Product, x: Array, rows: Array) -> None:
        """Rows f32 [n, senones] = x f32 [width + 1, n] by a head."""
        if head.into_rows:
            head.multiply(x, rows.T)
            return
        logits = self._logits[: rows.size].reshape(-1, len(rows))
        head.multiply(x, logits)
        rows[:] = logits.T

    def _through(self, spliced: Array, meter: Meter) -> Array:
        """Activations of the last hidden layer, f32 [width + 1, n]; the last row ones."""
        n = len(spliced)
        passage = self._passages.get(n)
        if passage is None or passage.spliced is not spliced:
            layers, x = [], spliced.T
            for i, (product, relu) in enumerate(self._layers):
                layer, x = bound(product, relu, x, self._hidden[i])
                layers.append((layer_stage(i + 1), layer))
            passage = self._passages[n] = _Passage(spliced, layers, x)
        for stage, layer in passage.layers:
            layer()
            meter.close(stage, n)
        return passage.hidden

    def costs(self, frames: int) -> dict[str, Cost]:
        head, times = self._heads[0], float(self.heads_used)
        # Turned into rows: what comes out is read once more and written.
        moved = 1.0 if not head.into_rows or self.heads_used > 1 else 0.0
        output = self._law(head, frames, 1.0 / self.n_senones, times, moved)
        return self._hidden_costs(frames) | {OUTPUT_STAGE: output}

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        costs = {SPLICE_STAGE: laws.splice(self.card, frames)}
        for i, (layer, relu) in enumerate(self._layers):
            outputs = float(layer.shape[0]) if relu else 0.0
            costs[layer_stage(i + 1)] = self._law(layer, frames, 1.0, 1.0, outputs, outputs)
        return costs

    def _law(self, layer: Product, frames: int, frame: float, times: float, moved: float, maxima: float = 0.0) -> Cost:
        net_bytes = float(sum(p.nbytes for p in (*(layer for layer, _ in self._layers), *self._heads)))
        return laws.dense_layer(layer, frames, net_bytes, frame, times, moved, maxima)


def bound(layer: Product, relu: bool, x: Array, room: Array) -> tuple[Callable[[], None], Array]:
    """Return what computes a layer from x f32 [inputs + 1, n], and its outputs f32 [outputs + 1, n] in `room`.

    The last row of the outputs is ones.
    """
    n = x.shape[1]
    # Without gaps for any n: a smaller matrix, not a part of the largest.
    values = room[: (layer.shape[0] + 1) * n]
    y = values.reshape(n, -1).T if layer.into_rows else values.reshape(-1, n)
    product, ones = layer.bind(x, y[:-1]), y[-1]

    def once() -> None:
        product()
        # Calls of other numbers of frames have others there.
        ones.fill(1.0)
        if relu:
            rectify(values)

    return once, y


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def rectify(values):  # type: ignore[no-untyped-def]
    """ReLU in place, of values f32 [n]: numpy's maximum with a scalar takes five times as long."""
    for i in range(values.size):
        values[i] = max(values[i], np.float32(0))


def _with_bias(weight: Array, bias: Array) -> Array:
    return np.ascontiguousarray(np.column_stack([weight, bias]), np.float32)
