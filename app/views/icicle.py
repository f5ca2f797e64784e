"""Icicle: the time of an average frame, divided from the top down into groups, stages and the parts of each."""

from __future__ import annotations

from itertools import groupby

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPen

from app.charts.raster import blended
from app.charts.scale import percent
from app.charts.still import LINE, StillPlot, small_metrics
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import describe, fitting
from app.style.theme import theme
from app.views.icicle_model import GROUP, LEVELS, PART, STAGE, WHOLE, Block, icicle_model
from app.views.part_bars import group_color
from app.views.table_twin import Table
from app.views.view import View
from profiler.analysis.categories import OVERHEAD
from profiler.plain import milliseconds

HIGHEST = 160.0
"""Pixels of a level at most."""

AIR = 4.0
"""Pixels left and right of a text in its block."""

LEAST_TEXT = 22.0
"""Pixels of a block below which it has no text."""

PALE = 0.55
"""How far the colour of stages is moved from that of their group towards the card."""

LEFT_END = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class Icicle(StillPlot):
    """Levels of blocks as wide as their time; a click chooses a block's stage, or its group."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: tuple[Block, ...] = ()
        self._choice: str | None = None
        self.of_steps = False
        """Whether the time is that of an average step of a lab."""
        self.setMinimumHeight(int(LEVELS * (LINE + 2) + LINE + 4))

    def show_blocks(self, blocks: tuple[Block, ...], choice: str | None) -> None:
        """Show other blocks; `choice`: the stage or group that is marked, if it is there, else the longest stage."""
        if (blocks, choice) != (self._blocks, self._choice):
            self._blocks, self._choice = blocks, choice
            describe(self, self.tr("Icicle"), self.sentence())
            self.rebuild()

    @property
    def marked(self) -> Block | None:
        chosen = (one for one in self._blocks if one.level in (GROUP, STAGE) and key_of(one) == self._choice)
        stages = (one for one in self._blocks if one.level == STAGE)
        return next(chosen, None) or max(stages, key=lambda one: one.share, default=None)

    def sentence(self, block: Block | None = None) -> str:
        block = block or self.marked
        return "" if block is None else self.sentences(block)[0]

    def sentences(self, block: Block) -> tuple[str, ...]:
        """The same in fewer and fewer words."""
        name = self.tr(block.name)
        if block.level == PART:
            name = self.tr("{0} of {1}").format(name, block.stage)
        text = self.tr("{0}: {1} ms per frame, {2} of the time")
        if self.of_steps:
            text = self.tr("{0}: {1} ms per step, {2} of the time")
        known = text.format(name, milliseconds(block.ms), percent(block.share))
        short = f"{name}: {milliseconds(block.ms)} ms, {percent(block.share)}"
        below = [one for one in self._blocks if one.level == block.level + 1 and _within(one, block)]
        largest = max(below, key=lambda one: one.share, default=None)
        if largest is None or not block.share:
            return known, short
        most = self.tr("{0}; most of it is {1} ({2})")
        return most.format(known, self.tr(largest.name), percent(largest.share / block.share)), known, short

    def build(self) -> None:
        """Draw blocks with their names, and the sentence about the marked one below."""
        whole = QRectF(self.rect())
        marked = self.marked
        self.frame(whole, (), ())
        if marked is None:
            return
        each = min(HIGHEST, (whole.height() - LINE - 4) / LEVELS)
        places = {one: self._place(one, whole.width(), each) for one in self._blocks}
        for color, blocks in groupby(sorted(places, key=_color), key=_color):
            self.bars([places[one] for one in blocks], QColor(color))
        for one, place in places.items():
            self.spot(place, self.sentence(one), key_of(one))
            self._name(one, place)
        text = fitting(small_metrics(), whole.width() - 4, *self.sentences(marked))
        self.text(text, QRectF(2, LEVELS * each + 3, whole.width() - 4, LINE), LEFT_END, "text")
        self._mark(places[marked])

    @staticmethod
    def _place(block: Block, width: float, each: float) -> QRectF:
        """A block's rectangle; a gap of a pixel keeps neighbours apart."""
        left, right = block.first * width, (block.first + block.share) * width
        return QRectF(left, block.level * each, max(right - left - 1.0, 0.5), each - 1.0)

    def _name(self, block: Block, place: QRectF) -> None:
        """Write a block's name and time into it, if they have room."""
        room = place.width() - 2 * AIR
        if room < LEAST_TEXT:
            return
        name = self.tr(block.name)
        short = name.partition(".")[2] or name
        time = f"{milliseconds(block.ms)} ms"
        texts = [f"{name}  {time}, {percent(block.share)}", f"{name}  {time}", name, short]
        token = "text" if block.level in (WHOLE, STAGE) or key_of(block) == OVERHEAD else "card"
        text = next((text for text in texts if small_metrics().horizontalAdvance(text) <= room), "")
        if text:
            self.text(text, QRectF(place.left() + AIR, place.top(), room + 2, place.height()), LEFT_END, token)

    def _mark(self, place: QRectF) -> None:
        box = place.adjusted(0.5, 0.5, -0.5, -0.5)
        corners = [box.topLeft(), box.topRight(), box.bottomRight(), box.bottomLeft(), box.topLeft()]
        self.curve([QPointF(corner) for corner in corners], QPen(theme().color("text"), 1.6))


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


class IcicleView(View):
    """Where the time of an average frame goes, level by level."""

    id = "icicle"
    title = "Icicle"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = Icicle()
        self.set_body(self.plot)
        self._blocks: tuple[Block, ...] = ()
        self.plot.chosen.connect(axis.choose_stage)
        axis.stage_changed.connect(self._soon.start)

    def draw(self, snapshot: Snapshot) -> None:
        """Draw the scope."""
        self._blocks = icicle_model(snapshot.desk, self.by_unit("whole frame", "whole step"))
        self.plot.of_steps = snapshot.desk.of_steps
        self.plot.show_blocks(self._blocks, self.axis.stage)
        self.set_note(self.tr("widths: time of the decode lane, without other programs"), self.tr("widths: time"))

    def clear(self) -> None:
        """Show nothing."""
        super().clear()
        self._blocks = ()
        self.plot.show_blocks((), None)
        self.set_note("")

    def model(self) -> tuple[Block, ...]:
        return self._blocks

    def summary(self) -> str:
        """Return one sentence: the whole and its largest group, then the marked stage."""
        if not self._blocks:
            return self.tr("No frames in range yet.")
        marked = self.plot.sentence()
        return f"{self.plot.sentence(self._blocks[0])}. {marked}."

    def table(self) -> Table:
        """Return one row per block, each before those that it consists of."""
        unit = self.by_unit("ms per frame", "ms per step")
        headers = ["group", "stage", "part", unit, "share of the time", "verdict"]
        rows: list[list[object]] = []
        for one in self._blocks:
            group = self.tr(one.name) if one.level in (WHOLE, GROUP) else one.group
            part = self.tr(one.name) if one.level == PART else ""
            rows.append([group, one.stage, part, f"{one.ms:.4f}", percent(one.share), one.verdict])
        return [self.tr(text) for text in headers], rows
