"""What the view of the memory draws: resident bytes of each component over audio time. No Qt.

A reading (`profiler.machine.memory`) holds until the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.charts.scale import HEADROOM, Holding, Scale, held, round_up
from app.model import memory
from app.views.system_model import held_once
from profiler.analysis.lod.columns import column_edges
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.machine.memory import DEVICE, sample_name

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

COMPONENTS: Final = tuple(memory.TITLES)
MEGABYTE: Final = 1e6


@dataclass(frozen=True)
class MemoryUseModel:
    """Resident memory over the visible range.

    Attributes:
        first_s: left end of the range, seconds.
        last_s: right end.
        layers_mb: [columns, COMPONENTS] mean, MB; NaN where there is no frame or no reading.
        scale: what is drawn from the lower to the upper edge, MB.
        latest: bytes at the end of the scope by component, and on accelerators; empty without a reading.
    """

    first_s: float
    last_s: float
    layers_mb: F64
    scale: Scale
    latest: Mapping[str, float]

    @property
    def resident(self) -> float:
        """Resident bytes at the end of the scope."""
        return sum(size for name, size in self.latest.items() if name in COMPONENTS)

    def column_at(self, second: float) -> int | None:
        """Column over a second of audio, or None outside the range or where nothing is known."""
        column = int((second - self.first_s) / (self.last_s - self.first_s) * len(self.layers_mb))
        there = 0 <= column < len(self.layers_mb) and bool(np.isfinite(self.layers_mb[column, 0]))
        return column if there else None


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
    return MemoryUseModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        layers_mb=layers,
        scale=held(Scale(0.0, round_up(HEADROOM * most)), Holding(before)),
        latest=latest,
    )
