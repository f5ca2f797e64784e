"""Sessions with blocks and hot replays, and the roofs of their one law."""

from typing import Any

import numpy as np
from profiler_sessions import ROOF_TABLE, fake_session, roof

from profiler.analysis.attribution import REPLAYED
from profiler.analysis.stage_sums import COUNTS
from profiler.costs import KERNEL_CALL, Cost, Linear
from profiler.machine.roofs.table import OVERHEAD, RoofTable
from profiler.spans import Stage

BLOCK, SCORE, EMIT, REPLAY = range(4)
STAGES = [
    Stage(BLOCK, "decode.block", "decode", COUNTS),
    Stage(SCORE, "score.some", "scoring", ("units",)),
    Stage(EMIT, "search.emit", "search"),
    Stage(REPLAY, f"{REPLAYED}score.some", "setup", ("timed_ns",)),
]
ROOFS = ROOF_TABLE.merged(RoofTable((roof(OVERHEAD, "numba", 100.0), roof(OVERHEAD, KERNEL_CALL, 1000.0))))
LAW = Cost({"gemm": Linear(per_work=(10.0, 0.0, 0.0))}, calls={KERNEL_CALL: Linear(0.5)})


def session_of(spans: np.ndarray, **more: Any) -> Any:
    return fake_session(spans, STAGES, {(SCORE, 0): LAW}, ROOFS, **more)


def replay(start: int, hot: int, timed: int) -> tuple[int, ...]:
    """A hot replay of SCORE that took `hot` ns of a block that had taken `timed`."""
    return (start, hot, REPLAY, 0, 0, timed)
