"""Work per frame as small multiples over audio time: tokens, beam, senones, Gaussians, bytes and time of scoring.

Every quantity has its own lane, scale and unit, so that none is read against the axis of another. A
block of columns shows the range of its frames (a single expensive frame stays visible) and their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import Tokens, font, theme
from app.views.chart import ChartView
from app.views.columns import column_grid
from app.views.painting import Still, bars, blit, is_vector, polyline, raster_scale
from app.views.plot import TimePlot
from app.views.plot_area import PixelItem
from app.views.raster import blended
from app.views.readout import Line
from app.views.scale import Scale, clock, count
from app.views.strips import Strips, between, opaque, uprights
from app.views.table_twin import Table
from app.views.work_figures import average, axis_figure, figure
from app.views.work_model import SCORING_TIME, Curve, Panel, WorkModel, work_model
from profiler.analysis.track import SCORING_BYTES
from profiler.arrays import F64, U32
from profiler.frames import FRAME_S

BAND = 0.72
"""How far the band from least to greatest value is moved towards the card: a trick that takes turns fills a lane."""

WIDTHS_KEPT = 256
"""Texts of headings whose width is kept."""

HEADING = 15
"""Pixels above each lane's curve for its name and figures."""

COLORS = {
    "search tokens": "search",
    "search beam": "search",
    "search.beam": "search",
    "search senones": "frontend",
    "scoring senones": "memory",
    "scoring gaussians": "compute",
    "scoring components": "frontend",
    SCORING_BYTES: "memory",
    SCORING_TIME: "text",
}
"""Category whose colour a quantity's curve takes: the part of the cost that it drives."""

TITLES = {
    "search tokens": "tokens",
    "search beam": "beam in use",
    "search.beam": "beam in use",
    "search senones": "active senones",
    "scoring senones": "senones scored",
    "scoring gaussians": "Gaussians",
    "scoring components": "components summed",
    SCORING_BYTES: "bytes (modelled)",
    SCORING_TIME: "scoring time",
}

SHORT = {"senones scored": "scored", "active senones": "active", "components summed": "summed"}
"""Where there is little room."""

UNITS = {"search beam": "nat", "search.beam": "nat", SCORING_BYTES: "B", SCORING_TIME: "ms"}
"""Of the table twin's columns; the others are counts."""

STYLES = {"scoring components": Qt.PenStyle.DotLine}
"""Several curves of a lane differ in their line as well as in colour."""

ROOM_FOR_BOTTOM = 30
"""A lane lower than this has a label at its upper end only."""

DASHES = {"scoring components": (1, 2)}
"""The same styles in pixels: columns drawn and columns left out."""

WHOLE_FROM = 100
"""Means from here on have no decimals in the table."""

TABLE_ROWS = 200
"""Rows of the table twin: stretches of the visible range."""


class PanelsItem(PixelItem):
    """The lanes: upright strokes in the columns of pixels; in SVG and PDF, lines."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.canvas, z=0.0)
        self._strips = Strips()
        self.model: WorkModel | None = None

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model; None shows nothing."""
        self.model = model
        self.update()

    def panel_rects(self, panels: Sequence[Panel]) -> list[QRectF]:
        """Where each lane's curve is drawn."""
        area = self.boundingRect()
        # Headings take the same room everywhere, the curves share the rest.
        head = min(HEADING, area.height() / max(1, len(panels)) / 2)
        each = (area.height() - len(panels) * (head + 2)) / max(1, len(panels))
        rects, top = [], 0.0
        for _ in panels:
            rects.append(QRectF(0, round(top + head), area.width(), round(each)))
            top += head + 2 + each
        return rects

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw every lane with its heading."""
        if self.model is None:
            return
        panels = self.model.panels
        rects = self.panel_rects(panels)
        for panel, rect in zip(panels, rects, strict=True):
            self._paint_panel(painter, panel, rect)
        if not is_vector(painter):
            self._paint_raster(painter, self.model, rects, area)
            return
        for panel, rect in zip(panels, rects, strict=True):
            for curve in reversed(panel.curves):
                self._paint_curve(painter, panel, curve, rect)

    def _paint_raster(
        self, painter: QPainter, model: WorkModel, rects: list[QRectF], area: QRectF
    ) -> None:
        """All curves, as upright strokes in the columns of pixels."""
        scale = raster_scale(painter)
        height = max(1, round(area.height() * scale))
        drawn = [
            (panel, curve, rect)
            for panel, rect in zip(model.panels, rects, strict=True)
            for curve in reversed(panel.curves)
        ]
        if not drawn:
            return
        columns = len(drawn[0][1].mean)
        first, width = column_grid(model.first_s, model.last_s, columns)
        # Per curve: least, greatest, mean, and the mean of the column before [curves, 4, columns].
        values = np.empty((len(drawn), 4, columns))
        for (_, curve, _), rows in zip(drawn, values, strict=True):
            rows[:3] = curve.low, curve.high, curve.mean
            rows[3, :1], rows[3, 1:] = curve.mean[:1], curve.mean[:-1]

        def draw(begin: int, end: int) -> U32:
            pixels = np.zeros((height, (end - begin) * scale), np.uint32)
            number = first + np.arange(begin, end)
            places = np.empty((4, len(drawn), end - begin))
            for at, (panel, _, rect) in enumerate(drawn):
                # Within its lane alone: the others have nothing to do with it.
                lane = QRectF(0, 0, rect.width(), rect.height())
                places[:, at] = heights_of(panel, lane, values[at, :, begin:end])
            low, high, mean, joined = places
            # The line joins each mean to the one before.
            joined = np.where(np.isfinite(joined), joined, mean)
            bands, lines = (
                zip(*between(start, stop, scale), strict=True)
                for start, stop in ((high, low), (joined, mean))
            )
            for (_, curve, rect), band, (top, bottom) in zip(drawn, bands, lines, strict=True):
                color = self._tokens.color(COLORS[curve.name]).name()
                within = pixels[round(rect.top() * scale) : round(rect.bottom() * scale)]
                uprights(within, *band, opaque(blended(color, self._tokens.card, BAND)), scale)
                if dashes := DASHES.get(curve.name):
                    bottom[number % sum(dashes) >= dashes[0]] = -1
                uprights(within, top, bottom, opaque(color), scale)
            return pixels

        key = tuple(
            (curve.name, panel.scale, rect.top(), rect.height()) for panel, curve, rect in drawn
        )
        shown = values.reshape(-1, columns).T
        self._strips.update((self._tokens.name, width, key), first, shown, height, scale, draw)
        blit(painter, area, self._strips)

    def _paint_panel(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        tokens = self._tokens
        painter.setPen(QPen(tokens.color("grid"), 1))
        for y in (rect.bottom(), rect.top()):
            painter.drawLine(QLineF(0, round(y) - 0.5, rect.width(), round(y) - 0.5))

    def _paint_curve(self, painter: QPainter, panel: Panel, curve: Curve, rect: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(curve.mean))
        if not len(there):
            return
        x = (there + 0.5) / len(curve.mean) * rect.width()
        values = np.stack([curve.low[there], curve.high[there], curve.mean[there]])
        low, high, mean = heights_of(panel, rect, values)
        color = self._tokens.color(COLORS[curve.name])
        painter.setPen(QPen(QColor(blended(color.name(), self._tokens.card, BAND)), 1))
        painter.drawPolyline(bars(x, high, low))
        painter.setPen(QPen(color, 1, STYLES.get(curve.name, Qt.PenStyle.SolidLine)))
        painter.drawPolyline(polyline(x, mean))


def heights_of(panel: Panel, rect: QRectF, values: F64) -> F64:
    """Pixel of each of some values of a curve, of any shape; NaN where there is none."""
    bottom, height = rect.bottom() - 1, rect.height() - 2
    return bottom - panel.scale.place(values) * height


class HeadingsItem(PixelItem):
    """Names and means of the lanes, above every line that crosses the plot."""

    def __init__(self, plot: TimePlot, panels: PanelsItem) -> None:
        super().__init__(plot.box, z=110.0)
        self._panels = panels
        self._model: WorkModel | None = None
        self._still = Still()
        self._face = font(0.92)
        self._wide = lru_cache(WIDTHS_KEPT)(QFontMetricsF(self._face).horizontalAdvance)

    def set_model(self, model: WorkModel | None) -> None:
        """Show another model's figures; None shows nothing."""
        self._model = model
        self._still.drop()
        self.update()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw one heading per lane."""
        self._still.paint(painter, area, theme().name, self._paint_headings)

    def _paint_headings(self, painter: QPainter) -> None:
        model = self._model
        if model is None:
            return
        for panel, rect in zip(model.panels, self._panels.panel_rects(model.panels), strict=True):
            self._paint_heading(painter, panel, rect)

    def _paint_heading(self, painter: QPainter, panel: Panel, rect: QRectF) -> None:
        painter.setFont(self._face)
        # The lanes reach further than what is seen of them.
        room, x, y = self.boundingRect().width(), 0.0, rect.top() - HEADING
        titles = {curve.name: self.tr(TITLES[curve.name]) for curve in panel.curves}
        figures = {curve.name: average(curve) for curve in panel.curves}
        short = {name: self.tr(SHORT.get(TITLES[name], TITLES[name])) for name in titles}
        wide, nothing = self._wide, dict.fromkeys(titles, "")
        for names, means in (
            (titles, figures),
            (short, figures),
            (titles, nothing),
            (short, nothing),
        ):
            needed = sum(
                31 + wide(names[n]) + (7 + wide(means[n]) if means[n] else 0) for n in names
            )
            if needed - 16 <= room:
                break
        note = self.tr("logarithmic") if panel.scale.log else ""
        if needed + wide(note) > room:
            note = ""
        # Under all of it: a line between two words would look as if it struck one out.
        whole = min(needed - 16 + (16 + wide(note) if note else 0), room)
        ground = QRectF(-1, y + 1, whole + 4, HEADING - 2)
        painter.fillRect(ground, theme().color("card"))
        for name, title in names.items():
            self._swatch(painter, name, x, y + HEADING / 2)
            x = self._word(painter, QPointF(x + 15, y), title, "text")
            if means[name]:
                x = self._word(painter, QPointF(x + 7, y), means[name], "muted")
            x += 16
        if note:
            self._word(painter, QPointF(x, y), note, "muted")

    def _swatch(self, painter: QPainter, name: str, x: float, y: float) -> None:
        style = STYLES.get(name, Qt.PenStyle.SolidLine)
        painter.setPen(QPen(theme().color(COLORS[name]), 2, style))
        painter.drawLine(QLineF(x, y, x + 10, y))

    def _word(self, painter: QPainter, at: QPointF, text: str, token: str) -> float:
        """Draw a word; return where it ends."""
        width = self._wide(text)
        painter.setPen(theme().color(token))
        place = QRectF(at.x(), at.y(), width + 2, HEADING)
        write(painter, place, Qt.AlignmentFlag.AlignVCenter, text)
        return at.x() + width


class WorkView(ChartView[WorkModel]):
    """How many tokens and senones the search has active, and how much is computed for it."""

    id = "work"
    title = "Work per frame"

    def __init__(self, axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(axis, parent)
        self.panels = PanelsItem(self.plot)
        self.headings = HeadingsItem(self.plot, self.panels)
        self._scales: dict[str, Scale] = {}

    def reduce(
        self,
        snapshot: Snapshot,
        columns: int,
        visible: tuple[float, float] | None = None,
        in_blocks: bool = True,
    ) -> WorkModel:
        """Return minimum, maximum and mean count per pixel column, of blocks of columns or of each."""
        return work_model(
            snapshot.session,
            snapshot.track,
            snapshot.end_frame,
            visible or self.axis.visible,
            columns,
            self._scales,
            self.axis.selected_frames,
            snapshot.cursor_frame,
            in_blocks,
        )

    def show_model(self, model: WorkModel | None) -> None:
        """Label the lanes' scales and hand the model to the item."""
        self.panels.set_model(model)
        self._scales = {} if model is None else model.scales
        if model is None:
            self.headings.set_model(None)
            return
        height = float(self.plot.plot_size()[1])
        self.plot.set_height_range(0.0, height)
        labels = []
        rects = self.panels.panel_rects(model.panels)
        for panel, rect in zip(model.panels, rects, strict=True):
            name, scale = panel.curves[0].name, panel.scale
            if rect.height() >= ROOM_FOR_BOTTOM:
                labels.append((height - rect.bottom() + 3, axis_figure(name, scale.bottom)))
            labels.append((height - rect.top() - 4, axis_figure(name, scale.top)))
        self.plot.set_ticks(labels)
        self.overlay.set_events(model.marks, model.boundaries)

    def show_texts(self, model: WorkModel) -> None:
        """Show the headings' figures and the note."""
        self.headings.set_model(model)
        note = self.tr("per 10 ms frame · band: min–max, line: mean")
        blocks = self.tr("{0} of {1} frames").format(note, model.block_frames)
        text, of = self.tr("{0} · figures: {1}"), model.counted.short
        notes = [blocks] * (model.block_frames > 1) + [note]
        self.set_note(*(text.format(part, of) for part in notes), note, note.partition(" · ")[0])

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        super().apply_theme(tokens)
        self.panels.apply_theme(tokens)

    def readout(self, model: WorkModel, second: float) -> list[Line]:
        """Return the mean counts at a second of audio."""
        column = model.column_at(second)
        if column is None or not np.isfinite(model.curves[0].mean[column]):
            return []
        lines = [Line(clock(second, 2), self.tr("per frame"), strong=True)]
        for curve in model.curves:
            value = figure(curve.name, float(curve.mean[column]))
            lines.append(Line(self.tr(TITLES[curve.name]), value, COLORS[curve.name]))
        return lines

    def summary(self) -> str:
        """Return one sentence with the mean of every quantity."""
        model = self.model()
        if model is None or not model.panels:
            return self.tr("No work counts recorded yet.")
        parts = [f"{self.tr(TITLES[c.name])} {average(c)}" for c in model.curves]
        text = self.tr("{0} the means per frame are: {1}.")
        return text.format(model.counted.extent, ", ".join(parts))

    def table(self) -> Table:
        """Return the visible range in up to `TABLE_ROWS` stretches: mean and maximum."""
        headers = [self.tr("from s"), self.tr("to s")]
        if self.snapshot is None:
            return headers, []
        first, last = self.axis.visible
        wanted = min(TABLE_ROWS, max(1, round((last - first) / FRAME_S)))
        model = self.reduce(self.snapshot, wanted, in_blocks=False)
        step = (last - first) / wanted
        for curve in model.curves:
            title = self.tr(TITLES[curve.name])
            if unit := UNITS.get(curve.name):
                title = f"{title}, {unit}"
            headers.append(title)
            if curve.high is not curve.mean:  # of some only means are known
                headers.append(self.tr("{0}, max").format(title))
        rows: list[list[object]] = []
        for row in range(wanted):
            if not model.panels or np.isnan(model.curves[0].mean[row]):
                continue
            start = first + row * step
            cells: list[object] = [f"{start:.2f}", f"{start + step:.2f}"]
            for curve in model.curves:
                mean = float(curve.mean[row])
                if curve.name == SCORING_TIME:
                    # As in the table of costs.
                    cells.append(f"{mean / 1e6:.4f}")
                    continue
                cells.append(f"{mean:.1f}" if mean < WHOLE_FROM else count(mean))
                if curve.high is not curve.mean:
                    cells.append(count(float(curve.high[row])))
            rows.append(cells)
        return headers, rows
