"""LLVM instructions for vectors of sixteen floats, of which the other files of this room are put together.

numba's own loops do not keep a matrix tile in registers and have no vector `exp` or `log` (those would need Intel's
SVML). The functions here are called while a kernel is compiled: each adds instructions to `builder` and returns the
value that they will have.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES

F32 = ir.FloatType()
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
F32X16 = ir.VectorType(F32, LANES)
I32X16 = ir.VectorType(I32, LANES)

_BYTE = ir.IntType(8)

ALL_LEVELS, SECOND_LEVEL = 3, 2  # Caches that a prefetch brings a line into: from the first on, or from the second


def at(builder: Any, address: Any, kind: Any) -> Any:
    """`address` as a pointer to `kind`."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: Any, address: Any, kind: Any = F32X16, align: int = 4) -> Any:
    """The value of `kind` at `address`, which is a multiple of `align` bytes."""
    value = builder.load(at(builder, address, kind))
    value.align = align
    return value


def store(builder: Any, value: Any, address: Any) -> None:
    """Store what consists of 32-bit numbers; `address` need not be aligned otherwise."""
    builder.store(value, at(builder, address, value.type)).align = 4


def constant(value: float) -> Any:
    return ir.Constant(F32X16, [value] * LANES)


def integers(value: int) -> Any:
    return ir.Constant(I32X16, [value] * LANES)


def word(value: int) -> Any:
    """An integer of 64 bits, as addresses are."""
    return ir.Constant(I64, value)


def slot_with(builder: Any, value: Any) -> Any:
    """A variable that begins with `value`."""
    slot = cgutils.alloca_once(builder, value.type)
    builder.store(value, slot)
    return slot


def summed_in_turn(builder: Any, count: Any, turns: int, wide: int, add: Callable[[Any, list[Any]], None]) -> list[Any]:
    """`wide` vectors, each the sum over `count` steps: `add(index, slots)` adds step `index` to as many slots.

    The steps take `turns` sets of slots in turn: an addition waits for the one before it to the same sum.
    """
    sets = [[slot_with(builder, constant(0.0)) for _ in range(wide)] for _ in range(turns)]
    whole = builder.udiv(count, word(turns))
    with cgutils.for_range(builder, whole) as loop:
        begin = builder.mul(loop.index, word(turns))
        for i, slots in enumerate(sets):
            add(builder.add(begin, word(i)), slots)
    rest = builder.mul(whole, word(turns))
    with cgutils.for_range(builder, builder.sub(count, rest)) as loop:
        add(builder.add(rest, loop.index), sets[0])
    totals = []
    for first, *others in zip(*sets, strict=True):
        total = builder.load(first)
        for other in others:
            total = builder.fadd(total, builder.load(other))
        totals.append(total)
    return totals


def splat(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """A vector of `lanes` times the same number."""
    kind = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return shuffle(builder, one, ir.Constant(kind, ir.Undefined), [0] * lanes)


def fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    kind = ir.FunctionType(F32X16, [F32X16, F32X16, F32X16])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32")
    return builder.call(function, [x, y, z])


def add_product(builder: Any, x: Any, y: Any, slot: Any) -> None:
    """Add x · y to the sum in `slot`."""
    builder.store(fma(builder, x, y, builder.load(slot)), slot)


def larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def reduce(builder: Any, combine: Callable[[Any, Any], Any], value: Any) -> Any:
    """All lanes of `value` combined into one number."""
    width = LANES // 2
    while width:
        value = combine(value, shuffle(builder, value, value, [(lane + width) % LANES for lane in range(LANES)]))
        width //= 2
    return builder.extract_element(value, ir.Constant(I32, 0))


def reduce_max(builder: Any, value: Any) -> Any:
    return reduce(builder, lambda x, y: larger(builder, x, y), value)


def step(builder: Any, address: Any, index: Any) -> Any:
    """The address of vector number `index` from `address` on."""
    return builder.add(address, builder.mul(index, word(VECTOR_BYTES)))


def broadcast(builder: Any, address: Any) -> Any:
    """16 times the float at `address`."""
    return splat(builder, load(builder, address, F32))


def shuffle(builder: Any, x: Any, y: Any, lanes: list[int]) -> Any:
    """The vector of these lanes of `x` and, beyond its own number of lanes, of `y`."""
    order = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return builder.shuffle_vector(x, y, order)


def sum_of_each(builder: Any, add: Callable[..., Any], values: list[Any]) -> Any:
    """The sums of four vectors of sixteen lanes as one vector: added up while they are transposed."""
    for width in (8, 4):
        halves = [list(range(width)), list(range(width, 2 * width))]
        values = [add(builder, *(shuffle(builder, v, v, half) for half in halves)) for v in values]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [
            add(builder, *(shuffle(builder, x, y, lanes) for lanes in ([0, 2, 4, 6], [1, 3, 5, 7]))) for x, y in pairs
        ]
    return values[0]


def prefetch(builder: Any, address: Any, levels: int = ALL_LEVELS) -> None:
    """Ask for the cache line of `address`, which need not be readable, for reading soon."""
    pointer = at(builder, address, _BYTE)
    opaque = getattr(pointer.type, "is_opaque", False)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, I32, I32, I32])
    name = "llvm.prefetch.p0" if opaque else "llvm.prefetch.p0i8"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    flags = [ir.Constant(I32, flag) for flag in (0, levels, 1)]  # read, levels, data
    builder.call(function, [pointer, *flags])
