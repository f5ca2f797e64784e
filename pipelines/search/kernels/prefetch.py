"""What numba lacks: cache prefetch."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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
