"""What lies around the products of a net: its input, ReLU, scores put into rows, and what Python does for a layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numba import njit

from pipelines.config import Config
from pipelines.models.nets import FORMAT, Card, Net
from pipelines.scoring.blocks import FLOAT, MAX_FRAMES
from pipelines.scoring.dnn import dense, products, terms
from pipelines.scoring.dnn.dense import DenseNet, Splicer, bound
from pipelines.scoring.dnn.products import Product, blas, blocks, csr, scalar, simd
from pipelines.scoring.dnn.quantised import QuantisedNet
from pipelines.scoring.dnn.terms import Call
from pipelines.scoring.kernel_work import Family, Numbers
from pipelines.scoring.meter import Meter
from pipelines.scoring.roofs_tasks import CALLED, HOT_BYTES, after_reading, filled, recording
from pipelines.scoring.senones import Parents, active
from pipelines.scoring.thread_pool import shared
from profiler.arrays import Array
from profiler.costs import Term
from profiler.machine.roofs.timing import Task, Work, repeated
from profiler.spans import Cost


@njit(nogil=True, cache=True)
def _rectified(values: Array, repeats: int) -> None:
    for _ in range(repeats):
        dense.rectify(values)


def turned_scores(size: int, numbers: Numbers) -> Work:
    """Products [outputs, frames] written as rows of scores; units are floats, at their own size."""
    n, outputs = numbers

    def make() -> Task:
        logits, scores = filled((outputs, n)), filled((n, outputs))

        def once() -> None:
            scores[:] = logits.T

        return repeated(once)

    return Work(float(n * outputs), make)


def relu(size: int, numbers: Numbers) -> Work:
    """ReLU in place; units are values."""

    def make() -> Task:
        values = filled((HOT_BYTES // FLOAT,))
        return lambda repeats: _rectified(values, repeats)

    return Work(float(HOT_BYTES // FLOAT), make)


def windows(size: int, numbers: Numbers) -> Work:
    """Windows of so many inputs over rows of features copied beside each other; units are floats, at MAX_FRAMES."""
    inputs, features = numbers
    n, before = MAX_FRAMES, inputs // features - 1

    def make() -> Task:
        splicer, padded = Splicer(_card(features, before), n), filled((n + before, features))
        to = filled((n, inputs + 1))

        def once() -> None:
            to[:, :-1] = splicer.windows(padded)

        return repeated(once)

    return Work(float(n * inputs), make)


def splice_call(size: int, numbers: Numbers) -> Work:
    """The input of one frame of one feature, after `size` bytes were read."""
    return Work(1.0, lambda: after_reading(size, spliced()))


def spliced() -> Callable[[], object]:
    """A call that makes the input of a net of one frame of one feature."""
    splicer, padded, meter = Splicer(_card(1, 0), 1), filled((1, 1)), recording(dense.SPLICE_STAGE)
    return lambda: splicer.splice(padded, meter)


def before_layer(passed: int) -> Callable[[], object] | None:
    """What a layer finds done: the first one, which the search came before, its input; others but what was read."""
    return spliced() if passed == terms.AFTER_SEARCH else None


class _Nothing(Product):
    """A product of one weight that is not computed: what is left is Python's."""

    into_rows: ClassVar[bool] = True

    def _bind(self, x: Array, out: Array) -> Callable[[], None]:
        """Nothing."""
        return lambda: None

    def cost(self, frame: float, times: float) -> Cost:
        """Nothing."""
        return Cost()

    def terms(self, call: Call) -> tuple[Term, ...]:
        """None."""
        return ()


def layer_call(name: str, library: bool = False) -> Family:
    """A layer of one input and two outputs by so many frames, after bytes were read.

    `library`: its product is no part of this, as it has the call of the library in its own time; but where a block
    begins, what the library needs for a call was pushed out, too.
    """

    def family(size: int, numbers: Numbers) -> Work:
        (n,) = numbers

        def make() -> Task:
            weight, meter = filled((2, 2)), recording()
            without = library and size != terms.AFTER_SEARCH
            layer = _Nothing(weight, 1, n) if without else products.create(name, weight, 1, n)
            layer_once, _ = bound(layer, True, filled((2, n)), filled((3 * n,)))

            def once() -> None:
                layer_once()
                meter.done(CALLED, n)

            return after_reading(size, once, before_layer(size))

        return Work(1.0, make)

    return family


def heads_call(size: int, numbers: Numbers) -> Work:
    """One senone by so many heads, each for as many frames and without its product, after `size` bytes were read."""
    heads, frames = numbers

    def make() -> Task:
        card = _card(1, 0, heads)
        tensors = {name: filled(shape) for name, shape in card.shapes.items()}
        n = heads * frames
        net, scores = DenseNet(Net("", card, tensors), 1, n), filled((n, 1))
        meter = recording(dense.OUTPUT_STAGE)
        net._heads = [_Nothing(filled((1, 2)), 1, n) for _ in range(heads)]
        net.begin_some(filled((frames, 2)), Meter())
        source, since = np.arange(n) // heads, np.arange(n) % heads
        return after_reading(size, lambda: net.score_by_heads(source, since, scores, meter))

    return Work(1.0, make)


def handed_over(size: int, numbers: Numbers) -> Work:
    """What is nothing to do, shared by so many threads, after `size` bytes were read."""
    (threads,) = numbers

    def make() -> Task:
        def nothing(thread: int, first: int, last: int) -> None:
            pass

        return after_reading(size, lambda: shared(nothing, threads, threads))

    return Work(1.0, make, waits=True)


def rows_call(size: int, numbers: Numbers) -> Work:
    """The active output of a frame that has one, as a rule asks a net of one weight, after `size` bytes were read."""
    (weight_bytes,) = numbers

    def make() -> Task:
        card = _card(1, 0)
        tensors = {name: filled(shape) for name, shape in card.shapes.items()}
        made = QuantisedNet if weight_bytes == 1 else DenseNet
        net, meter = made(Net("", card, tensors), 1, 1), recording(dense.ACTIVE_STAGE)
        rule = active.Rule(1, Parents(np.zeros(1, np.int64), np.zeros(1, np.int32)), ahead=1)
        rule.configure(Config().gmm, net)
        rule.begin(filled((1, 2)), Meter())
        asked, scores = np.zeros(1, np.int64), filled((1, 1))
        return after_reading(size, lambda: rule.frame(0, asked, scores, meter))

    return Work(1.0, make)


def _card(features: int, before: int, heads: int = 1) -> Card:
    """A net of no layers and one senone, with so many frames of context."""
    ones = [1.0] * features
    return Card(FORMAT, before, 0, ones, ones, 1, [], heads)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        simd.CALL: layer_call("simd"),
        blas.CALL: layer_call("blas", library=True),
        scalar.CALL: layer_call("scalar"),
        f"{csr.KERNEL} layer": layer_call("csr"),
        f"{blocks.KERNEL} layer": layer_call("blocks"),
        terms.SCORES: turned_scores,
        terms.RELU: relu,
        terms.WINDOWS: windows,
        terms.SPLICE: splice_call,
        terms.HEADS: heads_call,
        terms.ROWS_CALL: rows_call,
        terms.HANDED_OVER: handed_over,
    }
)
