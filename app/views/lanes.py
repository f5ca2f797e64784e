"""A view of lanes over audio time: small multiples, every quantity with its own lane, scale and unit.

So none is read against the axis of another. A column shows the range of its values (a single high one stays visible)
and their mean. Curves scroll with the data; headings stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.charts.items import Levels, PixelItem, RasterItem, bars, polyline
from app.charts.legend import ReadoutLine
from app.charts.raster import between, opaque, uprights
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import blended, font, theme
from app.views.chart import ChartView
from app.views.lanes_model import Curve, LanesModel, Panel, stretches
from app.views.table_twin import Table
from profiler.analysis.track import CostTrack
from profiler.arrays import F64, U32
from profiler.plain import clock
from profiler.session.reader import Session

BAND = 0.72  # How far the band from least to greatest value is moved towards the card: skipping makes it fill a lane
HEADING = 15  # Pixels above each lane's curve for its name and figures
DASHES = (1, 2)  # A dotted line in pixels: columns drawn and columns left out
ROOM_FOR_BOTTOM = 30  # A lane lower than this has a label at its upper end only


class Quantity(NamedTuple):
    """How a quantity is shown."""

    title: str  # Its name
    color: str  # Category or token whose colour its curve takes
    short: str = ""  # Its name where there is little room; empty: the same
    dotted: bool = False  # Whether its curve is; several curves of a lane differ in their line as well as in colour
    unit: str = ""  # Of the table twin's column; empty for counts

    @property
    def line(self) -> Qt.PenStyle:
        return Qt.PenStyle.DotLine if self.dotted else Qt.PenStyle.SolidLine


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


class PanelsItem(RasterItem):
    """The lanes: upright strokes in the columns of pixels; in SVG and PDF, lines."""

    def __init__(self, plot: TimePlot, quantity: Callable[[str], Quantity]) -> None:
        super().__init__(plot)
        self._plot, self._quantity = plot, quantity
        self._edges = Levels(plot)
        self._curves: list[_Drawn] = []
        self._ends = np.empty((0, 0))

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn, in pixels from the top of the plot."""
        width, height = self._plot.plot_size
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, height / max(1, len(panels)) / 2)
        each = (height - len(panels) * (head + 2)) / max(1, len(panels))
        tops = (number * (head + 2 + each) + head for number in range(len(panels)))
        return [QRectF(0, round(top), width, round(each)) for top in tops]

    def set_model(self, model: LanesModel | None) -> None:
        panels = () if model is None else model.panels
        height, rects = self._plot.plot_size[1], self.panel_rects(panels)
        y = height - np.array([[round(r.bottom()), round(r.top())] for r in rects]).ravel()
        self._edges.show_levels(y.astype(np.float64))
        if model is None or not panels:
            self.show_nothing()
            return
        lanes = zip(panels, rects, strict=True)
        self._curves = [_Drawn(panel, curve, rect) for panel, rect in lanes for curve in reversed(panel.curves)]
        self._ends = np.concatenate([drawn.ends() for drawn in self._curves])
        self.show_columns(model.first_s, model.last_s, 0.0, float(height), np.nan_to_num(self._ends.T, nan=-1.0))

    def look(self) -> object:
        return tuple((drawn.curve.name, drawn.rect.top()) for drawn in self._curves)

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        number = self._first + np.arange(at.start, at.stop)
        pixels = np.zeros((height, len(number)), np.uint32)
        for (_, curve, rect), ends in zip(self._curves, self._ends.reshape(len(self._curves), 4, -1), strict=True):
            low, high, mean, joined = ends[:, at]
            within = pixels[round(rect.top() * scale) : round(rect.bottom() * scale)]
            quantity = self._quantity(curve.name)
            color = theme().color(quantity.color).name()
            uprights(within, *between(high, low, scale), opaque(blended(color, theme().card, BAND)))
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
            x = place.left() + (there + 0.5) / len(curve.mean) * place.width()
            values = np.stack([curve.low[there], curve.high[there], curve.mean[there]])
            low, high, mean = heights_of(panel, rect.translated(0, place.top()), values)
            quantity = self._quantity(curve.name)
            color = theme().color(quantity.color)
            painter.setPen(QPen(QColor(blended(color.name(), theme().card, BAND)), 1))
            painter.drawPolyline(bars(x, high, low))
            painter.setPen(QPen(color, 1, quantity.line))
            painter.drawPolyline(polyline(x, mean))


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, view: LanesView) -> None:
        super().__init__(view.plot, z=110.0)
        self._view = view
        self._model: LanesModel | None = None
        self._face = font(0.92)
        self._wide = QFontMetricsF(self._face).horizontalAdvance

    def set_model(self, model: LanesModel | None) -> None:
        self._model = model
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        if self._model is not None:
            painter.setFont(self._face)
            rects = self._view.panels.panel_rects(self._model.panels)
            for panel, rect in zip(self._model.panels, rects, strict=True):
                self._paint_heading(painter, panel, rect.top() - HEADING)

    def _paint_heading(self, painter: QPainter, panel: Panel, y: float) -> None:
        # The lanes reach further than what is seen of them.
        room, wide = self.boundingRect().width(), self._wide
        quantities = [self._view.quantity(curve.name) for curve in panel.curves]
        titles, short = [one.title for one in quantities], [one.short or one.title for one in quantities]
        means, nothing = [self._view.average(curve) for curve in panel.curves], [""] * len(quantities)
        for names, figures in ((titles, means), (short, means), (titles, nothing), (short, nothing)):
            pairs = zip(names, figures, strict=True)
            needed = sum(31 + wide(name) + (7 + wide(mean) if mean else 0) for name, mean in pairs) - 16
            if needed <= room:
                break
        note = QCoreApplication.translate("Lanes", "logarithmic") if panel.scale.log else ""
        if needed + 16 + wide(note) > room:
            note = ""
        # Under all of it: a line between two words would look as if it struck one out.
        whole = min(needed + (16 + wide(note) if note else 0), room)
        painter.fillRect(QRectF(-1, y + 1, whole + 4, HEADING - 2), theme().color("card"))
        x = 0.0
        for quantity, name, mean in zip(quantities, names, figures, strict=True):
            painter.setPen(QPen(theme().color(quantity.color), 2, quantity.line))
            painter.drawLine(QLineF(x, y + HEADING / 2, x + 10, y + HEADING / 2))
            x = self._word(painter, QPointF(x + 15, y), name, "text")
            if mean:
                x = self._word(painter, QPointF(x + 7, y), mean, "muted")
            x += 16
        if note:
            self._word(painter, QPointF(x, y), note, "muted")

    def _word(self, painter: QPainter, at: QPointF, text: str, token: str) -> float:
        """Draw a word; return where it ends."""
        width = self._wide(text)
        painter.setPen(theme().color(token))
        write(painter, QRectF(at.x(), at.y(), width + 2, HEADING), Qt.AlignmentFlag.AlignVCenter, text)
        return at.x() + width


Maker = Callable[  # Makes the model of a session: arguments as those of `work_model`
    ["Session", "CostTrack", int, tuple[float, float], int, Mapping[str, Scale] | None, tuple[int, int], bool],
    LanesModel,
]


class LanesView(ChartView[LanesModel]):
    """Lanes below each other. A subclass sets `shown`, and overrides the figures and the texts."""

    shown: ClassVar[Mapping[str, Quantity]]  # The quantities, untranslated

    def __init__(self, axis: TimeAxis, make_model: Maker) -> None:
        super().__init__(axis)
        self._make_model = make_model
        self.panels = PanelsItem(self.plot, self.quantity)
        self.headings = HeadingsItem(self)
        self._scales: dict[str, Scale] = {}

    def reduce(
        self, snapshot: Snapshot, columns: int, visible: tuple[float, float], in_blocks: bool = True
    ) -> LanesModel:
        of, scope = (snapshot.session, snapshot.track, snapshot.end_frame), snapshot.desk.scope
        counted = scope.first, scope.last
        return self._make_model(*of, visible, columns, self._scales, counted, in_blocks)

    def quantity(self, name: str) -> Quantity:
        one = self.shown[name]
        return one._replace(title=self.tr(one.title), short=self.tr(one.short))

    def figure(self, name: str, value: float) -> str:
        """A quantity's value with its unit, as people read it."""
        raise NotImplementedError

    def axis_figure(self, name: str, value: float) -> str:
        """A value with its unit for the gutter: 8k, 40 MB, 1.5 ms."""
        return self.figure(name, value)

    def average(self, curve: Curve) -> str:
        """A curve's mean as people read it (override to say of what it is a part)."""
        return self.figure(curve.name, curve.average)

    def cell(self, name: str, value: float) -> str:
        raise NotImplementedError

    def show_model(self, model: LanesModel | None) -> None:
        self.panels.set_model(model)
        self._scales = {} if model is None else model.scales
        if model is None:
            self.headings.set_model(None)
            self.plot.set_ticks([])
            return
        height = float(self.plot.plot_size[1])
        self.plot.set_height_range(0.0, height)
        labels = []
        for panel, rect in zip(model.panels, self.panels.panel_rects(model.panels), strict=True):
            name = panel.curves[0].name
            if rect.height() >= ROOM_FOR_BOTTOM:
                labels.append((height - rect.bottom() + 3, self.axis_figure(name, panel.scale.bottom)))
            labels.append((height - rect.top() - 4, self.axis_figure(name, panel.scale.top)))
        self.plot.set_ticks(labels)

    def readout(self, model: LanesModel, second: float) -> list[ReadoutLine]:
        column = model.column_at(second)
        if column is None:
            return []
        lines = [ReadoutLine(clock(second, 2), self.readout_head(), strong=True)]
        for curve in model.curves:
            if np.isfinite(curve.mean[column]):
                one = self.quantity(curve.name)
                lines.append(ReadoutLine(one.title, self.figure(curve.name, float(curve.mean[column])), one.color))
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
        visible = self.axis.visible
        model = self.reduce(self.snapshot, stretches(visible), visible, in_blocks=False)
        columns = []
        for curve in model.curves:
            one = self.quantity(curve.name)
            title = f"{one.title}, {one.unit}" if one.unit else one.title
            columns.append((title, curve.name, curve.mean))
            if curve.high is not curve.mean:  # of some only means are known
                columns.append((self.tr("{0}, max").format(title), curve.name, curve.high))

        def cells(row: int) -> list[str]:
            return [self.cell(name, float(of[row])) if np.isfinite(of[row]) else "" for _, name, of in columns]

        return headers + [title for title, *_ in columns], model.rows(cells)
