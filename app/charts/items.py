"""What lies in a `TimePlot`: curves and rasters in data coordinates, and what is drawn in pixels.

A raster keeps its pixels until it is shown other columns, so a range that only moves draws nothing afresh.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from app.charts.pixels import is_vector, raster_scale
from app.charts.time_plot import TimePlot
from app.style.plain_text import write
from app.style.theme import font, theme
from profiler.arrays import F64, U32

FAR_S = 1e6
"""Beyond the ends of every session, in seconds: the plot cuts lines off."""


def hair(color: str | QColor) -> QPen:
    """A line of one pixel whatever the scale of the data; wider ones are stroked by the path, which takes long."""
    pen = QPen(QColor(color), 1)
    pen.setCosmetic(True)
    return pen


def polyline(x: F64, y: F64) -> QPolygonF:
    """Points [n] for `QPainter.drawPolyline` and `drawPolygon`."""
    points: QPolygonF = pg.functions.arrayToQPolygonF(x, y)
    return points


def bars(x: F64, top: F64, bottom: F64) -> QPolygonF:
    """Upright strokes at `x` from `top` to `bottom` as one polyline: down one, up the next."""
    ends = np.stack([top, bottom], axis=1)
    ends[1::2] = ends[1::2, ::-1]
    return polyline(np.repeat(x, 2), ends.ravel())


class Curve(QGraphicsPathItem):
    """A line through points, or separate lines between pairs of them (`connect="pairs"`)."""

    def __init__(self, plot: TimePlot, z: float, connect: str = "all") -> None:
        super().__init__()
        self._connect = connect
        plot.add(self, z)

    def show_points(self, x: F64, y: F64, connected: npt.NDArray[np.bool_] | None = None) -> None:
        """Show other points [n], all finite. `connected` [n]: whether a line joins one to the next; None: as made."""
        connect = self._connect if connected is None else connected.astype(np.int32)
        self.setPath(pg.functions.arrayToQPath(x, y, connect=connect, finiteCheck=False))


class Levels(Curve):
    """Level lines across the whole plot, below everything else."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=-1.0, connect="pairs")

    def show_levels(self, y: F64) -> None:
        """Show lines at other heights [n]."""
        self.setPen(hair(theme().grid))
        self.show_points(np.tile([-FAR_S, FAR_S], len(y)), np.repeat(y, 2))


class RasterItem(QGraphicsItem):
    """Columns of pixels over seconds × values, kept until others are shown; a subclass draws them."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__()
        self._place = QRectF()
        self._pixels: U32 | None = None
        self._drawn: tuple[int, int] | None = None
        plot.add(self, 0.0)

    def show_columns(self, first_s: float, last_s: float, low: float, high: float) -> None:
        """Draw other columns over these seconds and values."""
        self.prepareGeometryChange()
        self._place, self._drawn = QRectF(first_s, low, last_s - first_s, high - low), None

    def show_nothing(self) -> None:
        """Draw no columns."""
        self.show_columns(0.0, 0.0, 0.0, 0.0)

    def draw_pixels(self, height: int, scale: int) -> U32:
        """Premultiplied ARGB [height, columns], `scale` device pixels high per pixel (override).

        It may also have as many device pixels per column.
        """
        raise NotImplementedError

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """Draw the same as shapes into a place in pixels, for SVG and PDF (override)."""
        raise NotImplementedError

    def boundingRect(self) -> QRectF:
        """In seconds and values."""
        return QRectF(self._place)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Put the pixels onto whole pixels, whatever the transform of the data is."""
        if self._place.isEmpty():
            return
        place = painter.worldTransform().mapRect(self._place)
        place = QRectF(round(place.left()), place.top(), place.width(), place.height())
        painter.save()
        try:
            painter.setWorldTransform(QTransform())
            if is_vector(painter):
                self.draw_shapes(painter, place)
            else:
                self._blit(painter, place, raster_scale(painter))
        finally:
            painter.restore()

    def _blit(self, painter: QPainter, place: QRectF, scale: int) -> None:
        height = max(1, round(place.height() * scale))
        if (height, scale) != self._drawn or self._pixels is None:
            self._pixels, self._drawn = self.draw_pixels(height, scale), (height, scale)
        rows, across = self._pixels.shape
        image = QImage(self._pixels.data, across, rows, 4 * across, QImage.Format.Format_ARGB32_Premultiplied)
        painter.drawImage(place, image)


class PixelItem(QGraphicsItem):
    """Something drawn in the pixels of a plot's area (y down): texts stay upright and lines sharp.

    `x_of` maps seconds to pixels.
    """

    def __init__(self, plot: TimePlot, z: float) -> None:
        super().__init__(plot.box)
        self.plot = plot
        self.setZValue(z)
        plot.box.sigResized.connect(self._resized)

    def _resized(self, *_: object) -> None:
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return the area in its own pixels."""
        width, height = self.plot.plot_size()
        return QRectF(0, 0, width, height)

    def x_of(self, second: float) -> float:
        """Pixel of a second of audio."""
        first, last = self.plot.visible
        return (second - first) / (last - first) * self.plot.columns

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Hand over to `paint_pixels` with a clean painter."""
        painter.save()
        try:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            self.paint_pixels(painter, self.boundingRect())
        finally:
            painter.restore()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw into `area` (override)."""
        raise NotImplementedError


class Remark(PixelItem):
    """A sentence in an area of the plot: why nothing is drawn there."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=3.0)
        self.text = ""
        self._area = QRectF()

    def show_text(self, text: str, area: QRectF) -> None:
        """Write another sentence into an area, in pixels of the plot; an empty one removes it."""
        self.text, self._area = text, area
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Write it, cut off at the end where it is too long."""
        if not self.text:
            return
        face = font(0.92)
        painter.setFont(face)
        painter.setPen(theme().color("muted"))
        text = QFontMetricsF(face).elidedText(self.text, Qt.TextElideMode.ElideRight, self._area.width() - 8)
        write(painter, self._area, Qt.AlignmentFlag.AlignCenter, text)
