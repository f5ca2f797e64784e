"""Hand-made roofs and laws, each known to 10 % either way, and sessions whose stages were replayed."""

from __future__ import annotations

from typing import Any

from profiler.analysis.machine_costs import FIRST_CACHE
from profiler.analysis.replays import REPLAYED
from profiler.costs import CHASE, KERNEL_CALL, Accesses, Cost, Linear
from profiler.machine.roofs.table import AFTER_BYTES, LATENCY, OVERHEAD, RATE, RoofTable
from profiler.spans import Stage
from tests.profiler.profiler_sessions import ROOF_TABLE, fake_session, roof, spans_of

ROOFS = ROOF_TABLE.merged(
    RoofTable(
        (
            roof(RATE, "fma", 50e9),
            roof(LATENCY, CHASE, 2.0, FIRST_CACHE),
            roof(LATENCY, CHASE, 102.0, 1 << 26),
            roof(LATENCY, "gather", 1.0, FIRST_CACHE),
            roof(LATENCY, "gather", 11.0, 1 << 26),
            roof(OVERHEAD, "numba", 100.0),
            roof(OVERHEAD, KERNEL_CALL, 1000.0),
            roof(OVERHEAD, KERNEL_CALL, 3000.0, AFTER_BYTES),
        )
    )
)
LARGE = 1 << 26
SCORE, REPLAY = 1, 2
STAGES = [
    Stage(0, "decode.block", "decode"),
    Stage(SCORE, "score.some", "scoring", ("arcs",)),
    Stage(REPLAY, f"{REPLAYED}score.some", "setup", ("timed_ns",)),
]


def law(gemm: float = 0, read: float = 0, chase: float = 0, calls: float = 0) -> Cost:
    """Per span: gemm / 100 ns of arithmetic; bytes of parameters, 0.03 ns more each from LARGE than near by; 100 ns an
    access; 100 to 1000 ns a call."""
    return Cost(
        {"gemm": Linear(gemm)} if gemm else {},
        Linear(read),
        Linear(read),
        float(LARGE),
        calls={KERNEL_CALL: Linear(calls)} if calls else {},
        accesses=(Accesses(Linear(chase), float(LARGE), CHASE),) if chase else (),
    )


def session_of(
    duration: int, cost: Cost | None, hot: float | None = None, roofs: RoofTable = ROOFS, blocks: int = 40, **more: Any
) -> Any:
    """A stage that records one span of `duration` a block; every fourth block is replayed, and takes `hot` of it."""
    rows: list[tuple[int, ...]] = []
    now = 0
    for i in range(blocks):
        rows.append((now, duration, SCORE, 16 * i, 16, 50))
        rows.append((now, duration, 0, 16 * i, 16))
        now += duration
        if hot is not None and i % 4 == 3:
            took = round(duration * hot)
            rows.append((now, took, REPLAY, 16 * i, 0, duration))
            now += took
    costs = {(SCORE, 0): cost} if cost else {}
    return fake_session(spans_of(rows), STAGES, costs, roofs, **more)
