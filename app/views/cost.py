"""Cost per frame over audio time: a stacked area in milliseconds per 10 ms frame.

The categories in one fixed order as means of blocks, a faint line that 95 % of the frames stay below, the markers,
and a legend that is also the key to the hatches. Real time (10 ms) is a tag at the edge unless the data come near it.
Time of other programs is a cap on the rest, which can be left out and does not decide the scale. The scale holds while
the data flicker; it can be locked and be logarithmic. What it cuts off is marked.
"""

import math
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.charts.items import Curve, Levels, PixelItem, hair
from app.charts.legend import Legend, ReadoutLine, paint_spike
from app.charts.overlay import FLAG_ROW
from app.charts.pixels import Stills, still_scale
from app.charts.raster import Stack
from app.charts.scale import Holding
from app.charts.time_plot import TimePlot
from app.model.configurations import turns_of
from app.model.effects import arm_names
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import write
from app.style.theme import CATEGORY_TITLES, font, text_width, theme
from app.views.arm_brackets import ArmBrackets
from app.views.chart import ChartView
from app.views.cost_model import LAYERS, OWN, REALTIME_MS, CostModel, cost_model, rtf_at
from app.views.lanes_model import stretches
from app.views.table_twin import Table
from profiler.analysis.categories import CATEGORIES, THROTTLED
from profiler.clock import FRAME_S
from profiler.plain import clock, milliseconds, percent, rtf_text, times

TAG_HEIGHT = 16.0  # Pixels kept free above the area for the tag
BESIDE = 3  # Pixels between a text at the right end and the cursor, which may stand there
TEXT = 0.88  # Size of its font
FAINT = 153  # Opacity (of 255) of the line of the quantile


def realtime_text(model: CostModel) -> str:
    """How far real time is from the mean of the scope; empty without data."""
    if not math.isfinite(model.realtime_above):
        return ""
    text = QCoreApplication.translate("cost", "real time {0} higher")
    return text.format(times(model.realtime_above))


class CostLabels(PixelItem):
    """The line of real time or the tag that stands for it, and marks of what the scale cuts off."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=110.0)
        self._model: CostModel | None = None
        self._stills = Stills()
        self.band = 0.0

    def set_model(self, model: CostModel | None, band: float) -> None:
        self._model, self.band = model, band

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        model, tokens = self._model, theme()
        data = area.adjusted(0, min(self.band, max(0.0, area.height() - 1)), 0, 0)
        if model is None or data.height() < 2:
            return
        step = (model.last_s - model.first_s) / len(model.mean_ms)
        for column in model.spikes:
            x = self.x_of(model.first_s + (column + 0.5) * step)
            paint_spike(painter, x, data.top(), tokens.color("muted"))
        painter.setFont(font(TEXT))
        if not model.realtime_shown:
            if text := realtime_text(model):
                left = self._paint_text(painter, text, data.top() - TAG_HEIGHT, data.width(), "muted", 14)
                paint_spike(painter, left + 7, data.top() - TAG_HEIGHT + 5, tokens.color("muted"))
            return
        place = float(model.scale.place(np.array([REALTIME_MS]))[0])
        y = round(data.bottom() - place * data.height()) + 0.5
        painter.setPen(QPen(tokens.color("danger"), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(0, y, data.width(), y))
        text = QCoreApplication.translate("cost", "real time, RTF 1")
        self._paint_text(painter, text, y - 17, data.width(), "danger")

    def _paint_text(self, painter: QPainter, text: str, top: float, right: float, ink: str, indent: int = 0) -> float:
        """Write at the right end, on the card's colour, which begins so far left of it; return where that is."""
        wide = math.ceil(text_width(text, TEXT)) + 4 + indent
        place = QRectF(round(right - BESIDE) - wide, round(top), wide, TAG_HEIGHT - 1)

        def draw(into: QPainter) -> None:
            into.fillRect(place, theme().color("card"))
            into.setPen(theme().color(ink))
            write(into, place.adjusted(indent, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)

        self._stills.paint(painter, place, text, draw, still_scale(painter))
        return place.left()


FLAG_ROWS = 3  # Maximum rows of marker labels above the area


class CostView(ChartView[CostModel]):
    """The largest view of the desk: where each frame's time went."""

    id = "cost"
    title = "Cost per frame"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis, flags=FLAG_ROWS, margin=TAG_HEIGHT)
        self._grid = Levels(self.plot)
        self.stack = Stack(self.plot, LAYERS)
        self.other_programs = True  # Whether their time is drawn, as a cap
        self.p95 = Curve(self.plot, z=1.0)
        self.labels = CostLabels(self.plot)
        self.holding = Holding()
        self.arms = ArmBrackets(self.plot)
        self.legend = Legend()
        self.column.addWidget(self.arms)
        self.column.addWidget(self.legend)
        self.setMinimumHeight(2 * FLAG_ROW + 130)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> CostModel:
        of = snapshot.session, snapshot.track, snapshot.end_frame
        return cost_model(*of, visible, columns, self.holding, snapshot.desk)

    def set_other_programs(self, on: bool) -> None:
        self.other_programs = on
        self._redraw()

    def set_holding(self, holding: Holding) -> None:
        self.holding = holding
        self._redraw()

    def set_picture(self, on: bool) -> None:
        self.stack.hatched = on
        self.show_model(self._model)

    def clear(self) -> None:
        super().clear()
        if not self.holding.locked:
            self.holding = replace(self.holding, before=None)

    def show_model(self, model: CostModel | None) -> None:
        self._show_arms()
        if model is None:
            self.labels.set_model(None, 0.0)
            self.stack.show_nothing()
            self._grid.show_levels(np.empty(0))
            self.p95.show_points(np.empty(0), np.empty(0))
            self.legend.set_remark("")
            return
        height = self.plot.plot_size[1]
        band = min(self.overlay.band, height - 1.0)
        self.plot.set_height_range(0.0, height / (height - band))
        scale = model.scale
        self._grid.show_scale(scale)
        self.labels.set_model(model, band)
        self.p95.setPen(hair(theme().color("muted", FAINT)))
        self._show_quantile(model, model.first_s, (model.last_s - model.first_s) / len(model.mean_ms))
        shown = model.mean_ms
        if not self.other_programs:
            shown = shown.copy()
            shown[:, OWN:] *= 0.0
        self.stack.show_layers(shown, scale, model.first_s, model.last_s)
        self.holding = replace(self.holding, before=scale)

    def _show_quantile(self, model: CostModel, first_s: float, width: float) -> None:
        """One point in the middle of each block: columns of a block have the same value. No line along the top edge."""
        there = np.flatnonzero(np.isfinite(model.p95_ms))
        if model.block_frames < 2 or not len(there):
            self.p95.show_points(np.empty(0), np.empty(0))
            return
        starts = np.flatnonzero(np.diff(model.p95_ms[there], prepend=-1.0))
        middle = (there[starts] + np.append(there[starts[1:]], there[-1] + 1)) / 2
        values = model.p95_ms[there[starts]]
        above = values > model.scale.top
        along_the_top = above & np.append(above[1:], False)
        self.p95.show_points(first_s + middle * width, model.scale.place(values), ~along_the_top)

    def scroll_drawing(self, snapshot: Snapshot) -> bool:
        self.arms.update()
        return super().scroll_drawing(snapshot)

    def _show_arms(self) -> None:
        shown = self.snapshot
        if shown is None or not shown.session.meta.get("ab"):
            self.arms.show_turns((), "")
            return
        pair = shown.desk.pair
        names = arm_names(shown.session, shown.end_frame)
        self.arms.show_turns(turns_of(shown.session, shown.end_frame, names), "" if pair is None else pair.needs)

    def show_texts(self, model: CostModel) -> None:
        limited = self.snapshot is not None and self.snapshot.desk.categories[THROTTLED] > 0
        self.legend.set_titles({name: CATEGORY_TITLES[name] for name in CATEGORIES if name != THROTTLED or limited})
        faint = self.by_unit(self.tr("faint line: p95 of the frames"), self.tr("faint line: p95 of the steps"))
        self.legend.set_remark(faint if model.block_frames > 1 else "")
        self.set_note(*self._notes(model))

    def summary(self) -> str:
        if self.snapshot is None or not self.snapshot.desk.frames:
            return self.tr("No frames in range yet.")
        model, desk = self.model(), self.snapshot.desk
        assert model is not None
        largest = max(LAYERS[:OWN], key=desk.categories.__getitem__)
        shares = CATEGORY_TITLES[largest], percent(desk.share(desk.categories[largest]))
        own = self.snapshot.track.own_ns(desk.scope.first, desk.scope.last)
        frame = desk.scope.first + int(own.argmax())
        figures = desk.scope.extent, milliseconds(desk.own_ms), *shares, milliseconds(float(own.max()) * 1e-6)
        if desk.of_steps:
            text = self.tr(
                "{0} cost per step is {1} ms on average; most of it is {2} ({3}); "
                "the highest step, number {5}, takes {4} ms."
            )
            return text.format(*figures, frame)
        text = self.tr(
            "{0} cost per frame is {1} ms on average (RTF {5}); "
            "most of it is {2} ({3}); the highest frame takes {4} ms at {6}; {7}."
        )
        return text.format(*figures, rtf_text(desk.rtf), clock(frame * FRAME_S, 1), realtime_text(model))

    def table(self) -> Table:
        headers = [self.tr("from s"), self.tr("to s"), self.tr("sum ms"), self.tr("highest ms")]
        headers += [f"{CATEGORY_TITLES[name]} ms" for name in LAYERS]
        if self.snapshot is None:
            return headers, []
        of = self.snapshot.session, self.snapshot.track, self.snapshot.end_frame
        model = cost_model(*of, self.axis.visible, stretches(self.axis.visible), None)
        sums = model.mean_ms[:, :OWN].sum(axis=1)
        figures = np.concatenate([np.stack([sums, model.worst_ms], axis=1), model.mean_ms], axis=1)
        return headers, model.rows(lambda row: [f"{figure:.4f}" for figure in figures[row]])

    def readout(self, model: CostModel, second: float) -> list[ReadoutLine]:
        column = model.column_at(second)
        if column is None:
            return []
        mean = model.mean_ms[column]
        total = float(mean[:OWN].sum())
        rtf = "" if self.snapshot is None else f"RTF {rtf_text(rtf_at(self.snapshot.session, model, column))}"
        layers = [(name, float(mean[i])) for i, name in reversed([*enumerate(LAYERS)])]
        sum_name = self.by_unit(self.tr("sum, ms per frame"), self.tr("sum, ms per step"))
        lines = [ReadoutLine(clock(second, 2), rtf, strong=True)]
        lines += (ReadoutLine(CATEGORY_TITLES[name], milliseconds(ms), name) for name, ms in layers if ms > 0)
        lines.append(ReadoutLine(sum_name, milliseconds(total), strong=True))
        if model.block_frames > 1:
            worst = milliseconds(float(model.worst_ms[column]))
            lines.append(ReadoutLine(self.by_unit(self.tr("highest frame here"), self.tr("highest step here")), worst))
        return lines

    def _notes(self, model: CostModel) -> list[str]:
        """The note, and the same with less of what the legend or a look at the axis says as well."""
        unit, faint = self.tr("ms per 10 ms frame"), self.tr("{0}, p95 faint")
        blocks = self.tr("mean of {0} frames").format(model.block_frames) if model.block_frames > 1 else ""
        logarithmic = self.tr("logarithmic") if model.scale.log else ""
        scale = logarithmic, self.tr("▴ cut off by the scale") if model.spikes else ""
        if model.of_steps:
            return [" · ".join(filter(None, (self.tr("ms per step of the lab"), *scale)))]
        parts = [[unit, blocks and faint.format(blocks), *scale], [unit, blocks, *scale], [unit, *scale]]
        return [" · ".join(filter(None, part)) for part in (*parts, scale if any(scale) else [unit])]
