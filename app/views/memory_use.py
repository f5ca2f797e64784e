"""Memory use: the resident memory of the recogniser's process over audio time, stacked by component.

What only the libraries explain lies at the bottom, what the recogniser holds on top of it. A line below says what the
run cost per hour of audio.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from app.charts.items import Levels
from app.charts.legend import Legend
from app.charts.readout import Line
from app.charts.scale import Scale
from app.charts.stack import Stack
from app.charts.time_plot import GUTTER
from app.model import memory
from app.model.memory import TITLES, size
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.chart import ChartView
from app.views.memory_use_model import COMPONENTS, MEGABYTE, MemoryUseModel, memory_use_model
from app.views.table_twin import Table
from app.widgets import Elided
from profiler.frames import FRAME_S
from profiler.plain import clock

COLORS: Final = {
    "files": "overhead",
    "libraries": "unexplained",
    "model": "compute",
    "graph": "search",
    "tokens": "memory",
    "lattice": "other_programs",
    "frontend": "frontend",
    "recorder": "transfer",
}
"""The category whose colour a component has."""

HEIGHT: Final = 250
"""Pixels that a picture needs: the ticks have room with the legend in four lines."""

LEAST: Final = 5e4
"""Bytes from which the legend has a figure: less would be 0.0 MB."""

TABLE_ROWS: Final = 200
"""Rows of the table twin: stretches of the visible range."""


class MemoryUseView(ChartView[MemoryUseModel]):
    """Which component holds the memory."""

    id = "memory-use"
    title = "Memory use"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._grid = Levels(self.plot)
        self.stack = Stack(self.plot, [COLORS[name] for name in COMPONENTS])
        self.legend = Legend(self._titles({}))
        self.cost = Elided()
        self.cost.setObjectName("muted")
        self.cost.setIndent(GUTTER)
        self.column.addWidget(self.legend)
        self.column.addWidget(self.cost)
        self._scale: Scale | None = None

    def _titles(self, used: Mapping[str, float]) -> dict[str, str]:
        """The legend, with the bytes of the components that have any."""
        figures = {name: f" {size(used[name])}" for name in COMPONENTS if used.get(name, 0.0) >= LEAST}
        return {COLORS[name]: self.tr(TITLES[name]) + figures.get(name, "") for name in COMPONENTS}

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> MemoryUseModel:
        """Return the memory under each pixel column."""
        return memory_use_model(
            snapshot.session,
            snapshot.track,
            snapshot.end_frame,
            visible,
            columns,
            self._scale,
            snapshot.desk.scope.last,
        )

    def set_picture(self, on: bool) -> None:
        self.stack.hatched = on

    @property
    def least_in_picture(self) -> int:
        return HEIGHT

    def show_model(self, model: MemoryUseModel | None) -> None:
        """Set the scale and pass the layers to the stack."""
        if model is None or not model.latest:
            self._scale = None
            self.stack.show_nothing()
            self._grid.show_levels(np.empty(0))
            self.plot.set_ticks([])
            self.cost.set_full("")
            return
        self._scale = scale = model.scale
        places = scale.place(np.array(scale.ticks()))
        self.plot.set_height_range(0.0, 1.0)
        self.plot.set_ticks(list(zip(places.tolist(), scale.labels(), strict=True)))
        self._grid.show_levels(places)
        self.stack.show_layers(model.layers_mb, scale, model.first_s, model.last_s)
        self.overlay.set_events(model.marks, model.boundaries)

    def show_texts(self, model: MemoryUseModel) -> None:
        """Show the memory at the end of the scope, and what the run cost."""
        self.legend.set_titles(self._titles(model.latest))
        if not model.latest or self.snapshot is None:
            self.set_note(self.nothing(), self.tr("no readings"))
            return
        resident = self.tr("{0} resident").format(size(model.resident))
        grows = memory.growth_text(memory.growth(self.snapshot.session))
        self.set_note(f"MB · {resident} · {grows}", f"MB · {resident}", "MB")
        self.cost.set_full(*self._cost())

    def summary(self) -> str:
        """Return one sentence: the memory at the end of the scope, its largest components, the most, the growth."""
        model = self.model()
        if model is None or not model.latest or self.snapshot is None:
            return self.nothing()
        session = self.snapshot.session
        text = self.tr("In the end {0} are resident: {1}; {2}; {3}.").format(
            size(model.resident),
            memory.largest(model.latest),
            memory.most_text(session),
            memory.growth_text(memory.growth(session)),
        )
        cost = self._cost()[0]
        return f"{text} {cost}." if cost else text

    def _cost(self) -> tuple[str, ...]:
        """What the run cost, and the same in fewer words; an empty text where that is not known."""
        about = None if self.snapshot is None else memory.cost(self.snapshot.session)
        found = memory.cost_lines(about)
        if about is None or not found:
            return ("",)
        line = found[0][0].upper() + found[0][1:]
        shorter = line.partition(", ")[0]
        if about["joules_per_audio_hour"] is None:
            return line, self.tr("{0}, energy not measured").format(shorter), shorter
        return line, shorter

    def nothing(self) -> str:
        return self.tr("This session has no readings of the memory by component.")

    def readout(self, model: MemoryUseModel, second: float) -> list[Line]:
        """Return the time, the components from the top of the stack down, the sum."""
        column = model.column_at(second)
        if column is None:
            return []
        layers = model.layers_mb[column] * MEGABYTE
        lines = [Line(clock(second, 2), "", strong=True)]
        lines += [
            Line(self.tr(TITLES[name]), size(float(layers[number])), COLORS[name])
            for number, name in reversed(list(enumerate(COMPONENTS)))
            if layers[number] > 0
        ]
        return [*lines, Line(self.tr("resident"), size(float(layers.sum())), strong=True)]

    def table(self) -> Table:
        """Return the visible range in up to `TABLE_ROWS` stretches, MB."""
        headers = [self.tr("from s"), self.tr("to s"), self.tr("resident MB")]
        headers += [f"{self.tr(title)} MB" for title in TITLES.values()]
        if self.snapshot is None:
            return headers, []
        first, last = self.axis.visible
        wanted = min(TABLE_ROWS, max(1, round((last - first) / FRAME_S)))
        layers = self.reduce(self.snapshot, wanted, (first, last)).layers_mb
        step = (last - first) / wanted
        rows = []
        for row in np.flatnonzero(np.isfinite(layers[:, 0])).tolist():
            begin, values = first + row * step, [float(layers[row].sum()), *layers[row].tolist()]
            rows.append([f"{begin:.2f}", f"{begin + step:.2f}", *(f"{value:.1f}" for value in values)])
        return headers, rows
