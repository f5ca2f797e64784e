"""Recording from inside numba kernels: the monotonic clock, and a `put` into a lane's own ring.

    @numba.njit(cache=True, nogil=True)
    def kernel(data, spans, stage, first_frame, frames):      # spans: what `lane.lend()` returned
        start = now_ns()
        ...
        put(spans, stage, start, now_ns(), first_frame, frames, (work, 0, 0))

    kernel(data, lane.lend(), stage, first_frame, frames)
    lane.settle()

What takes the call itself, its way in and out, is a span that the kernel begins with `put_open` and that
`lane.settle(now_ns())` ends: recording it from Python takes several times as long.

A span costs a fraction of one from Python (`asrscope bench overhead` prints both). The clock is reached
through an external symbol: unlike ctypes that does not prevent caching of the compiled kernel. Spans
become visible when the kernel has returned and `settle` was called; `profiler.recording.lanes` says why that needs
neither locks nor atomics.
"""

import sys
from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from profiler.recording.layout import AT, DROPPED, LEFT, OPEN

HAS_CLOCK: Final = sys.platform == "linux"  # Elsewhere `now_ns` of kernels is 0
CLOCK_MONOTONIC: Final = 1  # <time.h> on Linux; what time.perf_counter_ns reads there

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
        """Nanoseconds of the monotonic clock, as `profiler.clock.now_ns`."""
        seconds, nanoseconds = _read_clock()  # type: ignore[call-arg,var-annotated]
        return seconds * 1_000_000_000 + nanoseconds

else:

    @numba.njit(inline="always")
    def now_ns() -> int:  # pragma: no cover - compiled
        """No clock here: always 0."""
        return 0


@numba.njit(nogil=True)
def put(
    spans: Any, stage: int, start_ns: int, end_ns: int, first_frame: int, frames: int, work: tuple[int, int, int]
) -> None:  # pragma: no cover - compiled
    """Record one span into a lent ring, as `Lane.put` does; `work`: its counts, 0 where there are fewer.

    A span for which there is no room, or one of whose counts does not fit 32 bits (stage: 16), is dropped and
    counted: a kernel cannot raise, and a count cut short would be a lie.
    """
    ring, state = spans
    work0, work1, work2 = work
    # Negative numbers keep their sign bits, and so do not pass either.
    beyond = (first_frame | frames | work0 | work1 | work2) >> 32 | stage >> 16
    if state[LEFT] <= 0 or beyond != 0:
        state[DROPPED] += 1
        return
    at = state[AT]
    slot = ring[at]
    slot.start_ns = start_ns
    slot.end_ns = end_ns
    slot.frames = frames
    slot.first_frame = first_frame
    slot.work0 = work0
    slot.work1 = work1
    slot.work2 = work2
    slot.stage = stage
    at += 1
    state[AT] = 0 if at == len(ring) else at
    state[LEFT] -= 1


@numba.njit(nogil=True)
def put_open(
    spans: Any, stage: int, start_ns: int, first_frame: int, frames: int, work: tuple[int, int, int]
) -> None:  # pragma: no cover - compiled
    """Record a span as `put` does, whose end the `settle` that follows knows: one for each time that a ring is lent."""
    _, state = spans
    at, left = state[AT], state[LEFT]
    put(spans, stage, start_ns, start_ns, first_frame, frames, work)
    state[OPEN] = at if state[LEFT] < left else -1
