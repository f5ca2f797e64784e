"""What the desk says of a scope: one immutable snapshot, made once per update, from which every view takes its figures.

Time of other programs is in no category, group or stage; it is given next to them. A frame is one of 10 ms, scored or
copied. Stages add up to their group and groups to the whole; work of a device, for which the decode lane waits, is
shown and not added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from app.model.configurations import settings_before, settings_of_arm
from app.model.effects import Effect, effects_of
from app.model.scope import Scope
from app.model.toggles import toggle_keys
from profiler.analysis.categories import CATEGORIES, NOT_OWN, OTHER_PROGRAMS, OVERHEAD, PARTS, THROTTLED
from profiler.analysis.categories import SCORING_CATEGORIES as OF_SCORING
from profiler.analysis.recorded import counts_steps, real_time_factor
from profiler.analysis.stage_sums import OTHER_COUNT
from profiler.plain import one_line
from profiler.session.facts import setting

if TYPE_CHECKING:
    from pipelines.audio.word_errors import ErrorCount, Transcribed
    from profiler.analysis.breakdown import Breakdown, StageRow
    from profiler.analysis.track import CostTrack
    from profiler.analysis.verdict import Parts
    from profiler.session.reader import Session

ROUNDING: Final = 1e-9  # Of a sum of times: less is no time
MAX_SENTENCE = 600  # Maximum characters of a text about a stage: its name can be anything
GROUPS: Final = ("scoring", "search", "frontend", "transfer", OVERHEAD)  # In order; together they are the whole
PARTED: Final = ("scoring", "search")  # The groups whose stages have parts
NO_DEVICE, NO_ROOFS, NO_SCORING, NOTHING = "no device", "no roofs", "no scoring", "nothing"
NOT_RECORDED = "not recorded"

REASONS: Final = {  # Why a category is zero: in words, and in fewer for a narrow column
    NO_DEVICE: ("none: everything runs on the CPU", "none: all on the CPU", "none on the CPU", "none"),
    NO_ROOFS: ("not separated: machine not calibrated", "machine not calibrated", "not calibrated"),
    NO_SCORING: ("none: nothing was scored here", "nothing was scored", "none scored"),
    NOT_RECORDED: ("not recorded in this session", "not recorded"),
    NOTHING: ("none in this range", "none"),
}


class PartLine(NamedTuple):
    """A part of a stage's time (a key of `profiler.analysis.verdict`) as a share of it, 0…1, with its interval."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class StageLine:
    """A stage or a group over the scope; None is what is not known."""

    name: str
    group: str
    lane: str
    ms: float  # Per frame, of its own
    share: float | None  # Of the whole; None for work of a device, which is not added to anything
    verdict: str = ""
    evidence: str = ""
    sentence: str = ""
    of_group: tuple[float | None, float | None, float | None] = (None, None, None)  # Parts of time, operations, bytes
    intensity: float | None = None  # Operations per byte
    parts: tuple[PartLine, ...] = ()  # What its time consists of, where it has a cost law
    other_ms: float = 0.0  # What other programs took besides
    roof: float | None = None  # Share of its time that it would take at the roof that binds it, 0…1


class Baseline(NamedTuple):
    """Pinned frames [first, last), and what one took."""

    first: int
    last: int
    categories: Mapping[str, float]  # ms, other programs' among them
    own_ms: float
    costs: Breakdown


@dataclass(frozen=True)
class DeskSnapshot:
    """The figures of a scope. Times are ms per frame, NaN without a frame; real-time factors are None without audio."""

    scope: Scope
    categories: Mapping[str, float]  # Other programs' time is one of its own; all together `wall_ms`
    reasons: Mapping[str, str]  # Category → why it is zero (NO_DEVICE …), for those that are
    groups: tuple[StageLine, ...]  # In the order of GROUPS, those that took time; together `own_ms`
    stages: tuple[StageLine, ...]  # The most expensive first; those of a group that are added are that group
    own_ms: float
    wall_ms: float  # With what other programs took
    rtf: float | None
    rtf_with: float | None
    errors: ErrorCount  # Of the utterances decoded to their end
    transcribed: Transcribed
    pair: Effect | None = None  # Of the settings in force; None where there were no others, or the scope holds several
    before: Mapping[str, float] = field(default_factory=dict)  # Categories of the pair, or of the baseline …
    after: Mapping[str, float] = field(default_factory=dict)  # … and of the scope, without other programs' time
    pairs: Mapping[frozenset[str], Effect] = field(default_factory=dict)  # By the settings that a toggle changes
    baseline: Baseline | None = None
    costs: Breakdown | None = None  # What all of this is from
    arm: Mapping[str, object] = field(default_factory=dict)  # Settings that only the arm at the cursor of an A/B has
    threads: int = 1
    of_steps: bool = False  # Whether a frame is a step of a lab, which stands for no audio

    @property
    def frames(self) -> int:
        return self.scope.frames

    @property
    def other_share(self) -> float:
        """Part of the wall time that other programs took, 0…1."""
        return self.categories[OTHER_PROGRAMS] / self.wall_ms if self.wall_ms > 0 else 0.0

    def share(self, ms: float) -> float | None:
        """Part of the whole that `ms` per frame are; None where no time is known."""
        return ms / self.own_ms if self.own_ms > 0 else None


def desk_snapshot(
    session: Session, track: CostTrack, scope: Scope, pinned: tuple[int, int] | None = None
) -> DeskSnapshot:
    """Work out all figures of a scope; `track`: up to date, `pinned`: frames of the baseline."""
    from app.model.alignment import errors_in
    from profiler.analysis.breakdown import breakdown

    known, effects = scope.frames > 0, effects_of(session)
    force = settings_before(session, scope.first + 1)
    tree = {} if force is None else force.tree
    threads = setting(tree, "threads")
    costs = breakdown(session, scope.first, scope.last, track) if known else None
    categories, stages, groups = _sums(costs)
    own_ms = sum(line.ms for line in groups) if known else float("nan")
    wall_ms = own_ms + sum(categories[name] for name in NOT_OWN)
    of_steps = counts_steps(session)
    audio_s = 0.0 if costs is None or of_steps else costs.audio_s
    errors, transcribed = errors_in(session, scope.first, scope.last, scope.end)
    pairs = {}
    for keys in toggle_keys():
        if (effect := effects.last_change(session, track, scope.last, keys)) is not None:
            pairs[keys] = effect
    baseline = _baseline(session, track, pinned)
    pair = effects.in_force(session, track, scope.last) if scope.configurations == 1 and baseline is None else None
    before, after = ({}, {}) if pair is None else (pair.before_parts, pair.after_parts)
    if baseline is not None:
        before, after = (of | dict.fromkeys(NOT_OWN, 0.0) for of in (dict(baseline.categories), categories))
    return DeskSnapshot(
        scope=scope,
        categories=categories,
        reasons=_reasons(session, categories, tree) if known else {},
        groups=groups,
        stages=stages,
        own_ms=own_ms,
        wall_ms=wall_ms,
        rtf=real_time_factor(own_ms * 1e6 * scope.frames, audio_s),
        rtf_with=real_time_factor(wall_ms * 1e6 * scope.frames, audio_s),
        errors=errors,
        transcribed=transcribed,
        pair=pair,
        before=before,
        after=after,
        pairs=pairs,
        baseline=baseline,
        costs=costs,
        arm=settings_of_arm(session, scope.end),
        threads=threads if isinstance(threads, int) and threads > 0 else 1,
        of_steps=of_steps,
    )


def _baseline(session: Session, track: CostTrack, pinned: tuple[int, int] | None) -> Baseline | None:
    from profiler.analysis.breakdown import breakdown

    if pinned is None or pinned[0] >= track.n_frames:
        return None
    costs = breakdown(session, *pinned, track)
    categories, _, groups = _sums(costs)
    return Baseline(costs.first_frame, costs.last_frame, categories, sum(line.ms for line in groups), costs)


def _sums(costs: Breakdown | None) -> tuple[dict[str, float], tuple[StageLine, ...], tuple[StageLine, ...]]:
    """Categories, stages and groups, ms per frame; categories are NaN and the rest empty without a frame."""
    from profiler.analysis.breakdown import BETWEEN

    if costs is None:
        return dict.fromkeys(CATEGORIES, float("nan")), (), ()
    per_frame = 1e-6 / max(1, costs.last_frame - costs.first_frame)
    overhead = costs.overhead()
    by_group = dict.fromkeys(GROUPS, 0.0)
    own = []
    for row in costs.stages:
        added = row.share is not None
        own.append(overhead[row.name] if row.group == OVERHEAD and added else row.own_ns)
        if added:
            by_group[row.group] = by_group.get(row.group, 0.0) + own[-1]
    between = max(overhead[BETWEEN], 0.0)
    by_group[OVERHEAD] += between
    whole = sum(by_group.values())
    stages = [stage_line(row, costs.stages, ns, per_frame, whole) for row, ns in zip(costs.stages, own, strict=True)]

    def line(name: str, group: str, ns: float) -> StageLine:
        parts = _part_lines(costs.parts_of(name)) if name in PARTED else ()
        return StageLine(name, group, "", ns * per_frame, ns / whole if whole else None, parts=parts)

    if between:
        stages.append(line(BETWEEN, OVERHEAD, between))
    groups = tuple(line(name, name, by_group[name]) for name in GROUPS if by_group[name] > 0)
    ns_of = costs.categories | by_group
    # Exactly what the groups leave of the wall time.
    lost, known = costs.wall_ns - whole, sum(ns_of[name] for name in NOT_OWN)
    scale = lost / known if known > 0 and lost > ROUNDING * costs.wall_ns else 0.0
    ns_of |= {name: ns_of[name] * scale for name in NOT_OWN}
    categories = {name: ns_of[name] * per_frame for name in CATEGORIES}
    return categories, tuple(sorted(stages, key=lambda line: (-line.ms, line.name))), groups


def stage_line(row: StageRow, rows: Sequence[StageRow], own_ns: float, per_frame: float, whole_ns: float) -> StageLine:
    """A row of `profiler.analysis.breakdown`, one of `rows`, as a line; `per_frame`: ms of a ns of the scope."""
    roof = None
    if row.arithmetic_ns is not None and row.traffic_min_ns is not None and row.own_ns > 0:
        roof = min(1.0, max(row.arithmetic_ns, row.traffic_min_ns) / row.own_ns)
    return StageLine(
        name=one_line(row.name),
        group=row.group,
        lane=one_line(row.lane),
        ms=own_ns * per_frame,
        share=None if row.share is None or not whole_ns else own_ns / whole_ns,
        verdict=row.verdict or "",
        evidence=row.evidence or "",
        sentence=one_line(row.sentence or "", MAX_SENTENCE),
        of_group=_of_group(row, rows),
        intensity=row.intensity,
        parts=_part_lines(row.parts),
        other_ms=(row.time_ns - own_ns) * per_frame,
        roof=roof,
    )


def _part_lines(parts: Parts | None) -> tuple[PartLine, ...]:
    own = 0.0 if parts is None else parts.own.time_ns
    if parts is None or own <= 0:
        return ()
    return tuple(
        PartLine(name, *(ends[name] / own for ends in (parts.likely, parts.low, parts.high)))
        for name in PARTS
        if name not in NOT_OWN
    )


def _reasons(session: Session, ms: Mapping[str, float], tree: Mapping[str, object]) -> dict[str, str]:
    """Say why a category is exactly zero; `tree`: the settings."""
    scoring = sum(ms[name] for name in OF_SCORING if name not in NOT_OWN)
    on_cpu = all(setting(tree, key) in (None, "cpu") for key in ("device", "search.device"))
    others_counted = any(OTHER_COUNT in stage.work for stage in session.stages.values())
    reasons = {}
    # Throttled has no row where there is none.
    for name in (name for name in CATEGORIES if ms[name] == 0 and name != THROTTLED):
        reasons[name] = NOTHING
        if name == "transfer" and on_cpu:
            reasons[name] = NO_DEVICE
        elif name in OF_SCORING and name not in NOT_OWN and scoring == 0:
            reasons[name] = NO_SCORING
        elif name in ("compute", "memory") and not session.calibration:
            reasons[name] = NO_ROOFS
        elif name == OTHER_PROGRAMS and not others_counted:
            reasons[name] = NOT_RECORDED
    return reasons


def _of_group(row: StageRow, rows: Sequence[StageRow]) -> tuple[float | None, float | None, float | None]:
    mine = [other for other in rows if (other.group, other.lane) == (row.group, row.lane)]

    def part(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        own = values[mine.index(row)]
        complete = len(mine) > 1 and len(known) == len(values) and sum(known) > 0
        return own / sum(known) if complete and own is not None else None

    own, flops, least = zip(*((other.own_ns, other.flops, other.bytes_min) for other in mine), strict=True)
    return part(own), part(flops), part(least)
