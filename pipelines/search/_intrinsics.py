"""What numba lacks: a clock that can be read inside cached kernels, and cache prefetch.

On Linux the clock is `clock_gettime(CLOCK_MONOTONIC)`, the very clock of `time.perf_counter_ns`;
reached through an external symbol it does not prevent caching of the compiled kernel as ctypes
would. Elsewhere it reads 0 and `HAS_CLOCK` is False.
"""

from __future__ import annotations

import sys
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

HAS_CLOCK = sys.platform == "linux"
CLOCK_MONOTONIC = 1  # <time.h> on Linux

if HAS_CLOCK:

    @intrinsic
    def _read_clock(typingctx: Any) -> Any:
        """(seconds, nanoseconds) by way of a struct on the kernel's own stack."""
        pair = types.UniTuple(types.int64, 2)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            space = cgutils.alloca_once(builder, ir.ArrayType(word, 2))
            pointer = builder.bitcast(space, word.as_pointer())
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), word.as_pointer()])
            function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
            builder.call(function, [ir.Constant(ir.IntType(32), CLOCK_MONOTONIC), pointer])
            parts = [builder.load(builder.gep(pointer, [ir.Constant(word, i)])) for i in range(2)]
            return context.make_tuple(builder, pair, parts)

        return pair(), codegen

    @numba.njit(inline="always")
    def now_ns() -> int:  # pragma: no cover - compiled
        """Nanoseconds of the monotonic clock."""
        seconds, nanoseconds = _read_clock()  # type: ignore[call-arg,var-annotated]
        return seconds * 1_000_000_000 + nanoseconds

else:

    @numba.njit(inline="always")
    def now_ns() -> int:  # pragma: no cover - compiled
        """No clock here: always 0."""
        return 0


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of `array[index]` (read, keep in all levels); never faults."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, _ = signature.args
        data = context.make_array(kind)(context, builder, arguments[0])
        item = builder.gep(data.data, [arguments[1]])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        name = (
            "llvm.prefetch.p0i8"
            if not getattr(item.type, "is_opaque", False)
            else "llvm.prefetch.p0"
        )
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), name
        )
        flags = [ir.Constant(word, flag) for flag in (0, 3, 1)]
        builder.call(function, [builder.bitcast(item, byte), *flags])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
