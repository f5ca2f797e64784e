"""Spectrogram of the sound: time over frequency, the louder the more ink. It lies under the waveform."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.charts.items import RasterItem
from app.charts.raster import blended, opaque
from app.charts.time_plot import TimePlot
from app.model.spectrum import ABSENT_DB, BANDS, TOP_HZ, loudest_of
from app.style.theme import theme
from profiler.arrays import U32, Array

RANGE_DB = 60
"""What is so much quieter than the loudest in view has no ink."""

SHADES = 64


class Spectrogram(RasterItem):
    """Columns of levels, the low frequencies at the bottom."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot)
        self._levels: Array = np.empty((0, BANDS), np.int8)
        self._loudest = ABSENT_DB
        self.area = QRectF()
        """Where it is, in pixels from the top of the plot; empty where it is not shown."""

    def show_levels(self, levels: Array, seconds: tuple[float, float], area: QRectF, height: float) -> None:
        """Show levels [columns, BANDS] in dB over these seconds, in an area of a plot of this height, in pixels."""
        self._levels, self.area = levels, area
        self._loudest = int(levels.max(initial=ABSENT_DB))
        self.show_columns(*seconds, height - area.bottom(), height - area.top(), levels)

    def look(self) -> object:
        return self._loudest

    def hide_levels(self) -> None:
        self.area = QRectF()
        self.show_nothing()

    def frequency_at(self, y: float) -> float | None:
        """The frequency (Hz) at a height of the plot in pixels from its top; None outside."""
        inside = self.area.top() <= y <= self.area.bottom() and not self.area.isEmpty()
        return TOP_HZ * (self.area.bottom() - y) / self.area.height() if inside else None

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        """A shade for each column and row."""
        levels = loudest_of(self._levels[at].T, np.arange(height) * BANDS // height)[::-1]
        share = (levels.astype(np.float32) - (self._loudest - RANGE_DB)) / RANGE_DB
        shades = (np.clip(share, 0.0, 1.0) * (SHADES - 1)).astype(np.int64)
        card, ink = theme().card, theme().text
        inks = np.array([opaque(blended(card, ink, at / (SHADES - 1))) for at in range(SHADES)], np.uint32)
        return np.ascontiguousarray(np.where(levels == ABSENT_DB, np.uint32(0), inks[shades]))

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """A picture within the drawing: it has no shapes."""
        pixels = self.draw_pixels(max(1, round(place.height())), 1, slice(0, len(self._levels)))
        rows, across = pixels.shape
        image = QImage(pixels.data, across, rows, 4 * across, QImage.Format.Format_ARGB32_Premultiplied)
        painter.drawImage(place, image.copy())
