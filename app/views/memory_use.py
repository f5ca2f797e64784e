"""The resident memory of the recogniser's process over audio time, stacked by component: a page of the system.

What only the libraries explain lies at the bottom, what the recogniser holds on top of it. A line below says what the
run cost per hour of audio.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QBoxLayout

from app.charts.items import Levels
from app.charts.legend import Legend, ReadoutLine
from app.charts.raster import Stack
from app.charts.scale import HEADROOM, Holding, Scale, held, round_up
from app.charts.time_plot import GUTTER, TimePlot
from app.layout import styled
from app.model import memory
from app.model.memory import TITLES, size
from app.model.playhead import Snapshot
from app.style.plain_text import Elided
from app.views.lanes_model import TimeColumns, held_once, stretches
from app.views.table_twin import Table
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.track import CostTrack
from profiler.arrays import F64, Bool
from profiler.clock import FRAME_S
from profiler.machine.memory import DEVICE, sample_name
from profiler.plain import clock
from profiler.session.reader import Session

COMPONENTS: Final = tuple(memory.TITLES)
MEGABYTE: Final = 1e6


@dataclass(frozen=True)
class MemoryUseModel(TimeColumns):
    """Resident memory over the visible range."""

    layers_mb: F64  # [columns, COMPONENTS] mean, MB; NaN where there is no frame or no reading
    scale: Scale  # What is drawn from the lower to the upper edge, MB
    latest: Mapping[str, float]  # Bytes at the end of the scope by component, and on a device; empty without a reading

    @property
    def resident(self) -> float:
        return sum(size for name, size in self.latest.items() if name in COMPONENTS)

    @property
    def known(self) -> Bool:
        return np.isfinite(self.layers_mb[:, 0])


def memory_use_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    before: Scale | None = None,
    latest_before: int | None = None,
) -> MemoryUseModel:
    """Reduce the readings to `columns` pixel columns over `visible` s, up to a frame; `before`: the last scale.

    `latest_before`: frame before which the latest ones are wanted; None: the last ones.
    """
    end = min(int(cursor_frame), int(track.n_frames))
    edges = column_edges(visible[0] / FRAME_S, visible[1] / FRAME_S, max(1, columns))
    layers = np.full((len(edges) - 1, len(COMPONENTS)), np.nan)
    latest = {}
    for number, name in enumerate((*COMPONENTS, DEVICE)):
        found = held_once(session, sample_name(name), end)
        if found is None:
            continue
        at = len(found.begin) if latest_before is None else int(np.searchsorted(found.begin, latest_before))
        latest[name] = float(found.value[max(at, 1) - 1])
        if number < len(COMPONENTS):
            layers[:, number] = found.columns(edges)[2] / MEGABYTE
    known = np.isfinite(layers).any(axis=1)
    layers[known] = np.nan_to_num(layers[known])
    most = float(layers[known].sum(axis=1).max()) if known.any() else 1.0
    scale = held(Scale(0.0, round_up(HEADROOM * most)), Holding(before))
    return MemoryUseModel(float(edges[0]) * FRAME_S, float(edges[-1]) * FRAME_S, layers, scale, latest)


COLORS: Final = {  # The category whose colour a component has
    "files": "overhead",
    "libraries": "unexplained",
    "model": "compute",
    "graph": "search",
    "tokens": "memory",
    "lattice": "other_programs",
    "frontend": "frontend",
    "recorder": "transfer",
}
LEAST: Final = 5e4  # Bytes from which the legend has a figure: less would be 0.0 MB


class MemoryUse(QObject):
    """Which component holds the memory: draws into a plot, and into a column below it."""

    def __init__(self, plot: TimePlot, column: QBoxLayout) -> None:
        super().__init__(plot)
        self._plot = plot
        self._grid = Levels(plot)
        self.stack = Stack(plot, [COLORS[name] for name in COMPONENTS])
        self.legend = Legend(self._titles({}))
        self.cost = styled(Elided(), muted=True)
        self.cost.setIndent(GUTTER)
        for part in (self.legend, self.cost):
            column.addWidget(part)
        self._scale: Scale | None = None
        self.show_model(None)

    def _titles(self, used: Mapping[str, float]) -> dict[str, str]:
        """The legend, with the bytes of the components that have any."""
        figures = {name: f" {size(used[name])}" for name in COMPONENTS if used.get(name, 0.0) >= LEAST}
        return {COLORS[name]: self.tr(TITLES[name]) + figures.get(name, "") for name in COMPONENTS}

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> MemoryUseModel:
        of, until = (snapshot.session, snapshot.track, snapshot.end_frame), snapshot.desk.scope.last
        return memory_use_model(*of, visible, columns, self._scale, until)

    def show_model(self, model: MemoryUseModel | None) -> None:
        self.legend.setVisible(model is not None)
        self.cost.setVisible(model is not None and bool(model.latest))
        if model is None or not model.latest:
            self._scale = None
            self.stack.show_nothing()
            self._grid.show_levels(np.empty(0))
            self.cost.set_full("")
            return
        self._scale = model.scale
        self._plot.set_height_range(0.0, 1.0)
        self._grid.show_scale(model.scale)
        self.stack.show_layers(model.layers_mb, model.scale, model.first_s, model.last_s)

    def show_texts(self, model: MemoryUseModel, session: Session) -> tuple[str, ...]:
        """Show what the run cost; return the memory at the end of the scope, and the same in fewer words."""
        self.legend.set_titles(self._titles(model.latest))
        if not model.latest:
            return self.nothing(), self.tr("no readings")
        self.cost.set_full(*self._cost(session))
        resident = self.tr("{0} resident").format(size(model.resident))
        grows = memory.growth_text(memory.growth(session))
        return f"MB · {resident} · {grows}", f"MB · {resident}", "MB"

    def summary(self, model: MemoryUseModel, session: Session) -> str:
        if not model.latest:
            return self.nothing()
        text = self.tr("In the end {0} are resident: {1}; {2}; {3}.").format(
            size(model.resident),
            memory.largest(model.latest),
            memory.most_text(session),
            memory.growth_text(memory.growth(session)),
        )
        cost = self._cost(session)[0]
        return f"{text} {cost}." if cost else text

    def _cost(self, session: Session) -> tuple[str, ...]:
        """What the run cost, and the same in fewer words; an empty text where that is not known."""
        about = memory.cost(session)
        found = memory.cost_lines(about)
        if not found:
            return ("",)
        line = found[0][0].upper() + found[0][1:]
        shorter = line.partition(", ")[0]
        if about["joules_per_audio_hour"] is None:
            return line, self.tr("{0}, energy not measured").format(shorter), shorter
        return line, shorter

    def nothing(self) -> str:
        return self.tr("This session has no readings of the memory by component.")

    def readout(self, model: MemoryUseModel, second: float) -> list[ReadoutLine]:
        column = model.column_at(second)
        if column is None:
            return []
        layers = model.layers_mb[column] * MEGABYTE
        used = [(name, float(layers[number])) for number, name in reversed([*enumerate(COMPONENTS)])]
        return [
            ReadoutLine(clock(second, 2), "", strong=True),
            *(ReadoutLine(self.tr(TITLES[name]), size(some), COLORS[name]) for name, some in used if some > 0),
            ReadoutLine(self.tr("resident"), size(float(layers.sum())), strong=True),
        ]

    def table(self, snapshot: Snapshot, visible: tuple[float, float]) -> Table:
        headers = [self.tr("from s"), self.tr("to s"), self.tr("resident MB")]
        headers += [f"{self.tr(title)} MB" for title in TITLES.values()]
        model = self.reduce(snapshot, stretches(visible), visible)
        values = np.concatenate([model.layers_mb.sum(axis=1, keepdims=True), model.layers_mb], axis=1)
        return headers, model.rows(lambda row: [f"{value:.1f}" for value in values[row]])
