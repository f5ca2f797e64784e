"""Cost laws of scoring: what a stage computes and moves, by its work counts (`profiler.costs.Cost`).

A law is a function of the layout that a kernel goes through; a strategy says which law each of its stages has.
`bytes_min` is compulsory traffic, `bytes_max` that of the kernel's tiling. Laws of devices are in `scoring.device`.
"""

from typing import Final

from profiler.costs import KERNEL_CALL, NUMPY_CALL, Cost, Linear

WAITING: Final = Cost(
    unmodelled="it hands the block to the threads that share it, waits for them, and computes nothing itself"
)
"""Law of `score.wait`."""


def per(
    first: float = 0.0, second: float = 0.0, third: float = 0.0, *, fixed: float = 0.0, frame: float = 0.0
) -> Linear:
    """Return a quantity per unit of each work count, and what is `fixed` per span or comes with each covered frame."""
    return Linear(fixed, frame, (first, second, third))


def calls(compiled: float = 0.0, numpy: float = 0.0) -> dict[str, Linear]:
    """Calls of compiled kernels and of numpy's functions per span: each takes time whatever it computes."""
    counts = {KERNEL_CALL: compiled, NUMPY_CALL: numpy}
    return {kind: Linear(fixed=float(count)) for kind, count in counts.items() if count}


def frame_calls(compiled: float = 1.0) -> dict[str, Linear]:
    return {KERNEL_CALL: Linear(per_frame=compiled)}
