"""Work per frame as small multiples over audio time: tokens, beam, senones, Gaussians, bytes and time of scoring."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from app.charts.scale import Scale, quantile_of, robust_top_of
from app.model.time_axis import TimeAxis
from app.views.lanes import LanesView, Quantity
from app.views.lanes_model import Curve, LanesModel, lanes_model
from profiler.analysis.categories import NOT_OWN, SCORING_CATEGORIES
from profiler.analysis.lod.columns import column_edges, means, totals
from profiler.analysis.lod.series import FrameSeries, Under, block_frames, series_of, under
from profiler.analysis.track import SCORING_BYTES, CostTrack
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.plain import count, milliseconds, percent, prefixed
from profiler.session.reader import Session

SCORING_TIME: Final = "scoring time"  # ns per frame: what was computed, waited for memory, and neither
BEAM: Final = ("search beam", "search.beam")  # A count or a sample, nat, of a run that moves its beam
OF_SENONES: Final = ("scoring senones", "search senones")  # Those scored, and the active ones
LANES: Final = (
    ("search tokens",),
    BEAM,
    OF_SENONES,
    ("scoring gaussians", "scoring components"),
    (SCORING_BYTES,),
    (SCORING_TIME,),
)
DRAWN: Final = frozenset(name for names in LANES for name in names)

SCORING: Final = sum(name not in NOT_OWN for name in SCORING_CATEGORIES)  # Number of them; they come first
LOG_RATIO = 8.0  # Of high to low values, from which on a lane is logarithmic: a step of ×10 and ripple are both seen
STALE_FRAMES: Final = 300  # A reading holds until the next one, but no longer than this: blocks have at most 256 frames


def work_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    before: Mapping[str, Scale] | None = None,
    counted: tuple[int, int] = (0, 0),
    in_blocks: bool = True,
) -> LanesModel:
    """Reduce the counts to `columns` pixel columns over `visible` seconds, up to a frame.

    `before`: the scales drawn last, by the first quantity of their lane; they hold while they fit. `counted`: frames
    [first, last) of the averages. `in_blocks`: columns stand for the block under them (skipping takes turns, and of 7
    frames now 3 and now 4 were computed); a table has the columns themselves.
    """
    series = series_of(session, track)
    end = min(int(cursor_frame), len(series))
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    size = block_frames(edges[-1] - edges[0], len(edges) - 1) if in_blocks else 0
    window = _Window(session, track, series, edges, under(edges, end, size), counted, end)
    return lanes_model(edges, size, LANES, window.curve, _scale, before)


@dataclass(frozen=True)
class _Window:
    """The visible range, from which the curves are made, none from `end` on; averages are of the frames `counted`."""

    session: Session
    track: CostTrack
    series: FrameSeries
    edges: F64
    below: Under
    counted: tuple[int, int]
    end: int

    def curve(self, name: str) -> Curve | None:
        """The curve of a quantity, None where it was not recorded."""
        if name == SCORING_TIME:
            return self._time()
        row = self._counts.get(name)
        if row is None:
            return self._sampled(name) if name in self.session.sample_names else None
        low, high, mean, total = row
        about = self.session.meta.get("scoring") or {}
        # One row of scores may be for several frames.
        all_senones = about["senones"] / about.get("frames_per_output", 1) if "senones" in about else None
        return Curve(name, low, high, mean, self._mean(total), all_senones if name in OF_SENONES else None)

    def _mean(self, total: float) -> float:
        frames = self.counted[1] - self.counted[0]
        return float(total) / frames if frames > 0 else math.nan

    @cached_property
    def _counts(self) -> dict[str, tuple[F64, F64, F64, float]]:
        """Minimum, maximum and mean by column, and the sum over what is counted, of every count."""
        work = self.series.work(DRAWN)
        if not work.names:
            return {}
        grid, end = self.below.grid, self.end
        blocks = (*work.extremes.columns(grid, end), means(work.rows, grid, end))
        by_row = [self.below.spread_rows(values) for values in blocks]
        return dict(zip(work.names, zip(*by_row, totals(work.rows, *self.counted), strict=True), strict=True))

    def _time(self) -> Curve | None:
        costs = self.series.costs[:SCORING]
        if not totals(costs, 0, self.end).any():
            return None
        mean = self.below.spread(means(costs, self.below.grid, self.end).sum(axis=1))
        return Curve(SCORING_TIME, mean, mean, mean, self._mean(totals(costs, *self.counted).sum()))

    def _sampled(self, name: str) -> Curve | None:
        """A reading taken now and then: each column has the last one before its middle."""
        times, values = self.session.samples(name)
        if not len(times):
            return None
        frames = self.track.decoding.frames_at(times)
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        last = np.searchsorted(frames, middle, side="right") - 1
        age = middle - frames[np.maximum(last, 0)]
        there = (last >= 0) & (age < STALE_FRAMES) & (middle >= 0) & (middle < self.end)
        mean = np.where(there, values[np.maximum(last, 0)], np.nan)
        begin, end = (int(np.searchsorted(frames, frame)) for frame in self.counted)
        average = float(values[begin:end].mean()) if end > begin else math.nan
        return Curve(name, mean, mean, mean, average)


def _scale(curves: Sequence[Curve]) -> Scale:
    high, mean = (np.sort(np.concatenate([getattr(c, of) for c in curves])) for of in ("high", "mean"))
    there = int(np.searchsorted(high, np.inf))  # no data (NaN) comes last
    top = robust_top_of(high[:there])
    if not there:
        return Scale(0.0, 1.0)
    # Of the means: a token at the start of each utterance would leave half of the lane to its band.
    least = quantile_of(mean[:there], 0.05)
    if least >= 1.0 and quantile_of(high[:there], 0.95) > LOG_RATIO * least:
        bottom = 10.0 ** math.floor(math.log10(least))
        return Scale(bottom, max(top, 10.0 * bottom), log=True)
    return Scale(0.0, top)


SHOWN = {
    "search tokens": Quantity("tokens", "search"),
    "search beam": Quantity("beam in use", "search", unit="nat"),
    "search.beam": Quantity("beam in use", "search", unit="nat"),
    "search senones": Quantity("active senones", "frontend", "active"),
    "scoring senones": Quantity("senones scored", "memory", "scored"),
    "scoring gaussians": Quantity("Gaussians", "compute"),
    "scoring components": Quantity("components summed", "frontend", "summed", dotted=True),
    SCORING_BYTES: Quantity("bytes (modelled)", "memory", unit="B"),
    SCORING_TIME: Quantity("scoring time", "text", unit="ms"),
}
WHOLE_FROM = 100  # Means from here on have no decimals in the table


class WorkView(LanesView):
    """How many tokens and senones the search has active, and how much is computed for it."""

    id = "work"
    title = "Work per frame"
    shown = SHOWN

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis, work_model)

    def figure(self, name: str, value: float) -> str:
        if name == SCORING_TIME:
            return f"{milliseconds(value * 1e-6)} ms"
        return self.axis_figure(name, value) if name in (SCORING_BYTES, *BEAM) else count(value)

    def axis_figure(self, name: str, value: float) -> str:
        if name == SCORING_TIME:
            return f"{value * 1e-6:.3g} ms"
        if name == SCORING_BYTES:
            return f"{prefixed(value)}B"
        return f"{value:.3g} nat" if name in BEAM else prefixed(value).replace(" ", "")

    def average(self, curve: Curve) -> str:
        value = super().average(curve)
        if not curve.whole or math.isnan(curve.average):
            return value
        return f"{value} ({percent(curve.average / curve.whole)})"

    def cell(self, name: str, value: float) -> str:
        if name == SCORING_TIME:
            return f"{value / 1e6:.4f}"
        return f"{value:.1f}" if value < WHOLE_FROM else count(value)

    def show_texts(self, model: LanesModel) -> None:
        self.headings.set_model(model)
        each = self.by_unit(self.tr("per 10 ms frame"), self.tr("per step"))
        note = self.tr("{0} · band: min–max, line: mean").format(each)
        blocks = self.by_unit(self.tr("{0} of {1} frames"), self.tr("{0} of {1} steps"))
        self.set_note(*[blocks.format(note, model.block_frames)] * (model.block_frames > 1), note, each)

    def readout_head(self) -> str:
        return self.by_unit(self.tr("per frame"), self.tr("per step"))

    def summary(self) -> str:
        model = self.model()
        if model is None or not model.panels:
            return self.tr("No work counts recorded yet.")
        means = ", ".join(f"{self.tr(SHOWN[c.name].title)} {self.average(c)}" for c in model.curves)
        text = self.by_unit(self.tr("{0} the means per frame are: {1}."), self.tr("{0} the means per step are: {1}."))
        return text.format(self.extent, means)
