"""What numba's CUDA lacks, and its simulator too: the bits of a float32, exact products, the device's clock."""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from numba import config, cuda

P = ParamSpec("P")
R = TypeVar("R")

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]
"""Whether kernels run in numba's simulator; decided when numba is first imported."""


# A block is an utterance, and one of them is no mistake that numba has to warn of.
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]

REGISTERS = 72  # Of a thread at most


def kernel_function(function: Callable[P, R]) -> Callable[P, R]:
    made: Callable[P, R] = cuda.jit(function) if SIMULATED else cuda.jit(max_registers=REGISTERS)(function)
    return made


def device_function(function: Callable[P, R]) -> Callable[P, R]:
    made: Callable[P, R] = cuda.jit(device=True)(function)
    return made


if SIMULATED:

    def bits_of(value: np.float32) -> np.int32:
        """The bits of a float32."""
        return np.float32(value).view(np.int32)

    def float_of(bits: np.int32) -> np.float32:
        """The float32 of such bits."""
        return np.int32(bits).view(np.float32)

    def product(a: np.float32, b: np.float32) -> np.float32:
        """a · b rounded, never fused with an addition: as on the processor."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.float32(a * b)

    def now_ns() -> int:
        """The host's clock in place of the device's."""
        return time.perf_counter_ns()

else:
    from llvmlite import ir
    from numba import types
    from numba.cuda import libdevice
    from numba.cuda.extending import intrinsic

    bits_of = libdevice.float_as_int
    float_of = libdevice.int_as_float
    product = libdevice.fmul_rn

    @intrinsic
    def now_ns(typingctx: object) -> object:
        """The device's clock: %globaltimer, ns."""

        def codegen(context: object, builder: ir.IRBuilder, signature: object, arguments: object) -> ir.Value:
            clock = ir.InlineAsm(
                ir.FunctionType(ir.IntType(64), []), "mov.u64 $0, %globaltimer;", "=l", side_effect=True
            )
            return builder.call(clock, [])

        return types.int64(), codegen
