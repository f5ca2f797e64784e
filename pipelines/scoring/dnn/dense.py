"""A feed-forward net: one matrix product per layer for the frames of a block, all senones or the wanted ones.

From the first layer on frames are columns: weights [outputs, inputs] times activations [inputs, frames]. With
OpenBLAS that takes 0.5 to 0.9 of the time of frames as rows at blocks of 16, and two thirds of torch's with the
5 126 rows of an output layer. A last row of ones carries the bias into the product. The softmax is left out:
its denominator is the same for all senones of a frame, and the search compares senones.

Lazy evaluation (Vanhoucke 2011): hidden layers for the block, then of the output layer only the rows of the
senones that the search asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from pipelines.models.nets import Card, Net
from pipelines.scoring.meter import Meter
from profiler.spans import Cost, Linear

SPLICE_STAGE = "score.splice"
OUTPUT_STAGE = "score.output"
WANTED_STAGE = "score.wanted outputs"
FLOAT = 4
PACKED = 3.0
"""Times that OpenBLAS moves an operand: read, written in the order of its kernel, read from there."""

Array = np.ndarray[Any, Any]


def layer_stage(number: int) -> str:
    """The stage of a hidden layer, counted from 1."""
    return f"score.layer {number}"


class Splicer:
    """Puts frames and their context side by side: the input of a net."""

    def __init__(self, card: Card, max_frames: int) -> None:
        self.card = card
        self.n_senones = card.senones
        self.context = card.left, card.right
        """Frames that `splice` wants before and after those of a block."""
        self.heads_used = 1
        """Output layers that a call goes through: more than one where `score_by_heads` is called."""
        self.begun = 0
        """Frames of the block that `begin_some` was last given."""
        self._input = np.ones((max_frames, card.inputs + 1), np.float32)
        self.stages: Mapping[str, tuple[str, ...]] = {
            SPLICE_STAGE: ("frames",),
            **{layer_stage(i + 1): ("frames",) for i in range(len(card.layers))},
            OUTPUT_STAGE: ("senones",),
            WANTED_STAGE: ("senones",),
        }

    def splice(self, padded: Array, meter: Meter) -> Array:
        """Each frame of a block with its context, f32 [n, inputs + 1]; valid until the next call.

        `padded` f32 [left + n + right, features]: what lies before and after the block belongs to it.
        """
        left, right = self.context
        n = len(padded) - left - right
        padded = np.ascontiguousarray(padded, np.float32)
        # Neighbouring rows overlap: each begins one frame of features after the one before.
        step = FLOAT * self.card.dimension
        windows = np.ndarray((n, self.card.inputs), np.float32, padded, 0, (step, FLOAT))
        spliced = self._input[:n]
        spliced[:, :-1] = windows
        meter.done(SPLICE_STAGE, n)
        return spliced

    def splice_cost(self, frames: int) -> Cost:
        """Cost law of `splice` for calls of about `frames` frames."""
        x, features = float(FLOAT * self.card.inputs), float(FLOAT * self.card.dimension)
        return Cost(
            bytes_min=Linear(per_work=(features + x, 0.0, 0.0)),
            bytes_max=Linear(per_work=(3.0 * x, 0.0, 0.0)),
            working_set_bytes=2.0 * x * frames,
        )


class DenseNet(Splicer):
    """Weights and workspace of one net in float32, for at most `max_frames` at a time."""

    def __init__(self, net: Net, threads: int, max_frames: int) -> None:
        super().__init__(net.card, max_frames)
        card = net.card
        self._threads = threads
        self._layers = [(_with_bias(weight, bias), relu) for weight, bias, relu in net.matrices()]
        self._heads = [_with_bias(*net.head(i)) for i in range(card.heads)]
        self._head = self._heads[0]
        self._hidden = [
            np.empty((layer.outputs + 1) * max_frames, np.float32) for layer in card.layers
        ]
        self._logits = np.empty(card.senones * max_frames, np.float32)
        # Row 0 is the last frame of the block before the one begun.
        self._last = np.zeros((1 + max_frames, self._head.shape[1]), np.float32)

    def score(self, spliced: Array, scores: Array, meter: Meter) -> None:
        """Log posteriors, up to a constant per frame, f32 [n, senones], of frames as `splice` gives them."""
        n = len(spliced)
        x = self._through(spliced, meter)
        logits = self._logits[: self.n_senones * n].reshape(-1, n)
        np.matmul(self._head, x, out=logits)
        scores[:] = logits.T
        meter.done(OUTPUT_STAGE, n * self.n_senones)

    def begin_some(self, spliced: Array, meter: Meter) -> None:
        """The hidden layers of a block, for `score_some` and `score_by_heads`."""
        last = self._last
        last[0] = last[self.begun]
        self.begun = len(spliced)
        last[1 : 1 + len(spliced)] = self._through(spliced, meter).T

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Fill scores[first:last, senones] for frames of the block begun; `senones` int64, distinct."""
        _rows(self._head, self._last[1:], first, last, senones, scores)
        meter.done(WANTED_STAGE, (last - first) * len(senones))

    def score_by_heads(self, source: Array, since: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] by the head for as many frames as each lies behind its source.

        `source` int [n]: its frame of the block begun, −1 for the last frame of the one before; `since` int [n].
        """
        for head in np.unique(since):
            mine = np.flatnonzero(since == head)
            x = self._last[1 + source[mine]].T
            scores[mine] = (self._heads[head] @ x).T
        meter.done(OUTPUT_STAGE, len(scores) * self.n_senones)

    def _through(self, spliced: Array, meter: Meter) -> Array:
        """Activations of the last hidden layer, f32 [width + 1, n]; the last row ones."""
        n, x = len(spliced), spliced.T
        for i, (weight, relu) in enumerate(self._layers):
            # Columns that lie side by side, for any n: a smaller matrix, not a part of the largest.
            y = self._hidden[i][: (len(weight) + 1) * n].reshape(-1, n)
            np.matmul(weight, x, out=y[:-1])
            if relu:
                np.maximum(y[:-1], np.float32(0), out=y[:-1])
            y[-1] = 1.0
            x = y
            meter.done(layer_stage(i + 1), n)
        return x

    @property
    def _net_bytes(self) -> float:
        """Before a layer's turn comes again all others have been read: the working set of each."""
        return float(sum(w.nbytes for w in (*(w for w, _ in self._layers), *self._heads)))

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice` and `score` for calls of about `frames` frames."""
        rows = self.n_senones
        return self._hidden_costs(frames) | {
            OUTPUT_STAGE: self._product(
                self._head, moved_again=True, frame=1.0 / rows, times=float(self.heads_used)
            )
        }

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of `splice`, `begin_some` and `score_some`."""
        width = self._head.shape[1]
        row = float(FLOAT * width)
        return self._hidden_costs(frames) | {
            WANTED_STAGE: Cost(
                operations={"gemv": Linear(per_work=(2.0 * width, 0.0, 0.0))},
                bytes_min=Linear(fixed=row, per_work=(row + FLOAT, 0.0, 0.0)),
                bytes_max=Linear(fixed=row, per_work=(2 * row + FLOAT, 0.0, 0.0)),
                working_set_bytes=float(self._head.nbytes),
            )
        }

    def _hidden_costs(self, frames: int) -> dict[str, Cost]:
        costs = {SPLICE_STAGE: self.splice_cost(frames)}
        for i, (weight, relu) in enumerate(self._layers):
            costs[layer_stage(i + 1)] = self._product(weight, moved_again=relu, frame=1.0)
        return costs

    def _product(
        self, weight: Array, *, moved_again: bool, frame: float, times: float = 1.0
    ) -> Cost:
        """One layer: weights once per call, activations in and out; `frame`: frames per work count.

        `times`: how many such layers share the call. `moved_again`: the product is read once more and written
        (ReLU in place, or turned into rows).
        """
        outputs, inputs = weight.shape
        least = FLOAT * (inputs + outputs) * frame
        most = FLOAT * (PACKED * inputs + (3 if moved_again else 1) * outputs) * frame
        relu = {"fma": Linear(per_work=(outputs * frame, 0.0, 0.0))} if frame == 1.0 else {}
        return Cost(
            operations={"gemm": Linear(per_work=(2.0 * inputs * outputs * frame, 0.0, 0.0))}
            | (relu if moved_again else {}),
            bytes_min=Linear(fixed=times * weight.nbytes, per_work=(least, 0.0, 0.0)),
            bytes_max=Linear(fixed=PACKED * times * weight.nbytes, per_work=(most, 0.0, 0.0)),
            working_set_bytes=self._net_bytes,
            threads=self._threads,
        )


def _with_bias(weight: Array, bias: Array) -> Array:
    return np.ascontiguousarray(np.column_stack([weight, bias]), np.float32)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _rows(head, hidden, first, last, senones, scores):  # type: ignore[no-untyped-def]
    """scores[t, s] = head[s] · hidden[t] for s in `senones`, first ≤ t < last.

    head f32 [senones of the net, width], hidden f32 [n, width], scores f32 [n, senones of the net].
    """
    for s in senones:
        for t in range(first, last):
            total = np.float32(0)
            for i in range(head.shape[1]):
                total += head[s, i] * hidden[t, i]
            scores[t, s] = total
