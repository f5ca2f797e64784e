"""What the machine did: load, memory, clock and power over audio time, each quantity on a lane of its own unit.

A page in place of the lanes has the memory of the process by component.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from app.charts.legend import Line
from app.charts.scale import HEADROOM, Holding, Scale, held, round_up
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.lanes import LanesView, Quantity
from app.views.lanes_model import (
    ALL_CPU,
    AVAILABLE,
    BUSY,
    CLOCK,
    MEMORY_BUSY,
    MEMORY_USED,
    NO_SCALES,
    PACKAGE,
    POWER,
    RSS,
    Curve,
    Held,
    LanesModel,
    Panel,
    cores,
    held_once,
    of_device,
)
from app.views.memory_use import MemoryUse, MemoryUseModel
from app.views.table_twin import Table
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.resources import CPU
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.plain import prefixed

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


LANES: Final = ((CPU, ALL_CPU), (RSS,), (AVAILABLE,), (CLOCK,), (PACKAGE,))
DEVICE_LANES: Final = ((BUSY, MEMORY_BUSY), (MEMORY_USED,), (POWER,))


SHARES: Final = frozenset({BUSY, MEMORY_BUSY})  # Percentages whose lane always reaches up to 100


def system_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    before: Mapping[str, Scale] = NO_SCALES,
    counted: tuple[int, int] = (0, 0),
    in_blocks: bool = True,
) -> LanesModel:
    """Reduce the readings to `columns` pixel columns over `visible` seconds, up to a frame; arguments: `work_model`.

    Readings are of times and not of blocks, so `in_blocks` makes no difference.
    """
    end = min(int(cursor_frame), int(track.n_frames))
    edges = column_edges(visible[0] / FRAME_S, visible[1] / FRAME_S, max(1, columns))
    panels = []
    for names in _lanes(session):
        found = [(name, held_once(session, name, end)) for name in names]
        curves = tuple(_curve(session, name, one, edges, counted) for name, one in found if one is not None)
        if curves:
            panels.append(Panel(curves, _scale(curves, before)))
    return LanesModel(
        first_s=float(edges[0]) * FRAME_S, last_s=float(edges[-1]) * FRAME_S, block_frames=1, panels=tuple(panels)
    )


def _lanes(session: Session) -> Iterator[tuple[str, ...]]:
    """The lanes from top to bottom, those of the devices that the run used last; without one, of the first device."""
    yield from LANES
    recorded = {device for name in session.sample_names if (device := of_device(name)[0])}
    known = session.meta.get("devices")
    facts = known.values() if isinstance(known, Mapping) else ()
    used = {str(one.get("nvml")) for one in facts if isinstance(one, Mapping)} & recorded
    for device in sorted(used or sorted(recorded)[:1]):
        yield from (tuple(f"{device}.{name}" for name in names) for names in DEVICE_LANES)


def _curve(session: Session, name: str, held: Held, edges: F64, shown: tuple[int, int]) -> Curve:
    low, high, mean = held.columns(edges)
    average = math.nan
    if shown[1] > shown[0]:
        average = float(held.mean(np.array([float(shown[0])]), np.array([float(shown[1])]))[0])
    number = cores(session)
    whole = 100.0 * number if number is not None and name in (CPU, ALL_CPU) else None
    return Curve(name, low, high, mean, average, whole)


def _scale(curves: tuple[Curve, ...], before: Mapping[str, Scale]) -> Scale:
    """From 0 to the greatest reading in view; what it was while that still fits."""
    high = np.concatenate([curve.high for curve in curves])
    there = high[np.isfinite(high)]
    top = round_up(float(there.max()) * HEADROOM) if len(there) else 1.0
    if of_device(curves[0].name)[1] in SHARES:
        top = 100.0
    return held(Scale(0.0, top), Holding(before.get(curves[0].name)))


class _Shown(NamedTuple):
    """How a reading is shown; `short`: its name where there is little room, `unit`: of the table twin's column."""

    title: str
    color: str
    short: str = ""
    unit: str = "%"


SHOWN = {
    CPU: _Shown("CPU of the process", "compute", "CPU, process"),
    ALL_CPU: _Shown("of all programs", "other_programs", "all"),
    RSS: _Shown("resident memory of the process", "memory", "resident memory", "MB"),
    AVAILABLE: _Shown("memory available", "muted", unit="MB"),
    CLOCK: _Shown("CPU frequency", "search", unit="MHz"),
    PACKAGE: _Shown("processor power", "frontend", unit="W"),
    BUSY: _Shown("GPU utilisation", "compute"),
    MEMORY_BUSY: _Shown("GPU memory busy", "memory", "memory busy"),
    MEMORY_USED: _Shown("GPU memory used", "memory", unit="MB"),
    POWER: _Shown("GPU power", "frontend", unit="W"),
}

MEGABYTE = 1e6

MEMORY_PICTURE = 250  # Pixels that a picture of the memory needs: the ticks have room with the legend in four lines


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
        device, of_it = of_device(name)
        one = SHOWN[of_it]
        title, unit = self.tr(one.title), one.unit
        if device not in ("", "gpu0"):
            title = f"{title} ({device})"

        def figure(value: float) -> str:
            if unit == "MHz":
                return f"{prefixed(1e6 * value)}Hz"
            return f"{prefixed(value)}B" if unit == "MB" else f"{value:.0f} {unit}"

        return Quantity(
            title=title,
            color=one.color,
            axis_figure=figure,
            figure=figure,
            short=self.tr(one.short),
            dotted=of_it in (ALL_CPU, MEMORY_BUSY),
            unit=unit,
        )

    def average(self, curve: Curve) -> str:
        figure = super().average(curve)
        if curve.whole is None or curve.name != CPU:
            return figure
        return self.tr("{0} (of {1} cores)").format(figure, round(curve.whole / 100))

    def cell(self, name: str, value: float) -> str:
        of_it = of_device(name)[1]
        return f"{value / MEGABYTE:.0f}" if SHOWN[of_it].unit == "MB" else f"{value:.1f}"

    def show_texts(self, model: LanesModel) -> None:
        self.headings.set_model(model)
        if self._memory is not None and self.snapshot is not None:
            self.set_note(*self.memory.show_texts(self._memory, self.snapshot.session))
            return
        if not model.panels:
            self.set_note(self.nothing(), self.tr("no readings"))
            return
        self.set_note(self.tr("band: min–max, line: mean"))

    def summary(self) -> str:
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
