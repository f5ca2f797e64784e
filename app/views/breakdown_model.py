"""What the breakdown draws: cost per category and stage over a range, and the cost before. No widgets.

Categories come from the per-frame track and are cheap at any length; the stages come from
`profiler.analysis.breakdown`, which looks at every span of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from app.model.effects import effects_of
from app.model.events import marks
from app.model.figures import counts_steps
from profiler.analysis.categories import OTHER_PROGRAMS, PARTS, SCORING_CATEGORIES, THROTTLED
from profiler.analysis.conditions import OTHER_COUNT
from profiler.analysis.lod.series import CATEGORIES, FrameSeries, series_of
from profiler.analysis.parts import Parts
from profiler.analysis.utterances import audio_seconds, real_time_factor
from profiler.arrays import F64
from profiler.plain import one_line
from profiler.session.facts import setting

if TYPE_CHECKING:
    from app.model.effects import Effect
    from profiler.analysis.breakdown import Breakdown, StageRow
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

MAX_SENTENCE = 600
"""Maximum characters of a text about a stage: its name can be anything."""

PARTED: Final = ("scoring", "search")
"""The groups whose stages have parts."""

SELECTION, SINCE_CHANGE, WHOLE = "selection", "since change", "whole"

NO_DEVICE, NO_ROOFS, NO_SCORING, NOTHING = "no device", "no roofs", "no scoring", "nothing"
NOT_RECORDED = "not recorded"

REASONS: Final = {
    NO_DEVICE: (
        "none: everything runs on the CPU",
        "none: all on the CPU",
        "none on the CPU",
        "none",
    ),
    NO_ROOFS: ("not separated: machine not calibrated", "machine not calibrated", "not calibrated"),
    NO_SCORING: ("none: nothing was scored here", "nothing was scored", "none scored"),
    NOT_RECORDED: ("not recorded in this session", "not recorded"),
    NOTHING: ("none in this range", "none"),
}
"""Why a category is zero: in words, and in fewer for a narrow column."""


class PartLine(NamedTuple):
    """A part of a stage's time (a key of `profiler.analysis.parts`) as a share of it, 0…1, with its interval."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class StageLine:
    """One stage over the range: milliseconds per frame, share of the wall, verdict and evidence.

    `share` is None outside the decode lane, whose time alone is the wall time. `of_group`: what parts of its
    group's time, operations and least bytes are its own, each None where the group's are not all known.
    `intensity`: operations per byte, or None. `memory_roof`: whether at that intensity the bytes take longer
    than the arithmetic, each at its roof; None where one is not known. `parts`: what its time consists of, empty where
    it has no cost law.
    """

    name: str
    group: str
    lane: str
    ms: float
    share: float | None
    verdict: str
    evidence: str
    sentence: str
    of_group: tuple[float | None, float | None, float | None] = (None, None, None)
    intensity: float | None = None
    memory_roof: bool | None = None
    parts: tuple[PartLine, ...] = ()


@dataclass(frozen=True)
class BreakdownModel:
    """Mean cost per frame of a range, by category.

    Attributes:
        scope: why this range: SELECTION, SINCE_CHANGE or WHOLE.
        first_frame: first frame of the range.
        last_frame: exclusive end.
        ms: [categories] mean per frame; NaN without frames.
        wall_ms: mean wall per frame, measured separately.
        rtf: real-time factor of the range; NaN without audio.
        before_ms: [categories] mean per frame with the settings before the last change, over speech that has been
            decoded with both; None without any.
        before_wall_ms: the same of the wall time.
        pinned: frames that were pinned as baseline, which `before_ms` is of then; None where there are none.
        change: text of the last change, or None.
        effect: what it did; None without one, and for a selection.
        reasons: category → why it is zero (NO_DEVICE …), for those that are.
    """

    scope: str
    first_frame: int
    last_frame: int
    ms: F64
    wall_ms: float
    rtf: float
    before_ms: F64 | None
    before_wall_ms: float | None
    change: str | None
    effect: Effect | None
    reasons: dict[str, str]
    pinned: tuple[int, int] | None = None

    @property
    def frames(self) -> int:
        """Frames in the range."""
        return max(0, self.last_frame - self.first_frame)

    def share(self, ms: float) -> float | None:
        """Part of the wall that `ms` per frame are; None where no time is known."""
        return ms / self.wall_ms if self.wall_ms > 0 else None

    @property
    def sum_ms(self) -> float:
        """Sum of the categories; equals `wall_ms` unless something is wrong."""
        return float(self.ms.sum())


class Stretch(NamedTuple):
    """Frames [first, last) that a breakdown is of, and why: SELECTION, SINCE_CHANGE or WHOLE."""

    scope: str
    first: int
    last: int


def stretch_of(session: Session, end: int, selected: tuple[int, int] | None) -> Stretch:
    """What is shown before frame `end`: the selection, else all since the last change, else all."""
    if selected is not None:
        return Stretch(SELECTION, min(selected[0], end), min(selected[1], end))
    since = effects_of(session).configurations.since(session, end)
    return Stretch(SINCE_CHANGE, since, end) if since > 0 else Stretch(WHOLE, 0, end)


def breakdown_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    selected: tuple[int, int] | None,
    pinned: tuple[int, int] | None = None,
) -> BreakdownModel:
    """Mean cost by category over the selection, since the last change, or over everything shown.

    Args:
        session: where markers and configuration come from.
        track: cost per frame.
        cursor_frame: frames from here on are not shown yet.
        selected: selected frames [first, last), or None.
        pinned: frames [first, last) that are the baseline whatever was changed, or None.
    """
    series = series_of(session, track)
    end = min(int(cursor_frame), len(series))
    scope, first, last = stretch_of(session, end, selected)
    effect = before_ms = before_wall = change = None
    if scope == SINCE_CHANGE:
        known = marks(session, end, len(series))
        change = next((m.text for m in reversed(known) if m.applied_frame == first), None)
        effect = effects_of(session).in_force(session, track, end)
    ms, wall_ms = _means(series, first, last)
    if pinned is not None:
        effect = None
        before_ms, before_wall = _means(series, pinned[0], min(pinned[1], len(series)))
    elif effect is not None and effect.baseline:
        before_ms, before_wall = _mean_over(series, effect.baseline)
    return BreakdownModel(
        scope=scope,
        first_frame=first,
        last_frame=last,
        ms=ms,
        wall_ms=wall_ms,
        rtf=rtf_of(session, first, last, wall_ms),
        before_ms=before_ms,
        before_wall_ms=before_wall,
        change=change,
        effect=effect,
        reasons=_reasons(session, ms, first),
        pinned=pinned,
    )


def rtf_of(session: Session, first: int, last: int, wall_ms: float) -> float:
    """RTF of the frames first … last − 1, which take `wall_ms` each in the mean; NaN without audio."""
    audio_s = 0.0 if counts_steps(session) else audio_seconds(session.utterances, first, last)
    rtf = real_time_factor(wall_ms * 1e6 * (last - first), audio_s)
    return float("nan") if rtf is None else rtf


def _means(series: FrameSeries, first: int, last: int) -> tuple[F64, float]:
    if last <= first:
        return np.full(len(CATEGORIES), np.nan), float("nan")
    frames = last - first
    return (
        series.costs.total(first, last) / frames * 1e-6,
        float(series.wall.total(first, last)[0]) / frames * 1e-6,
    )


def _mean_over(series: FrameSeries, stretches: Sequence[tuple[int, int]]) -> tuple[F64, float]:
    """Means per frame over several stretches."""
    frames = sum(last - first for first, last in stretches)
    parts = [_means(series, *stretch) for stretch in stretches]
    share = [(last - first) / frames for first, last in stretches]
    costs = np.sum([ms * part for (ms, _), part in zip(parts, share, strict=True)], axis=0)
    return costs, sum(wall * part for (_, wall), part in zip(parts, share, strict=True))


def _reasons(session: Session, ms: F64, first_frame: int) -> dict[str, str]:
    """Say why a category is exactly zero."""
    cost = dict(zip(CATEGORIES, ms.tolist(), strict=True))
    scoring = sum(cost[name] for name in SCORING_CATEGORIES)
    reasons = {}
    # Throttled has no row where there is none.
    for name in (name for name in CATEGORIES if cost[name] == 0 and name != THROTTLED):
        reasons[name] = NOTHING
        if name == "transfer" and _on_cpu(session, first_frame):
            reasons[name] = NO_DEVICE
        elif name in SCORING_CATEGORIES and scoring == 0:
            reasons[name] = NO_SCORING
        elif name in ("compute", "memory") and not session.calibration:
            reasons[name] = NO_ROOFS
        elif name == OTHER_PROGRAMS and not _counts_other_programs(session):
            reasons[name] = NOT_RECORDED
    return reasons


def _counts_other_programs(session: Session) -> bool:
    """Whether the run recorded how long other programs had its processor."""
    return any(OTHER_COUNT in stage.work for stage in session.stages.values())


def _tree_at(session: Session, frame: int) -> dict[str, Any]:
    """The settings in force at a frame."""
    tree: dict[str, Any] = {}
    for config in session.configs:
        if not tree or config.first_frame <= frame:
            tree = config.tree
    return tree


def threads_at(session: Session, frame: int) -> int:
    """Threads of scoring at a frame; 1 where the session does not say."""
    threads = setting(_tree_at(session, frame), "threads")
    return threads if isinstance(threads, int) and threads > 0 else 1


def _on_cpu(session: Session, frame: int) -> bool:
    """Whether scorer and search both ran on the CPU at a frame."""
    tree = _tree_at(session, frame)
    return all(setting(tree, key) in (None, "cpu") for key in ("device", "search.device"))


def stage_lines(rows: Sequence[StageRow], frames: int) -> tuple[StageLine, ...]:
    """Rows of `profiler.analysis.breakdown` as lines per frame, most expensive first.

    Args:
        rows: `StageRow`s of a range.
        frames: frames in that range.
    """
    lines = [
        StageLine(
            name=one_line(row.name),
            group=row.group,
            lane=one_line(row.lane),
            ms=row.time_ns / max(1, frames) * 1e-6,
            share=row.share,
            verdict=row.verdict or "",
            evidence=row.evidence or "",
            sentence=one_line(row.sentence or "", MAX_SENTENCE),
            of_group=_of_group(row, rows),
            intensity=row.intensity,
            memory_roof=_under_memory(row),
            parts=_part_lines(row.parts),
        )
        for row in rows
    ]
    return tuple(sorted(lines, key=lambda line: (-line.ms, line.name)))


def group_lines(breakdown: Breakdown, frames: int) -> tuple[StageLine, ...]:
    """Return one line each for all of scoring and all of search, if any of its stages has parts."""
    lines = []
    for group in PARTED:
        parts = breakdown.parts_of(group)
        if parts is not None and parts.time_ns > 0:
            ms = parts.time_ns / max(1, frames) * 1e-6
            share = parts.time_ns / breakdown.wall_ns if breakdown.wall_ns else None
            more = _part_lines(parts)
            lines.append(StageLine(group, group, "", ms, share, "", "", "", parts=more))
    return tuple(lines)


def _part_lines(parts: Parts | None) -> tuple[PartLine, ...]:
    if parts is None:
        return ()
    return tuple(PartLine(name, parts.share(name), *parts.ends(name)) for name in PARTS)


def _under_memory(row: StageRow) -> bool | None:
    if not row.arithmetic_ns or row.traffic_min_ns is None:
        return None
    return row.traffic_min_ns > row.arithmetic_ns


def _of_group(row: StageRow, rows: Sequence[StageRow]) -> tuple[float | None, float | None, float | None]:
    mine = [other for other in rows if (other.group, other.lane) == (row.group, row.lane)]

    def part(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        own = values[mine.index(row)]
        complete = len(mine) > 1 and len(known) == len(values) and sum(known) > 0
        return own / sum(known) if complete and own is not None else None

    return (
        part([other.time_ns for other in mine]),
        part([other.flops for other in mine]),
        part([other.bytes_min for other in mine]),
    )
