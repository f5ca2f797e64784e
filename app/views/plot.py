"""The common plot widget: one time axis, one set of mouse conventions, one layout for every chart.

Plots above each other line up to the pixel, because the left gutter and the right margin are fixed and the range
comes from the shared `TimeAxis`. Mouse: Ctrl+wheel zooms at the cursor, wheel pans, Shift-drag and middle-drag pan,
plain drag selects time, click clears the selection, double-click fits.

A plain widget whose items paint in pixels, not a graphics scene: a live chart is painted 30 times a second, and a scene
spends more time on finding its items than they spend on painting.
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHideEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import font
from app.views.painting import Stamps, Still
from app.views.plot_area import Canvas, PlotArea
from app.views.scale import time_ticks
from app.views.themed import ThemedWidget

GUTTER = 62
"""Width of the left axis in pixels, the same in every plot."""

MARGIN = 10
"""Pixels right of every plot."""

TIME_LABELS = 22
"""Height of the row of time labels in pixels."""

LABEL = 16
"""Height of a label of the left axis in pixels, and the gap between label and plot."""

LABELS_KEPT = 256
"""Labels whose pixels are kept."""

ZOOM_PER_NOTCH = 1.25
"""Ctrl+wheel: range per wheel notch (120 eighths of a degree)."""

PAN_PER_NOTCH = 0.08
"""Wheel: share of the visible range per notch."""


class TimePlot(ThemedWidget):
    """A plot over decoded audio time: an area between a left gutter and a row of times.

    Args:
        axis: the desk's shared range, selection and cursor.
        time_labels: whether the row of times is shown below.

    Signals:
        hovered: second of audio under the mouse, or None when it left.
    """

    hovered = Signal(object)

    def __init__(
        self, axis: TimeAxis, time_labels: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.axis = axis
        self.box = PlotArea(axis, QRectF(GUTTER, 0, 1, 1), self)
        self.canvas = Canvas(self.box)
        self._hovers = False
        self._below = TIME_LABELS if time_labels else 0
        self._ticks: list[tuple[float, str]] = []
        self._heights = (0.0, 1.0)
        self._visible = self.box.visible
        self._pressed: QPointF | None = None
        self._dragged: QPointF | None = None
        self._face = font(0.92)
        self._wide = lru_cache(LABELS_KEPT)(QFontMetricsF(self._face).horizontalAdvance)
        self._labels = Stamps(LABELS_KEPT)
        self._gutter = Still()
        self._area_asked = False
        # It paints all of itself: what lies below need not be painted each time, rounded card and all.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMinimumHeight(60)
        self.box.asked.connect(self.repaint_area)
        axis.selection_changed.connect(self.repaint_area)
        axis.cursor_changed.connect(self.repaint_area)
        axis.hover_changed.connect(self.repaint_area)

    # -- for the charts ------------------------------------------------------------------------

    def viewport(self) -> QWidget:
        """Return the widget that takes the mouse and is painted on."""
        return self

    def set_height_range(self, low: float, high: float) -> None:
        """The left axis goes from `low` at the bottom to `high`."""
        if (low, high) != self._heights:
            self._heights = (low, high)
            self._repaint_gutter()

    def set_ticks(self, ticks: list[tuple[float, str]]) -> None:
        """Label the left gutter; nothing is painted again when nothing changed."""
        if ticks != self._ticks:
            self._ticks = ticks
            self._repaint_gutter()

    def show_drawing(self) -> None:
        """Paint what the items show now, and the times where the range moved.

        The range alone paints nothing: the items follow it a little later, all changes at once.
        """
        visible = self.box.visible
        if visible == self._visible:
            self.box.update()
            return
        self._visible = visible
        self.update(QRect(GUTTER // 2, 0, self.width() - GUTTER // 2, self.height()))

    def plot_size(self) -> tuple[int, int]:
        """Width and height of the plotting area in pixels, at least 1 × 1."""
        rect = self.box.rect
        return max(1, round(rect.width())), max(1, round(rect.height()))

    def in_widget(self, at: QPointF) -> QPoint:
        """Position in the widget of a position in the plotting area."""
        return (at + self.box.rect.topLeft()).toPoint()

    # -- layout and painting -------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give gutter and time labels their fixed room and the plotting area the rest."""
        super().resizeEvent(event)
        width = max(1.0, float(self.width() - GUTTER - MARGIN))
        height = max(1.0, float(self.height() - self._below))
        self.box.place(QRectF(GUTTER, 0, width, height))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what the event asks for of gutter, times and area."""
        self._area_asked = False
        rect, area = event.rect(), self.box.rect
        with QPainter(self) as painter:
            painter.fillRect(rect, self._tokens.color("card"))
            if rect.left() < area.left():
                looks = self._tokens.name, self._ticks, self._heights
                gutter = QRectF(0, 0, GUTTER, self.height())
                self._gutter.paint(painter, gutter, looks, self._paint_ticks)
            if self._below and rect.bottom() >= area.bottom():
                self._paint_times(painter, area)
            painter.setClipRect(area)
            painter.translate(area.topLeft())
            self.canvas.paint(painter, self._tokens)
            for item in self.box.items:
                item.paint(painter)

    def _paint_ticks(self, painter: QPainter) -> None:
        low, high = self._heights
        area = self.box.rect
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for value, text in self._ticks:
            y = area.bottom() - (value - low) / (high - low) * area.height()
            y = min(max(y - LABEL / 2, 0.0), self.height() - LABEL)
            self._paint_label(painter, QRectF(0, y, GUTTER - LABEL / 2, LABEL), flags, text)

    def _paint_times(self, painter: QPainter, area: QRectF) -> None:
        first, last = self.box.visible
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
        for second, text in time_ticks(first, last, area.width()):
            x = area.left() + (second - first) / (last - first) * area.width()
            half = self._wide(text) / 2 + 1
            if x - half < 0 or x + half > self.width():
                continue
            place = QRectF(x - half, area.bottom() + 4, 2 * half, self._below - 5)
            self._paint_label(painter, place, flags, text)

    def _paint_label(
        self, painter: QPainter, place: QRectF, flags: Qt.AlignmentFlag, text: str
    ) -> None:
        """A label on the card; the times move along with all that is drawn, and are the same ones."""

        def draw(within: QPainter) -> None:
            within.setFont(self._face)
            within.setPen(self._tokens.color("muted"))
            write(within, QRectF(0, 0, place.width(), place.height()), flags, text)

        whole = QRectF(round(place.left()), round(place.top()), place.width(), place.height())
        self._labels.paint(painter, whole, (self._tokens.name, flags, text), draw)

    def repaint_area(self, *_: object) -> None:
        """Paint the area again; asking once is enough until it is painted, and every item asks."""
        if not self._area_asked:
            self._area_asked = self.isVisible()
            self.update(self.box.rect.toAlignedRect())

    def _repaint_gutter(self) -> None:
        self.update(QRect(0, 0, GUTTER, self.height()))

    # -- mouse ---------------------------------------------------------------------------------

    def _inside(self, event: QMouseEvent | QWheelEvent) -> QPointF | None:
        """Position in the plotting area, or None outside it."""
        at = event.position() - self.box.rect.topLeft()
        return at if self.box.boundingRect().contains(at) else None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl: zoom at the cursor; otherwise pan in time (down and right go on in time)."""
        at = self._inside(event)
        turned = event.angleDelta()
        notches = (turned.y() or turned.x()) / 120.0
        if at is None or not notches:
            event.ignore()
            return
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.axis.zoom(ZOOM_PER_NOTCH**-notches, self.box.second_at(at))
        else:
            self.axis.pan(-notches * PAN_PER_NOTCH)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A gesture may begin."""
        self._pressed, self._dragged = self._inside(event), None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Report where the mouse is, in seconds; with a button held, select or pan."""
        if self._pressed is not None and event.buttons() != Qt.MouseButton.NoButton:
            self._drag(event, self._pressed, event.position() - self.box.rect.topLeft())
        at = self._inside(event)
        self._hover(None if at is None else self.box.second_at(at))

    def _drag(self, event: QMouseEvent, start: QPointF, at: QPointF) -> None:
        """Plain left drag selects; Shift+left or middle drag pans."""
        before = self._dragged
        if before is None:
            if (at - start).manhattanLength() < QApplication.startDragDistance() / 2:
                return
            before = start
        self._dragged = at
        left = bool(event.buttons() & Qt.MouseButton.LeftButton)
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.buttons() & Qt.MouseButton.MiddleButton or (left and shift):
            self.axis.pan(-(at.x() - before.x()) / max(1.0, self.box.rect.width()))
        elif left:
            self.axis.select(self.box.second_at(start), self.box.second_at(at))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click clears the selection; other buttons do nothing."""
        clicked = self._pressed is not None and self._dragged is None
        self._pressed = self._dragged = None
        if clicked and event.button() == Qt.MouseButton.LeftButton:
            self.axis.clear()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Fit."""
        if event.button() == Qt.MouseButton.LeftButton and self._inside(event) is not None:
            self.axis.fit()

    def leaveEvent(self, event: QEvent) -> None:
        """The mouse left: hide the read-out."""
        super().leaveEvent(event)
        self._hover(None)

    def hideEvent(self, event: QHideEvent) -> None:
        """A plot that is hidden under the mouse is told of no leaving."""
        super().hideEvent(event)
        self._hover(None)

    @property
    def hover_s(self) -> float | None:
        """Second under the mouse if it is in this plot; the crosshair is in all of them (`axis.hover`)."""
        return self.axis.hover if self._hovers else None

    def _hover(self, second: float | None) -> None:
        if second is None and not self._hovers:
            return
        self._hovers = second is not None
        self.axis.set_hover(second)
        self.hovered.emit(second)
