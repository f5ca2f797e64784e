"""A plot over decoded audio time on pyqtgraph: left axis, view box, time axis; one painting per beat.

Range, selection and gestures belong to the shared `TimeAxis`. Items lie in data coordinates (seconds), so a range that
moves is one new transform. Plots above each other line up to the pixel, because the left axis and the right margin
have fixed widths. Mouse: Ctrl+wheel zooms at the cursor, wheel pans, Shift-drag and middle-drag pan, plain drag selects
time between the utterances, words and markers next to its ends (Alt: anywhere), click clears, double-click fits.

A `ViewBox` and two `AxisItem`s in a layout, and not a `PlotItem`: each of those brings 44 hidden widgets and two more
axes that follow the range. Nothing but `repaint` asks for a painting (`NoViewportUpdate`): a beat changes many items.
"""

from collections.abc import Iterator, Sequence

import pyqtgraph as pg
from PySide6 import QtWidgets
from PySide6.QtCore import QEvent, QMetaObject, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QHideEvent, QMouseEvent, QPainter, QRegion, QWheelEvent

from app.charts.pixels import Stills, still_scale
from app.charts.scale import time_ticks
from app.model.time_axis import NamedRange, TimeAxis
from app.style.plain_text import AT_RIGHT, fitting, show_tip, write
from app.style.theme import font, text_width, theme
from profiler.analysis.lod.columns import column_grid

GUTTER = 62  # Width of the left axis in pixels, the same in every plot
MARGIN = 10  # Pixels right of every plot
TIME_LABELS = 22  # Height of the row of time labels in pixels
LABEL = 16  # Height of a label of the left axis in pixels
ZOOM_PER_NOTCH = 1.25  # Ctrl+wheel: range per wheel notch (120 eighths of a degree)
PAN_PER_NOTCH = 0.08  # Wheel: share of the visible range per notch
SNAP = 6  # Pixels from which an end of a dragged selection snaps to a boundary
BAR = 3  # Height, and least width, of the bar of a bookmark in pixels

LABEL_FONT = 0.92

CENTRED = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop


class _Axis(pg.AxisItem):
    """An axis that is labels alone: pyqtgraph makes the picture of an axis again at every range."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=0, autoExpandTextSpace=False)
        self._face = font(LABEL_FONT)
        self._metrics = QFontMetricsF(self._face)
        self._stills = Stills()

    def setRange(self, mn: float, mx: float) -> None:
        self.range = [mn, mx]

    def _label(self, painter: QPainter, place: QRectF, flags: Qt.AlignmentFlag, text: str, scale: int) -> None:
        place = QRectF(round(place.left()), round(place.top()), place.width(), place.height())

        def draw(into: QPainter) -> None:
            into.setFont(self._face)
            into.setPen(theme().color("muted"))
            write(into, place, flags, text)

        self._stills.paint(painter, place, text, draw, scale)


class TimeAxisItem(_Axis):
    """The row of times, m:ss, below bars where bookmarks and the baseline are."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__("bottom")
        self.time = axis
        self.setHeight(TIME_LABELS)

    def _named(self) -> Iterator[tuple[float, float, NamedRange]]:
        """Left and right end in pixels of each range in view that has a name."""
        (first, last), width = self.range, self.size().width()
        for named in self.time.named_ranges():
            left, right = ((second - first) / (last - first) * width for second in named[:2])
            if right >= 0 and left <= width:
                left = max(left, 0.0)
                yield left, max(min(right, width), left + BAR), named

    def names_at(self, x: float) -> str:
        return "\n".join(named.name for left, right, named in self._named() if left - SNAP <= x <= right + SNAP)

    def paint(
        self, p: QPainter, opt: QtWidgets.QStyleOptionGraphicsItem | None, widget: QtWidgets.QWidget | None = None
    ) -> None:
        first, last = self.range
        width, scale = self.size().width(), still_scale(p)
        for second, text in time_ticks(first, last, width):
            x = (second - first) / (last - first) * width
            half = text_width(text, LABEL_FONT) / 2 + 1
            if x + GUTTER >= half and x + half <= width + MARGIN:
                self._label(p, QRectF(x - half, 4, 2 * half, TIME_LABELS - 5), CENTRED, text, scale)
        for left, right, named in self._named():
            bar = QRectF(round(left), 1, round(right - left), BAR)
            if not named.outlined:
                p.fillRect(bar, theme().color("accent"))
                # Where one begins within another, too.
                p.fillRect(QRectF(bar.left(), 1, BAR - 1, 2 * BAR), theme().color("accent"))
                continue
            p.setPen(theme().color("text"))
            p.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5))


class ValueAxisItem(_Axis):
    """The labels left of the plot: values with the texts that a view gives them."""

    def __init__(self) -> None:
        super().__init__("left")
        self.setWidth(GUTTER)
        self.labels: Sequence[tuple[float, str]] = ()
        self._kept: tuple[object, ...] = ()

    def paint(
        self, p: QPainter, opt: QtWidgets.QStyleOptionGraphicsItem | None, widget: QtWidgets.QWidget | None = None
    ) -> None:
        (low, high), height = self.range, self.size().height()

        def draw(into: QPainter) -> None:
            for value, text in self.labels:
                y = height - (value - low) / (high - low) * height
                y = min(max(y - LABEL / 2, 0.0), height + TIME_LABELS - LABEL)
                place = QRectF(0, y, GUTTER - LABEL / 2, LABEL)
                self._label(into, place, AT_RIGHT, fitting(self._metrics, place.width(), text), 0)

        key = low, high, *self.labels
        if key != self._kept:
            self._kept = key
            self._stills.drop()
        self._stills.paint(p, QRectF(0, 0, GUTTER, height + TIME_LABELS), key, draw, still_scale(p))


class TimePlot(pg.GraphicsView):
    """A plot over decoded audio time: an area between a left axis and a row of times."""

    hovered = Signal(object)  # Second of audio under the mouse, or None when it left
    clicked = Signal(QPointF)  # A click into the area, in its pixels
    resized = Signal()  # The area has another size

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(background=None)
        self.axis = axis
        self._followed: list[QMetaObject.Connection] = []
        self.columns = 1  # Pixels across the area
        self.plot_size = (1, 1)  # Width and height of the area in pixels
        self._moving = QRegion()
        self._visible, self._visible_of = axis.visible, (axis.visible, 0)
        self._hovers = False
        self.mouse = QPointF()  # Where the mouse was seen last, in the area's pixels
        self._pressed: QPointF | None = None
        self._dragged: QPointF | None = None
        self.setViewportUpdateMode(QtWidgets.QGraphicsView.ViewportUpdateMode.NoViewportUpdate)
        self.scene().setItemIndexMethod(QtWidgets.QGraphicsScene.ItemIndexMethod.NoIndex)
        self.setOptimizationFlag(QtWidgets.QGraphicsView.OptimizationFlag.DontAdjustForAntialiasing)
        self.setCacheMode(QtWidgets.QGraphicsView.CacheModeFlag.CacheNone)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0.0)
        self.box.disableAutoRange()
        self.left, self.bottom = ValueAxisItem(), TimeAxisItem(axis)
        central = pg.GraphicsWidget()
        grid = QtWidgets.QGraphicsGridLayout(central)
        grid.setSpacing(0)
        grid.setContentsMargins(0, 0, MARGIN, 0)
        for item, row, column in ((self.left, 0, 0), (self.box, 0, 1), (self.bottom, 1, 1)):
            grid.addItem(item, row, column)
        grid.setColumnStretchFactor(1, 1)
        grid.setRowStretchFactor(0, 1)
        self.setCentralItem(central)
        for labels in (self.left, self.bottom):
            labels.linkToView(self.box)
        self.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the view has one
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMinimumHeight(60)
        self.box.sigResized.connect(self._area_resized)
        self.set_axis(axis)

    def set_axis(self, axis: TimeAxis) -> None:
        for old in self._followed:
            self.disconnect(old)
        self.axis = self.bottom.time = axis
        changes = axis.selection_changed, axis.cursor_changed, axis.hover_changed, axis.named_changed
        self._followed = [signal.connect(self.repaint_area) for signal in changes]

    def add(self, item: QtWidgets.QGraphicsItem, z: float) -> None:
        item.setZValue(z)
        self.box.addItem(item, ignoreBounds=True)

    def set_height_range(self, low: float, high: float) -> None:
        """The left axis goes from `low` at the bottom to `high`."""
        if [low, high] != self.box.viewRange()[1]:
            self.box.setYRange(low, high, padding=0)
            self.viewport().update()

    def set_ticks(self, ticks: Sequence[tuple[float, str]]) -> None:
        if ticks != self.left.labels:
            self.left.labels = ticks
            self.viewport().update()

    @property
    def visible(self) -> tuple[float, float]:
        """First and last second drawn: the range in view, moved onto whole columns of pixels."""
        if self._visible_of != (self.axis.visible, self.columns):
            number, width = column_grid(*self.axis.visible, self.columns)
            self._visible = number * width, (number + self.columns) * width
            self._visible_of = self.axis.visible, self.columns
        return self._visible

    def second_at(self, at: QPointF) -> float:
        first, last = self.visible
        return first + (last - first) * at.x() / self.columns

    def in_widget(self, at: QPointF) -> QPoint:
        place: QPoint = self.mapFromScene(self.box.mapToScene(at))
        return place

    def show_drawing(self) -> None:
        visible = self.visible
        if list(visible) != self.box.viewRange()[0]:
            self.box.setXRange(*visible, padding=0)
        self.repaint_area()

    def repaint_area(self, *_: object) -> None:
        self.viewport().update(self._moving)

    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
        painter.fillRect(rect, theme().color("card"))

    def _area_resized(self, *_: object) -> None:
        rect = self.viewport().rect()
        self._moving = QRegion(rect.adjusted(GUTTER, 0, 0, 0)) + rect.adjusted(0, rect.height() - TIME_LABELS, 0, 0)
        self.viewport().update()
        self.columns = max(1, round(self.box.width()))
        self.plot_size = self.columns, max(1, round(self.box.height()))
        self.resized.emit()
        self.show_drawing()

    def _inside(self, event: QMouseEvent | QWheelEvent) -> QPointF | None:
        at = self._area_position(event)
        return at if self.box.rect().contains(at) else None

    def _area_position(self, event: QMouseEvent | QWheelEvent) -> QPointF:
        origin: QPointF = self.box.geometry().topLeft()
        return event.position() - origin

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl: zoom at the cursor; otherwise pan in time (down and right go on in time)."""
        at = self._inside(event)
        turned = event.angleDelta()
        notches = (turned.y() or turned.x()) / 120.0
        if at is None or not notches:
            event.ignore()
            return
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.axis.zoom(ZOOM_PER_NOTCH**-notches, self.second_at(at))
        else:
            self.axis.pan(-notches * PAN_PER_NOTCH)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed, self._dragged = self._inside(event), None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Report where the mouse is, in seconds; with a button held, select or pan."""
        self.mouse, at = self._area_position(event), self._inside(event)
        if self._pressed is not None and event.buttons() != Qt.MouseButton.NoButton:
            self._drag(event, self._pressed, self.mouse)
        self.hover(None if at is None else self.second_at(at))

    def _drag(self, event: QMouseEvent, start: QPointF, at: QPointF) -> None:
        """Plain left drag selects, from and to what is near (Alt: anywhere); Shift+left or middle drag pans."""
        if self._dragged is None and (at - start).manhattanLength() < QtWidgets.QApplication.startDragDistance() / 2:
            return
        before, self._dragged = start if self._dragged is None else self._dragged, at
        left = bool(event.buttons() & Qt.MouseButton.LeftButton)
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.buttons() & Qt.MouseButton.MiddleButton or (left and shift):
            self.axis.pan(-(at.x() - before.x()) / self.columns)
        elif left:
            first, last = self.visible
            free = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
            reach = 0.0 if free else SNAP * (last - first) / self.columns
            ends = [self.second_at(start), self.second_at(at)]
            snapped = [self.axis.snapped(end, reach) for end in ends]
            self.axis.select(*(ends if snapped[0] == snapped[1] else snapped))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click clears the selection; other buttons do nothing."""
        clicked = self._pressed is not None and self._dragged is None
        self._pressed = self._dragged = None
        if clicked and event.button() == Qt.MouseButton.LeftButton:
            self.axis.clear()
            self.clicked.emit(self._area_position(event))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._inside(event) is not None:
            self.axis.fit()

    def viewportEvent(self, event: QEvent) -> bool:
        if not isinstance(event, QHelpEvent):
            return bool(super().viewportEvent(event))
        at = self.bottom.mapFromScene(self.mapToScene(event.pos()))
        inside = self.bottom.boundingRect().contains(at)
        show_tip(event.globalPos(), self.bottom.names_at(at.x()) if inside else "", self)
        return True

    def keyPressEvent(self, event: QEvent) -> None:
        event.ignore()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hover(None)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.hover(None)

    @property
    def hover_s(self) -> float | None:
        """Second under the mouse if it is in this plot; the crosshair is in all of them (`axis.hover`)."""
        return self.axis.hover if self._hovers else None

    def hover(self, second: float | None) -> None:
        """Show the crosshair at a second; None: the mouse has left, or something else is in its place."""
        if second is None and not self._hovers:
            return
        self._hovers = second is not None
        self.axis.set_hover(second)
        self.hovered.emit(second)
