"""The icicle of the breakdown: the time of an average frame, divided downwards into groups, stages and their parts."""

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPen

from app.charts.still import LINE, Spot, StillPlot, small_metrics
from app.model.desk_snapshot import DeskSnapshot
from app.style.plain_text import AT_LEFT, describe, fitting
from app.style.theme import blended, theme
from app.views.stage_panel import group_color
from profiler.analysis.categories import CATEGORY_NAMES, OVERHEAD, PART_NAMES
from profiler.plain import milliseconds, percent

WHOLE, GROUP, STAGE, PART = range(4)  # Levels, from the top down

LEVELS: Final = PART + 1


@dataclass(frozen=True)
class Block:
    """A rectangle of the icicle."""

    level: int  # WHOLE, GROUP, STAGE or PART
    first: float  # Where it begins, as a share of the whole
    share: float  # Its time as a share of the whole
    ms: float  # Milliseconds per frame
    name: str  # As people read it
    group: str = ""  # Of its stages (of the whole: empty)
    stage: str = ""  # Its stage's name (of the whole and of groups: empty)
    part: str = ""  # Which of PARTS it is (of other levels: empty)


def icicle_model(desk: DeskSnapshot, title: str = "whole frame") -> tuple[Block, ...]:
    """The groups and stages of a scope, each above what it consists of; empty without time. `title`: of all."""
    if not desk.own_ms > 0:
        return ()

    found: list[Block] = []

    def add(level: int, first_ms: float, ms: float, name: str, *keys: str) -> None:
        found.append(Block(level, first_ms / desk.own_ms, ms / desk.own_ms, ms, name, *keys))

    add(WHOLE, 0.0, desk.own_ms, title)
    at = 0.0
    for group in desk.groups:
        add(GROUP, at, group.ms, CATEGORY_NAMES.get(group.name, group.name), group.name)
        for line in desk.stages:
            if line.group == group.name and line.share is not None:
                add(STAGE, at, line.ms, line.name, group.name, line.name)
                first = at
                for part in (part for part in line.parts if part.share > 0):
                    add(PART, first, part.share * line.ms, PART_NAMES[part.name], group.name, line.name, part.name)
                    first += part.share * line.ms
                at += line.ms
    return tuple(found)


HIGHEST = 160.0  # Pixels of a level at most
AIR = 4.0  # Pixels left and right of a text in its block
LEAST_TEXT = 22.0  # Pixels of a block below which it has no text
PALE = 0.55  # How far the colour of stages is moved from that of their group towards the card


class Icicle(StillPlot):
    """Levels of blocks as wide as their time; a click chooses a block's stage, or its group."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: tuple[Block, ...] = ()
        self._choice: str | None = None
        self._of_steps = False
        self.setMinimumHeight(int(LEVELS * (LINE + 2)))

    def show_blocks(self, blocks: tuple[Block, ...], choice: str | None, of_steps: bool) -> None:
        """Show other blocks; `choice`: the stage or group that is marked; `of_steps`: time of a lab's average step."""
        shown = blocks, choice, of_steps
        if shown != (self._blocks, self._choice, self._of_steps):
            self._blocks, self._choice, self._of_steps = shown
            said = map(self.sentence, filter(None, (*blocks[:1], self.marked)))
            describe(self, self.tr("Icicle"), ". ".join(said))
            self.rebuild()

    @property
    def marked(self) -> Block | None:
        chosen = (one for one in self._blocks if one.level in (GROUP, STAGE) and key_of(one) == self._choice)
        return next(chosen, None)

    def sentence(self, block: Block) -> str:
        name: str = self.tr(block.name)
        if block.level == PART:
            name = self.tr("{0} of {1}").format(name, block.stage)
        each = self.tr("step") if self._of_steps else self.tr("frame")
        text = self.tr("{0}: {1} ms per {2}, {3} of the time")
        known: str = text.format(name, milliseconds(block.ms), each, percent(block.share))
        below = [one for one in self._blocks if one.level == block.level + 1 and _within(one, block)]
        largest = max(below, key=lambda one: one.share, default=None)
        if largest is None or not block.share:
            return known
        most: str = self.tr("{0}; most of it is {1} ({2})")
        return most.format(known, self.tr(largest.name), percent(largest.share / block.share))

    def build(self) -> None:
        whole = QRectF(self.rect())
        self.canvas.frame(whole, (), ())
        high, wide = min(HIGHEST, whole.height() / LEVELS), whole.width()
        places = {}
        for one in self._blocks:
            left, right = one.first * wide, (one.first + one.share) * wide
            # A gap of a pixel keeps neighbours apart.
            places[one] = QRectF(left, one.level * high, max(right - left - 1.0, 0.5), high - 1.0)
        for color, blocks in groupby(sorted(places, key=_color), key=_color):
            self.canvas.bars([places[one] for one in blocks], QColor(color))
        for one, place in places.items():
            self.canvas.spots.append(Spot(place, self.sentence(one), key_of(one)))
            self._name(one, place)
        if self.marked is not None:
            box = places[self.marked].adjusted(0.5, 0.5, -0.5, -0.5)
            corners = [box.topLeft(), box.topRight(), box.bottomRight(), box.bottomLeft(), box.topLeft()]
            self.canvas.curve([QPointF(corner) for corner in corners], QPen(theme().color("text"), 1.6))

    def _name(self, block: Block, place: QRectF) -> None:
        room, name, time = place.width() - 2 * AIR, self.tr(block.name), f"{milliseconds(block.ms)} ms"
        if room >= LEAST_TEXT:
            texts = f"{name}  {time}, {percent(block.share)}", f"{name}  {time}", name, name.partition(".")[2]
            token = "text" if block.level in (WHOLE, STAGE) or key_of(block) == OVERHEAD else "card"
            text = fitting(small_metrics(), room, *texts, "")
            self.canvas.text(text, QRectF(place.left() + AIR, place.top(), room + 2, place.height()), AT_LEFT, token)


def key_of(block: Block) -> str:
    return block.stage or block.group


def _within(one: Block, block: Block) -> bool:
    return (not block.group or one.group == block.group) and (not block.stage or one.stage == block.stage)


def _color(block: Block) -> str:
    tokens = theme()
    if block.part:
        return tokens.part[block.part]
    if block.level == WHOLE:
        return tokens.border
    color = tokens.color(group_color(block.group)).name()
    return color if block.level == GROUP else blended(color, tokens.card, PALE)
