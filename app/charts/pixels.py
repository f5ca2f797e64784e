"""How charts put pixels and shapes onto a painter: on screens from arrays of pixels, in SVG and PDF as shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap


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

    def paint(self, painter: QPainter, area: QRectF, key: object, draw: Callable[[QPainter], None]) -> None:
        """Paint what `draw` draws into `area`; it is drawn again when `key`, size or scale is another."""
        if not is_pixels(painter):
            draw(painter)
            return
        scale = device_scale(painter)
        key = (key, area.width(), area.height(), scale)
        if self._pixels is None or key != self._key:
            size = area.size() * scale
            self._pixels = QPixmap(math.ceil(size.width()), math.ceil(size.height()))
            self._pixels.setDevicePixelRatio(scale)
            self._pixels.fill(Qt.GlobalColor.transparent)
            with QPainter(self._pixels) as within:
                within.translate(-area.topLeft())
                draw(within)
            self._key = key
        painter.drawPixmap(area.topLeft(), self._pixels)
