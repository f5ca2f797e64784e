"""What other programs took of the processor while spans were recorded.

A tile of the decode lane may carry, as a work count OTHER_COUNT, for how long its thread was ready and another program
ran; its leaves share that by their length.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from profiler.arrays import Array
from profiler.spans import Stage

OTHER_COUNT: Final = "other_programs_ns"


def other_share(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return the part of each tile's time in which another program ran instead, float64 [tiles] of 0…1."""
    other = np.zeros(len(tiles))
    for number, stage in stages.items():
        if OTHER_COUNT in stage.work:
            count = tiles[f"work{stage.work.index(OTHER_COUNT)}"]
            other = np.where(tiles["stage"] == number, count, other)
    other = np.minimum(other, tiles["duration_ns"])
    share: Array = np.zeros(len(tiles))
    np.divide(other, tiles["duration_ns"], out=share, where=other > 0)
    return share
