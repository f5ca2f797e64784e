"""What the cost view draws, as plain arrays: a pure function of session, track and range. No Qt."""

import math
from dataclasses import dataclass

import numpy as np

from app.charts.scale import Holding, Scale, held, logarithmic, robust_top, round_up
from app.model.desk_snapshot import DeskSnapshot
from app.views.lanes_model import TimeColumns
from profiler.analysis.categories import CATEGORIES, NOT_OWN
from profiler.analysis.lod.columns import column_edges, means
from profiler.analysis.lod.series import block_frames, series_of, under
from profiler.analysis.recorded import audio_seconds, counts_steps, real_time_factor
from profiler.analysis.track import CostTrack
from profiler.arrays import F64, Bool
from profiler.clock import FRAME_S
from profiler.session.reader import Session

LAYERS = *(name for name in CATEGORIES if name not in NOT_OWN), *NOT_OWN  # From the bottom up; others are a cap
OWN = len(LAYERS) - len(NOT_OWN)  # Layers that are the run's own
REALTIME_MS = 1e3 * FRAME_S  # Processing time per 10 ms frame at which RTF = 1
REALTIME_IN_SCALE = 0.7  # From this share of real time on, the scale is opened up to show its line
FAINT_SHARE = 1.3  # Times what the means need that the 95 % quantile may open the scale to
MAX_SPIKES = 5  # Maximum number of marked spikes: the highest ones
SPIKE_APART = 18  # Columns between two marked spikes, at least


@dataclass(frozen=True)
class CostModel(TimeColumns):
    """Cost per frame over the visible range, one entry per pixel column: that of the block under it."""

    cursor_frame: int  # Frames from here on are not there
    block_frames: int  # Frames of a block; 0 where every column has its own mean
    mean_ms: F64  # [columns, LAYERS] mean per frame of the block; NaN where there is no frame
    p95_ms: F64  # [columns] wall time that 95 % of the block's frames do not exceed
    worst_ms: F64  # [columns] highest frame (wall) of the block
    scale: Scale  # What is drawn from the lower to the upper edge, ms
    spikes: tuple[int, ...]  # Columns whose block is cut off by the scale, the highest ones; column indices
    own_ms: float  # What a frame of the scope takes of the run's own, NaN without any
    of_steps: bool  # Whether frames are the steps of a lab

    @property
    def realtime_shown(self) -> bool:
        return self.scale.top >= REALTIME_MS and not self.of_steps

    @property
    def realtime_above(self) -> float:
        if self.of_steps:
            return math.nan
        return REALTIME_MS / self.own_ms if self.own_ms > 0 else math.nan

    @property
    def known(self) -> Bool:
        return np.isfinite(self.mean_ms[:, 0])


def cost_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    holding: Holding | None = Holding(),  # noqa: B008
    desk: DeskSnapshot | None = None,
) -> CostModel:
    """Reduce the track to `columns` pixel columns over `visible` seconds, up to a frame; `desk`: figures of the scope.

    `holding`: how the scale follows the data; None for the means of the columns themselves (a table).
    """
    series = series_of(session, track)
    end = min(int(cursor_frame), len(series))
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    size = 0 if holding is None else block_frames(edges[-1] - edges[0], len(edges) - 1)
    holding = holding or Holding()
    below = under(edges, end, size)
    first, last = below.first, below.first + len(below.grid) - 1
    # Only blocks have quantiles.
    p95 = series.quantiles.blocks(size, first, last, end) if size else np.full(last - first, np.nan)
    ns = means(series.costs, below.grid, end), p95, series.walls.columns(below.grid, end)[1][:, 0]
    mean, p95, worst = (1e-6 * below.spread(part) for part in ns)
    mean = mean[:, [CATEGORIES.index(name) for name in LAYERS]]
    totals = mean[:, :OWN].sum(axis=1)
    scale = held(_wanted(totals, p95, holding.log), holding)
    return CostModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        cursor_frame=end,
        block_frames=size,
        mean_ms=mean,
        p95_ms=p95,
        worst_ms=worst,
        scale=scale,
        spikes=highest_spikes(totals, scale.top),
        own_ms=math.nan if desk is None else desk.own_ms,
        of_steps=counts_steps(session),
    )


def _wanted(totals: F64, p95: F64, log: bool) -> Scale:
    """The scale that fits: all but a few far outliers of the means, nearly all of the faint line."""
    top = robust_top(totals)
    near = REALTIME_IN_SCALE * REALTIME_MS <= top < REALTIME_MS * 1.2
    faint = p95[np.isfinite(p95)]
    if len(faint):
        top = max(top, round_up(min(robust_top(faint), FAINT_SHARE * top)))
    if near:
        top = max(top, REALTIME_MS * 1.2)
    return logarithmic(totals, top) if log else Scale(0.0, top)


def rtf_at(session: Session, model: CostModel, column: int) -> float | None:
    """Real-time factor of the frames in one column, of the run's own time; None without audio."""
    step = (model.last_s - model.first_s) / FRAME_S / len(model.mean_ms)
    start = model.first_s / FRAME_S + column * step
    if size := model.block_frames:
        start, step = (start + step / 2) // size * size, size
    first = max(int(start), 0)
    last = max(min(math.ceil(start + step), model.cursor_frame), first + 1)
    audio_s = 0.0 if model.of_steps else audio_seconds(session.utterances, first, last)
    return real_time_factor(float(model.mean_ms[column, :OWN].sum()) * 1e6 * (last - first), audio_s)


def highest_spikes(worst_ms: F64, top_ms: float) -> tuple[int, ...]:
    """Columns of the highest values above the scale, at most `MAX_SPIKES`, well apart."""
    above = np.flatnonzero(np.nan_to_num(worst_ms) > top_ms)
    order = above[np.argsort(-worst_ms[above], kind="stable")]
    chosen: list[int] = []
    for column in order.tolist():
        if len(chosen) < MAX_SPIKES and all(abs(column - other) >= SPIKE_APART for other in chosen):
            chosen.append(column)
    return tuple(sorted(chosen))
