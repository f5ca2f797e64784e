"""What the cost view draws, as plain arrays: a pure function of session, track and range. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.views.breakdown_model import rtf_of
from app.views.columns import column_edges
from app.views.events import Boundary, Mark, boundaries, marks
from app.views.frames import CATEGORIES, series_of
from app.views.scale import robust_top
from profiler.analysis.utterances import audio_seconds
from profiler.arrays import F64
from profiler.session.model import FRAME_S

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

REALTIME_MS = 1e3 * FRAME_S
"""Processing time per 10 ms frame at which RTF = 1."""

REALTIME_IN_SCALE = 0.4
"""From this share of real time on, the scale is opened up to show the line."""

MAX_SPIKES = 5
"""Maximum number of marked spikes: the highest ones."""

SPIKE_APART = 18
"""Columns between two marked spikes, at least."""


@dataclass(frozen=True)
class CostModel:
    """Cost per frame over the visible range, one entry per pixel column.

    Attributes:
        first_s: left end of the range, seconds.
        last_s: right end.
        cursor_frame: frames from here on are not shown.
        mean_ms: [columns, categories] mean per frame; NaN where there is no frame.
        worst_ms: [columns] highest frame (wall).
        top_ms: upper end of the scale.
        spikes: columns whose highest frame is cut off, the highest ones; column indices.
        mean_total_ms: mean wall over the frames shown in the range, NaN without any.
        rtf: real-time factor of the frames shown in the range, NaN without any.
        audio_s: audio time of all frames shown, in and out of the range.
        shares: [categories] of the wall in the range, NaN without any.
        marks: markers known at the playhead.
        boundaries: utterances begun before the playhead.
    """

    first_s: float
    last_s: float
    cursor_frame: int
    mean_ms: F64
    worst_ms: F64
    top_ms: float
    spikes: tuple[int, ...]
    mean_total_ms: float
    rtf: float
    audio_s: float
    shares: F64
    marks: tuple[Mark, ...]
    boundaries: tuple[Boundary, ...]

    @property
    def realtime_shown(self) -> bool:
        """Whether the RTF = 1 line is within the scale."""
        return self.top_ms >= REALTIME_MS

    @property
    def frames_per_column(self) -> float:
        """Frames per column."""
        return (self.last_s - self.first_s) / FRAME_S / max(1, len(self.mean_ms))

    def column_at(self, second: float) -> int | None:
        """Column over a second of audio, or None outside the range or where no frame is."""
        share = (second - self.first_s) / (self.last_s - self.first_s)
        column = int(share * len(self.mean_ms))
        if not 0 <= column < len(self.mean_ms) or np.isnan(self.mean_ms[column, 0]):
            return None
        return column


def cost_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
) -> CostModel:
    """Reduce the track to `columns` pixel columns over `visible` seconds, up to the playhead."""
    series = series_of(session, track)
    end = min(int(cursor_frame), len(series))
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    mean = series.costs.means(edges, end) * 1e-6
    _, worst = series.walls.columns(edges, end)
    worst = worst * 1e-6
    totals = mean.sum(axis=1)
    top = robust_top(totals)
    if REALTIME_IN_SCALE * REALTIME_MS <= top < REALTIME_MS * 1.2:
        top = REALTIME_MS * 1.2
    first, last = round(max(edges[0], 0.0)), round(min(max(edges[-1], 0.0), end))
    total = series.costs.total(first, last)
    wall = float(total.sum())
    known = last > first
    mean_total_ms = wall / (last - first) * 1e-6 if known else float("nan")
    return CostModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        cursor_frame=end,
        mean_ms=mean,
        worst_ms=worst,
        top_ms=top,
        spikes=highest_spikes(worst, top),
        mean_total_ms=mean_total_ms,
        rtf=rtf_of(session, first, last, mean_total_ms) if known else float("nan"),
        audio_s=audio_seconds(session.utterances, 0, end),
        shares=total / wall if wall > 0 else np.full(len(CATEGORIES), np.nan),
        marks=marks(session, end, len(series)),
        boundaries=boundaries(session, end),
    )


def rtf_at(session: Session, model: CostModel, column: int) -> float:
    """Real-time factor of the frames in one column; NaN where there is none."""
    step = (model.last_s - model.first_s) / FRAME_S / len(model.mean_ms)
    start = model.first_s / FRAME_S + column * step
    first = max(int(start), 0)
    last = max(min(math.ceil(start + step), model.cursor_frame), first + 1)
    return rtf_of(session, first, last, float(model.mean_ms[column].sum()))


def highest_spikes(worst_ms: F64, top_ms: float) -> tuple[int, ...]:
    """Columns of the highest frames above the scale, at most `MAX_SPIKES`, well apart."""
    above = np.flatnonzero(np.nan_to_num(worst_ms) > top_ms)
    if not len(above):
        return ()
    order = above[np.argsort(-worst_ms[above], kind="stable")]
    chosen: list[int] = []
    for column in order.tolist():
        if all(abs(column - other) >= SPIKE_APART for other in chosen):
            chosen.append(column)
            if len(chosen) == MAX_SPIKES:
                break
    return tuple(sorted(chosen))
