"""How charts put pixels and shapes onto a painter: on screens from arrays of pixels, in SVG and PDF as shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import shiboken6
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap, QPolygonF

from profiler.arrays import F64


def polyline(x: F64, y: F64) -> QPolygonF:
    """Points [n] as a polygon for `QPainter.drawPolyline`.

    They are written into its memory: an object for each point takes 50 times as long, and a live chart has hundreds.

    Raises:
        ValueError: not one `y` for each `x`.
    """
    if len(x) != len(y):  # one of them would be taken for all
        raise ValueError(f"{len(x)} x and {len(y)} y")
    points = QPolygonF()
    points.resize(len(x))
    if len(x):
        # Its stub knows neither where it may point to nor that it is a buffer.
        memory = shiboken6.VoidPtr(points.data(), 2 * 8 * len(x), True)  # type: ignore[call-arg, arg-type]
        pairs = np.frombuffer(memory, np.float64).reshape(-1, 2)  # type: ignore[call-overload]
        pairs[:, 0], pairs[:, 1] = x, y
    return points


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
    """True when drawing for SVG or PDF, where shapes beat pixels."""
    return painter.paintEngine().type() in (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf)


def is_pixels(painter: QPainter) -> bool:
    """True on a screen and in PNG: what was drawn before can be painted as it was."""
    return painter.paintEngine().type() == QPaintEngine.Type.Raster


MAX_DEVICE_SCALE = 4
"""Beyond this many device pixels per pixel a chart is stretched instead of drawn finer."""


def raster_scale(painter: QPainter) -> int:
    """Device pixels per column in which a chart is drawn for a painter."""
    return min(max(1, math.ceil(device_scale(painter) - 0.01)), MAX_DEVICE_SCALE)


class Still:
    """A part of a chart that changes less often than the chart is painted: its pixels are kept."""

    def __init__(self) -> None:
        self._pixels: QPixmap | None = None
        self._key: object = None

    def drop(self) -> None:
        """Draw it afresh when it is painted next."""
        self._pixels = None

    def paint(
        self, painter: QPainter, area: QRectF, key: object, draw: Callable[[QPainter], None]
    ) -> None:
        """Paint what `draw` draws into `area`; it is drawn again when `key`, size or scale is another."""
        if not is_pixels(painter):
            draw(painter)
            return
        scale = device_scale(painter)
        key = (key, area.width(), area.height(), scale)
        if self._pixels is None or key != self._key:

            def moved(within: QPainter) -> None:
                within.translate(-area.topLeft())
                draw(within)

            self._pixels, self._key = drawn_on_pixels(area.size(), scale, moved), key
        painter.drawPixmap(area.topLeft(), self._pixels)


class Stamps:
    """Small drawings of which each comes again and again: their pixels are kept.

    Args:
        kept: most of them; then they are all forgotten.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._pixels: dict[object, QPixmap] = {}
        self.drawn = 0
        """Drawings made so far, for tests."""

    def paint(
        self,
        painter: QPainter,
        area: QRectF,
        key: object,
        draw: Callable[[QPainter], None],
        scale: float | None = None,
    ) -> None:
        """Paint what `draw` draws into a rectangle of the size of `area` at its own origin.

        Args:
            painter: what to paint with.
            area: where.
            key: what is drawn.
            draw: called where it is not known yet.
            scale: `stamp_scale` of the painter, where many are painted in one go.
        """
        scale = stamp_scale(painter) if scale is None else scale
        if not scale:
            painter.save()
            painter.translate(area.topLeft())
            draw(painter)
            painter.restore()
            return
        key = (key, area.width(), area.height(), scale)
        pixels = self._pixels.get(key)
        if pixels is None:
            if len(self._pixels) >= self._kept:
                self._pixels.clear()
            self.drawn += 1
            pixels = self._pixels[key] = drawn_on_pixels(area.size(), scale, draw)
        painter.drawPixmap(area.topLeft(), pixels)


def stamp_scale(painter: QPainter) -> float:
    """Device pixels per unit of a painter that keeps pixels; 0 where it draws everything."""
    return device_scale(painter) if is_pixels(painter) else 0.0


def drawn_on_pixels(size: QSizeF, scale: float, draw: Callable[[QPainter], None]) -> QPixmap:
    """What `draw` draws at the origin, on transparent ground."""
    pixels = QPixmap(math.ceil(size.width() * scale), math.ceil(size.height() * scale))
    pixels.setDevicePixelRatio(scale)
    pixels.fill(Qt.GlobalColor.transparent)
    with QPainter(pixels) as within:
        draw(within)
    return pixels
