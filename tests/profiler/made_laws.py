"""Hand-made roofs and laws: a kernel that does one unit a ns, 10 % each way."""

from __future__ import annotations

import numpy as np
from profiler_sessions import ROOF_TABLE, roof, spans_of

from profiler.analysis.law import FIRST_CACHE
from profiler.costs import ACCESS, CALL, KERNEL, STREAM, Cost, Linear, Term
from profiler.machine.roofs import table
from profiler.machine.roofs.table import LATENCY, OVERHEAD, RoofTable

ROOFS = ROOF_TABLE.merged(
    RoofTable(
        (
            roof(table.KERNEL, "tile", 1e9),
            roof(LATENCY, "chase", 2.0, FIRST_CACHE),
            roof(LATENCY, "chase", 102.0, 1 << 26),
            roof(OVERHEAD, "kernel call", 1000.0),
        )
    )
)
LARGE = 1 << 26


def law(
    gemm: float = 0, units: float = 0, read: float = 0, chase: float = 0, calls: float = 0
) -> Cost:
    """Likely ns per span: gemm / 100 arithmetic, units in all, 0.03 a byte, 100 an access, 1000 a call."""
    terms = (
        Term(KERNEL, "tile", Linear(units)),
        Term(STREAM, "read", Linear(read), LARGE),
        Term(ACCESS, "chase", Linear(chase), LARGE),
        Term(CALL, "kernel call", Linear(calls)),
    )
    chosen = tuple(term for term in terms if term.count.fixed)
    return Cost({"gemm": Linear(gemm)} if gemm else {}, Linear(read), Linear(read), terms=chosen)


def one(duration: int) -> np.ndarray:
    return spans_of([(0, duration, 1, 0, 16)])
