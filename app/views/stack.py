"""The stacked area of the cost view as a plot item: pixels on screens and in PNG, shapes in SVG and PDF."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen, QPolygonF

from app.views.columns import column_grid
from app.views.cost_model import CostModel
from app.views.frames import CATEGORIES
from app.views.painting import blit, is_vector, raster_scale
from app.views.plot import TimePlot
from app.views.plot_area import PixelItem
from app.views.raster import StackRaster
from app.views.strips import Strips, different
from app.views.swatch import paint_spike
from profiler.arrays import U32


class StackItem(PixelItem):
    """The stacked area with its grid, whose pixels are kept from one painting to the next."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.canvas, z=0.0)
        self._band = 0.0
        self._model: CostModel | None = None
        self._raster: tuple[tuple[str, int], StackRaster] | None = None
        self._strips = Strips()
        self._hatched = False

    def set_hatched(self, on: bool) -> None:
        """Hatch the layers: in a picture, which may be printed. On the screen the legend has the hatches."""
        if on != self._hatched:
            self._hatched = on
            self._raster = None
            self.update()

    @property
    def model(self) -> CostModel | None:
        """What is drawn."""
        return self._model

    @property
    def band(self) -> float:
        """Pixels left free at the top."""
        return self._band

    def set_model(self, model: CostModel | None, band: float = 0.0) -> None:
        """Show another model (None: nothing), leaving `band` pixels free at the top."""
        self._model = model
        self._band = band
        self.update()

    def data_area(self) -> QRectF:
        """Where values are drawn: below the marker labels."""
        area = self.boundingRect()
        return area.adjusted(0, min(self._band, max(0.0, area.height() - 1)), 0, 0)

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw grid, area, and the marks of what the scale cuts off."""
        model, tokens = self._model, self._tokens
        data = self.data_area()
        if model is None or data.height() < 2:
            return
        painter.setPen(QPen(tokens.color("grid"), 1))
        for place in model.scale.place(np.array(model.scale.ticks())).tolist():
            y = round(data.bottom() - place * data.height()) - 0.5
            painter.drawLine(QLineF(0, y, area.width(), y))
        if is_vector(painter):
            self._paint_shapes(painter, model, data)
        else:
            self._paint_raster(painter, model, data)
        self._paint_spikes(painter, model, data)

    def _paint_raster(self, painter: QPainter, model: CostModel, data: QRectF) -> None:
        scale = raster_scale(painter)
        height = max(1, round(data.height() * scale))
        raster = self._raster_for(scale)
        columns = len(model.mean_ms)
        first, width = column_grid(model.first_s, model.last_s, columns)

        def draw(begin: int, end: int) -> U32:
            mean = model.mean_ms[begin:end]
            if self._hatched:
                values = np.repeat(model.scale.stacked(mean), scale, axis=0)
                return raster.draw(values, 1.0, height, (first + begin) * scale)
            # Columns of a block look alike where no hatch runs through them.
            new = different(mean)
            pixels = raster.draw(model.scale.stacked(mean[new]), 1.0, height)
            return pixels[:, np.repeat(np.cumsum(new) - 1, scale)]

        key = (self._tokens.name, model.scale, width, self._hatched)
        self._strips.update(key, first, model.mean_ms, height, scale, draw)
        blit(painter, data, self._strips)

    def _raster_for(self, scale: int) -> StackRaster:
        key = (self._tokens.name, scale)
        if self._raster is None or self._raster[0] != key:
            tokens = self._tokens
            raster = StackRaster(
                [tokens.category[name] for name in CATEGORIES],
                [tokens.hatch[name] if self._hatched else "solid" for name in CATEGORIES],
                ink=tokens.surface if tokens.is_dark else tokens.card,
                scale=scale,
            )
            self._raster = (key, raster)
        return self._raster[1]

    def _paint_shapes(self, painter: QPainter, model: CostModel, data: QRectF) -> None:
        """The same stack as polygons, for SVG and PDF."""
        there = np.flatnonzero(np.isfinite(model.mean_ms[:, 0]))
        if not len(there):
            return
        left, right = int(there[0]), int(there[-1]) + 1
        upper = np.cumsum(np.nan_to_num(model.mean_ms[left:right]), axis=1)
        y = data.bottom() - model.scale.place(upper) * data.height()
        x = data.left() + np.arange(left, right + 1) / len(model.mean_ms) * data.width()
        steps = np.repeat(x, 2)[1:-1]
        below = np.full(len(steps), data.bottom())
        painter.setPen(Qt.PenStyle.NoPen)
        for layer, name in enumerate(CATEGORIES):
            above = np.repeat(y[:, layer], 2)
            if np.array_equal(above, below):
                continue
            outline = [QPointF(a, b) for a, b in zip(steps, above, strict=True)]
            outline += [QPointF(a, b) for a, b in zip(steps[::-1], below[::-1], strict=True)]
            for brush in (QBrush(self._tokens.color(name)), self._tokens.hatch_brush(name)):
                painter.setBrush(brush)
                painter.drawPolygon(QPolygonF(outline))
            below = above

    def _paint_spikes(self, painter: QPainter, model: CostModel, data: QRectF) -> None:
        if not model.spikes:
            return
        color = self._tokens.color("danger")
        per_column = data.width() / len(model.mean_ms)
        for column in model.spikes:
            paint_spike(painter, (column + 0.5) * per_column, data.top(), color)
