"""How many calls a stage makes, for its cost law: each takes time whatever it computes."""

from __future__ import annotations

from profiler.costs import KERNEL_CALL, NUMPY_CALL, Linear


def calls(compiled: float = 0.0, numpy: float = 0.0) -> dict[str, Linear]:
    """Calls of compiled kernels and of numpy's functions per span."""
    counts = {KERNEL_CALL: compiled, NUMPY_CALL: numpy}
    return {kind: Linear(fixed=float(count)) for kind, count in counts.items() if count}


def frame_calls(compiled: float = 1.0) -> dict[str, Linear]:
    """Calls of compiled kernels per frame of a block, where scoring and search take turns."""
    return {KERNEL_CALL: Linear(per_frame=compiled)}
