"""A view of lanes over audio time: small multiples, every quantity with its own lane, scale and unit.

So none is read against the axis of another. A column shows the range of its values (a single high one stays visible)
and their mean. Curves scroll with the data; headings stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.charts.items import Levels, PixelItem, RasterItem, bars, polyline
from app.charts.legend import Line
from app.charts.raster import between, opaque, uprights
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import blended, font, theme
from app.views.chart import ChartView
from app.views.lanes_model import Curve, LanesModel, Panel
from app.views.table_twin import Table
from profiler.arrays import F64, U32
from profiler.clock import FRAME_S
from profiler.plain import clock

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

BAND = 0.72
"""How far the band from least to greatest value is moved towards the card: a trick that takes turns fills a lane."""

HEADING = 15  # Pixels above each lane's curve for its name and figures
DASHES = (1, 2)  # A dotted line in pixels: columns drawn and columns left out
ROOM_FOR_BOTTOM = 30  # A lane lower than this has a label at its upper end only
TABLE_ROWS = 200  # Rows of the table twin: stretches of the visible range


@dataclass(frozen=True)
class Quantity:
    """How a quantity is shown.

    Attributes:
        title: its name, translated.
        color: category or token whose colour its curve takes.
        axis_figure: a value with its unit for the gutter: 8k, 40 MB, 1.5 ms.
        figure: a value with its unit, as people read it.
        short: its name where there is little room; empty: the same.
        dotted: whether its curve is; several curves of a lane differ in their line as well as in colour.
        unit: of the table twin's column; empty for counts.
    """

    title: str
    color: str
    axis_figure: Callable[[float], str]
    figure: Callable[[float], str]
    short: str = ""
    dotted: bool = False
    unit: str = ""


Quantities = Callable[[str], Quantity]
Average = Callable[[Curve], str]


class PanelsItem(RasterItem):
    """The lanes: upright strokes in the columns of pixels; in SVG and PDF, lines."""

    def __init__(self, plot: TimePlot, quantities: Quantities) -> None:
        super().__init__(plot)
        self._plot, self._quantities = plot, quantities
        self._edges = Levels(plot)
        self._curves: list[_Drawn] = []
        self._ends = np.empty((0, 0))

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn, in pixels from the top of the plot."""
        width, height = self._plot.plot_size()
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, height / max(1, len(panels)) / 2)
        each = (height - len(panels) * (head + 2)) / max(1, len(panels))
        tops = (number * (head + 2 + each) + head for number in range(len(panels)))
        return [QRectF(0, round(top), width, round(each)) for top in tops]

    def set_model(self, model: LanesModel | None) -> None:
        """Show another model; None shows nothing."""
        panels = () if model is None else model.panels
        height, rects = self._plot.plot_size()[1], self.panel_rects(panels)
        y = height - np.array([[round(r.bottom()), round(r.top())] for r in rects]).ravel()
        self._edges.show_levels(y.astype(np.float64))
        if model is None or not panels:
            self.show_nothing()
            return
        self._curves = [
            _Drawn(panel, curve, rect)
            for panel, rect in zip(panels, rects, strict=True)
            for curve in reversed(panel.curves)
        ]
        self._ends = np.concatenate([drawn.ends() for drawn in self._curves])
        values = np.nan_to_num(self._ends.T, nan=-1.0)
        self.show_columns(model.first_s, model.last_s, 0.0, float(height), values)

    def look(self) -> object:
        return tuple((drawn.curve.name, drawn.rect.top()) for drawn in self._curves)

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        number = self._first + np.arange(at.start, at.stop)
        pixels = np.zeros((height, len(number)), np.uint32)
        for (_, curve, rect), ends in zip(self._curves, self._ends.reshape(len(self._curves), 4, -1), strict=True):
            low, high, mean, joined = ends[:, at]
            within = pixels[round(rect.top() * scale) : round(rect.bottom() * scale)]
            quantity = self._quantities(curve.name)
            color = theme().color(quantity.color).name()
            band = opaque(blended(color, theme().card, BAND))
            uprights(within, *between(high, low, scale), band)
            top, bottom = between(joined, mean, scale)
            if quantity.dotted:
                bottom[number % sum(DASHES) >= DASHES[0]] = -1
            uprights(within, top, bottom, opaque(color))
        return pixels

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        for panel, curve, rect in self._curves:
            there = np.flatnonzero(np.isfinite(curve.mean))
            if not len(there):
                continue
            lane = rect.translated(0, place.top())
            x = place.left() + (there + 0.5) / len(curve.mean) * place.width()
            values = np.stack([curve.low[there], curve.high[there], curve.mean[there]])
            low, high, mean = heights_of(panel, lane, values)
            quantity = self._quantities(curve.name)
            color = theme().color(quantity.color)
            painter.setPen(QPen(QColor(blended(color.name(), theme().card, BAND)), 1))
            painter.drawPolyline(bars(x, high, low))
            painter.setPen(QPen(color, 1, line_style(quantity)))
            painter.drawPolyline(polyline(x, mean))


class _Drawn(NamedTuple):
    panel: Panel
    curve: Curve
    rect: QRectF

    def ends(self) -> F64:
        """Heights of least, greatest and mean values, and of the means before [4, columns], pixels from the top."""
        # Within its lane alone: the others have nothing to do with it.
        lane = QRectF(0, 0, self.rect.width(), self.rect.height())
        low, high, mean = heights_of(self.panel, lane, np.stack([self.curve.low, self.curve.high, self.curve.mean]))
        # The line joins each mean to the one before.
        joined = np.append(mean[:1], mean[:-1])
        return np.stack([low, high, mean, np.where(np.isfinite(joined), joined, mean)])


def heights_of(panel: Panel, rect: QRectF, values: F64) -> F64:
    bottom, height = rect.bottom() - 1, rect.height() - 2
    return bottom - panel.scale.place(values) * height


def line_style(quantity: Quantity) -> Qt.PenStyle:
    return Qt.PenStyle.DotLine if quantity.dotted else Qt.PenStyle.SolidLine


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, panels: PanelsItem, quantities: Quantities, average: Average) -> None:
        super().__init__(plot, z=110.0)
        self._panels, self._quantities, self._average = panels, quantities, average
        self._model: LanesModel | None = None
        self._face = font(0.92)
        self._wide = QFontMetricsF(self._face).horizontalAdvance

    def set_model(self, model: LanesModel | None) -> None:
        self._model = model
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        model = self._model
        if model is None:
            return
        for panel, rect in zip(model.panels, self._panels.panel_rects(model.panels), strict=True):
            self._paint_heading(painter, panel, rect)

    def _paint_heading(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        painter.setFont(self._face)
        # The lanes reach further than what is seen of them.
        room, x, y = self.boundingRect().width(), 0.0, rect.top() - HEADING
        quantities = {curve.name: self._quantities(curve.name) for curve in panel.curves}
        titles = {name: one.title for name, one in quantities.items()}
        figures = {curve.name: self._average(curve) for curve in panel.curves}
        short = {name: one.short or one.title for name, one in quantities.items()}
        wide, nothing = self._wide, dict.fromkeys(titles, "")
        for names, means in ((titles, figures), (short, figures), (titles, nothing), (short, nothing)):
            needed = sum(31 + wide(names[n]) + (7 + wide(means[n]) if means[n] else 0) for n in names)
            if needed - 16 <= room:
                break
        note = QCoreApplication.translate("Lanes", "logarithmic") if panel.scale.log else ""
        if needed + wide(note) > room:
            note = ""
        # Under all of it: a line between two words would look as if it struck one out.
        whole = min(needed - 16 + (16 + wide(note) if note else 0), room)
        ground = QRectF(-1, y + 1, whole + 4, HEADING - 2)
        painter.fillRect(ground, theme().color("card"))
        for name, title in names.items():
            self._swatch(painter, quantities[name], x, y + HEADING / 2)
            x = self._word(painter, QPointF(x + 15, y), title, "text")
            if means[name]:
                x = self._word(painter, QPointF(x + 7, y), means[name], "muted")
            x += 16
        if note:
            self._word(painter, QPointF(x, y), note, "muted")

    def _swatch(self, painter: QPainter, quantity: Quantity, x: float, y: float) -> None:
        painter.setPen(QPen(theme().color(quantity.color), 2, line_style(quantity)))
        painter.drawLine(QLineF(x, y, x + 10, y))

    def _word(self, painter: QPainter, at: QPointF, text: str, token: str) -> float:
        """Draw a word; return where it ends."""
        width = self._wide(text)
        painter.setPen(theme().color(token))
        place = QRectF(at.x(), at.y(), width + 2, HEADING)
        write(painter, place, Qt.AlignmentFlag.AlignVCenter, text)
        return at.x() + width


MakeModel = Callable[
    ["Session", "CostTrack", int, tuple[float, float], int, Mapping[str, Scale], tuple[int, int], bool], LanesModel
]
"""Makes the model of a session: arguments as those of `work_model`."""


class LanesView(ChartView[LanesModel]):
    """Lanes below each other. A subclass overrides `quantity`, `average`, `cell` and the texts."""

    def __init__(self, axis: TimeAxis, make_model: MakeModel) -> None:
        super().__init__(axis)
        self._make_model = make_model
        self.panels = PanelsItem(self.plot, self.quantity)
        self.headings = HeadingsItem(self.plot, self.panels, self.quantity, self.average)
        self._scales: dict[str, Scale] = {}

    def reduce(
        self, snapshot: Snapshot, columns: int, visible: tuple[float, float], in_blocks: bool = True
    ) -> LanesModel:
        return self._make_model(
            snapshot.session,
            snapshot.track,
            snapshot.end_frame,
            visible,
            columns,
            self._scales,
            (snapshot.desk.scope.first, snapshot.desk.scope.last),
            in_blocks,
        )

    def quantity(self, name: str) -> Quantity:
        raise NotImplementedError

    def average(self, curve: Curve) -> str:
        """A curve's mean as people read it (override to say of what it is a part)."""
        return self.quantity(curve.name).figure(curve.average)

    def cell(self, name: str, value: float) -> str:
        raise NotImplementedError

    def show_model(self, model: LanesModel | None) -> None:
        self.panels.set_model(model)
        self._scales = {} if model is None else model.scales
        if model is None:
            self.headings.set_model(None)
            self.plot.set_ticks([])
            return
        height = float(self.plot.plot_size()[1])
        self.plot.set_height_range(0.0, height)
        labels = []
        rects = self.panels.panel_rects(model.panels)
        for panel, rect in zip(model.panels, rects, strict=True):
            text, scale = self.quantity(panel.curves[0].name).axis_figure, panel.scale
            if rect.height() >= ROOM_FOR_BOTTOM:
                labels.append((height - rect.bottom() + 3, text(scale.bottom)))
            labels.append((height - rect.top() - 4, text(scale.top)))
        self.plot.set_ticks(labels)

    def readout(self, model: LanesModel, second: float) -> list[Line]:
        column = model.column_at(second)
        there = [] if column is None else [curve for curve in model.curves if np.isfinite(curve.mean[column])]
        lines = [Line(clock(second, 2), self.readout_head(), strong=True)] if there else []
        for curve in there:
            one = self.quantity(curve.name)
            lines.append(Line(one.title, one.figure(float(curve.mean[column])), one.color))
        return lines

    @property
    def extent(self) -> str:
        return "" if self.snapshot is None else self.snapshot.desk.scope.extent

    def readout_head(self) -> str:
        return ""

    def table(self) -> Table:
        headers = [self.tr("from s"), self.tr("to s")]
        if self.snapshot is None:
            return headers, []
        first, last = self.axis.visible
        wanted = min(TABLE_ROWS, max(1, round((last - first) / FRAME_S)))
        model = self.reduce(self.snapshot, wanted, (first, last), in_blocks=False)
        step = (last - first) / wanted
        for curve in model.curves:
            one = self.quantity(curve.name)
            title = f"{one.title}, {one.unit}" if one.unit else one.title
            headers.append(title)
            if curve.high is not curve.mean:  # of some only means are known
                headers.append(self.tr("{0}, max").format(title))
        rows: list[list[object]] = []
        for row in range(wanted):
            if not any(np.isfinite(curve.mean[row]) for curve in model.curves):
                continue
            start = first + row * step
            cells: list[object] = [f"{start:.2f}", f"{start + step:.2f}"]
            for curve in model.curves:
                values = (curve.mean, curve.high)[: 1 + (curve.high is not curve.mean)]
                cells += [self.cell(curve.name, float(v[row])) if np.isfinite(v[row]) else "" for v in values]
            rows.append(cells)
        return headers, rows
