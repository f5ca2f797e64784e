"""Sessions with blocks, probes and hot replays, and the roofs that their one law names."""

from __future__ import annotations

from typing import Any

import numpy as np
from profiler_sessions import ROOF_TABLE, fake_session, roof

from profiler.analysis.conditions import OTHER_COUNT
from profiler.analysis.waiting import REPLAYED
from profiler.costs import CALL, KERNEL, Cost, Linear, Term
from profiler.machine.roofs import table
from profiler.machine.roofs.table import OVERHEAD, PROBES, RoofTable
from profiler.spans import Stage

BLOCK, SCORE, EMIT, ARITHMETIC, MEMORY, REPLAY = range(6)
STAGES = [
    Stage(BLOCK, "decode.block", "decode", (OTHER_COUNT,)),
    Stage(SCORE, "score.some", "scoring", ("units",)),
    Stage(EMIT, "search.emit", "search"),
    Stage(ARITHMETIC, PROBES[0], "setup", ("repeats",)),
    Stage(MEMORY, PROBES[1], "setup", ("repeats",)),
    Stage(REPLAY, f"{REPLAYED}score.some", "setup", ("timed_ns",)),
]
ROOFS = ROOF_TABLE.merged(
    RoofTable(
        (
            roof(table.KERNEL, "tile", 1e9),
            # 30 µs and 200 µs a repeat.
            roof(table.KERNEL, PROBES[0], 1e9 / 30_000),
            roof(table.KERNEL, PROBES[1], 5_000.0, 4 << 20),
            roof(OVERHEAD, "kernel call", 1000.0),
        )
    )
)
LAW = Cost(
    terms=(
        Term(KERNEL, "tile", Linear(per_work=(1.0, 0.0, 0.0))),
        Term(CALL, "kernel call", Linear(0.5)),
    )
)


def session_of(spans: np.ndarray, **more: Any) -> Any:
    return fake_session(spans, STAGES, {(SCORE, 0): LAW}, ROOFS, **more)


def at(*times: int) -> np.ndarray:
    return np.array(times, np.int64)


def replay(start: int, hot: int, timed: int) -> tuple[int, ...]:
    """A hot replay of SCORE that took `hot` ns of a block that had taken `timed`."""
    return (start, hot, REPLAY, 0, 0, timed)
