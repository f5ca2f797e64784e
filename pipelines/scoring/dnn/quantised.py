"""A net in 8-bit integers: weights with a scale for each output, activations with one for each frame.

After Vanhoucke, Senior & Mao (2011), who found no loss; there activations were unsigned, here they are signed, which
costs one of eight bits and lets bottlenecks without ReLU be treated alike. A product of integers is exact, so the error
is that of the two roundings. Frames are rows here, so that a frame's scale and its scores lie together.
"""

import numpy as np
from numba import njit

from pipelines.models.nets import Net
from pipelines.scoring.blocks import Meter
from pipelines.scoring.costs import nets as laws
from pipelines.scoring.dnn import integers
from pipelines.scoring.dnn.dense import OUTPUT_STAGE, SPLICE_STAGE, Splicer, layer_stage
from pipelines.scoring.dnn.integers import filled
from pipelines.scoring.dnn.rows import ByteRows, room
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost

LARGEST = 127  # of a signed 8-bit integer whose negative also is one
SMALLEST_SCALE = np.float32(1e-30)  # of a frame or row without any value
OPERATION = "gemm:int8"


class Quantised:
    """One layer: its weights i8 [outputs, inputs] and a scale for each row."""

    def __init__(self, weight: Array, bias: Array, relu: bool, threads: int, max_frames: int) -> None:
        largest = np.abs(weight).max(1, initial=0)
        self.scale = np.maximum(largest / LARGEST, SMALLEST_SCALE).astype(np.float32)
        self.weight = np.rint(weight / self.scale[:, None]).astype(np.int8)
        self.bias, self.relu = np.ascontiguousarray(bias, np.float32), relu
        self.shape = weight.shape
        made = integers.create(self.weight, threads, max_frames)
        self.sums, self.nbytes, self.moved = made.sums, made.nbytes, made.moved
        self.threads = made.threads

    def rows(self, scales: Array) -> ByteRows:
        """The rows of the layer, for frames with these scales."""
        return ByteRows(self.weight, self.scale, self.bias, scales)


class QuantisedNet(Splicer):
    """A net in 8 bits, for at most `max_frames` at a time."""

    has_heads = True

    def __init__(self, net: Net, threads: int, max_frames: int) -> None:
        super().__init__(net.card, max_frames)
        self._layers = [Quantised(*matrix, threads, max_frames) for matrix in net.matrices()]
        self._heads = [Quantised(*net.head(i), False, threads, max_frames) for i in range(net.card.heads)]
        self._head = self._heads[0]
        self._widths = widths = [net.card.inputs, *(layer.outputs for layer in net.card.layers)]
        whole = [room(max_frames, filled(width), np.int8) for width in widths]
        self._inputs = [some[:, : filled(width)] for some, width in zip(whole, widths, strict=True)]
        self._scales = np.empty(max_frames, np.float32)
        self._rows, self._activations = self._head.rows(self._scales), whole[-1]
        # The last frame of the block before the one begun.
        self._before = np.zeros((1, filled(widths[-1])), np.int8), np.zeros(1, np.float32)

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        x = self._through(spliced, meter)
        head = self._head
        restore(head.sums(x), self._scales, head.scale, head.bias, scores)
        meter.close(OUTPUT_STAGE, len(x) * self.n_senones)

    def begin_some(self, spliced: Array, meter: Meter) -> None:
        if self.begun:
            last = slice(self.begun - 1, self.begun)
            self._before = self._inputs[-1][last].copy(), self._scales[last].copy()
        self.begun = len(spliced)
        self._through(spliced, meter)

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        x = np.concatenate([self._before[0], self._inputs[-1][: self.begun]])
        scales = np.concatenate([self._before[1], self._scales[: self.begun]])
        for head in np.unique(since):
            mine = np.flatnonzero(since == head)
            rows, product = 1 + source[mine], self._heads[head]
            found = np.empty((len(mine), self.n_senones), np.float32)
            restore(product.sums(x[rows]), scales[rows], product.scale, product.bias, found)
            scores[mine] = found
        meter.close(OUTPUT_STAGE, len(scores) * self.n_senones)

    def _through(self, spliced: Array, meter: Meter) -> Array:
        """Activations of the last hidden layer, i8 [n, width filled up]; their scales are in `_scales`."""
        n = len(spliced)
        x = self._inputs[0][:n]
        quantise(spliced, x[:, : self._widths[0]], self._scales)
        for i, layer in enumerate(self._layers):
            y = self._inputs[i + 1][:n]
            _requantise(layer.sums(x), self._scales, layer.scale, layer.bias, layer.relu, y[:, : self._widths[i + 1]])
            x = y
            meter.close(layer_stage(i + 1), n)
        return x

    def costs(self, frames: int) -> dict[str, Cost]:
        times = float(self.heads_used)
        outputs = self._law(self._head, frames, 1.0 / self.n_senones, times, touched=2)
        return self._hidden_costs(frames) | {OUTPUT_STAGE: outputs}

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        costs = {SPLICE_STAGE: laws.splice(self.card, frames)}
        for i, layer in enumerate(self._layers):
            costs[layer_stage(i + 1)] = self._law(layer, frames, 1.0, 1.0, touched=4)
        return costs

    def _law(self, layer: Quantised, frames: int, frame: float, times: float, *, touched: int) -> Cost:
        net_bytes = float(sum(layer.nbytes for layer in (*self._layers, *self._heads)))
        return laws.integer_layer(layer, OPERATION, frames, net_bytes, frame, times, touched)


@njit(nogil=True, cache=True, fastmath={"nnan", "ninf", "nsz", "contract"})
def quantise(values, out, scales):  # type: ignore[no-untyped-def]
    """Rows of f32 [n, k or more] as i8 [n, k], each with the scale that its largest value asks for."""
    n, k = out.shape
    if len(values) != n or values.shape[1] < k or len(scales) < n:
        raise ArrayError("quantise: values, scales and bytes do not fit each other")
    for t in range(n):
        largest = np.float32(0)
        for i in range(out.shape[1]):
            largest = max(largest, abs(values[t, i]))
        scale = max(largest / np.float32(LARGEST), SMALLEST_SCALE)
        scales[t] = scale
        inverse = np.float32(1) / scale
        for i in range(out.shape[1]):
            out[t, i] = np.int8(np.rint(values[t, i] * inverse))


@njit(nogil=True, cache=True, fastmath={"nnan", "ninf", "nsz", "contract"})
def _requantise(sums, scales, row_scales, bias, relu, out):  # type: ignore[no-untyped-def]
    """The next layer's input i8 [n, m] from sums i32 [n, m]; `scales` f32 [n] become those of the output."""
    n, m = sums.shape
    if row_scales.shape != (m,) or bias.shape != (m,) or len(scales) < n or out.shape != (n, m):
        raise ArrayError("_requantise: sums, scales and bytes do not fit each other")
    values = np.empty(m, np.float32)
    lowest = np.float32(0) if relu else np.float32(-3.4e38)
    for t in range(sums.shape[0]):
        largest = np.float32(0)
        for i in range(values.size):
            value = np.float32(sums[t, i]) * (scales[t] * row_scales[i]) + bias[i]
            value = max(value, lowest)
            values[i] = value
            largest = max(largest, abs(value))
        scale = max(largest / np.float32(LARGEST), SMALLEST_SCALE)
        scales[t] = scale
        inverse = np.float32(1) / scale
        for i in range(values.size):
            out[t, i] = np.int8(np.rint(values[i] * inverse))


@njit(nogil=True, cache=True, fastmath={"nnan", "ninf", "nsz", "contract"})
def restore(sums, scales, row_scales, bias, scores):  # type: ignore[no-untyped-def]
    """Scores f32 [n, senones] from sums i32 [n, senones]."""
    n, m = sums.shape
    if row_scales.shape != (m,) or bias.shape != (m,) or len(scales) < n or scores.shape != (n, m):
        raise ArrayError("restore: sums, scales and scores do not fit each other")
    for t in range(n):
        for i in range(m):
            scores[t, i] = np.float32(sums[t, i]) * (scales[t] * row_scales[i]) + bias[i]
