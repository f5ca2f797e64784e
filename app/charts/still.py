"""A plot that stands still (labs, roofline): pyqtgraph's items and axes, built afresh for each size and theme.

Everything is drawn in pixels of the widget, also hatches, ends of intervals and texts, so what overlaps is known while
it is drawn. A plot places its values on its axes, which may be logarithmic, of categories, or horizontal. Nothing is
zoomed or dragged, so the plot can be part of a scroll area.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QLineF, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtWidgets import QFrame, QGraphicsItem, QGraphicsScene, QGraphicsView, QWidget

from app.style.plain_text import displayable, show_tip, write
from app.style.theme import font, theme
from profiler.arrays import F64

SMALL = 0.85  # Size of the texts of a plot, in sizes of the window's font
LINE = 15.0  # Height of a line of such a text in pixels
REACH = 10.0  # Pixels around a dot or a bar within which the mouse hits it
TICK_GAP = 5  # Pixels between an upright axis and its labels
Tick = tuple[float, str]  # Pixel of the widget, and what stands there


@dataclass(frozen=True)
class Spot:
    """A place that the mouse can hit: its tool tip, and the name that a click chooses (nothing if empty)."""

    place: QRectF
    tip: str
    name: str = ""


class Canvas:
    """What a plot consists of, in pixels of its widget: axes with a grid, items of pyqtgraph and texts above them."""

    def __init__(self, scene: QGraphicsScene) -> None:
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0.0, invertY=True)
        self._box.disableAutoRange()
        self._axes = (pg.AxisItem("left"), pg.AxisItem("bottom"))
        for item in (self._box, *self._axes):
            scene.addItem(item)
        for axis in self._axes:
            axis.setZValue(self._box.zValue() - 1.0)
        self.area = QRectF()  # Between the axes
        self.clear(QRectF())

    def clear(self, rect: QRectF) -> None:
        """Drop all that is drawn; `rect`: the widget's, in which the next is drawn."""
        self._box.clear()
        self.rect = rect
        self.spots: list[Spot] = []
        self.taken: list[QtGui.QPolygonF] = []  # Where texts lie, and what else no text may lie on
        self.texts: list[Callable[[QtGui.QPainter], None]] = []  # Write them, above all that is drawn

    def frame(
        self, area: QRectF, left: Sequence[Tick], bottom: Sequence[Tick], names: tuple[bool, bool] = (False, False)
    ) -> None:
        """Put axes with these labels around `area`, and a grid into it; `names`: they name what stands there."""
        tokens = theme()
        self.area = area
        self._box.setGeometry(self.rect)
        self._box.setRange(self.rect, padding=0)
        upright = [QPointF(x, y) for x, _ in bottom if not names[1] for y in (area.top(), area.bottom())]
        level = [QPointF(x, y) for y, _ in left if not names[0] for x in (area.left(), area.right())]
        self.curve(upright + level, QtGui.QPen(tokens.color("grid"), 1), pairs=True)
        for axis, ticks, named in zip(self._axes, (left, bottom), names, strict=True):
            is_left = axis is self._axes[0]
            axis.setPen(QtGui.QPen(tokens.color("grid" if is_left else "muted"), 1))
            axis.setTextPen(tokens.color("text" if named else "muted"))
            axis.setTickFont(font(SMALL))
            # Labels may reach beyond the ends of the axis.
            axis.setStyle(tickLength=0, autoExpandTextSpace=False, hideOverlappingLabels=200)
            axis.setStyle(tickTextOffset=TICK_GAP if is_left else 3)
            axis.setTicks([[(at, displayable(text)) for at, text in ticks]])
        left_axis, bottom_axis = self._axes
        left_axis.setWidth(area.left())
        left_axis.setGeometry(0, area.top(), area.left(), area.height())
        left_axis.setRange(area.bottom(), area.top())
        below = self.rect.height() - area.bottom()
        bottom_axis.setHeight(below)
        bottom_axis.setGeometry(area.left(), area.bottom(), area.width(), below)
        bottom_axis.setRange(area.left(), area.right())

    def bars(self, rects: Sequence[QRectF], color: QtGui.QColor, hatch: QtGui.QBrush | None = None) -> None:
        if not rects:
            return
        ends = np.array([rect.getCoords() for rect in rects]).T
        for brush in (QtGui.QBrush(color), hatch):
            if brush is not None and brush.style() != Qt.BrushStyle.NoBrush:
                x0, y0, x1, y1 = ends
                self._add(pg.BarGraphItem(x0=x0, x1=x1, y0=y0, y1=y1, pen=None, brush=brush))

    def curve(self, points: Sequence[QPointF], pen: QtGui.QPen, *, steps: bool = False, pairs: bool = False) -> None:
        """A line through points: in steps that hold until the next, or one between each pair of them."""
        if len(points) < 2:
            return
        # An upright or level line of one pixel is sharp.
        joined = {"connect": "pairs" if pairs else "all", "antialias": not pairs}
        self._add(pg.PlotCurveItem(*_arrays(points), pen=pen, stepMode="right" if steps else None, **joined))

    def between(self, lower: Sequence[QPointF], upper: Sequence[QPointF], color: QtGui.QColor) -> None:
        lines = [pg.PlotCurveItem(*_arrays(points), pen=None) for points in (lower, upper)]
        self._add(pg.FillBetweenItem(*lines, brush=color))

    def signs(
        self,
        points: Sequence[QPointF],
        sizes: Sequence[float],
        edges: Sequence[QtGui.QColor],
        fills: Sequence[QtGui.QColor],
        symbol: str = "o",
        edge: float = 1.0,
    ) -> None:
        """Signs with edges so wide; their pixels are not kept, since pictures want other scales."""
        # A sign of size 1 is made larger, and its edge with it.
        pens = [QtGui.QPen(color, edge / size) for color, size in zip(edges, sizes, strict=True)]
        looks = {
            "size": np.array(sizes),
            "pen": pens,
            "brush": [QtGui.QBrush(color) for color in fills],
            "symbol": symbol,
        }
        self._add(pg.ScatterPlotItem(*_arrays(points), **looks, useCache=False, antialias=True))

    def intervals(self, lines: Sequence[QLineF], pen: QtGui.QPen, beam: float = 0.0) -> None:
        """Intervals, upright or level, with ends `beam` pixels wide."""
        for upright in (True, False):
            parallel = [line for line in lines if (line.dx() == 0) is upright]
            if parallel:
                x, y = _arrays([line.center() for line in parallel])
                length = np.array([line.length() for line in parallel])
                along = {"height": length} if upright else {"width": length}
                self._add(pg.ErrorBarItem(x=x, y=y, beam=beam, pen=pen, **along))

    def text(
        self,
        text: str,
        box: QRectF,
        flags: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter,
        token: str = "muted",
        *,
        face: QtGui.QFont | None = None,
        ground: int = 0,
        along: QtGui.QTransform | None = None,
    ) -> None:
        """Write a text into a box, over a ground of this opacity; `along`: where the box lies."""
        card, color = theme().color("card", ground), theme().color(token)
        lies = along or QtGui.QTransform()

        def written(painter: QtGui.QPainter) -> None:
            painter.setTransform(lies, combine=True)
            if ground:
                painter.fillRect(box, card)
            painter.setFont(face or font(SMALL))
            painter.setPen(color)
            write(painter, box, flags, text)

        self.texts.append(written)
        self.taken.append(lies.map(QtGui.QPolygonF(box)))

    def free(self, boxes: Iterable[QRectF]) -> QRectF | None:
        return next((box for box in boxes if self.is_free(box)), None)

    def is_free(self, box: QRectF | QtGui.QPolygonF) -> bool:
        """Whether a box lies on nothing `taken`; a turned one is a polygon."""
        shape = QtGui.QPolygonF(box)
        around = shape.boundingRect()
        return not any(around.intersects(other.boundingRect()) and shape.intersects(other) for other in self.taken)

    def _add(self, item: QGraphicsItem) -> None:
        item.setZValue(len(self._box.addedItems))
        self._box.addItem(item, ignoreBounds=True)


class StillPlot(pg.GraphicsView):
    """A plot of which `build` draws all on the `canvas`, before it is painted in another size or theme."""

    chosen = Signal(str)  # Name of the spot that was clicked

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, background=None)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.NoViewportUpdate)
        self.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # what it stands in has one
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.canvas = Canvas(self.scene())
        self._built: object = None

    def build(self) -> None:
        raise NotImplementedError

    def rebuild(self) -> None:
        self._built = None
        self.viewport().update()

    def settle(self) -> None:
        now = (theme().name, self.width(), self.height())
        if now == self._built:
            return
        self._built = now
        self.setBackground(theme().card)
        self.canvas.clear(QRectF(self.rect()))
        self.build()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        self.settle()
        super().paintEvent(event)

    def drawForeground(self, painter: QtGui.QPainter, rect: QRectF | QRect) -> None:
        for written in self.canvas.texts:
            painter.save()
            written(painter)
            painter.restore()

    def spot_at(self, at: QPointF) -> Spot | None:
        """The spot under the mouse: the nearest within reach, of several the last."""
        self.settle()

        def away(spot: Spot) -> float:
            return distance(spot.place, at)

        near = min(reversed(self.canvas.spots), key=away, default=None)
        return near if near is not None and away(near) <= REACH else None

    def viewportEvent(self, event: QEvent) -> bool:
        if not isinstance(event, QtGui.QHelpEvent):
            return bool(super().viewportEvent(event))
        spot = self.spot_at(QPointF(event.pos()))
        show_tip(event.globalPos(), spot.tip if spot else "", self)
        return True

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        spot = self.spot_at(event.position())
        if spot is not None and spot.name and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(spot.name)
        else:
            event.ignore()

    mouseDoubleClickEvent = mousePressEvent

    def _left_to_others(self, event: QEvent) -> None:
        event.ignore()

    # Nothing is dragged or zoomed; what the plot stands in may be scrolled, and keys belong to the window.
    mouseMoveEvent = mouseReleaseEvent = wheelEvent = keyPressEvent = _left_to_others


def small_metrics() -> QtGui.QFontMetricsF:
    return QtGui.QFontMetricsF(font(SMALL))


def distance(box: QRectF, point: QPointF) -> float:
    """Pixels from a point to the nearest one of a box; 0 within."""
    across = max(box.left() - point.x(), 0.0, point.x() - box.right())
    down = max(box.top() - point.y(), 0.0, point.y() - box.bottom())
    return math.hypot(across, down)


def _arrays(points: Sequence[QPointF]) -> tuple[F64, F64]:
    return np.array([point.x() for point in points]), np.array([point.y() for point in points])
