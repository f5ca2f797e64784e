"""The time of an average frame as an icicle: the whole, groups of stages, stages, and the parts of each. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from profiler.analysis.categories import CATEGORY_NAMES, PART_NAMES

if TYPE_CHECKING:
    from app.model.desk_snapshot import DeskSnapshot, StageLine

WHOLE, GROUP, STAGE, PART = range(4)
"""Levels, from the top down."""

LEVELS: Final = PART + 1


@dataclass(frozen=True)
class Block:
    """A rectangle of the icicle.

    Attributes:
        level: WHOLE, GROUP, STAGE or PART.
        first: where it begins, as a share of the whole.
        share: its time as a share of the whole.
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


def icicle_model(desk: DeskSnapshot, title: str = "whole frame") -> tuple[Block, ...]:
    """The groups and stages of a scope, each above what it consists of; empty without any time.

    What no stage covers is a stage of the overhead. `title`: of the block above all.
    """
    if not desk.own_ms > 0:
        return ()

    def block(level: int, first_ms: float, ms: float, name: str, *keys: str) -> Block:
        return Block(level, first_ms / desk.own_ms, ms / desk.own_ms, ms, name, *keys)

    def blocks() -> Iterator[Block]:
        yield block(WHOLE, 0.0, desk.own_ms, title)
        at = 0.0
        for group in desk.groups:
            yield block(GROUP, at, group.ms, CATEGORY_NAMES.get(group.name, group.name), group.name)
            for line in desk.stages:
                if line.group == group.name and line.share is not None:
                    yield block(STAGE, at, line.ms, line.name, group.name, line.name, "", line.verdict)
                    yield from parts(line, at)
                    at += line.ms

    def parts(line: StageLine, at: float) -> Iterator[Block]:
        for part in line.parts:
            if part.share > 0:
                ms = part.share * line.ms
                yield block(PART, at, ms, PART_NAMES[part.name], line.group, line.name, part.name)
                at += ms

    return tuple(blocks())
