"""Where every text of a widget is drawn, and which texts collide, are cut off or cut short. No pixels are looked at.

Each visible widget is rendered by itself onto a paint device that keeps the ink rectangle of every text (labels,
buttons, axes and what is painted by hand alike), in the coordinates of the outermost widget. What has been
covered by an opaque rectangle of the same widget is not there. What a scroll area cuts off can be scrolled to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PySide6 import QtGui
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtWidgets import QAbstractScrollArea, QScrollBar, QTabBar, QToolButton, QWidget

from app.style.plain_text import Elided
from app.views.stage_tree import StageTree

TOUCHING = 1.0  # Pixels by which two ink rectangles may overlap: antialiasing, and letters that touch
CUT = 2.0  # Pixels of a text that may be missing at an edge

CHANGES = ("DirtyTransform", "DirtyBrush", "DirtyPen", "DirtyClipRegion", "DirtyClipPath")
# As integers: Python's flags take longer than what is painted between two of them.
TRANSFORM, BRUSH, PEN, CLIP_REGION, CLIP_PATH = (getattr(QtGui.QPaintEngine.DirtyFlag, name).value for name in CHANGES)


@dataclass(frozen=True)
class Text:
    """One text as it is drawn."""

    text: str
    ink: QRectF  # Upright, around the ink, in coordinates of the outermost widget
    shape: QtGui.QPolygonF  # The same as it lies, where the text is turned
    seen: QRectF  # The part of it that nothing cuts off
    where: str  # Class and object name of the widget
    across: bool  # What is cut off at a side can be scrolled to
    down: bool  # What is cut off above or below can be scrolled to

    def __str__(self) -> str:
        x, y, right, bottom = (round(v) for v in self.ink.getCoords())
        return f"“{self.text}” at ({x}, {y})–({right}, {bottom}) in {self.where}"


class _Engine(QtGui.QPaintEngine):
    """Keeps texts; draws nothing."""

    def __init__(self) -> None:
        super().__init__(QtGui.QPaintEngine.PaintEngineFeature.AllFeatures)
        self.found: list[tuple[str, QtGui.QPolygonF, QRectF | None]] = []
        self._transform = QtGui.QTransform()
        self._clip: QRectF | None = None
        self._brush = QtGui.QBrush()
        self._pen = QtGui.QColor()

    def begin(self, *_: object) -> bool:
        return True

    end = begin

    def type(self) -> QtGui.QPaintEngine.Type:
        # As into a picture: what is kept as pixels on a screen is written out.
        return QtGui.QPaintEngine.Type.Picture

    def updateState(self, state: QtGui.QPaintEngineState) -> None:
        changed = state.state().value
        if changed & TRANSFORM:
            self._transform = QtGui.QTransform(state.transform())
        if changed & BRUSH:
            self._brush = QtGui.QBrush(state.brush())
        if changed & PEN:
            self._pen = state.pen().color()
        if changed & CLIP_REGION:
            self._clipped(state.clipOperation(), QRectF(state.clipRegion().boundingRect()))
        elif changed & CLIP_PATH:
            self._clipped(state.clipOperation(), state.clipPath().boundingRect())

    def _clipped(self, how: Qt.ClipOperation, area: QRectF) -> None:
        area = self._transform.mapRect(area)
        if how == Qt.ClipOperation.NoClip:
            self._clip = None
        elif how == Qt.ClipOperation.ReplaceClip or self._clip is None:
            self._clip = area
        else:
            self._clip = self._clip.intersected(area)

    def drawTextItem(self, at: QPointF, item: QtGui.QTextItem) -> None:
        if not item.text().strip() or self._pen.alpha() == 0:
            return
        ink = QtGui.QFontMetricsF(item.font()).tightBoundingRect(item.text()).translated(at)
        self.found.append((item.text(), self._transform.map(QtGui.QPolygonF(ink)), self._clip))

    def drawRects(self, rects: list[QRect | QRectF]) -> None:  # type: ignore[override]
        brush = self._brush
        if brush.style() == Qt.BrushStyle.SolidPattern and brush.color().alpha() == 255:
            for rect in rects:
                over = self._transform.mapRect(QRectF(rect))
                self.found = [text for text in self.found if not over.contains(text[1].boundingRect())]

    def drawLines(self, *_: object) -> None:
        pass

    drawPath = drawPolygon = drawEllipse = drawPoints = drawPixmap = drawImage = drawTiledPixmap = drawLines


class _Paper(QtGui.QPaintDevice):
    """A device of the screen's resolution without pixels."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__()
        self.engine = _Engine()
        dots = dict.fromkeys(("DpiX", "DpiY", "PhysicalDpiX", "PhysicalDpiY"), widget.logicalDpiX())
        sizes = {"Width": widget.width(), "Height": widget.height()}
        sizes |= {"WidthMM": widget.widthMM(), "HeightMM": widget.heightMM(), "NumColors": 1 << 24, "Depth": 32}
        # The last two are 1.0 by halves of its bits.
        ratio = {"": 1, "Scaled": 1 << 16, "F_EncodedA": 0x3FF00000, "F_EncodedB": 0}
        sizes |= dots | {f"DevicePixelRatio{name}": value for name, value in ratio.items()}
        metric = QtGui.QPaintDevice.PaintDeviceMetric
        self._metrics = {getattr(metric, f"Pdm{name}"): value for name, value in sizes.items()}

    def paintEngine(self) -> QtGui.QPaintEngine:
        return self.engine

    def metric(self, which: QtGui.QPaintDevice.PaintDeviceMetric) -> int:
        return self._metrics[which]


def _descendants(widget: QWidget) -> Iterator[QWidget]:
    yield widget
    for child in widget.children():
        if isinstance(child, QWidget) and child.isVisibleTo(widget) and not child.isWindow():
            yield from _descendants(child)


def _visible(widget: QWidget, root: QWidget) -> tuple[QRectF, bool, bool]:
    """The part of a widget that its ancestors leave, in coordinates of `root`; whether it scrolls, across and down."""
    seen = QRectF(widget.rect()).translated(widget.mapTo(root, QPointF(0, 0)))
    # Tabs that do not fit have arrows to move them by.
    arrows = widget.findChildren(QToolButton) if isinstance(widget, QTabBar) else ()
    across, down = any(arrow.isVisibleTo(widget) for arrow in arrows), False
    above: QWidget | None = widget
    while above is not None and above is not root:
        above = above.parentWidget()
        if above is not None:
            seen &= QRectF(above.rect()).translated(above.mapTo(root, QPointF(0, 0)))
        if isinstance(above, QAbstractScrollArea):
            across |= _scrolls(above.horizontalScrollBar(), above.horizontalScrollBarPolicy())
            down |= _scrolls(above.verticalScrollBar(), above.verticalScrollBarPolicy())
    return seen, across, down


def _scrolls(bar: QScrollBar, policy: Qt.ScrollBarPolicy) -> bool:
    return bar.maximum() > bar.minimum() and policy != Qt.ScrollBarPolicy.ScrollBarAlwaysOff


def texts(root: QWidget) -> list[Text]:
    """Every text of `root` and its visible descendants, from back to front."""
    found = []
    for widget in _descendants(root):
        if widget.width() < 1 or widget.height() < 1:
            continue
        paper = _Paper(widget)
        painter = QtGui.QPainter(paper)
        # By name: a graphics view has another `render`, of its scene.
        QWidget.render(widget, painter, QPoint(), QtGui.QRegion(), QWidget.RenderFlag(0))
        painter.end()
        at = widget.mapTo(root, QPointF(0, 0))
        area, across, down = _visible(widget, root)
        where = type(widget).__name__ + (f" {widget.objectName()}" if widget.objectName() else "")
        for text, shape, clip in paper.engine.found:
            lies = shape.translated(at)
            there = lies.boundingRect()
            seen = there & area
            if clip is not None:
                seen &= clip.translated(at)
            found.append(Text(text, there, lies, seen, where, across, down))
    return found


def faults(root: QWidget) -> list[str]:
    """Sentences about texts of `root` that overlap or are cut off."""
    reported = []
    drawn = texts(root)
    for text in drawn:
        lost = (text.ink.width() - text.seen.width(), text.ink.height() - text.seen.height())
        gone = text.seen.isEmpty() and (text.across or text.down)
        cut = (lost[0] > CUT and not text.across) or (lost[1] > CUT and not text.down)
        if cut and not gone:
            reported.append(f"cut off: {text}")
    seen = [text for text in drawn if not text.seen.isEmpty()]
    for text, other in _overlapping(seen):
        both = text.shape.intersected(other.shape).boundingRect() & text.seen & other.seen
        if min(both.width(), both.height()) > TOUCHING:
            reported.append(f"collide: {text} and {other}")
    return reported


def _overlapping(texts: list[Text]) -> Iterator[tuple[Text, Text]]:
    """Those whose upright rectangles overlap, of tens of thousands of pairs."""
    corners = np.array([text.seen.getCoords() for text in texts]).reshape(-1, 4)
    left, top, right, bottom = corners.T
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    for one, other in np.argwhere(np.triu(np.minimum(across, down) > TOUCHING, 1)).tolist():
        yield texts[one], texts[other]


def cut_short(root: QWidget) -> list[str]:
    """Return sentences about texts of `root` that are cut short by an ellipsis: labels, and texts of the breakdown.

    Not included: labels on charts (flags, words), which give way to each other.
    """
    reported = []
    for label in root.findChildren(Elided):
        # A title may stand on two lines.
        whole = label.text().replace("\n", " ") in (label.full, *label._shorter)
        if label.isVisibleTo(root) and not whole:
            reported.append(f"cut short: “{label.text()}” of “{label.full}”")
    for bars in root.findChildren(StageTree):
        if bars.isVisibleTo(root):
            reported += [f"cut short: {text}" for text in texts(bars) if "…" in text.text]
    return reported
