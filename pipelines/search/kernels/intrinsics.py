"""What numba lacks: cache prefetch, and arrays that are known by where they lie.

By one table of addresses and lengths the arrays of a search cross from Python into its kernels: given one by one, numba
inspects each in every call, which waits for memory after scoring has emptied the caches. The owner of the table keeps
the arrays, and checks them when it makes the table.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pipelines.search.kernels.layout import KINDS, Arrays
from profiler.arrays import I64, Array

_WORD = ir.IntType(64)


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of `array[index]` (read, keep in all levels); never faults."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, _ = signature.args
        data = context.make_array(kind)(context, builder, arguments[0])
        item = builder.gep(data.data, [arguments[1]])
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        name = "llvm.prefetch.p0i8" if not getattr(item.type, "is_opaque", False) else "llvm.prefetch.p0"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), name
        )
        flags = [ir.Constant(word, flag) for flag in (0, 3, 1)]
        builder.call(function, [builder.bitcast(item, byte), *flags])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


GROUPS: Final = tuple(tuple(np.dtype(kind) for kind in KINDS[group]) for group in Arrays._fields)


@intrinsic
def arrays_at(typingctx: Any, table: Any) -> Any:
    """The arrays of a `table`, in plain tuples group by group; of a dtype with a shape, an item is a row. Nobody checks
    what lies at an address, or keeps it there."""
    made = types.Tuple(
        [types.Tuple([types.Array(from_dtype(k.base), 1 + len(k.shape), "C") for k in kinds]) for kinds in GROUPS]
    )

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(table)(context, builder, arguments[0]).data
        at, tuples = 0, []
        for held, kinds in zip(made, GROUPS, strict=True):
            arrays = []
            for kind, dtype in zip(held, kinds, strict=True):
                address, length = (
                    builder.load(builder.gep(rows, [ir.Constant(_WORD, place)])) for place in (at, at + 1)
                )
                arrays.append(_array(context, builder, kind, dtype, address, length))
                at += 2
            tuples.append(context.make_tuple(builder, held, arrays))
        return context.make_tuple(builder, made, tuples)

    return made(table), codegen


def _array(context: Any, builder: Any, kind: Any, dtype: np.dtype[Any], address: Any, length: Any) -> Any:
    array = context.make_array(kind)(context, builder)
    itemsize = dtype.base.itemsize
    row = [ir.Constant(_WORD, itemsize)] * len(dtype.shape)
    populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[length, *(ir.Constant(_WORD, n) for n in dtype.shape)],
        strides=[ir.Constant(_WORD, dtype.itemsize), *row],
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()


def table(arrays: Arrays) -> I64:
    """[arrays, 2]: address and length of each, group by group; `Workspace.check` has looked at them."""
    # Declared, since mypy does not find in every one of its runs what such unlike tuples have in common.
    groups: tuple[tuple[Array, ...], ...] = arrays
    return np.array([(array.ctypes.data, len(array)) for group in groups for array in group], np.int64)
