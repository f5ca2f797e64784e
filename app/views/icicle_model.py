"""The time of an average frame as an icicle: the whole, groups of stages, stages, and the parts of each. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from profiler.analysis.breakdown import BETWEEN
from profiler.analysis.categories import CATEGORY_NAMES, OVERHEAD, PART_NAMES, PARTS
from profiler.plain import one_line
from profiler.spans import GROUPS

if TYPE_CHECKING:
    from profiler.analysis.breakdown import Breakdown, StageRow

WHOLE, GROUP, STAGE, PART = range(4)
"""Levels, from the top down."""

LEVELS: Final = PART + 1


@dataclass(frozen=True)
class Block:
    """A rectangle of the icicle.

    Attributes:
        level: WHOLE, GROUP, STAGE or PART.
        first: where it begins, as a share of the wall time.
        share: its time as a share of the wall time.
        ms: milliseconds per frame.
        name: as people read it.
        group: of its stages (of the whole: empty).
        stage: its stage's name (of the whole and of groups: empty).
        part: which of PARTS it is (of other levels: empty).
        verdict: of a stage that has one.
    """

    level: int
    first: float
    share: float
    ms: float
    name: str
    group: str = ""
    stage: str = ""
    part: str = ""
    verdict: str = ""


def icicle_model(costs: Breakdown, title: str = "whole frame") -> tuple[Block, ...]:
    """The blocks of a breakdown, each above those that it consists of; empty without any time.

    Groups and stages are in the order of the pipeline; what no stage covers is a stage of the overhead. `title`: of the
    block above all.
    """
    if costs.wall_ns <= 0:
        return ()
    frames = max(1, costs.last_frame - costs.first_frame)

    def block(level: int, first_ns: float, ns: float, name: str, *keys: str) -> Block:
        wall = costs.wall_ns
        return Block(level, first_ns / wall, ns / wall, ns / frames * 1e-6, name, *keys)

    def blocks() -> Iterator[Block]:
        yield block(WHOLE, 0.0, costs.wall_ns, title)
        at = 0.0
        for group in GROUPS:
            rows = [row for row in costs.stages if row.group == group and row.share is not None]
            between = max(costs.between_ns, 0.0) if group == OVERHEAD else 0.0
            whole = sum(row.time_ns for row in rows) + between
            if whole <= 0:
                continue
            yield block(GROUP, at, whole, CATEGORY_NAMES.get(group, group), group)
            for row in rows:
                name = one_line(row.name)
                yield block(STAGE, at, row.time_ns, name, group, name, "", row.verdict or "")
                yield from parts(row, at, group, name)
                at += row.time_ns
            if between:
                yield block(STAGE, at, between, BETWEEN, group, BETWEEN)
                at += between

    def parts(row: StageRow, at: float, group: str, stage: str) -> Iterator[Block]:
        for part in PARTS if row.parts is not None else ():
            assert row.parts is not None
            ns = row.parts.share(part) * row.time_ns
            if ns > 0:
                yield block(PART, at, ns, PART_NAMES[part], group, stage, part)
                at += ns

    return tuple(blocks())
