"""What the machine did: load, memory, clock and power over audio time; and, as a page, its memory by component."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from app.charts.legend import ReadoutLine
from app.charts.scale import HEADROOM, Scale, round_up
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views import lanes_model as of
from app.views.lanes import LanesView, Quantity
from app.views.lanes_model import Curve, LanesModel, of_device
from app.views.memory_use import MEGABYTE, MemoryUse, MemoryUseModel
from app.views.table_twin import Table
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.resources import CPU
from profiler.analysis.track import CostTrack
from profiler.clock import FRAME_S
from profiler.plain import prefixed
from profiler.session.reader import Session

LANES: Final = ((CPU, of.ALL_CPU), (of.RSS,), (of.AVAILABLE,), (of.CLOCK,), (of.PACKAGE,))
DEVICE_LANES: Final = ((of.BUSY, of.MEMORY_BUSY), (of.MEMORY_USED,), (of.POWER,))


def system_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    before: Mapping[str, Scale] | None = None,
    counted: tuple[int, int] = (0, 0),
    in_blocks: bool = True,
) -> LanesModel:
    """Reduce the readings as `work_model` does the counts; they are of times, so `in_blocks` makes no difference."""
    end = min(int(cursor_frame), int(track.n_frames))
    edges = column_edges(visible[0] / FRAME_S, visible[1] / FRAME_S, max(1, columns))
    cores = of.cores(session)

    def curve_of(name: str) -> Curve | None:
        held = of.held_once(session, name, end)
        if held is None:
            return None
        first, last = (np.array([float(frame)]) for frame in counted)
        average = float(held.mean(first, last)[0]) if counted[1] > counted[0] else math.nan
        whole = 100.0 * cores if cores is not None and name in (CPU, of.ALL_CPU) else None
        return Curve(name, *held.columns(edges), average, whole)

    return of.lanes_model(edges, 1, _lanes(session), curve_of, _scale, before)


def _lanes(session: Session) -> Iterator[Sequence[str]]:
    """The lanes from top to bottom, those of the devices that the run used last; without one, of the first device."""
    yield from LANES
    recorded = {device for name in session.sample_names if (device := of_device(name)[0])}
    used = {str(facts.get("nvml")) for facts in (session.meta.get("devices") or {}).values()} & recorded
    for device in sorted(used or sorted(recorded)[:1]):
        yield from ([f"{device}.{name}" for name in names] for names in DEVICE_LANES)


def _scale(curves: Sequence[Curve]) -> Scale:
    """From 0 to the greatest reading in view; shares of a device's time always have 100 %."""
    high = np.concatenate([curve.high for curve in curves])
    there = high[np.isfinite(high)]
    top = round_up(float(there.max()) * HEADROOM) if len(there) else 1.0
    return Scale(0.0, 100.0 if of_device(curves[0].name)[1] in DEVICE_LANES[0] else top)


SHOWN: Final = {
    CPU: Quantity("CPU of the process", "compute", "CPU, process", unit="%"),
    of.ALL_CPU: Quantity("of all programs", "other_programs", "all", dotted=True, unit="%"),
    of.RSS: Quantity("resident memory of the process", "memory", "resident memory", unit="MB"),
    of.AVAILABLE: Quantity("memory available", "muted", unit="MB"),
    of.CLOCK: Quantity("CPU frequency", "search", unit="MHz"),
    of.PACKAGE: Quantity("processor power", "frontend", unit="W"),
    of.BUSY: Quantity("GPU utilisation", "compute", unit="%"),
    of.MEMORY_BUSY: Quantity("GPU memory busy", "memory", "memory busy", dotted=True, unit="%"),
    of.MEMORY_USED: Quantity("GPU memory used", "memory", unit="MB"),
    of.POWER: Quantity("GPU power", "frontend", unit="W"),
}

MEMORY_PICTURE = 250  # Pixels that a picture of the memory needs: the ticks have room with the legend in four lines


class SystemView(LanesView):
    """What the machine did while the frames were decoded."""

    id = "system"
    title = "System"
    shown = SHOWN

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

    def readout(self, model: LanesModel, second: float) -> list[ReadoutLine]:
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
        device, reading = of_device(name)
        found = super().quantity(reading)
        return found._replace(title=f"{found.title} ({device})") if device not in ("", "gpu0") else found

    def figure(self, name: str, value: float) -> str:
        unit = SHOWN[of_device(name)[1]].unit
        if unit == "MHz":
            return f"{prefixed(1e6 * value)}Hz"
        return f"{prefixed(value)}B" if unit == "MB" else f"{value:.0f} {unit}"

    def average(self, curve: Curve) -> str:
        figure = super().average(curve)
        if curve.whole is None or curve.name != CPU:
            return figure
        return self.tr("{0} (of {1} cores)").format(figure, round(curve.whole / 100))

    def cell(self, name: str, value: float) -> str:
        return f"{value / MEGABYTE:.0f}" if SHOWN[of_device(name)[1]].unit == "MB" else f"{value:.1f}"

    def show_texts(self, model: LanesModel) -> None:
        self.headings.set_model(model)
        if self._memory is not None and self.snapshot is not None:
            self.set_note(*self.memory.show_texts(self._memory, self.snapshot.session))
        elif model.panels:
            self.set_note(self.tr("band: min–max, line: mean"))
        else:
            self.set_note(self.nothing(), self.tr("no readings"))

    def summary(self) -> str:
        model = self.model()
        if model is not None and self._memory is not None and self.snapshot is not None:
            return self.memory.summary(self._memory, self.snapshot.session)
        if model is None or not model.panels:
            return self.nothing()
        means = ", ".join(f"{self.quantity(c.name).title} {self.average(c)}" for c in model.curves)
        return self.tr("{0} the means are: {1}.").format(self.extent, means)

    def nothing(self) -> str:
        return self.tr("This session has no readings of the machine.")
