"""What a widget paints, as shapes and lines of text on a page: the common source of SVG and PDF.

Qt clips the parts of a widget through the system clip of the paint engine, which its own engines for SVG and PDF
ignore: a scrolled text then overprints what lies below it. This engine applies it, together with the painter's
clip, to each shape; a shape that is cut is replaced by what is left of it, so the files need no clipping at all
(QtSvg itself, among others, knows none). Text keeps its letters beside the outlines of its glyphs.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Concatenate, Final, ParamSpec

from PySide6.QtCore import QLine, QLineF, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QImage,
    QPaintDevice,
    QPaintEngine,
    QPaintEngineState,
    QPainter,
    QPainterPath,
    QPainterPathStroker,
    QPen,
    QPixmap,
    QPolygonF,
    QTextItem,
    QTextLayout,
    QTransform,
)

DOTS_PER_INCH: Final = 96
"""Points of a widget per inch."""

MILLIMETRES_PER_INCH: Final = 25.4

RECTANGLE: Final = 5
"""Elements of a path that is a rectangle."""

HAIR: Final = 1.0
"""Width of a pen of width 0: one point."""


@dataclass(frozen=True)
class Shape:
    """An area, a line or both, in points of the page.

    Attributes:
        path: already clipped.
        fill: `NoBrush` for none.
        pen: `NoPen` for none; its width is in points of the page.
        smooth: whether it was drawn with antialiasing.
    """

    path: QPainterPath
    fill: QBrush
    pen: QPen
    smooth: bool


@dataclass(frozen=True)
class Glyph:
    """An outline, its origin on the baseline at (0, 0), and the name that tells it from all others of a page."""

    name: str
    path: QPainterPath


@dataclass(frozen=True)
class Text:
    """Letters in one font and colour.

    Attributes:
        text: the letters.
        font: as laid out at `DOTS_PER_INCH`.
        colour: of the pen.
        transform: from the coordinates of `at` and of the glyphs to points of the page.
        at: start of the baseline.
        glyphs: outlines and their origins relative to `at`.
        clip: in points of the page; None if no letter is cut.
    """

    text: str
    font: QFont
    colour: QColor
    transform: QTransform
    at: QPointF
    glyphs: Sequence[tuple[Glyph, QPointF]]
    clip: QPainterPath | None

    def outline(self) -> QPainterPath:
        """All glyphs in points of the page, unclipped."""
        path = QPainterPath()
        path.setFillRule(Qt.FillRule.WindingFill)
        for glyph, origin in self.glyphs:
            path.addPath(glyph.path.translated(self.at + origin))
        return self.transform.map(path)


@dataclass(frozen=True)
class Pixels:
    """An image in a rectangle of the page."""

    area: QRectF
    image: QImage


Item = Shape | Text | Pixels

Arguments = ParamSpec("Arguments")


def recorded(size: QSize, draw: Callable[[QPainter], object]) -> list[Item]:
    """Return what `draw` paints on a page of `size` points, from back to front."""
    page = _Page(size)
    painter = QPainter()
    if not painter.begin(page):
        raise RuntimeError("the page could not be begun")
    try:
        draw(painter)
    finally:
        painter.end()
    if page.engine.faults:
        raise page.engine.faults[0]
    return page.engine.items


class _Page(QPaintDevice):
    """A device without pixels."""

    def __init__(self, size: QSize) -> None:
        super().__init__()
        self._size = size
        self.engine = _Engine(QRectF(0, 0, size.width(), size.height()))

    def paintEngine(self) -> QPaintEngine:
        """The engine that records."""
        return self.engine

    def metric(self, metric: QPaintDevice.PaintDeviceMetric) -> int:
        """Size and resolution."""
        kind = QPaintDevice.PaintDeviceMetric
        width, height = self._size.width(), self._size.height()
        if metric in (kind.PdmDpiX, kind.PdmDpiY, kind.PdmPhysicalDpiX, kind.PdmPhysicalDpiY):
            return DOTS_PER_INCH
        known = {
            kind.PdmWidth: width,
            kind.PdmHeight: height,
            kind.PdmWidthMM: round(width * MILLIMETRES_PER_INCH / DOTS_PER_INCH),
            kind.PdmHeightMM: round(height * MILLIMETRES_PER_INCH / DOTS_PER_INCH),
            kind.PdmNumColors: 1 << 24,
            kind.PdmDepth: 32,
            kind.PdmDevicePixelRatio: 1,
            kind.PdmDevicePixelRatioScaled: round(QPaintDevice.devicePixelRatioFScale()),
        }
        return known.get(metric, 0)


def _kept(
    method: Callable[Concatenate[_Engine, Arguments], None],
) -> Callable[Concatenate[_Engine, Arguments], None]:
    """Keep an exception for later: one that got out of a method that Qt calls would end the process."""

    @functools.wraps(method)
    def guarded(self: _Engine, *arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        try:
            method(self, *arguments, **named)
        except Exception as fault:
            # Its frames hold what lives only while Qt paints: what they say is kept, they are not.
            fault.add_note(traceback.format_exc())
            self.faults.append(fault.with_traceback(None))

    return guarded


class _Engine(QPaintEngine):
    """Keeps every primitive with the state it was drawn in."""

    def __init__(self, page: QRectF) -> None:
        super().__init__(QPaintEngine.PaintEngineFeature.AllFeatures)
        self.items: list[Item] = []
        self.faults: list[Exception] = []
        self._page = _rectangle(page)
        self._laid_out: dict[tuple[str, str], list[tuple[Glyph, QPointF]]] = {}
        self._glyphs: dict[tuple[str, int], Glyph] = {}

    # -- what Qt calls -----------------------------------------------------------------------

    def begin(self, pdev: QPaintDevice) -> bool:
        """Nothing to open."""
        return True

    def end(self) -> bool:
        """Nothing to close."""
        return True

    def type(self) -> QPaintEngine.Type:
        """None of Qt's own."""
        return QPaintEngine.Type.User

    def updateState(self, state: QPaintEngineState) -> None:
        """The state is looked at when something is drawn."""

    @_kept
    def drawPath(self, path: QPainterPath) -> None:
        """Fill and outline."""
        self._add(path, self.state.brush(), self.state.pen())

    @_kept
    def drawPolygon(
        self, points: Iterable[QPoint | QPointF], mode: QPaintEngine.PolygonDrawMode
    ) -> None:
        """A closed, filled polygon, or an open line."""
        path = QPainterPath()
        path.addPolygon(QPolygonF([QPointF(point) for point in points]))
        line = mode == QPaintEngine.PolygonDrawMode.PolylineMode
        if not line:
            path.closeSubpath()
        odd = mode == QPaintEngine.PolygonDrawMode.OddEvenMode
        path.setFillRule(Qt.FillRule.OddEvenFill if odd else Qt.FillRule.WindingFill)
        fill = QBrush(Qt.BrushStyle.NoBrush) if line else self.state.brush()
        self._add(path, fill, self.state.pen())

    @_kept
    def drawLines(self, lines: Iterable[QLine | QLineF]) -> None:
        """Separate lines."""
        path = QPainterPath()
        for line in lines:
            path.moveTo(QPointF(line.p1()))
            path.lineTo(QPointF(line.p2()))
        self._add(path, QBrush(Qt.BrushStyle.NoBrush), self.state.pen())

    @_kept
    def drawRects(self, rects: Iterable[QRect | QRectF]) -> None:
        """Rectangles."""
        for rect in rects:
            self.drawPath(_rectangle(QRectF(rect)))

    @_kept
    def drawEllipse(self, rect: QRect | QRectF) -> None:
        """An ellipse."""
        path = QPainterPath()
        path.addEllipse(QRectF(rect))
        self.drawPath(path)

    @_kept
    def drawPoints(self, points: Iterable[QPoint | QPointF]) -> None:
        """Squares as wide as the pen."""
        pen = self.state.pen()
        half = max(pen.widthF(), HAIR) / 2
        path = QPainterPath()
        for point in points:
            path.addRect(QRectF(point.x() - half, point.y() - half, 2 * half, 2 * half))
        self._add(path, QBrush(pen.color()), QPen(Qt.PenStyle.NoPen))

    @_kept
    def drawImage(
        self,
        r: QRectF | QRect,
        pm: QImage,
        sr: QRectF | QRect,
        flags: Qt.ImageConversionFlag = Qt.ImageConversionFlag.AutoColor,
    ) -> None:
        """An image, if any of it is within the clip."""
        area = self.state.transform().mapRect(QRectF(r))
        if self._clip().intersects(area):
            self.items.append(Pixels(area, pm.copy(QRectF(sr).toRect())))

    @_kept
    def drawPixmap(self, r: QRectF | QRect, pm: QPixmap | QImage, sr: QRectF | QRect) -> None:
        """As an image."""
        self.drawImage(r, pm if isinstance(pm, QImage) else pm.toImage(), sr)

    @_kept
    def drawTextItem(self, p: QPointF | QPoint | QPainterPath.Element, item: QTextItem) -> None:
        """Letters, with the outlines of their glyphs."""
        state = self.state
        text, font = item.text(), QFont(item.font())
        # Qt's baseline, whatever it is written as.
        at = QPointF(p.x, p.y) if isinstance(p, QPainterPath.Element) else QPointF(p)
        colour = self._faded(state.pen().color())
        transform = QTransform(state.transform())
        found = Text(text, font, colour, transform, at, self._outlines(text, font), None)
        ink = found.outline().boundingRect()
        clip = self._clip()
        if ink.isEmpty() or not clip.intersects(ink):
            return
        if not clip.contains(ink):
            found = Text(text, font, colour, transform, at, found.glyphs, clip)
        self.items.append(found)

    # -- inner -------------------------------------------------------------------------------

    def _add(self, path: QPainterPath, fill: QBrush, pen: QPen) -> None:
        state = self.state
        smooth = bool(state.renderHints() & QPainter.RenderHint.Antialiasing)
        transform = state.transform()
        path = transform.map(path)
        fill, pen = QBrush(fill), QPen(pen)
        for tool in (fill, pen):
            tool.setColor(self._faded(tool.color()))
        if not pen.color().alpha():
            pen = QPen(Qt.PenStyle.NoPen)
        if not fill.color().alpha():
            fill = QBrush(Qt.BrushStyle.NoBrush)
        drawn = pen.style() != Qt.PenStyle.NoPen
        if drawn:
            scale = 1.0 if pen.isCosmetic() else abs(transform.determinant()) ** 0.5
            pen.setWidthF(pen.widthF() * scale or HAIR)
        clip = self._clip()
        edge = pen.widthF() / 2 if drawn else 0.0
        ink = path.controlPointRect().adjusted(-edge, -edge, edge, edge)
        if clip.contains(ink):
            self.items.append(Shape(path, fill, pen, smooth))
            return
        if fill.style() != Qt.BrushStyle.NoBrush:
            self._add_cut(path, clip, fill, smooth)
        if drawn:
            self._add_cut(
                QPainterPathStroker(pen).createStroke(path), clip, QBrush(pen.color()), smooth
            )

    def _add_cut(self, path: QPainterPath, clip: QPainterPath, fill: QBrush, smooth: bool) -> None:
        """An area less what the clip takes off."""
        # Qt says of lines and of degenerate areas that they meet nothing: a bounding box may have no height.
        ink = path.controlPointRect().adjusted(0, 0, 1e-6, 1e-6)
        if not clip.intersects(ink):
            return
        left = path if clip.contains(ink) else path.intersected(clip)
        if not left.isEmpty():
            self.items.append(Shape(left, fill, QPen(Qt.PenStyle.NoPen), smooth))

    def _clip(self) -> QPainterPath:
        """Where ink may be, in points of the page."""
        clip = self._page
        system = self.systemClip()
        if not system.isEmpty():
            parts = QPainterPath()
            parts.addRegion(system)
            clip = _met(clip, parts, rectangular=system.rectCount() == 1)
        painter = self.painter()
        if painter.hasClipping():
            own = self.state.transform().map(painter.clipPath())
            inner = own.boundingRect().adjusted(0.01, 0.01, -0.01, -0.01)
            clip = _met(clip, own, rectangular=own.isEmpty() or own.contains(inner))
        return clip

    def _faded(self, colour: QColor) -> QColor:
        faded = QColor(colour)
        faded.setAlphaF(colour.alphaF() * self.state.opacity())
        return faded

    def _outlines(self, text: str, font: QFont) -> list[tuple[Glyph, QPointF]]:
        """Glyphs of a text and their origins relative to the start of its baseline."""
        key = (font.key(), text)
        if key not in self._laid_out:
            layout = QTextLayout(text, font)
            layout.beginLayout()
            line = layout.createLine()
            layout.endLayout()
            base = QPointF(0.0, line.ascent())
            found = []
            for run in layout.glyphRuns():
                face = run.rawFont()
                size, shrunk = face.pixelSize(), QTransform()
                if size > 0:
                    family = f"{face.familyName()} {face.styleName()} {size:g}"
                    # In units of the font: at small sizes outlines depend on what was drawn before.
                    face.setPixelSize(face.unitsPerEm())
                    part = size / face.unitsPerEm()
                    shrunk = QTransform.fromScale(part, part)
                else:
                    # Qt's boxes for letters that no font has: asked for a family, it ends the process.
                    family = f"boxes {face.ascent():g}"
                for index, origin in zip(run.glyphIndexes(), run.positions(), strict=True):
                    known = self._glyphs.get((family, index))
                    if known is None:
                        outline = shrunk.map(face.pathForGlyph(index))
                        known = Glyph(f"g{len(self._glyphs)}", outline)
                        self._glyphs[family, index] = known
                    if not known.path.isEmpty():
                        found.append((known, origin - base))
            self._laid_out[key] = found
        return self._laid_out[key]


def _rectangle(rect: QRectF) -> QPainterPath:
    path = QPainterPath()
    path.addRect(rect)
    return path


def _met(clip: QPainterPath, other: QPainterPath, *, rectangular: bool) -> QPainterPath:
    """What two clips have in common; `rectangular`: the other one is its own bounding box."""
    box = clip.boundingRect()
    if rectangular and clip.elementCount() <= RECTANGLE:
        # Rectangles within rectangles, which is nearly all that widgets do, without the general method.
        return _rectangle(box & other.boundingRect())
    return clip.intersected(other)
