"""The common plot widget: one time axis, one set of mouse conventions, one layout for every chart.

Plots above each other line up to the pixel, because the left gutter and the right
margin are fixed and the range comes from the shared `TimeAxis`. Mouse: Ctrl+wheel zooms at the
cursor, wheel pans, Shift-drag and middle-drag pan, plain drag selects time, click clears the
selection, double-click fits. pyqtgraph's own zooming, panning, menus and buttons are off.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEngine,
    QPainter,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QGraphicsObject,
    QGraphicsView,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.model.time_axis import TimeAxis
from app.style.theme import Tokens, font, theme
from app.views.scale import clock
from profiler.arrays import F64

GUTTER = 62
"""Width of the left axis in pixels, the same in every plot."""

MARGIN = 10
"""Pixels right of every plot."""

TIME_LABELS = 22
"""Height of the row of time labels in pixels."""

ZOOM_PER_NOTCH = 1.25
"""Ctrl+wheel: range per wheel notch (120 eighths of a degree)."""

PAN_PER_NOTCH = 0.08
"""Wheel: share of the visible range per notch."""


class TimeViewBox(pg.ViewBox):
    """Turns mouse gestures into requests to the `TimeAxis`; it has no range itself."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(enableMenu=False, enableMouse=False, border=None)
        self.axis = axis
        self.setDefaultPadding(0.0)
        self.disableAutoRange()

    def second_at(self, position: QPointF) -> float:
        """Second of audio under a position in view box pixels."""
        first, last = self.axis.visible
        width = max(1.0, self.boundingRect().width())
        return float(first + (last - first) * position.x() / width)

    def wheelEvent(self, ev: Any, axis: Any = None) -> None:
        """Ctrl: zoom at the cursor; otherwise pan in time (down and right go on in time)."""
        notches = ev.delta() / 120.0
        if ev.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.axis.zoom(ZOOM_PER_NOTCH**-notches, self.second_at(ev.pos()))
        else:
            self.axis.pan(-notches * PAN_PER_NOTCH)
        ev.accept()

    def mouseDragEvent(self, ev: Any, axis: Any = None) -> None:
        """Plain left drag selects; Shift+left or middle drag pans."""
        left = ev.button() == Qt.MouseButton.LeftButton
        shift = bool(ev.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if ev.button() == Qt.MouseButton.MiddleButton or (left and shift):
            ev.accept()
            width = max(1.0, self.boundingRect().width())
            self.axis.pan(-(ev.pos().x() - ev.lastPos().x()) / width)
        elif left:
            ev.accept()
            start = self.second_at(ev.buttonDownPos(Qt.MouseButton.LeftButton))
            self.axis.select(start, self.second_at(ev.pos()))
        else:
            ev.ignore()

    def mouseClickEvent(self, ev: Any) -> None:
        """Click clears the selection, double-click fits; other buttons do nothing."""
        if ev.button() != Qt.MouseButton.LeftButton:
            ev.ignore()
            return
        ev.accept()
        if ev.double():
            self.axis.fit()
        else:
            self.axis.clear()


class TimeLabels(pg.AxisItem):
    """Bottom axis: seconds of decoded audio as m:ss."""

    def __init__(self) -> None:
        super().__init__("bottom")

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        """One level of ticks, at least 90 pixels apart, on round seconds and minutes."""
        wanted = (maxVal - minVal) * 90.0 / max(size, 90.0)
        steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900)
        for step in (*steps, 1800.0, 3600.0):
            if step >= wanted:
                return [(step, 0.0)]
        return [(3600.0 * math.ceil(wanted / 3600.0), 0.0)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Format as m:ss, with the fractions that the spacing needs."""
        digits = max(0, -math.floor(math.log10(spacing) + 1e-9))
        return [clock(value, digits) for value in values]


class PixelItem(QGraphicsObject):
    """Something drawn in the pixels of a view box (y down), not in data coordinates.

    Text stays upright and lines stay sharp; `x_of` maps seconds to pixels.
    """

    def __init__(self, box: TimeViewBox, z: float) -> None:
        super().__init__(box)
        self.box = box
        self.setZValue(z)
        box.sigResized.connect(self._resized)

    def _resized(self, *_: object) -> None:
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return the view box in its own pixels."""
        area: QRectF = self.box.boundingRect()
        return area

    def x_of(self, second: float) -> float:
        """Pixel of a second of audio."""
        first, last = self.box.axis.visible
        return (second - first) / (last - first) * self.boundingRect().width()

    def xs_of(self, seconds: F64) -> F64:
        """Pixels of many seconds of audio."""
        first, last = self.box.axis.visible
        return (seconds - first) * (self.boundingRect().width() / (last - first))

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,
        widget: QWidget | None = None,
    ) -> None:
        """Hand over to `paint_pixels` with a clean painter."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.paint_pixels(painter, self.boundingRect())
        painter.restore()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw into `area` (override)."""
        raise NotImplementedError


def polyline(x: F64, y: F64) -> QPolygonF:
    """Points [n] as a polygon for `QPainter.drawPolyline`, without a Python object per point."""
    polygon: QPolygonF = pg.functions.create_qpolygonf(len(x))
    points = pg.functions.ndarray_from_qpolygonf(polygon)
    points[:, 0], points[:, 1] = x, y
    return polygon


def bars(x: F64, top: F64, bottom: F64) -> QPolygonF:
    """Upright strokes at `x` from `top` to `bottom` as one polyline: down one, up the next."""
    ends = np.stack([top, bottom], axis=1)
    ends[1::2] = ends[1::2, ::-1]
    return polyline(np.repeat(x, 2), ends.ravel())


def device_scale(painter: QPainter) -> float:
    """Device pixels per unit of the painter: 2 on a dense screen or in a picture of scale 2.

    It uses the device transform, not the device: inside `QWidget.render` the device is the widget.
    """
    to_device = painter.deviceTransform()
    return math.hypot(to_device.m11(), to_device.m12())


def is_vector(painter: QPainter) -> bool:
    """True when drawing for SVG or PDF, where shapes beat pixels: our engine of shapes has a type of its own."""
    return painter.paintEngine().type() == QPaintEngine.Type.User


class TimePlot(pg.GraphicsView):
    """A plot over decoded audio time: a view box between a left gutter and a row of times.

    Not a `pg.PlotWidget`: that brings a dozen hidden menus per plot, which cost time at start and
    count as separate windows during clean-up.

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
        super().__init__(parent, background=None)
        self.box = TimeViewBox(axis)
        self._labels = TimeLabels()
        self._left = pg.AxisItem("left")
        self.axis = axis
        self._hovers = False
        # Placed by hand in `resizeEvent`: Qt's graphics layouts add a hidden widget.
        for item in (self.box, self._left, self._labels):
            self.addItem(item)
        for labels in (self._left, self._labels):
            # No units to scale; otherwise an unseen label is set as HTML on every new range.
            labels.enableAutoSIPrefix(False)
        self._left.linkToView(self.box)
        self._labels.linkToView(self.box)
        self._below = TIME_LABELS if time_labels else 0
        self._left.setWidth(GUTTER)
        self._labels.setHeight(self._below)
        self._left.setStyle(tickLength=0, tickTextOffset=8, autoExpandTextSpace=False)
        self._left.setStyle(hideOverlappingLabels=False)
        self._labels.setStyle(tickLength=0, tickTextOffset=6, autoExpandTextSpace=False)
        self._labels.setStyle(hideOverlappingLabels=True)
        self._labels.setVisible(time_labels)
        self._ticks: list[tuple[float, str]] = []
        self._left.setTicks([[]])
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAntialiasing(False)
        # A cached background would get into SVG and PDF as a picture of pixels.
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMinimumHeight(60)
        self.set_axis_range(*axis.visible)
        axis.visible_changed.connect(self.set_axis_range)
        axis.selection_changed.connect(self._repaint)
        axis.cursor_changed.connect(self._repaint)
        axis.hover_changed.connect(self._repaint)
        self.apply_theme(theme())

    def resizeEvent(self, ev: QResizeEvent | None) -> None:
        """Give gutter and time labels their fixed room and the view box the rest."""
        super().resizeEvent(ev)
        if not hasattr(self, "_below"):
            return  # pyqtgraph calls this once from its constructor
        width = max(1.0, float(self.width() - GUTTER - MARGIN))
        height = max(1.0, float(self.height() - self._below))
        self.box.setGeometry(QRectF(GUTTER, 0, width, height))
        self._left.setGeometry(QRectF(0, 0, GUTTER, height))
        self._labels.setGeometry(QRectF(GUTTER, height, width, self._below))

    def set_axis_range(self, first: float, last: float) -> None:
        """Show seconds [first, last]."""
        self.box.setXRange(first, last, padding=0)
        self._repaint()

    def set_height_range(self, low: float, high: float) -> None:
        """Show values [low, high] (low at the bottom)."""
        self.box.setYRange(low, high, padding=0)

    def set_ticks(self, ticks: list[tuple[float, str]]) -> None:
        """Label the left gutter; nothing is laid out again when nothing changed."""
        if ticks != self._ticks:
            self._ticks = ticks
            self._left.setTicks([ticks])

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours and font."""
        self.setBackground(tokens.card)
        for axis in (self._left, self._labels):
            axis.setPen(None)
            axis.setTickPen(None)
            axis.setTextPen(tokens.muted)
            axis.setTickFont(font(0.92))
        self._repaint()

    def plot_size(self) -> tuple[int, int]:
        """Width and height of the plotting area in pixels, at least 1 × 1."""
        rect = self.box.boundingRect()
        return max(1, round(rect.width())), max(1, round(rect.height()))

    def keyPressEvent(self, ev: QKeyEvent) -> None:
        """Leave every key to the actions of the window."""
        ev.ignore()

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        """Report where the mouse is, in seconds."""
        super().mouseMoveEvent(ev)
        at = self.box.mapFromScene(self.mapToScene(ev.position().toPoint()))
        inside = self.box.boundingRect().contains(at)
        self._hover(self.box.second_at(at) if inside else None)

    def leaveEvent(self, ev: QEvent) -> None:
        """The mouse left: hide the read-out."""
        super().leaveEvent(ev)
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

    def _repaint(self, *_: object) -> None:
        self.viewport().update()
