"""Chosen rows of an output layer: lazy evaluation (Vanhoucke 2011), in float32 and in 8-bit integers.

A row is the weights of one senone, side by side in whole vectors; its score in a frame is a dot product. Four rows
at up to four frames share every load and hide each other's latency, and the rows that come next are asked of memory
meanwhile: chosen rows lie where no prefetcher expects them. At one frame the cost is that of reading the rows; four
frames at once read a row a quarter as often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from pipelines.scoring.simd.vector import (
    _F32,
    _FV,
    LANES,
    VECTOR_BYTES,
    _at,
    _bytes,
    _constant,
    _fma,
    _load,
    address,
    aligned,
    has_feature,
    intrinsic,
)
from pipelines.scoring.tied.lazy_kernels import _lanes, _prefetch
from profiler.arrays import Array, ArrayError
from profiler.spans import Cost, Linear

FLOAT = 4
ROWS = 4
"""Rows at once: with as many frames, half of 32 registers are sums."""
LATER = 8
"""Rows from those computed to those that memory is asked for: at 256 inputs 8 KiB of floats."""
OFFSET = 128
"""Added to an 8-bit weight: the processor's byte product takes one unsigned and one signed factor."""

AHEAD = 4
"""Frames for which a senone that the search asks for is computed at once (`dnn.senones=asked-ahead`).

Of all senones a frame of speech asks for 37 % (5 000 words, beam 13); computed and read from memory are then, by frames
ahead in blocks of 32: 1: 37 %, 37 % · 2: 39, 20 · 4: 41, 11 · 8: 46, 6 · 16: 54, 4 · to the end of the block: 62, 3.
"""


_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_INTS = ir.VectorType(_I32, LANES)
_FOUR_BYTES = ir.VectorType(ir.IntType(8), 4 * LANES)
_FOUR = ir.VectorType(_F32, ROWS)
_FOUR_INTS = ir.VectorType(_I32, ROWS)
BYTE_PRODUCTS = has_feature("avx512vnni")
"""Whether 16 sums of four products of bytes are one instruction."""


class _Floats:
    """Sixteen products of weights and activations, added to as many sums."""

    vector = _FV
    zero = _constant(0.0)
    scaled = False

    def load(self, builder: Any, address: Any) -> Any:
        return _load(builder, address)

    def multiply(self, builder: Any, weights: Any, x: Any, total: Any) -> Any:
        return _fma(builder, weights, x, total)

    def add(self, builder: Any, x: Any, y: Any) -> Any:
        return builder.fadd(x, y)


class Bytes:
    """The same of 64 8-bit integers, unsigned weights and signed activations, as sums of four neighbours: exact."""

    vector = _INTS
    bytes = _FOUR_BYTES
    zero = ir.Constant(_INTS, [0] * LANES)
    scaled = True

    def __init__(self, one_instruction: bool) -> None:
        self._one_instruction = one_instruction

    def load(self, builder: Any, address: Any) -> Any:
        """64 integers, wherever they begin."""
        value = builder.load(_at(builder, address, _FOUR_BYTES))
        value.align = 1
        return value

    def multiply(self, builder: Any, weights: Any, x: Any, total: Any) -> Any:
        """`total` and the products, four to a sum."""
        if self._one_instruction:
            kind = ir.FunctionType(_INTS, [_INTS] * 3)
            function = cgutils.get_or_insert_function(
                builder.module, kind, "llvm.x86.avx512.vpdpbusd.512"
            )
            words = [builder.bitcast(value, _INTS) for value in (weights, x)]
            return builder.call(function, [total, *words])
        for first in range(4):
            lanes = list(range(first, 4 * LANES, 4))
            unsigned = builder.zext(_lanes(builder, weights, weights, lanes), _INTS)
            signed = builder.sext(_lanes(builder, x, x, lanes), _INTS)
            total = builder.add(total, builder.mul(unsigned, signed))
        return total

    def add(self, builder: Any, x: Any, y: Any) -> Any:
        """Sum by sum."""
        return builder.add(x, y)


def _sums(builder: Any, add: Callable[..., Any], values: list[Any]) -> Any:
    """The sums of four vectors of sixteen lanes as one vector: added up while they are transposed."""
    for width in (8, 4):
        halves = [list(range(width)), list(range(width, 2 * width))]
        values = [add(builder, *(_lanes(builder, v, v, half) for half in halves)) for v in values]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [
            add(builder, *(_lanes(builder, x, y, lanes) for lanes in ([0, 2, 4, 6], [1, 3, 5, 7])))
            for x, y in pairs
        ]
    return values[0]


def make_tile(kind: Any, frames: int) -> Callable[..., None]:
    """Scores of four rows at `frames` frames.

    Called as tile(places, weights, row_bytes, x, x_stride, out, out_stride, bias, scales, frame): `places` is the
    address of the numbers int64 of rows, of which the first four are computed and the four from `LATER` on asked
    for; rows are whole vectors; frames lie `x_stride` bytes apart from `x` on, their scores `out_stride` from `out`
    on. `bias` and `scales`: addresses of f32 [rows]; `frame`: that of f32 [frames, 2], scale and 128 times the sum
    of the activations. The last two are read for integers alone.
    """

    @intrinsic
    def tile(
        typing_context: Any,
        places: Any,
        weights: Any,
        row_bytes: Any,
        x: Any,
        x_stride: Any,
        out: Any,
        out_stride: Any,
        bias: Any,
        scales: Any,
        frame: Any,
    ) -> Any:
        signature = types.void(*[types.intp] * 10)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            places, weights, row_bytes, x, x_stride, out, out_stride, bias, scales, frame = (
                arguments
            )

            def number(i: int) -> Any:
                return builder.load(_at(builder, builder.add(places, _bytes(8 * i)), _I64))

            numbers = [number(r) for r in range(ROWS)]
            rows = [builder.add(weights, builder.mul(row_bytes, n)) for n in numbers]
            later = [
                builder.add(weights, builder.mul(row_bytes, number(LATER + r))) for r in range(ROWS)
            ]
            xs = [builder.add(x, builder.mul(x_stride, _bytes(f))) for f in range(frames)]
            slots = {}
            for cell in [(f, r) for f in range(frames) for r in range(ROWS)]:
                slots[cell] = cgutils.alloca_once(builder, kind.vector)
                builder.store(kind.zero, slots[cell])
            with cgutils.for_range(builder, builder.udiv(row_bytes, _bytes(VECTOR_BYTES))) as loop:
                offset = builder.mul(loop.index, _bytes(VECTOR_BYTES))
                values = [kind.load(builder, builder.add(base, offset)) for base in xs]
                for r in range(ROWS):
                    _prefetch(builder, builder.add(later[r], offset))
                    row = kind.load(builder, builder.add(rows[r], offset))
                    for f, value in enumerate(values):
                        slot = slots[f, r]
                        builder.store(kind.multiply(builder, row, value, builder.load(slot)), slot)

            def of_rows(table: Any) -> Any:
                found = ir.Constant(_FOUR, ir.Undefined)
                for r, n in enumerate(numbers):
                    place = builder.add(table, builder.mul(n, _bytes(4)))
                    value = builder.load(_at(builder, place, _F32))
                    found = builder.insert_element(found, value, ir.Constant(_I32, r))
                return found

            def spread(place: Any) -> Any:
                value = builder.load(_at(builder, place, _F32))
                one = builder.insert_element(
                    ir.Constant(_FOUR, ir.Undefined), value, ir.Constant(_I32, 0)
                )
                return _lanes(builder, one, one, [0] * ROWS)

            biases = of_rows(bias)
            row_scales = of_rows(scales) if kind.scaled else None
            for f in range(frames):
                sums = _sums(builder, kind.add, [builder.load(slots[f, r]) for r in range(ROWS)])
                if kind.scaled:
                    scale, excess = (
                        spread(builder.add(frame, _bytes(8 * f + 4 * i))) for i in (0, 1)
                    )
                    sums = builder.sub(sums, builder.bitcast(excess, _FOUR_INTS))
                    factor = builder.fmul(scale, row_scales)
                    sums = builder.fmul(builder.sitofp(sums, _FOUR), factor)
                scores = builder.fadd(sums, biases)
                base = builder.add(out, builder.mul(out_stride, _bytes(f)))
                for r, n in enumerate(numbers):
                    value = builder.extract_element(scores, ir.Constant(_I32, r))
                    place = builder.add(base, builder.mul(n, _bytes(4)))
                    builder.store(value, _at(builder, place, _F32))
            return context.get_dummy_value()

        return signature, generate

    made: Callable[..., None] = tile
    return made


_float_1, _float_2, _float_4 = (make_tile(_Floats(), frames) for frames in (1, 2, 4))
_byte_1, _byte_2, _byte_4 = (make_tile(Bytes(BYTE_PRODUCTS), frames) for frames in (1, 2, 4))


@njit(nogil=True, cache=True)
def rows_fit(
    row_bytes: int, count: int, hidden: Array, first: int, last: int, scores: Array
) -> bool:
    """Whether activations are at least as wide as rows of whole vectors, and scores are of so many rows."""
    return (
        hidden.shape[1] * hidden.itemsize >= row_bytes
        and row_bytes % VECTOR_BYTES == 0
        and scores.shape[1] == count
        and 0 <= first <= last <= min(len(hidden), len(scores))
    )


@njit(nogil=True, cache=True)
def _places(senones: Array, count: int) -> Array:
    """`senones`, and the last one as often as the tiles look ahead or compute it once more."""
    for senone in senones:
        if not 0 <= senone < count:
            raise ArrayError("_places: a senone that there is none")
    places = np.empty(len(senones) + LATER + 2 * ROWS, np.int64)
    places[: len(senones)] = senones
    places[len(senones) :] = senones[-1]
    return places


@njit(nogil=True, cache=True)
def float_rows(
    weights: Array, bias: Array, hidden: Array, first: int, last: int, senones: Array, scores: Array
) -> None:
    """scores[t, s] = weights[s] · hidden[t] + bias[s] for s in `senones` int64, first ≤ t < last.

    `weights` f32 [senones of the net, width] in whole vectors, `hidden` f32 [n, width or more], `scores` f32
    [n, senones of the net].
    """
    count, width = weights.shape
    if bias.shape != (count,) or not rows_fit(width * 4, count, hidden, first, last, scores):
        raise ArrayError("float_rows: rows, activations and scores do not fit each other")
    if len(senones) == 0:
        return
    w, row_bytes = address(weights, np.float32), width * 4
    places, b = _places(senones, count), address(bias, np.float32)
    inputs, found = address(hidden, np.float32), address(scores, np.float32)
    stride, to_stride = hidden.shape[1] * 4, count * 4
    for i in range(0, len(senones), ROWS):
        at = address(places, np.int64) + 8 * i
        t = first
        while t < last:
            x, to = inputs + t * stride, found + t * to_stride
            if last - t >= 4:
                _float_4(at, w, row_bytes, x, stride, to, to_stride, b, 0, 0)
                t += 4
            elif last - t >= 2:
                _float_2(at, w, row_bytes, x, stride, to, to_stride, b, 0, 0)
                t += 2
            else:
                _float_1(at, w, row_bytes, x, stride, to, to_stride, b, 0, 0)
                t += 1


@njit(nogil=True, cache=True)
def byte_rows(
    weights: Array,
    row_scales: Array,
    bias: Array,
    hidden: Array,
    scales: Array,
    first: int,
    last: int,
    senones: Array,
    scores: Array,
) -> None:
    """As `float_rows` of integers, with a scale f32 for each row and each frame.

    `weights` uint8, 128 more than they are; `hidden` int8.
    """
    count, width = weights.shape
    if (
        bias.shape != (count,)
        or row_scales.shape != (count,)
        or len(scales) < last
        or not rows_fit(width, count, hidden, first, last, scores)
    ):
        raise ArrayError("byte_rows: rows, activations and scores do not fit each other")
    if len(senones) == 0:
        return
    frames = np.empty((last - first, 2), np.float32)
    excess = frames.view(np.int32)
    for t in range(first, last):
        total = np.int32(0)
        for i in range(width):
            total += np.int32(hidden[t, i])
        frames[t - first, 0] = scales[t]
        excess[t - first, 1] = OFFSET * total
    w, row_bytes = address(weights, np.uint8), width
    places, b = _places(senones, count), address(bias, np.float32)
    rs, of_frames = address(row_scales, np.float32), address(frames, np.float32)
    inputs, found = address(hidden, np.int8), address(scores, np.float32)
    stride, to_stride = hidden.shape[1], count * 4
    for i in range(0, len(senones), ROWS):
        at = address(places, np.int64) + 8 * i
        t = first
        while t < last:
            x, to = inputs + t * stride, found + t * to_stride
            frame = of_frames + (t - first) * 8
            if last - t >= 4:
                _byte_4(at, w, row_bytes, x, stride, to, to_stride, b, rs, frame)
                t += 4
            elif last - t >= 2:
                _byte_2(at, w, row_bytes, x, stride, to, to_stride, b, rs, frame)
                t += 2
            else:
                _byte_1(at, w, row_bytes, x, stride, to, to_stride, b, rs, frame)
                t += 1


def room(frames: int, values: int, kind: Any = np.float32) -> Array:
    """Zeros of `kind` [frames, `values` filled up to whole vectors]: `hidden` of `score` below."""
    return _whole(np.zeros((frames, values), kind), kind)


class FloatRows:
    """The rows of an output layer in float32."""

    def __init__(self, weight: Array) -> None:
        """`weight` f32 [senones, inputs + 1], the bias in the last column."""
        self._weights, self._bias = _whole(weight[:, :-1], np.float32), weight[:, -1].copy()
        self.nbytes = self._weights.nbytes

    def score(self, hidden: Array, first: int, last: int, senones: Array, scores: Array) -> None:
        """Fill scores[first:last, senones]; `hidden` f32 [n, inputs filled up] as `room` gives it."""
        float_rows(self._weights, self._bias, hidden, first, last, senones, scores)

    def cost(self) -> Cost:
        """By work counts: scores computed; rows read from memory, once a call for all its frames."""
        return _cost(self._weights, "gemm", 0.0)


class ByteRows:
    """The rows of an output layer in 8-bit integers, whose sums are exact."""

    def __init__(self, weight: Array, scale: Array, bias: Array) -> None:
        """`weight` int8 [senones, inputs], `scale` and `bias` f32 [senones]."""
        offset = weight.astype(np.int16) + OFFSET
        self._weights, self._scale, self._bias = _whole(offset, np.uint8), scale, bias
        self.nbytes = self._weights.nbytes

    def score(
        self, hidden: Array, scales: Array, first: int, last: int, senones: Array, scores: Array
    ) -> None:
        """Fill scores[first:last, senones]; `hidden` int8 [n, inputs filled up] as `room` gives it,
        `scales` f32 [n]."""
        byte_rows(
            self._weights, self._scale, self._bias, hidden, scales, first, last, senones, scores
        )

    def cost(self) -> Cost:
        """By work counts: scores computed; rows read from memory, once a call for all its frames."""
        return _cost(self._weights, "gemm:int8", 2.0)


def _whole(weight: Array, kind: Any) -> Array:
    """`weight` [senones, inputs] as `kind`, its rows filled up with zeros to whole vectors."""
    count, inputs = weight.shape
    whole = VECTOR_BYTES // np.dtype(kind).itemsize
    rows = aligned((count, -(-inputs // whole) * whole), kind)
    rows[:, :inputs] = weight
    return rows


def _cost(weights: Array, operation: str, scaling: float) -> Cost:
    """`scaling`: operations beyond the product for each score.

    At least a row read and a score written; at most with the bias and the scale of the row, and a line of scores read
    before one of them is written.
    """
    size = float(weights.strides[0])
    operations = {operation: Linear(per_work=(2.0 * weights.shape[1], 0.0, 0.0))}
    if scaling:
        operations["fma"] = Linear(per_work=(scaling, 0.0, 0.0))
    return Cost(
        operations=operations,
        bytes_min=Linear(per_work=(float(FLOAT), size, 0.0)),
        bytes_max=Linear(per_work=(float(VECTOR_BYTES + FLOAT), size + 2.0 * FLOAT, 0.0)),
        working_set_bytes=float(weights.nbytes),
    )
