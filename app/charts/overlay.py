"""The overlay of every plot: selection, utterance boundaries, cursor, crosshair, markers and the read-out.

One item paints all in pixels. What lies after the cursor of a replay is dimmed: one sees where one is in the whole.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from app.charts.items import PixelItem
from app.charts.legend import Readout, ReadoutLine
from app.charts.time_plot import TimePlot
from app.style.plain_text import fitting, write
from app.style.theme import font, theme
from profiler.arrays import I64
from profiler.clock import FRAME_S
from profiler.session.model import Marker

FLAG_ROW = 21  # Height of one row of marker flags in pixels
FLAG_WIDTH = 170  # A flag's text is shortened to this many pixels
FLAG_PADDING = 14  # Horizontal padding of a flag around its text, pixels
LEAST_FLAG = 60  # Pixels below which a shortened flag would say nothing, but for what a setting was changed to
BOUNDARY_APART = 8  # Minimum average distance of utterance boundaries in pixels; closer ones are left out
FLAG_GAP = 6  # Minimum pixels between two flags on a row
DIMMED = 165  # Opacity (of 255) of the card's colour over what lies after the cursor
FLAG_SHARE = 0.3  # Maximum share of the height for marker labels


class _Flag(NamedTuple):
    mark: Marker
    x: float
    left: float
    width: float
    row: int | None
    text: str


def _flag_text(text: str, room: float, kind: str) -> tuple[str, float]:
    """A text shortened to `room` pixels, and the width of its flag."""
    metrics = QFontMetricsF(_flag_font())
    if kind == "option":
        # What a setting was changed to stands at the end: first words of its name are left out: "skipping: 2", "2".
        name, colon, value = text.partition(": ")
        words = name.split(" ")
        shorter = [" ".join(words[at:]) + colon + value for at in range(len(words))]
        text = next((part for part in (*shorter, value) if metrics.horizontalAdvance(part) <= room), text)
        text = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
    else:
        # What a note says before its first comma stands alone where there is no room for more.
        text = fitting(metrics, room, text, text.partition(", ")[0])
    return text, metrics.horizontalAdvance(text) + FLAG_PADDING


def _free_row(ends: Sequence[float], left: float) -> int | None:
    return next((row for row, end in enumerate(ends) if left - end >= FLAG_GAP), None)


def _flag_font() -> QFont:
    return font(0.92, strong=True)


class Overlay(PixelItem):
    """Draws over a plot, whose cursor it has; `flags`: most rows of marker labels, `margin`: pixels free on top."""

    def __init__(self, plot: TimePlot, flags: int = 0, margin: float = 0.0) -> None:
        super().__init__(plot, z=100.0)
        self._flags, self._margin = flags, margin
        self._floor, self._rows = 0.0, 0
        self._placed: list[_Flag] = []
        self._marks: tuple[Marker, ...] = ()
        self._starts = np.empty(0)
        self._readout: Readout | None = None

    @property
    def band(self) -> float:
        return self._margin + self._rows * FLAG_ROW

    def set_events(self, marks: tuple[Marker, ...], boundaries: Sequence[int] | I64) -> None:
        """Show these markers, and utterances that begin at these frames (ascending), laid out for the range in view."""
        self._marks = marks
        self._starts = np.asarray(boundaries) * FRAME_S
        self.lay_out()
        self.update()

    def lay_out(self) -> None:
        """Find a row for each flag in view; a flag without room keeps only its line."""
        width, height = self.boundingRect().width(), self.boundingRect().height()
        # Labels must not crowd out the plot in a small window.
        rows = min(self._flags, max(1, int(FLAG_SHARE * height / FLAG_ROW)))
        ends = [-1e9] * (rows if self._flags else 0)
        newest: list[int | None] = [None] * len(ends)
        self._placed = []
        self._rows = 0
        for mark in self._marks:
            x = round(self.x_of(mark.frame * FRAME_S)) + 0.5
            if not -1 <= x <= width + 1:
                continue
            text, long = _flag_text(mark.text + (" …" if _waits(mark) else ""), FLAG_WIDTH, mark.kind)
            left = x - 0.5 if x + long <= width else x + 0.5 - long
            row, room = _free_row(ends, left), width - x
            if row is None and LEAST_FLAG <= room < long:
                # No room to the left of its line: what fits on the right.
                left, long = x - 0.5, room
                text, _ = _flag_text(text, room - FLAG_PADDING, mark.kind)
                row = _free_row(ends, left)
            if row is None:
                row = self._make_room(newest, left - FLAG_GAP)
            if row is not None:
                newest[row] = len(self._placed)
                ends[row] = left + long
                self._rows = max(self._rows, row + 1)
            self._placed.append(_Flag(mark, x, left, long, row, text))

    def _make_room(self, newest: Sequence[int | None], end: float) -> int | None:
        """Shorten the last flag of a row so that it ends at `end`; the row, None where nothing would be left of it."""
        for row, at in ((row, at) for row, at in enumerate(newest) if at is not None):
            flag = self._placed[at]
            room = end - flag.left
            text, long = _flag_text(flag.text, room - FLAG_PADDING, flag.mark.kind)
            if room >= LEAST_FLAG or (flag.mark.kind == "option" and "…" not in text):
                self._placed[at] = flag._replace(width=long, text=text)
                return row
        return None

    def set_floor(self, pixels: float) -> None:
        if pixels != self._floor:
            self._floor = pixels
            self.update()

    def set_readout(self, lines: Sequence[ReadoutLine]) -> None:
        hover = self.plot.hover_s
        if hover is None or not lines:
            if self._readout is not None:
                self._readout.hide()
            return
        if self._readout is None or self._readout.parentWidget() is not self.plot.window():
            self._readout = Readout(self.plot.window())
        at = self.plot.in_widget(QPointF(self.x_of(hover), self.band + 6))
        self._readout.show_lines(lines, self.plot.mapTo(self.plot.window(), at))

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        lines = area.adjusted(0, 0, 0, -self._floor)
        self._paint_future(painter, area)
        self._paint_boundaries(painter, lines)
        self._paint_selection(painter, lines)
        self._paint_cursor(painter, lines)
        self._paint_marks(painter, lines)
        self._paint_flags(painter)

    def _paint_future(self, painter: QPainter, area: QRectF) -> None:
        axis = self.plot.axis
        left = max(0.0, self.x_of(axis.cursor))
        right = min(area.width(), self.x_of(axis.end))
        if axis.cursor < axis.end and right > left:
            place = QRectF(left, self.band, right - left, area.height())
            painter.fillRect(place, theme().color("card", DIMMED))

    def _paint_boundaries(self, painter: QPainter, area: QRectF) -> None:
        first, last = self.plot.visible
        begin, end = bisect_left(self._starts, first), bisect_right(self._starts, last)
        if (end - begin) * BOUNDARY_APART > area.width():
            return  # too many lines would not show where utterances begin
        x = np.round((self._starts[begin:end] - first) / (last - first) * self.plot.columns)
        lines = [QLineF(at, self.band, at, area.height()) for at in (x[x >= 1] + 0.5).tolist()]
        if lines:
            painter.setPen(QPen(theme().color("text", 38), 1))
            painter.drawLines(lines)

    def _paint_selection(self, painter: QPainter, area: QRectF) -> None:
        selected = self.plot.axis.selected
        if selected is None:
            return
        left, right = (self.x_of(second) for second in selected)
        rect = QRectF(left, self.band, max(1.0, right - left), area.height() - self.band)
        painter.fillRect(rect.intersected(area), theme().color("selection"))
        painter.setPen(QPen(theme().color("accent"), 1))
        for x in (left, right):
            if 0 <= x <= area.width():
                painter.drawLine(QLineF(round(x) + 0.5, self.band, round(x) + 0.5, area.height()))

    def _paint_cursor(self, painter: QPainter, area: QRectF) -> None:
        x = self.x_of(self.plot.axis.cursor)
        if 0 <= x <= area.width() + 0.5:
            painter.setPen(QPen(theme().color("cursor"), 1.5))
            x = min(x, area.width() - 1)
            painter.drawLine(QLineF(x, self.band, x, area.height()))
        if (hover := self.plot.axis.hover) is not None:
            painter.setPen(QPen(theme().color("text", 110), 1))
            x = round(self.x_of(hover)) + 0.5
            painter.drawLine(QLineF(x, self.band, x, area.height()))

    def _paint_marks(self, painter: QPainter, area: QRectF) -> None:
        band = self.band
        for flag in self._placed:
            mark, x, color = flag.mark, flag.x, _color(flag.mark)
            painter.setPen(QPen(color, 1, Qt.PenStyle.DotLine if _waits(mark) else Qt.PenStyle.DashLine))
            painter.drawLine(QLineF(x, band, x, area.height()))
            asked = self.x_of(mark.asked_frame * FRAME_S)
            if self._flags and x - asked > 3:
                # A hollow dot where the change was requested, joined by a line to where it was applied.
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
                painter.setPen(QPen(color, 1))
                painter.setBrush(theme().color("card"))
                painter.drawLine(QLineF(asked + 3, band - 2, x, band - 2))
                painter.drawEllipse(QPointF(asked, band - 2), 2.5, 2.5)
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            if flag.row is not None:
                painter.setPen(QPen(color, 1))
                painter.drawLine(QLineF(x, flag.row * FLAG_ROW + 4, x, band))

    def _paint_flags(self, painter: QPainter) -> None:
        painter.setFont(_flag_font())
        for flag in self._placed:
            if flag.row is None:
                continue
            color, pending = _color(flag.mark), _waits(flag.mark)
            rect = QRectF(flag.left, flag.row * FLAG_ROW + 1, flag.width, FLAG_ROW - 4)
            painter.setPen(QPen(color, 1))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            painter.setBrush(theme().color("card") if pending else color)
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(color if pending else theme().color("card"))
            write(painter, rect, Qt.AlignmentFlag.AlignCenter, flag.text)


def _color(mark: Marker) -> QColor:
    return theme().color({"error": "danger", "note": "muted"}.get(mark.kind, "marker"))


def _waits(mark: Marker) -> bool:
    return mark.kind == "option" and mark.applied_frame is None
