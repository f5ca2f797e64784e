"""What of the time of spans was not the program's own: others had the processor, a limit held it up, or it stood still.

A tile of the decode lane may carry, as work counts, for how long its thread did not get to run and why; its leaves
share that by their length.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from profiler.analysis.categories import NOT_OWN
from profiler.arrays import Array
from profiler.spans import Stage

OTHER_COUNT: Final = "other_programs_ns"
STOPPED_COUNT: Final = "stopped_ms"
COUNTS: Final = (OTHER_COUNT, "throttled_ns", STOPPED_COUNT)
"""Of a tile. A process may stand still for longer than a count holds in ns."""

OTHER, THROTTLED, STOPPED = range(len(COUNTS))
assert len(NOT_OWN) == STOPPED  # the categories come first, in their order

_NS: Final = {STOPPED_COUNT: 1e6}


def lost_shares(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return which part of each tile's time was lost to what COUNTS name, float64 [counts, tiles] of 0…1.

    Together they are no more than all of it: what stood still comes first, what other programs took last.
    """
    lost = np.zeros((len(COUNTS), len(tiles)))
    for number, stage in stages.items():
        for row, name in enumerate(COUNTS):
            if name in stage.work:
                count = tiles[f"work{stage.work.index(name)}"] * _NS.get(name, 1.0)
                lost[row] = np.where(tiles["stage"] == number, count, lost[row])
    if not lost.any():
        return lost
    left = tiles["duration_ns"].astype(np.float64)
    for row in reversed(lost):
        np.minimum(row, left, out=row)
        left -= row
    shares = np.zeros(lost.shape)
    np.divide(lost, tiles["duration_ns"], out=shares, where=lost > 0)
    return shares
