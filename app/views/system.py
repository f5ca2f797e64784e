"""What the machine did: load, memory, clock and power over audio time, each quantity on a lane of its own unit.

A page in place of the lanes has the memory of the process by component.
"""

from __future__ import annotations

from dataclasses import replace

from app.charts.readout import Line
from app.charts.scale import prefixed
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.lanes import LanesView, Quantity
from app.views.lanes_model import Curve, LanesModel
from app.views.memory_use import MemoryUse
from app.views.memory_use_model import MemoryUseModel
from app.views.system_model import (
    ALL_CPU,
    AVAILABLE,
    BUSY,
    CLOCK,
    CPU,
    MEMORY_BUSY,
    MEMORY_USED,
    PACKAGE,
    POWER,
    RSS,
    of_device,
    system_model,
)
from app.views.table_twin import Table

TITLES = {
    CPU: "CPU of the process",
    ALL_CPU: "of all programs",
    RSS: "resident memory of the process",
    AVAILABLE: "memory available",
    CLOCK: "CPU frequency",
    PACKAGE: "processor power",
    BUSY: "GPU utilisation",
    MEMORY_BUSY: "GPU memory busy",
    MEMORY_USED: "GPU memory used",
    POWER: "GPU power",
}

SHORT = {CPU: "CPU, process", ALL_CPU: "all", RSS: "resident memory", MEMORY_BUSY: "memory busy"}
"""Where there is little room."""

COLORS = {
    CPU: "compute",
    ALL_CPU: "other_programs",
    RSS: "memory",
    AVAILABLE: "muted",
    CLOCK: "search",
    PACKAGE: "frontend",
    BUSY: "compute",
    MEMORY_BUSY: "memory",
    MEMORY_USED: "memory",
    POWER: "frontend",
}

UNITS = {RSS: "MB", AVAILABLE: "MB", MEMORY_USED: "MB", CLOCK: "MHz", PACKAGE: "W", POWER: "W"}
"""Of the table twin's columns; the others are percentages."""

MEGABYTE = 1e6

MEMORY_PICTURE = 250
"""Pixels that a picture of the memory needs: the ticks have room with the legend in four lines."""


class SystemView(LanesView):
    """What the machine did while the frames were decoded."""

    id = "system"
    title = "System"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis, system_model)
        self.memory = MemoryUse(self.plot, self.column)
        self._memory: MemoryUseModel | None = None
        self.add_page("memory-use", self.tr("Memory"), self.tr("Which component of the process holds the memory"))

    def reduce(
        self, snapshot: Snapshot, columns: int, visible: tuple[float, float], in_blocks: bool = True
    ) -> LanesModel:
        """Return the lanes under each pixel column; none where the memory is shown, which is reduced instead."""
        self._memory = self.memory.reduce(snapshot, columns, visible) if self.page else None
        found = super().reduce(snapshot, columns, visible, in_blocks)
        return replace(found, panels=()) if self.page else found

    def show_model(self, model: LanesModel | None) -> None:
        super().show_model(model)
        self.memory.show_model(None if model is None else self._memory)

    def readout(self, model: LanesModel, second: float) -> list[Line]:
        return super().readout(model, second) if self._memory is None else self.memory.readout(self._memory, second)

    def table(self) -> Table:
        if self._memory is None or self.snapshot is None:
            return super().table()
        return self.memory.table(self.snapshot, self.axis.visible)

    def set_picture(self, on: bool) -> None:
        self.memory.stack.hatched = on

    @property
    def least_in_picture(self) -> int:
        return MEMORY_PICTURE if self.page else 0

    def quantity(self, name: str) -> Quantity:
        """How a reading is shown."""
        device, of_it = of_device(name)
        title, unit = self.tr(TITLES[of_it]), UNITS.get(of_it, "%")
        if device not in ("", "gpu0"):
            title = f"{title} ({device})"

        def figure(value: float) -> str:
            if unit == "MHz":
                return f"{prefixed(1e6 * value)}Hz"
            return f"{prefixed(value)}B" if unit == "MB" else f"{value:.0f} {unit}"

        return Quantity(
            title=title,
            color=COLORS[of_it],
            axis_figure=figure,
            figure=figure,
            short=self.tr(SHORT.get(of_it, "")),
            dotted=of_it in (ALL_CPU, MEMORY_BUSY),
            unit=unit,
        )

    def average(self, curve: Curve) -> str:
        """A curve's mean; of how many cores, where it is a load."""
        figure = super().average(curve)
        if curve.whole is None or curve.name != CPU:
            return figure
        return self.tr("{0} (of {1} cores)").format(figure, round(curve.whole / 100))

    def cell(self, name: str, value: float) -> str:
        of_it = of_device(name)[1]
        return f"{value / MEGABYTE:.0f}" if UNITS.get(of_it) == "MB" else f"{value:.1f}"

    def show_texts(self, model: LanesModel) -> None:
        """Show the headings' figures and the note."""
        self.headings.set_model(model)
        if self._memory is not None and self.snapshot is not None:
            self.set_note(*self.memory.show_texts(self._memory, self.snapshot.session))
            return
        if not model.panels:
            self.set_note(self.nothing(), self.tr("no readings"))
            return
        self.set_note(self.tr("band: min–max, line: mean"))

    def summary(self) -> str:
        """Return one sentence with the mean of every reading."""
        model = self.model()
        if model is not None and self._memory is not None and self.snapshot is not None:
            return self.memory.summary(self._memory, self.snapshot.session)
        if model is None or not model.panels:
            return self.nothing()
        parts = [f"{self.quantity(c.name).title} {self.average(c)}" for c in model.curves]
        text = self.tr("{0} the means are: {1}.")
        return text.format(self.extent, ", ".join(parts))

    def nothing(self) -> str:
        return self.tr("This session has no readings of the machine.")
