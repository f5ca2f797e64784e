"""What the work view draws: counts per frame, one lane each with a scale of its own. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.views.columns import Floats, column_edges
from app.views.events import FRAME_S, Boundary, Mark, boundaries, marks
from app.views.frames import series_of
from app.views.scale import robust_top

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

LANES = (
    ("tokens",),
    ("senones scored", "senones asked"),
    ("gaussians",),
    ("components",),
)
"""From top to bottom: what the search holds, what it asks for and gets, what that costs. Quantities of
one lane have the same unit and share a scale."""

LOG_RATIO = 8.0
"""From this ratio between high and low values on a lane is logarithmic: a step of ×10 (Gaussian
selection) and the ripple on both sides of it are then both seen."""


@dataclass(frozen=True)
class Curve:
    """One quantity per frame over the visible range.

    Attributes:
        name: which quantity (a key of `CostTrack.work`).
        low: [columns] least value in the column; NaN where there is no frame.
        high: [columns] greatest value.
        mean: [columns] mean.
        average: mean over the frames shown in the range, NaN without any.
    """

    name: str
    low: Floats
    high: Floats
    mean: Floats
    average: float


@dataclass(frozen=True)
class Lane:
    """Curves on one scale, from `bottom` (0 unless logarithmic) to `top`."""

    curves: tuple[Curve, ...]
    bottom: float
    top: float
    log: bool

    def place(self, values: Floats) -> Floats:
        """Height 0…1 within the lane for values; what is off the scale lies on its edge."""
        if not self.log:
            return np.clip(values / self.top, 0.0, 1.0)
        span = math.log(self.top / self.bottom)
        return np.clip(np.log(np.maximum(values, self.bottom) / self.bottom) / span, 0.0, 1.0)


@dataclass(frozen=True)
class WorkModel:
    """Counts per frame over the visible range, one lane per quantity that was recorded."""

    first_s: float
    last_s: float
    cursor_frame: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    boundaries: tuple[Boundary, ...]

    def column_at(self, second: float) -> int | None:
        """Column over a second of audio, or None outside the range."""
        if not self.lanes:
            return None
        columns = len(self.lanes[0].curves[0].mean)
        column = int((second - self.first_s) / (self.last_s - self.first_s) * columns)
        return column if 0 <= column < columns else None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """All curves, from top to bottom."""
        return tuple(curve for lane in self.lanes for curve in lane.curves)


def work_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
) -> WorkModel:
    """Reduce the counts to `columns` pixel columns over `visible` seconds, up to the playhead."""
    series = series_of(session, track)
    end = min(int(cursor_frame), len(series))
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    first, last = round(max(edges[0], 0.0)), round(min(max(edges[-1], 0.0), end))
    lanes = []
    for names in LANES:
        curves = []
        for name in (n for n in names if n in series.work):
            sums, extremes = series.work[name]
            low, high = extremes.columns(edges, end)
            mean = sums.means(edges, end)[:, 0]
            count = last - first
            average = float(sums.total(first, last)[0]) / count if count > 0 else math.nan
            curves.append(Curve(name, low, high, mean, average))
        if curves:
            lanes.append(Lane(tuple(curves), *_scale(curves)))
    return WorkModel(
        first_s=first_s,
        last_s=last_s,
        cursor_frame=end,
        lanes=tuple(lanes),
        marks=marks(session, end, len(series)),
        boundaries=boundaries(session, end),
    )


def _scale(curves: list[Curve]) -> tuple[float, float, bool]:
    high = np.concatenate([curve.high for curve in curves])
    low = np.concatenate([curve.low for curve in curves])
    there = np.isfinite(high)
    top = robust_top(high)
    if not there.any():
        return 0.0, 1.0, False
    least = float(np.quantile(low[there], 0.05))
    if least >= 1.0 and float(np.quantile(high[there], 0.95)) > LOG_RATIO * least:
        bottom = 10.0 ** math.floor(math.log10(least))
        return bottom, max(top, 10.0 * bottom), True
    return 0.0, top, False
