"""Which leaf lies in which tile of the decode lane.

Spans of the groups TILING follow each other on the decode lane without overlap and make up its wall time;
the leaves they cover are recorded before them. What lies in no tile (a warm-up, say) is part of no wall
time. Everything that divides wall time, per frame or per stage, starts here.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.spans import GROUPS, TILING, Stage

LEAF_GROUPS: Final = ("frontend", "scoring", "search", "transfer")
"""The groups whose spans are taken off a tile; what they leave is overhead."""

_TILE_CODES: Final = tuple(GROUPS.index(group) for group in TILING)
_LEAF_CODES: Final = tuple(GROUPS.index(group) for group in LEAF_GROUPS)


class Tiled(NamedTuple):
    """`tiles` [t] and `leaves` [l] (dtype SPAN); `tile_of` [l]: the tile of each leaf; positions of both
    in the array given; `used`: how many spans are dealt with. Those after the last tile must wait."""

    tiles: np.ndarray
    leaves: np.ndarray
    tile_of: np.ndarray
    tile_positions: np.ndarray
    leaf_positions: np.ndarray
    used: int


def group_codes(stages: Mapping[int, Stage]) -> np.ndarray:
    """Return the index in GROUPS of each stage's group, int8 [highest stage + 1]."""
    codes = np.full(max(stages, default=-1) + 1, -1, np.int8)
    for number, stage in stages.items():
        codes[number] = GROUPS.index(stage.group)
    return codes


def tile(spans: np.ndarray, codes: np.ndarray) -> Tiled:
    """Sort out the spans of one decode lane (dtype SPAN [n], in order of arrival)."""
    group = codes[spans["stage"]]
    tile_positions = np.flatnonzero(np.isin(group, _TILE_CODES))
    used = int(tile_positions[-1]) + 1 if len(tile_positions) else 0
    tiles = spans[tile_positions]
    positions = np.flatnonzero(np.isin(group[:used], _LEAF_CODES))
    tile_of = np.searchsorted(tile_positions, positions)
    leaves = spans[positions]
    home = tiles[tile_of]
    inside = (leaves["start_ns"] >= home["start_ns"]) & (
        leaves["start_ns"] + leaves["duration_ns"] <= home["start_ns"] + home["duration_ns"]
    )
    return Tiled(tiles, leaves[inside], tile_of[inside], tile_positions, positions[inside], used)
