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


def other_of(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return the ns in which another program ran instead, float64 [tiles]; 0 where nothing was counted."""
    found = np.zeros(len(tiles))
    for number, stage in stages.items():
        if OTHER_COUNT in stage.work:
            count = tiles[f"work{stage.work.index(OTHER_COUNT)}"]
            found = np.where(tiles["stage"] == number, count, found)
    return np.asarray(np.minimum(found, tiles["duration_ns"]))


def shared_out(leaves: Array, tiles: Array, tile_of: Array, stages: Mapping[int, Stage]) -> Array:
    """Return what of their tiles' other programs falls to `leaves`, float64 [leaves] in ns."""
    share = _share(tiles, stages)
    return np.asarray(leaves["duration_ns"] * share[tile_of]) if len(leaves) else np.zeros(0)


def shared_out_rest(rest: Array, tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Return what of their other programs falls to the `rest` of tiles that no leaf covers, float64 [tiles] in ns."""
    return np.asarray(rest * _share(tiles, stages))


def _share(tiles: Array, stages: Mapping[int, Stage]) -> Array:
    """Which part of their time other programs had the processor, float64 [tiles] of 0…1."""
    other = other_of(tiles, stages)
    share: Array = np.zeros(len(tiles))
    np.divide(other, tiles["duration_ns"], out=share, where=other > 0)
    return share
