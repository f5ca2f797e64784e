"""Which leaf lies in which tile of the decode lane.

Spans of the groups TILING follow each other on the decode lane without overlap and make up its wall time;
the leaves they cover are recorded before them. What lies in no tile (a warm-up, say) is part of no wall
time. Everything that divides wall time, per frame or per stage, starts here.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.spans import GROUPS, SPAN, TILING, Stage

LEAF_GROUPS: Final = ("frontend", "scoring", "search", "transfer")
"""The groups whose spans are taken off a tile; what they leave is overhead."""

# By code of the group; the last entry is for stages without one.
_IS_TILE: Final = np.array([group in TILING for group in (*GROUPS, "")])


class Tiled(NamedTuple):
    """`tiles` [t] and `leaves` [l] (dtype SPAN); `tile_of` [l]: the tile of each leaf; positions of both
    in the array given; `used`: how many spans are dealt with. Those after the last tile must wait."""

    tiles: Array
    leaves: Array
    tile_of: Array
    tile_positions: Array
    leaf_positions: Array
    used: int


def group_codes(stages: Mapping[int, Stage]) -> Array:
    """Return the index in GROUPS of each stage's group, int8 [highest stage + 1]."""
    codes = np.full(max(stages, default=-1) + 1, -1, np.int8)
    for number, stage in stages.items():
        codes[number] = GROUPS.index(stage.group)
    return codes


def pick(spans: Array, positions: Array) -> Array:
    """Return spans[positions], four times as fast: as bytes, numpy copies whole records."""
    rows = np.ascontiguousarray(spans).view(np.uint8).reshape(len(spans), SPAN.itemsize)
    return rows.take(positions, axis=0).view(SPAN)[:, 0]


def tile(spans: Array, codes: Array, groups: tuple[str, ...] = LEAF_GROUPS) -> Tiled:
    """Sort out the spans of one decode lane (dtype SPAN [n], in order of arrival); `groups`: of the leaves."""
    is_leaf = np.array([group in groups for group in (*GROUPS, "")])
    group = codes[spans["stage"]]
    tile_positions = np.flatnonzero(_IS_TILE[group])
    used = int(tile_positions[-1]) + 1 if len(tile_positions) else 0
    tiles = pick(spans, tile_positions)
    positions = np.flatnonzero(is_leaf[group[:used]])
    tile_of = np.searchsorted(tile_positions, positions)
    leaves = pick(spans, positions)
    begin, end = leaves["start_ns"], leaves["start_ns"] + leaves["duration_ns"]
    opens, closes = tiles["start_ns"], tiles["start_ns"] + tiles["duration_ns"]
    inside = (begin >= opens[tile_of]) & (end <= closes[tile_of])
    if not inside.all():
        leaves, tile_of, positions = leaves[inside], tile_of[inside], positions[inside]
    return Tiled(tiles, leaves, tile_of, tile_positions, positions, used)
