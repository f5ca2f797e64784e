"""How charts put pixels and shapes onto a painter: on screens from arrays of pixels, in SVG and PDF as shapes."""

import math
from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPaintEngine, QPainter, QPixmap

from app.style.theme import theme


def device_scale(painter: QPainter) -> float:
    """Device pixels per unit of the painter, by its transform: inside `QWidget.render` the device is the widget."""
    to_device = painter.deviceTransform()
    return math.hypot(to_device.m11(), to_device.m12())


def is_vector(painter: QPainter) -> bool:
    """True when drawing for SVG or PDF, where shapes beat pixels."""
    return painter.paintEngine().type() in (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf)


def is_pixels(painter: QPainter) -> bool:
    return painter.paintEngine().type() == QPaintEngine.Type.Raster


MAX_DEVICE_SCALE = 4  # Beyond this many device pixels per pixel a chart is stretched instead of drawn finer


def raster_scale(painter: QPainter) -> int:
    """Device pixels per column in which a chart is drawn for a painter."""
    return min(max(1, math.ceil(device_scale(painter) - 0.01)), MAX_DEVICE_SCALE)


MOST_STILLS = 192  # Pictures that are kept at once, those painted last: a time axis has another label every second


class Stills:
    """Texts and signs that change less often than charts are painted: laying one out takes ten times as long."""

    def __init__(self) -> None:
        self._pixels: dict[object, QPixmap] = {}
        self._of: tuple[float, str] | None = None

    def drop(self) -> None:
        self._pixels.clear()

    def paint(
        self, painter: QPainter, area: QRectF, key: object, draw: Callable[[QPainter], None], scale: float
    ) -> None:
        """Paint what `draw` draws into `area`, kept by key, size and theme; `scale` of `still_scale`: 0 keeps none."""
        if not scale:
            draw(painter)
            return
        if (scale, theme().name) != self._of:
            self._of = scale, theme().name
            self._pixels.clear()
        place = key, area.width(), area.height()
        pixels = self._pixels.pop(place, None)
        if pixels is None:
            size = area.size() * scale
            pixels = QPixmap(math.ceil(size.width()), math.ceil(size.height()))
            pixels.setDevicePixelRatio(scale)
            pixels.fill(Qt.GlobalColor.transparent)
            with QPainter(pixels) as within:
                within.setPen(painter.pen())
                within.setFont(painter.font())
                within.translate(-area.topLeft())
                draw(within)
            if len(self._pixels) >= MOST_STILLS:
                del self._pixels[next(iter(self._pixels))]
        self._pixels[place] = pixels
        painter.drawPixmap(area.topLeft(), pixels)


def still_scale(painter: QPainter) -> int:
    """Device pixels per pixel where kept pixels look as if drawn there: on whole pixels of a screen; else 0."""
    scale = device_scale(painter) if is_pixels(painter) else 0.0
    return int(scale) if scale == int(scale) else 0
