"""Work per frame as small multiples over audio time: tokens, beam, senones, Gaussians, bytes and time of scoring.

Every quantity has its own lane, scale and unit, so that none is read against the axis of another. A
block of columns shows the range of its frames (a single expensive frame stays visible) and their mean.
"""

from __future__ import annotations

import numpy as np

from app.charts.readout import Line
from app.charts.scale import Scale, count
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.chart import ChartView
from app.views.table_twin import Table
from app.views.work_figures import average, axis_figure, figure
from app.views.work_lanes import COLORS, TITLES, HeadingsItem, PanelsItem
from app.views.work_model import SCORING_TIME, WorkModel, work_model
from profiler.analysis.track import SCORING_BYTES
from profiler.frames import FRAME_S
from profiler.plain import clock

UNITS = {"search beam": "nat", "search.beam": "nat", SCORING_BYTES: "B", SCORING_TIME: "ms"}
"""Of the table twin's columns; the others are counts."""

ROOM_FOR_BOTTOM = 30
"""A lane lower than this has a label at its upper end only."""

WHOLE_FROM = 100
"""Means from here on have no decimals in the table."""

TABLE_ROWS = 200
"""Rows of the table twin: stretches of the visible range."""


class WorkView(ChartView[WorkModel]):
    """How many tokens and senones the search has active, and how much is computed for it."""

    id = "work"
    title = "Work per frame"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.panels = PanelsItem(self.plot)
        self.headings = HeadingsItem(self.plot, self.panels)
        self._scales: dict[str, Scale] = {}

    def reduce(
        self,
        snapshot: Snapshot,
        columns: int,
        visible: tuple[float, float],
        in_blocks: bool = True,
    ) -> WorkModel:
        """Return minimum, maximum and mean count per pixel column, of blocks of columns or of each."""
        return work_model(
            snapshot.session,
            snapshot.track,
            snapshot.end_frame,
            visible,
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
        model = self.reduce(self.snapshot, wanted, (first, last), in_blocks=False)
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
