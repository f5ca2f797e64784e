"""What numba lacks: cache prefetch, and arrays that are known by where they lie.

By one table of addresses and lengths the arrays of a search cross from Python into its kernels. Given one by one, numba
inspects every array in every call, in several places of memory each; after scoring has emptied the caches, a call waits
for all of them. The arrays are checked once, when the table is made.
The table keeps nothing alive: its owner keeps the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from pipelines.search.kernels.layout import KINDS, Arrays
from profiler.arrays import I64, Array, check

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


def arrays_in(groups: Sequence[Sequence[np.dtype[Any]]]) -> Any:
    """For kernels: makes tuples of arrays from a table int64 [arrays, 2] of address and length, group by group.

    What an array holds is one dtype of `groups`, in C order; of a dtype with a shape, an item is a row. Nobody checks
    what lies at an address, or keeps it there: that is for whoever makes the table.
    """

    @intrinsic
    def arrays_at(typingctx: Any, table: Any) -> Any:
        made = types.Tuple([types.Tuple([_held(kind) for kind in kinds]) for kinds in groups])

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows = context.make_array(table)(context, builder, arguments[0]).data
            at, tuples = 0, []
            for held, kinds in zip(made, groups, strict=True):
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

    return arrays_at


def _held(kind: np.dtype[Any]) -> Any:
    return types.Array(from_dtype(kind.base), 1 + len(kind.shape), "C")


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


GROUPS: Final = tuple(tuple(np.dtype(kind) for kind in KINDS[group]) for group in Arrays._fields)
arrays_at = arrays_in(GROUPS)
"""For kernels: the arrays of a `table`, in plain tuples group by group."""


def table(arrays: Arrays) -> I64:
    """[arrays, 2]: address and length of each, group by group; ArrayError where one is not what KINDS says."""
    # Declared, since mypy does not find in every one of its runs what such unlike tuples have in common.
    groups: tuple[tuple[Array, ...], ...] = arrays
    rows = []
    for name, group, kinds in zip(Arrays._fields, groups, GROUPS, strict=True):
        for column, (array, kind) in enumerate(zip(group, kinds, strict=True)):
            # The graph is only read, and kernels write all else.
            writable = name != "graph"
            check(f"{name}[{column}]", array, kind.base, (None, *kind.shape), writable=writable)
            rows.append((array.ctypes.data, len(array)))
    return np.array(rows, np.int64)
