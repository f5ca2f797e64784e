"""Which leaf lies in which tile of the decode lane.

Spans of the groups TILING follow each other on the decode lane and make up its wall time; the leaves they cover are
recorded before them. What lies in no tile (a warm-up) is part of no wall time.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array
from profiler.spans import GROUPS, SPAN, TILING, Stage

LEAF_GROUPS: Final = ("frontend", "scoring", "search", "transfer")
"""The groups whose spans are taken off a tile; what they leave is overhead."""

# By code of the group; the last entry is for stages without one.
_IS_TILE: Final = np.array([group in TILING for group in (*GROUPS, "")])


class Nested(NamedTuple):
    """Tiles [t] and leaves [l] (dtype SPAN), the tile of each leaf [l], positions of both in the array given.

    `used`: how many spans are dealt with; those after the last tile must wait.
    """

    outer: Array
    leaves: Array
    outer_of: Array
    outer_positions: Array
    leaf_positions: Array
    used: int


def group_codes(stages: Mapping[int, Stage]) -> Array:
    """Return the index in GROUPS of each stage's group, int8 [highest stage + 1]."""
    codes = np.full(max(stages, default=-1) + 1, -1, np.int8)
    for number, stage in stages.items():
        codes[number] = GROUPS.index(stage.group)
    return codes


def pick(spans: Array, positions: Array) -> Array:
    """Return spans[positions], faster: as bytes, numpy copies whole records."""
    rows = np.ascontiguousarray(spans).view(np.uint8).reshape(len(spans), SPAN.itemsize)
    return rows.take(positions, axis=0).view(SPAN)[:, 0]


def by_stage_and_epoch(stages: Array, epochs: Array) -> Iterator[tuple[Array, int, int]]:
    """Give (positions, stage, epoch) of spans for each pair that occurs, positions rising; uint16 [spans] each."""
    for stage in _occurring(stages):
        of_stage = np.flatnonzero(stages == stage)
        of_epoch = epochs[of_stage]
        for epoch in _occurring(of_epoch):
            yield of_stage[of_epoch == epoch], stage, epoch


def _occurring(numbers: Array) -> list[int]:
    """The numbers that occur, rising: those of 16 bits are counted in less time than sorted."""
    found: list[int] = np.flatnonzero(np.bincount(numbers)).tolist()
    return found


def nest(spans: Array, codes: Array, groups: tuple[str, ...] = LEAF_GROUPS) -> Nested:
    """Sort out the spans of one decode lane (dtype SPAN [n], in order of arrival); `groups`: of the leaves."""
    is_leaf = np.array([group in groups for group in (*GROUPS, "")])
    group = codes[spans["stage"]]
    outer_positions = np.flatnonzero(_IS_TILE[group])
    used = int(outer_positions[-1]) + 1 if len(outer_positions) else 0
    outer = pick(spans, outer_positions)
    positions = np.flatnonzero(is_leaf[group[:used]])
    outer_of = np.searchsorted(outer_positions, positions)
    leaves = pick(spans, positions)
    begin, end = leaves["start_ns"], leaves["start_ns"] + leaves["duration_ns"]
    opens, closes = outer["start_ns"], outer["start_ns"] + outer["duration_ns"]
    inside = (begin >= opens[outer_of]) & (end <= closes[outer_of])
    if not inside.all():
        leaves, outer_of, positions = leaves[inside], outer_of[inside], positions[inside]
    return Nested(outer, leaves, outer_of, outer_positions, positions, used)


def nested_in_pieces(spans: Array, codes: Array, size: int) -> Iterator[Nested]:
    """`nest` of the spans of one decode lane, about `size` of them at a time."""
    at, taken = 0, size
    while at < len(spans):
        found = nest(spans[at : at + taken], codes)
        if found.used:
            yield found
            at, taken = at + found.used, size
        elif at + taken < len(spans):
            taken *= 2  # a tile with more leaves than that
        else:
            return
