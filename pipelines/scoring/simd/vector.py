"""Vectors of sixteen floats: their size, arrays that begin with one, and addresses for the kernels that use them.

Vectors of 16 floats are legal on every target: LLVM splits them into what the processor has (one AVX-512 register, two
of AVX, four of NEON). Addresses are bytes.

An address forgets what it is of. So kernels take it by `address`, which compiles for the array that they were written
for and no other, and say in their first lines how large each array has to be (`ArrayError`).
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.core.errors import TypingError
from numba.extending import intrinsic as _untyped_intrinsic

from pipelines.scoring.blocks import FLOAT
from profiler.arrays import Array

# numba's type hints take the typing context for a parameter of the call.
intrinsic: Any = _untyped_intrinsic


def instruction(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function for kernels, `result`(*arguments) in numba's types, of one that generates its instructions.

    That is called as generate(builder, *values) while a kernel is compiled, and returns the value of the result, or
    None for `types.void`.
    """

    def decorate(generate: Callable[..., Any]) -> Callable[..., Any]:
        def definition(typing_context: Any, *_: Any) -> Any:
            def code(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                value = generate(builder, *values)
                return context.get_dummy_value() if value is None else value

            return result(*arguments), code

        functools.update_wrapper(definition, generate)
        # numba goes by names: a typing context in place of the builder, and the arguments.
        names = ["typing_context", *list(inspect.signature(generate).parameters)[1:]]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        definition.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
        made: Callable[..., Any] = intrinsic(definition)
        return made

    return decorate


def instruction_of(numbers: Iterable[int], *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make one function for kernels of what generate(builder, number, *values) generates for each of `numbers`.

    Its first argument says which of them is done; with another number nothing is.
    """

    def decorate(generate: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(generate)
        def chosen(builder: Any, number: Any, *values: Any) -> None:
            end = builder.append_basic_block("end")
            switch = builder.switch(number, end)
            for case in numbers:
                block = builder.append_basic_block(f"case {case}")
                switch.add_case(ir.Constant(number.type, case), block)
                builder.position_at_end(block)
                generate(builder, case, *values)
                builder.branch(end)
            builder.position_at_end(end)

        return instruction(types.void, types.intp, *arguments)(chosen)

    return decorate


LANES = 16
VECTOR_BYTES = FLOAT * LANES


def has_feature(name: str) -> bool:
    """Whether kernels are compiled for a processor with what LLVM calls `name`: this one, or that of NUMBA_CPU_NAME."""
    chosen = config.CPU_FEATURES  # type: ignore[attr-defined]  # set when numba is imported
    features: str = get_host_cpu_features() if chosen is None else chosen
    return f"+{name}" in features.split(",")


WIDE_REGISTERS = has_feature("avx512f")  # Whether a vector of 16 floats is one of at least 32 registers


def aligned(shape: tuple[int, ...], kind: Any = np.float32) -> Array:
    """Zeros of `kind` that begin with a cache line: a vector then lies in one line and not across two."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    space = np.zeros(size + VECTOR_BYTES, np.uint8)
    # The last line that there is room for: what reads on beyond the array leaves what was allocated.
    begin = VECTOR_BYTES - space.ctypes.data % VECTOR_BYTES
    return space[begin : begin + size].view(kind).reshape(shape)


def aligned_copy(values: Array) -> Array:
    result = aligned(values.shape, values.dtype)
    result[...] = values
    return result


@intrinsic
def address(typing_context: Any, array: Any, kind: Any) -> Any:
    """Address of an array of `kind` (np.float32, …); for another type or order than C nothing compiles."""
    _must_be(array, kind)
    if array.layout != "C":
        raise TypingError(f"{array}: the kernel reads it in C order")
    return types.intp(array, kind), _begin


@intrinsic
def address_of_rows(typing_context: Any, array: Any, kind: Any) -> Any:
    _must_be(array, kind)
    return types.intp(array, kind), _begin


@njit(cache=True)
def begin_of(array):  # type: ignore[no-untyped-def]
    """The same for Python, in a quarter of the time that `array.ctypes` takes; its holder keeps the array."""
    return address_of_rows(array, np.float32)


def _must_be(array: Any, kind: Any) -> None:
    wanted = kind.instance_type
    if not isinstance(array, types.Array) or array.dtype != wanted or not array.aligned:
        raise TypingError(f"{array}: the kernel wants aligned {wanted}")


def _begin(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    made = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.ptrtoint(made.data, ir.IntType(64))


@instruction(types.void, *[types.intp] * 3)
def copy_floats(builder: Any, target: Any, source: Any, count: Any) -> None:
    """Copy `count` floats from one address to another; the stretches must not overlap."""
    byte = ir.IntType(8).as_pointer()
    size = builder.mul(count, ir.Constant(ir.IntType(64), FLOAT))
    to, begin = builder.inttoptr(target, byte), builder.inttoptr(source, byte)
    cgutils.raw_memcpy(builder, to, begin, size, 1)
