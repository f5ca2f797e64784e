"""What the timeline draws, as plain arrays: which kinds of spans each lane has under each pixel column. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from profiler.analysis.lod.columns import column_edges
from profiler.analysis.lod.spans import DECODE, KINDS, RowKey, SpanRow, timeline_of
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.analysis.lod.spans import Timeline
    from profiler.arrays import F64
    from profiler.session.reader import Session

BORDERS_UP_TO: Final = 8_000
"""Spans in view up to which each is parted from the next and may have its name."""

NAMED_FROM: Final = 34
"""Pixels from which a span has its name."""

PARTED_FROM: Final = 4
"""Pixels from which a span is parted from the one before."""

TITLES: Final = {"blocks": "blocks", "stages": "stages", "replays": "replays", "setup": "set-up"}

ORDER: Final = tuple(TITLES)


@dataclass(frozen=True)
class Named:
    """A span wide enough for its name: its ends in seconds, the name, its kind."""

    first_s: float
    last_s: float
    name: str
    kind: str


@dataclass(frozen=True)
class Lane:
    """One row: `busy` [columns, kinds] is the share of each column's time; `parted` are seconds between spans.

    `row`: the spans themselves; None for the utterances.
    """

    title: str
    row: SpanRow | None
    busy: F64
    parted: F64
    named: tuple[Named, ...]


@dataclass(frozen=True)
class TimelineModel:
    """The lanes over [first_s, last_s] seconds since the first span; `spans`: how many were counted."""

    first_s: float
    last_s: float
    lanes: tuple[Lane, ...]
    spans: int


def timeline_model(
    session: Session, visible: tuple[float, float], columns: int, counted: tuple[float, float] | None = None
) -> TimelineModel:
    """Reduce the spans of a session to `columns` pixel columns over `visible` seconds; count those in `counted`."""
    timeline = timeline_of(session)
    origin, _ = timeline.extent_ns
    first_s, last_s = visible
    edges = origin + column_edges(first_s, last_s, columns) * 1e9
    rows = sorted(
        timeline.rows.values(),
        key=lambda row: (row.key.kind == "setup", row.key.lane, ORDER.index(row.key.kind)),
    )
    begin, end = (origin + second * 1e9 for second in counted or visible)
    counts = [row.count(begin, end) for row in rows]
    whole = sum(counts) <= BORDERS_UP_TO
    lanes = [_utterances(session, timeline, edges, origin)]
    lanes += [_lane(session, row, edges, origin, whole) for row in rows]
    return TimelineModel(first_s, last_s, tuple(lanes), sum(counts))


def title_of(session: Session, key: RowKey) -> str:
    """What a row is called: what it has, or the lane where that is not the one that decodes."""
    lane = session.lanes.get(key.lane)
    if key.kind == "stages" and lane is not None and not lane.decode:
        return one_line(lane.name, 12)
    return TITLES[key.kind]


def stage_name(session: Session, stage: int) -> str:
    known = session.stages.get(stage)
    return "?" if known is None else one_line(known.name)


def _lane(session: Session, row: SpanRow, edges: F64, origin: int, whole: bool) -> Lane:
    width = np.diff(edges)
    busy = np.minimum(row.busy(edges) / width[:, None], 1.0)
    parted, named = np.empty(0), []
    if whole:
        starts = row.starts(edges[0], edges[-1])
        apart = np.diff(starts, prepend=-(1 << 60)) >= PARTED_FROM * width[0]
        parted = (starts[apart] - origin) * 1e-9
        for span in row.within(edges[0], edges[-1], NAMED_FROM * width[0]):
            stage = session.stages.get(span.stage)
            named.append(
                Named(
                    (span.start_ns - origin) * 1e-9,
                    (span.end_ns - origin) * 1e-9,
                    _shown_name(session, row, span.number, span.stage),
                    "setup" if stage is None else stage.group,
                )
            )
    return Lane(title_of(session, row.key), row, busy, parted, tuple(named))


def _shown_name(session: Session, row: SpanRow, number: int, stage: int) -> str:
    """A block is known by its frames, everything else by its stage."""
    if row.key.kind == "blocks":
        span = session.spans[number]
        first, frames = int(span["first_frame"]), int(span["frames"])
        if session.stages[stage].group == "decode":
            return f"{first}" if frames == 1 else f"{first}–{first + frames - 1}"
        return "prepare"
    name = stage_name(session, stage)
    return name.removeprefix("replay.").removeprefix("setup.")


def _utterances(session: Session, timeline: Timeline, edges: F64, origin: int) -> Lane:
    """The utterances from their first block to their last, in two shades."""
    utterances = session.utterances.in_time
    busy = np.zeros((len(edges) - 1, len(KINDS)))
    if not len(utterances):
        return Lane("utterance", None, busy, np.empty(0), ())
    low, high = utterances.first.searchsorted(timeline.frames_at(edges[[0, -1]]), side="right").tolist()
    some = slice(max(low - 1, 0), max(high, 1))
    begin = timeline.ns_at(utterances.first[some] + 0.01)
    end = timeline.ns_at(np.minimum(utterances.end[some], timeline.reached))
    middle = (edges[1:] + edges[:-1]) / 2
    at = np.searchsorted(begin, middle, side="right") - 1
    there = (at >= 0) & (middle < end[np.maximum(at, 0)])
    busy[np.flatnonzero(there), DECODE + (some.start + at[there]) % 2] = 1.0
    least = NAMED_FROM * (edges[1] - edges[0])
    seen = np.flatnonzero((end > edges[0]) & (begin < edges[-1]) & (end - begin >= least))
    named = tuple(
        Named(
            (begin[n] - origin) * 1e-9,
            (end[n] - origin) * 1e-9,
            one_line(utterances[some.start + n].name),
            KINDS[DECODE],
        )
        for n in seen.tolist()
    )
    return Lane("utterance", None, busy, np.empty(0), named)
