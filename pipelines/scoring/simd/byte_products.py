"""Sums of products of 8-bit integers, unsigned weights by signed activations: exact, four products to a sum.

One instruction (AVX512-VNNI); or every other byte as 16 bits, whose products one instruction adds in pairs
(AVX2: four of these for what VNNI does in one, and exact, where the instruction for bytes would saturate); or plain
vector code for any other processor.
"""

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from pipelines.scoring.simd import instructions as llvm
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, has_feature, instruction_of

OFFSET = 128  # Added to an 8-bit weight: the processor's byte product takes one unsigned and one signed factor
GROUP = 4  # Products of a sum that one instruction adds

_BYTES = ir.VectorType(ir.IntType(8), GROUP * LANES)
BYTE_PRODUCTS = has_feature("avx512vnni")  # Whether 16 sums of four products of bytes are one instruction
PAIR_PRODUCTS = has_feature("avx2")  # Whether 8 sums of two products of 16 bits are one instruction

_HALF = GROUP * LANES // 2
_I16X16 = ir.VectorType(ir.IntType(16), _HALF // 2)
_I32X8 = ir.VectorType(llvm.I32, _HALF // 4)


class Bytes:
    """Products of 64 8-bit integers, unsigned weights and signed activations, as sums of four neighbours: exact."""

    zero = llvm.integers(0)
    scaled = True

    def __init__(self, one_instruction: bool = BYTE_PRODUCTS, pairs: bool = PAIR_PRODUCTS) -> None:
        self._one_instruction, self._pairs = one_instruction, pairs

    def load(self, builder: Any, address: Any) -> Any:
        """64 integers, wherever they begin."""
        return llvm.load(builder, address, _BYTES, 1)

    def multiply(self, builder: Any, weights: Any, x: Any, total: Any) -> Any:
        """`total` and the products, four to a sum."""
        if self._one_instruction:
            kind = ir.FunctionType(llvm.I32X16, [llvm.I32X16] * 3)
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
            words = [builder.bitcast(value, llvm.I32X16) for value in (weights, x)]
            return builder.call(function, [total, *words])
        if self._pairs:
            low, high = (
                self._by_pairs(builder, _half(builder, weights, number), _half(builder, x, number))
                for number in range(2)
            )
            return builder.add(total, llvm.shuffle(builder, low, high, list(range(LANES))))
        for first in range(4):
            lanes = list(range(first, 4 * LANES, 4))
            unsigned = builder.zext(llvm.shuffle(builder, weights, weights, lanes), llvm.I32X16)
            signed = builder.sext(llvm.shuffle(builder, x, x, lanes), llvm.I32X16)
            total = builder.add(total, builder.mul(unsigned, signed))
        return total

    @staticmethod
    def _by_pairs(builder: Any, weights: Any, x: Any) -> Any:
        """Products of 32 bytes, four to a sum: those at even places, and those at odd ones."""
        eight = ir.Constant(_I16X16, [8] * (_HALF // 2))
        low = ir.Constant(_I16X16, [0xFF] * (_HALF // 2))
        kind = ir.FunctionType(_I32X8, [_I16X16] * 2)
        pairs = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pmadd.wd")
        even = builder.and_(weights, low), builder.ashr(builder.shl(x, eight), eight)
        odd = builder.lshr(weights, eight), builder.ashr(x, eight)
        return builder.add(builder.call(pairs, even), builder.call(pairs, odd))

    def add(self, builder: Any, x: Any, y: Any) -> Any:
        return builder.add(x, y)


def _half(builder: Any, value: Any, number: int) -> Any:
    """One half of 64 bytes, as 16 times 16 bits."""
    first = number * _HALF
    part = llvm.shuffle(builder, value, value, list(range(first, first + _HALF)))
    return builder.bitcast(part, _I16X16)


def make_byte_tile(numbers: Iterable[int], vectors: int, kind: Bytes) -> Callable[..., None]:
    """A tile of a layer: out i32 [frames, P] = x i8 [frames, 4 · groups] · panel uint8 [groups, P, 4], less `excess`.

    P = 16 · `vectors` outputs. `numbers`: of frames that there may be. Called as tile(frames, x, x_frame, panel,
    groups, excess, out) with addresses; `x_frame`: bytes from a frame of x to the next; `excess`: of i32 [frames],
    taken off every sum.
    """

    @instruction_of(numbers, *[types.intp] * 6)
    def tile(builder: Any, frames: int, x: Any, x_frame: Any, panel: Any, groups: Any, excess: Any, out: Any) -> None:
        def spread(place: Any) -> Any:
            return llvm.splat(builder, llvm.load(builder, place, llvm.I32, 1))

        cells = [(f, v) for f in range(frames) for v in range(vectors)]
        slots = {cell: llvm.slot_with(builder, kind.zero) for cell in cells}
        rows = [builder.add(x, builder.mul(x_frame, llvm.word(f))) for f in range(frames)]
        with cgutils.for_range(builder, groups) as loop:
            begin = builder.add(panel, builder.mul(loop.index, llvm.word(vectors * LANES * GROUP)))
            weights = [kind.load(builder, builder.add(begin, llvm.word(v * VECTOR_BYTES))) for v in range(vectors)]
            offset = builder.mul(loop.index, llvm.word(GROUP))
            for f, row in enumerate(rows):
                four = spread(builder.add(row, offset))
                for v in range(vectors):
                    slot = slots[f, v]
                    total = kind.multiply(builder, weights[v], builder.bitcast(four, _BYTES), builder.load(slot))
                    builder.store(total, slot)
        for f in range(frames):
            less = spread(builder.add(excess, llvm.word(4 * f)))
            for v in range(vectors):
                where = builder.add(out, llvm.word((f * vectors + v) * VECTOR_BYTES))
                llvm.store(builder, builder.sub(builder.load(slots[f, v]), less), where)

    return tile
