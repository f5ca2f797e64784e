"""The kernel of lazy scoring in a tied-mixture model: mixtures of chosen senones in a few frames.

The Gaussians of a block and their exponentials are computed for all its frames at once (`kernels`); what is
left for later are the mixtures of the senones that somebody asks for. A senone's weights lie side by side
here (`dots` f32 [senones, 3, K]), so that one senone is a dot product over memory in order, whichever others
are asked for: panels of 16 senones would do for nothing, four of five hold one that the search wants.
"""

from __future__ import annotations

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
    intrinsic,
    log_shifted,
)
from pipelines.scoring.tied.kernels import STREAMS
from profiler.arrays import Array, ArrayError

AT_ONCE = 4
"""Senones whose dot products share each load of the exponentials and hide each other's latency."""

_WORD = ir.IntType(64)
_HALF = ir.IntType(32)


def _lanes(builder: Any, x: Any, y: Any, lanes: list[int]) -> Any:
    order = ir.Constant(ir.VectorType(_HALF, len(lanes)), lanes)
    return builder.shuffle_vector(x, y, order)


def _folded(builder: Any, value: Any) -> Any:
    """Four lanes whose sum is that of all sixteen."""
    for width in (8, 4):
        low = _lanes(builder, value, value, list(range(width)))
        high = _lanes(builder, value, value, list(range(width, 2 * width)))
        value = builder.fadd(low, high)
    return value


def _sums(builder: Any, values: list[Any]) -> Any:
    """The sums of four vectors of four lanes as one vector: added up while they are transposed."""
    even, odd = [0, 2, 4, 6], [1, 3, 5, 7]
    while len(values) > 1:
        values = [
            builder.fadd(_lanes(builder, x, y, even), _lanes(builder, x, y, odd))
            for x, y in zip(values[::2], values[1::2], strict=True)
        ]
    return values[0]


def _prefetch(builder: Any, address: Any) -> None:
    pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
    opaque = getattr(pointer.type, "is_opaque", False)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _HALF, _HALF, _HALF])
    name = "llvm.prefetch.p0" if opaque else "llvm.prefetch.p0i8"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    # To be read, kept in all levels, data.
    builder.call(function, [pointer, *(ir.Constant(_HALF, flag) for flag in (0, 3, 1))])


@intrinsic
def products_of_four(typing_context: Any, factors: Any, groups: Any, rows: Any, out: Any) -> Any:
    """Products over three streams of dot products, for four rows of weights at once.

    `factors`: the address of 3·16·groups floats; `rows`: that of the addresses of four rows of as many
    floats, and of four more that will be wanted next; `out`: that of four floats.
    """
    signature = types.void(*[types.intp] * 4)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        factors, groups, rows, out = arguments
        addresses = [
            builder.load(_at(builder, builder.add(rows, _bytes(8 * i)), _WORD))
            for i in range(2 * AT_ONCE)
        ]
        bases, following = addresses[:AT_ONCE], addresses[AT_ONCE:]
        result = None
        for s in range(STREAMS):
            sums = [cgutils.alloca_once(builder, _FV) for _ in range(AT_ONCE)]
            for slot in sums:
                builder.store(_constant(0.0), slot)
            skipped = builder.mul(groups, _bytes(s * VECTOR_BYTES))
            with cgutils.for_range(builder, groups) as loop:
                offset = builder.add(skipped, builder.mul(loop.index, _bytes(VECTOR_BYTES)))
                factor = _load(builder, builder.add(factors, offset))
                for base, after, slot in zip(bases, following, sums, strict=True):
                    _prefetch(builder, builder.add(after, offset))
                    weights = _load(builder, builder.add(base, offset))
                    builder.store(_fma(builder, factor, weights, builder.load(slot)), slot)
            total = _sums(builder, [_folded(builder, builder.load(slot)) for slot in sums])
            result = total if result is None else builder.fmul(result, total)
        four = ir.VectorType(_F32, AT_ONCE)
        builder.store(result, _at(builder, out, four)).align = 4
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True, cache=True)
def mix_some(
    g: Array,
    shift: Array,
    dots: Array,
    book_of: Array,
    senones: Array,
    first: int,
    last: int,
    products: Array,
    scores: Array,
) -> None:
    """scores[t, senone] = log Π over streams Σ over densities weight · exponential, plus shift.

    For t = first … last − 1 and each of `senones` int64, best with those of a codebook together. g f32
    [n, B, 3, K] exponentials, shift f32 [n, B], book_of int32 [n_senones], scores f32 [n, n_senones];
    workspace `products` f32 [n, W], W the senones of the largest codebook and at least 16 to spare.
    """
    n, books, _, densities = g.shape
    groups = densities // LANES
    frame_bytes = books * STREAMS * densities * 4
    if (
        g.shape != (n, books, STREAMS, groups * LANES)
        or shift.shape != (n, books)
        or dots.shape != (len(book_of), STREAMS, densities)
        or not 0 <= first <= last <= n
        or len(scores) < last
        or scores.shape[1] != len(book_of)
        or len(products) < last
        or products.shape[1] <= LANES
    ):
        raise ArrayError("mix_some: densities, weights and scores do not fit each other")
    for senone in senones:
        if not 0 <= senone < len(book_of) or not 0 <= book_of[senone] < books:
            raise ArrayError("mix_some: a senone that there is none")
    row_bytes = STREAMS * dots.shape[2] * 4
    rows = np.empty(2 * AT_ONCE, np.int64)
    count = len(senones)
    begin = 0
    while begin < count:
        book = book_of[senones[begin]]
        end = begin + 1
        while end < count and end - begin < products.shape[1] - LANES:
            if book_of[senones[end]] != book:
                break
            end += 1
        for i in range(begin, end, AT_ONCE):
            for j in range(2 * AT_ONCE):
                # Past the end the last one once more: what comes out is not looked at.
                bound = end if j < AT_ONCE else count
                rows[j] = address(dots, np.float32) + senones[min(i + j, bound - 1)] * row_bytes
            for t in range(first, last):
                products_of_four(
                    address(g, np.float32) + t * frame_bytes + book * STREAMS * densities * 4,
                    groups,
                    address(rows, np.int64),
                    address(products, np.float32) + (t * products.shape[1] + i - begin) * 4,
                )
        for t in range(first, last):
            at = address(products, np.float32) + t * products.shape[1] * 4
            # Whole vectors: the logarithm of what lay there before is not looked at either.
            log_shifted(at, at, -(-(end - begin) // LANES), shift[t, book])
            for i in range(begin, end):
                scores[t, senones[i]] = products[t, i - begin]
        begin = end
