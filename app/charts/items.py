"""What lies in a `TimePlot`: curves and rasters in data coordinates, and what is drawn in pixels.

A raster is a strip of pixels of which only new columns are drawn; while the range moves, it is blitted elsewhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from app.charts.pixels import device_scale, is_vector, raster_scale
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.style.plain_text import fitting, write
from app.style.theme import font, theme
from profiler.arrays import F64, U32, Array

FAR_S = 1e6  # Beyond the ends of every session, in seconds: the plot cuts lines off
SPARE = 1024  # Columns of a strip besides those shown: when the range has moved by half of them, another is begun
APART = 32  # Columns that are as they were between two that are not, from which on the two are drawn apart


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
        self._plot = plot

    def show_scale(self, scale: Scale, every: int = 1) -> None:
        """Label the ticks of a scale whose ends are 0 and 1, or some of them, and show lines there."""
        places = scale.place(np.array(scale.ticks()))[::every]
        self._plot.set_ticks(list(zip(places.tolist(), scale.labels()[::every], strict=True)))
        self.show_levels(places)

    def show_levels(self, y: F64) -> None:
        self.setPen(hair(theme().grid))
        self.show_points(np.tile([-FAR_S, FAR_S], len(y)), np.repeat(y, 2))


class RasterItem(QGraphicsItem):
    """Columns of pixels over seconds × values, kept in a strip: drawn are those that are new or have other values."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__()
        self._place = QRectF()
        self._first = 0
        self._values: Array = np.empty((0, 0))
        self._changed = False
        # The strip: columns by number from `_origin` on, and the values that they were drawn with, NaN without any.
        self._key: object = None
        self._origin = 0
        self._drawn: Array = np.empty((0, 0))
        self._pixels: U32 = np.empty((0, 0), np.uint32)
        self._strip = QImage()
        plot.add(self, 0.0)

    def show_columns(self, first_s: float, last_s: float, low: float, high: float, values: Array) -> None:
        """Show columns on the plot's grid, over these seconds and between two values of the left axis.

        `values` [columns, n]: all that the pixels of a column depend on besides `look`; finite.
        """
        self.prepareGeometryChange()
        self._place = QRectF(first_s, low, last_s - first_s, high - low)
        self._first = round(first_s / (last_s - first_s) * len(values))
        self._values, self._changed = values, True

    def show_nothing(self) -> None:
        self.prepareGeometryChange()
        self._place = QRectF()

    def look(self) -> object:
        """What the pixels of all columns depend on besides the theme (override)."""
        return None

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        """Premultiplied ARGB [height, columns] of the columns `at`, `scale` device pixels per pixel (override)."""
        raise NotImplementedError

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """Draw the same as shapes into a place in pixels, for SVG and PDF (override)."""
        raise NotImplementedError

    def boundingRect(self) -> QRectF:
        return QRectF(self._place)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Put the pixels onto whole pixels, whatever the transform of the data is."""
        if self._place.isEmpty():
            return
        place = painter.worldTransform().mapRect(self._place)
        place = QRectF(round(place.left()), place.top(), place.width(), place.height())
        painter.save()
        painter.setWorldTransform(QTransform())
        if is_vector(painter):
            self.draw_shapes(painter, place)
        else:
            self._blit(painter, place, raster_scale(painter))
        painter.restore()

    def _blit(self, painter: QPainter, place: QRectF, scale: int) -> None:
        height = max(1, round(place.height() * scale))
        self._update(height, scale)
        across = self._pixels.shape[1] // len(self._drawn)
        source = QRect((self._first - self._origin) * across, 0, len(self._values) * across, height)
        if device_scale(painter) == 1:
            # Of the same size to the last bit: anything else is stretched, which takes three times as long.
            painter.drawImage(QPoint(round(place.left()), round(place.top())), self._strip, source)
        else:
            painter.drawImage(place, self._strip, QRectF(source))

    def _update(self, height: int, scale: int) -> None:
        """Draw what is not in the strip yet."""
        columns, size = self._values.shape
        key = height, scale, size, theme().name, self.look()
        if key == self._key and not self._changed:
            return
        begin = self._first - self._origin
        if key != self._key or not 0 <= begin <= len(self._drawn) - columns:
            self._key, begin = key, SPARE // 2
            self._origin = self._first - begin
            self._drawn = np.full((columns + SPARE, size), np.nan)
            self._pixels, self._strip = np.empty((0, 0), np.uint32), QImage()
        kept = self._drawn[begin : begin + columns]
        fresh = np.flatnonzero((kept != self._values).any(axis=1))
        self._changed = False
        # What has grown lies apart from what has come into view.
        for part in np.split(fresh, np.flatnonzero(np.diff(fresh) > APART) + 1) if len(fresh) else ():
            at = slice(int(part[0]), int(part[-1]) + 1)
            kept[at] = self._values[at]
            pixels = self.draw_pixels(height, scale, at)
            across = pixels.shape[1] // (at.stop - at.start)
            if not len(self._pixels):
                wide = len(self._drawn) * across
                self._pixels = np.zeros((height, wide), np.uint32)
                form = QImage.Format.Format_ARGB32_Premultiplied
                self._strip = QImage(self._pixels.data, wide, height, 4 * wide, form)
            self._pixels[:, (begin + at.start) * across : (begin + at.stop) * across] = pixels


class PixelItem(QGraphicsItem):
    """Something drawn in the pixels of a plot's area (y down): texts stay upright and lines sharp."""

    def __init__(self, plot: TimePlot, z: float) -> None:
        super().__init__(plot.box)
        self.plot = plot
        self.setZValue(z)
        plot.box.sigResized.connect(lambda *_: self.prepareGeometryChange())

    def boundingRect(self) -> QRectF:
        width, height = self.plot.plot_size
        return QRectF(0, 0, width, height)

    def x_of(self, second: float) -> float:
        first, last = self.plot.visible
        return (second - first) / (last - first) * self.plot.columns

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.paint_pixels(painter, self.boundingRect())
        painter.restore()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        raise NotImplementedError


class Remark(PixelItem):
    """A sentence in an area of the plot: why nothing is drawn there."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=3.0)
        self.text = ""
        self._area = QRectF()

    def show_text(self, text: str, area: QRectF) -> None:
        self.text, self._area = text, area
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        painter.setFont(font(0.92))
        painter.setPen(theme().color("muted"))
        text = fitting(QFontMetricsF(painter.font()), self._area.width() - 8, self.text)
        write(painter, self._area, Qt.AlignmentFlag.AlignCenter, text)
