"""How the own time of single frames is spread, of whole frames or a stage: histogram, percentiles, slowest frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from profiler.analysis.per_frame import grains
from profiler.arrays import F64, I64

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

WHOLE: Final = "whole frame"  # Name of the time of whole frames among those of the stages
COUNTED: Final = ("frontend", "scoring", "search", "transfer")  # Groups whose stages work on frames
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}  # The percentiles by name, rising
BINS: Final = 60
SLOWEST: Final = 50  # Frames that `slowest` steps through
ENDS: Final = (0.001, 0.995)  # Of the histogram, as shares of the frames; the first and last bin have the rest
FROM_ZERO: Final = 0.3  # Share of the upper end below which the histogram begins at 0
NARROW: Final = 1e-9  # Share of the upper end within which times are the same: narrower bins are none in float64


@dataclass(frozen=True)
class Statistics:
    """The time of single frames, in ms, of a stage or WHOLE."""

    name: str
    frames: int
    mean: float
    quantiles: tuple[float, float, float]  # At QUANTILES
    highest: float
    edges: F64  # [bins + 1]
    counts: I64  # [bins]; the first and the last bin have what lies beyond the ends, too
    slowest: I64  # Frames, the slowest first, at most SLOWEST
    slowest_ms: F64


def stage_names(session: Session, track: CostTrack) -> tuple[str, ...]:
    ran = {stage for (lane, stage, _), _ in track.stages.totals() if session.lanes[lane].decode}
    stages = (s.name for n, s in session.stages.items() if n in ran and s.group in COUNTED)
    return WHOLE, *dict.fromkeys(stages)


def statistics(session: Session, track: CostTrack, name: str, first: int, last: int) -> Statistics | None:
    """How the own time of frames [first, last) is spread, of a stage or of WHOLE; None where it did not run."""
    last = min(last, int(track.n_frames))
    if last <= first:
        return None
    own = track.own_ns(first, last)
    ns = own if name == WHOLE else stage_ns(session, name, first, last)
    ran = np.full(len(ns), True) if name == WHOLE else ns > 0
    if name != WHOLE:
        # Other programs took as large a part of each stage of a frame as of all of it.
        wall = track.wall_row[first:last]
        ns = ns * np.divide(own, wall, out=np.ones(len(own)), where=wall > 0)
    if not ran.any():
        return None
    ms = ns[ran] * 1e-6
    return spread(name, first + np.flatnonzero(ran), ms, ends(ms))


def ends(ms: F64) -> tuple[float, float]:
    """Where a histogram of these times [n > 0] begins and ends, in ms."""
    least, top = (float(q) for q in np.quantile(ms, ENDS))
    top = top or float(ms.max()) or 1.0
    return (0.0 if least < FROM_ZERO * top or top - least <= NARROW * top else least), top


def spread(name: str, frames: I64, ms: F64, between: tuple[float, float]) -> Statistics:
    """How the times `ms` [n > 0] of `frames` [n] are spread; `between`: ends of the histogram in ms."""
    order = np.argsort(-ms, kind="stable")[:SLOWEST]
    counts, edges = np.histogram(np.clip(ms, *between), BINS, between)
    low, middle, high = np.quantile(ms, list(QUANTILES.values())).tolist()
    figures = float(ms.mean()), (low, middle, high), float(ms.max())
    return Statistics(name, len(ms), *figures, edges, counts, frames[order], ms[order])


def stage_ns(session: Session, name: str, first: int, last: int) -> F64:
    """Time of a stage on the decode lanes in each of frames [first, last), ns; spans are spread over their frames."""
    numbers = [number for number, stage in session.stages.items() if stage.name == name]
    lanes = [lane.id for lane in session.lanes.values() if lane.decode]
    spans = session.spans
    spans = spans[np.isin(spans["stage"], numbers) & np.isin(spans["lane"], lanes)]
    begin, count = spans["first_frame"].astype(np.int64), spans["frames"].astype(np.int64)
    within = (begin < last) & (begin + count > first) & (count > 0)
    begin, count = begin[within], count[within]
    # Grains add up exactly: a frame without the stage is left with nothing.
    each = grains(spans["duration_ns"][within] / count)
    frames = last - first
    starts = np.bincount(np.maximum(begin - first, 0), each, frames + 1)
    ends = np.bincount(np.minimum(begin + count - first, frames), each, frames + 1)
    found: F64 = np.cumsum(starts - ends)[:frames]
    return found


def stage_sums(session: Session, names: Sequence[str], begins: I64, end: int) -> F64:
    """Time of stages on the decode lanes before frame `end`, ns [names, stretches]; `begins`: their first frames."""
    rows = np.full(max(session.stages, default=0) + 1, -1)
    for number, stage in session.stages.items():
        if stage.name in names:
            rows[number] = names.index(stage.name)
    lanes = np.zeros(max(session.lanes, default=0) + 1, bool)
    lanes[[lane.id for lane in session.lanes.values() if lane.decode]] = True
    spans = session.spans
    first = spans["first_frame"]
    row = rows[spans["stage"]]
    stretch = np.searchsorted(begins, first, "right") - 1
    kept = (row >= 0) & lanes[spans["lane"]] & (first < end) & (stretch >= 0)
    place = row[kept] * len(begins) + stretch[kept]
    sums = np.bincount(place, weights=spans["duration_ns"][kept], minlength=len(names) * len(begins))
    return sums.reshape(len(names), len(begins)).astype(np.float64)


def word_at(session: Session, frame: int) -> str | None:
    """The word recognised at a frame, None between words."""
    for utterance in session.utterances:
        if utterance.first_frame <= frame < utterance.end_frame:
            words = (text for text, first, n in utterance.words if first <= frame < first + n)
            return next(words, None)
    return None
