"""Cost per frame over audio time: a stacked area in milliseconds per 10 ms frame.

The categories in one fixed order as means of blocks, a faint line that 95 % of the frames stay below, the markers,
and a legend that is also the key to the hatches. Real time (10 ms) is a tag at the edge unless the data come near it.
Time of other programs is a cap on the rest, which can be left out and does not decide the scale. The scale holds while
the data flicker; it can be locked and be logarithmic. What it cuts off is marked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.charts.legend import Legend
from app.charts.overlay import FLAG_ROW
from app.charts.readout import Line
from app.charts.scale import Holding, percent
from app.model.configurations import turns_of
from app.model.effects import arm_names
from app.model.figures import rtf_text
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.theme import CATEGORY_TITLES
from app.views.arm_brackets import ArmBrackets
from app.views.chart import ChartView
from app.views.cost_items import TAG_HEIGHT, CostItems, realtime_text
from app.views.cost_model import LAYERS, OWN, CostModel, cost_model, highest_frame, rtf_at
from app.views.table_twin import Table
from profiler.analysis.categories import CATEGORIES, THROTTLED
from profiler.clock import FRAME_S
from profiler.plain import clock, milliseconds

FLAG_ROWS = 3
"""Maximum rows of marker labels above the area."""

TABLE_ROWS = 200
"""Rows of the table twin: stretches of the visible range."""


class CostView(ChartView[CostModel]):
    """The largest view of the desk: where each frame's time went."""

    id = "cost"
    title = "Cost per frame"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis, flags=FLAG_ROWS, margin=TAG_HEIGHT)
        self.items = CostItems(self.plot)
        self.holding = Holding()
        self.arms = ArmBrackets(self.plot)
        self.legend = Legend()
        self.column.addWidget(self.arms)
        self.column.addWidget(self.legend)
        self.setMinimumHeight(2 * FLAG_ROW + 130)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> CostModel:
        """Return the mean cost of the block under each pixel column."""
        return cost_model(
            snapshot.session, snapshot.track, snapshot.end_frame, visible, columns, self.holding, snapshot.desk
        )

    def set_other_programs(self, on: bool) -> None:
        self.items.other_programs = on
        self._hold(self.holding)

    def set_locked(self, on: bool) -> None:
        self._hold(replace(self.holding, locked=on))

    def set_logarithmic(self, on: bool) -> None:
        self._hold(replace(self.holding, log=on))

    def _hold(self, holding: Holding) -> None:
        self.holding = holding
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def set_picture(self, on: bool) -> None:
        self.items.set_hatched(on)

    def clear(self) -> None:
        super().clear()
        if not self.holding.locked:
            self.holding = replace(self.holding, before=None)

    def show_model(self, model: CostModel | None) -> None:
        """Set scale and labels, and pass the model to the stack."""
        if model is None:
            self.items.set_model(None, 0.0)
            self.arms.show_turns((), "")
            self.legend.set_remark("")
            return
        self._show_arms()
        height = self.plot.plot_size()[1]
        self.overlay.set_events(model.marks, model.boundaries)
        band = min(self.overlay.band, height - 1.0)
        self.plot.set_height_range(0.0, height / (height - band))
        scale = model.scale
        places = scale.place(np.array(scale.ticks())).tolist()
        self.plot.set_ticks(list(zip(places, scale.labels(), strict=True)))
        self.items.set_model(model, band)
        self.holding = replace(self.holding, before=scale)

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
        """Show note, remark and the names of what there is."""
        limited = self.snapshot is not None and self.snapshot.desk.categories[THROTTLED] > 0
        self.legend.set_titles({name: CATEGORY_TITLES[name] for name in CATEGORIES if name != THROTTLED or limited})
        faint = model.block_frames > 1
        self.legend.set_remark(
            self.by_unit(self.tr("faint line: p95 of the frames"), self.tr("faint line: p95 of the steps"))
            if faint
            else ""
        )
        self.set_note(*self._notes(model))

    def summary(self) -> str:
        """Return one sentence: of what range, mean, RTF, largest part, highest frame."""
        if self.snapshot is None or not self.snapshot.desk.frames:
            return self.tr("No frames in range yet.")
        model, desk = self.model(), self.snapshot.desk
        assert model is not None
        largest = max(LAYERS[:OWN], key=desk.categories.__getitem__)
        shares = CATEGORY_TITLES[largest], percent(desk.share(desk.categories[largest]))
        frame, worst_ms = highest_frame(self.snapshot.track, desk.scope.first, desk.scope.last)
        if desk.of_steps:
            text = self.tr(
                "{0} cost per step is {1} ms on average; most of it is {2} ({3}); "
                "the highest step, number {4}, takes {5} ms."
            )
            extent = desk.scope.extent
            return text.format(extent, milliseconds(desk.own_ms), *shares, frame, milliseconds(worst_ms))
        return self.tr(
            "{0} cost per frame is {1} ms on average (RTF {2}); "
            "most of it is {3} ({4}); the highest frame takes {5} ms at {6}; {7}."
        ).format(
            desk.scope.extent,
            milliseconds(desk.own_ms),
            rtf_text(desk.rtf),
            *shares,
            milliseconds(worst_ms),
            clock(frame * FRAME_S, 1),
            realtime_text(model),
        )

    def table(self) -> Table:
        """Return the visible range in up to `TABLE_ROWS` stretches, ms per frame."""
        headers = [self.tr("from s"), self.tr("to s"), self.tr("sum ms"), self.tr("highest ms")]
        headers += [f"{CATEGORY_TITLES[name]} ms" for name in LAYERS]
        if self.snapshot is None:
            return headers, []
        visible = self.axis.visible
        rows_wanted = min(TABLE_ROWS, max(1, round((visible[1] - visible[0]) / FRAME_S)))
        model = cost_model(
            self.snapshot.session, self.snapshot.track, self.snapshot.end_frame, visible, rows_wanted, None
        )
        step = (model.last_s - model.first_s) / rows_wanted
        rows = []
        for row in np.flatnonzero(np.isfinite(model.mean_ms[:, 0])).tolist():
            start = model.first_s + row * step
            mean = model.mean_ms[row]
            figures = [float(mean[:OWN].sum()), float(model.worst_ms[row]), *mean.tolist()]
            rows.append([f"{start:.2f}", f"{start + step:.2f}", *(f"{v:.4f}" for v in figures)])
        return headers, rows

    def readout(self, model: CostModel, second: float) -> list[Line]:
        """Return time and RTF, the categories from the top of the stack down, the sum without other programs."""
        column = model.column_at(second)
        if column is None:
            return []
        mean = model.mean_ms[column]
        total = float(mean[:OWN].sum())
        lines = [Line(clock(second, 2), "", strong=True)]
        if self.snapshot is not None:
            rtf = rtf_at(self.snapshot.session, model, column)
            lines = [Line(clock(second, 2), f"RTF {rtf_text(rtf)}", strong=True)]
        lines += [
            Line(CATEGORY_TITLES[name], milliseconds(float(mean[i])), name)
            for i, name in reversed(list(enumerate(LAYERS)))
            if mean[i] > 0
        ]
        unit = self.by_unit(self.tr("sum, ms per frame"), self.tr("sum, ms per step"))
        lines.append(Line(unit, milliseconds(total), strong=True))
        if model.block_frames > 1:
            worst = milliseconds(float(model.worst_ms[column]))
            lines.append(Line(self.by_unit(self.tr("highest frame here"), self.tr("highest step here")), worst))
        return lines

    def _notes(self, model: CostModel) -> list[str]:
        """The note, and the same with less of what the legend or a look at the axis says as well."""
        unit, blocks, scale = [self.tr("ms per 10 ms frame")], [], []
        if model.block_frames > 1:
            blocks = [
                self.tr("mean of {0} frames, p95 faint").format(model.block_frames),
                self.tr("mean of {0} frames").format(model.block_frames),
            ]
        if model.scale.log:
            scale.append(self.tr("logarithmic"))
        if model.spikes:
            scale.append(self.tr("▴ cut off by the scale"))
        if model.of_steps:
            return [" · ".join([self.tr("ms per step of the lab"), *scale])]
        parts = ([*unit, *blocks[:1], *scale], [*unit, *blocks[1:], *scale], [*unit, *scale], scale or unit)
        return [" · ".join(part) for part in parts]
