"""A stacked area over time: layers on top of each other in columns of pixels, in the colours of categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QPainter

from app.charts.items import RasterItem, polyline
from app.charts.raster import stacked
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.style.theme import theme
from profiler.analysis.categories import NOT_OWN
from profiler.arrays import F64, U32

ALWAYS = NOT_OWN
"""Layers that have their hatch on the screen as well: they are no part of the sum."""


class Stack(RasterItem):
    """Layers on top of each other, named after the categories whose colours they have; heights 0…1 are of the scale."""

    def __init__(self, plot: TimePlot, names: Sequence[str]) -> None:
        """`names`: from below; at most `raster.MAX_LAYERS`."""
        super().__init__(plot)
        self._names = names
        self.hatched = False
        """Whether layers have hatches: in a picture, which may be printed. On the screen the legend has them."""
        self._scale = Scale(0.0, 1.0)
        self._layers = np.empty((0, len(names)))

    def show_layers(self, layers: F64, scale: Scale, first_s: float, last_s: float) -> None:
        """Show other values [columns, layers] over these seconds; NaN: nothing is there."""
        self._scale, self._layers = scale, layers
        self.show_columns(first_s, last_s, 0.0, 1.0, scale.stacked(layers))

    def look(self) -> object:
        return self.hatched

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        """All layers of each column."""
        tokens = theme()
        ink = tokens.surface if tokens.is_dark else tokens.card
        colors = [tokens.category[name] for name in self._names]
        heights = self._values[at]
        if not (self.hatched or any(name in ALWAYS for name in self._names)):
            return stacked(heights, height, colors, ink)
        hatches = [tokens.hatch[name] if self.hatched or name in ALWAYS else "solid" for name in self._names]
        wide = np.repeat(heights, scale, axis=0)
        return stacked(wide, height, colors, ink, hatches, scale, self._first + at.start)

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """A polygon per layer."""
        layers = self._layers
        there = np.flatnonzero(np.isfinite(layers[:, 0]))
        if not len(there):
            return
        left, right = int(there[0]), int(there[-1]) + 1
        upper = np.cumsum(np.nan_to_num(layers[left:right]), axis=1)
        y = place.bottom() - self._scale.place(upper) * place.height()
        x = place.left() + np.arange(left, right + 1) / len(layers) * place.width()
        steps = np.repeat(x, 2)[1:-1]
        around, below = np.append(steps, steps[::-1]), np.full(len(steps), place.bottom())
        painter.setPen(Qt.PenStyle.NoPen)
        for layer, name in enumerate(self._names):
            above = np.repeat(y[:, layer], 2)
            if np.array_equal(above, below):
                continue
            for brush in (QBrush(theme().color(name)), theme().hatch_brush(name)):
                painter.setBrush(brush)
                painter.drawPolygon(polyline(around, np.append(above, below[::-1])))
            below = above
