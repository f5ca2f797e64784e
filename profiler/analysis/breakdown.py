"""Where the time of a session, or of a stretch of its frames, went: by category and by stage.

Categories come from the same per-frame sums as the live chart, so that table and chart agree to the last
nanosecond. Stage rows come from `StageSums`: their spans, those on the edge of a stretch by the part that
lies in it.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from profiler.analysis.attribution import Evidence, judge
from profiler.analysis.categories import CATEGORIES, LAW_PARTS, OVERHEAD
from profiler.analysis.device import hidden_ns
from profiler.analysis.law import NS, law_of_cached
from profiler.analysis.own_cost import RecorderCost, recorder_cost
from profiler.analysis.parts import Parts, by_category, intervals, together
from profiler.analysis.recorded import Recorded
from profiler.analysis.stage_sums import Sums
from profiler.analysis.track import CostTrack
from profiler.analysis.utterances import audio_seconds, real_time_factor
from profiler.analysis.waiting import Waiting
from profiler.costs import CALL, Cost
from profiler.machine.roofs.table import RoofTable
from profiler.session.model import StageInfo
from profiler.spans import GROUPS

BETWEEN: Final = "between the stages"
"""Of the decode lane's time: what no stage covers."""


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage on one lane. Times in ns, sizes in bytes; None where unavailable, never 0.

    `share`: of the wall time. `operations`: counts by class; `flops`: their sum, exp and log counting one.
    `work`: counts by name, and "frames". `arithmetic_ns`, `traffic_min_ns`, `traffic_max_ns`: what the
    roofs say of operations and bytes alone; `law_ns`: what the whole cost law takes, before any of it is fitted to
    the time, and `law` the same by LAW_PARTS (empty without one); `learned_ns`: how much of it a replay may be spared
    as branches repeat (`Term.by_heart`). `compute_ns` + `memory_ns` + `other_ns` + `unexplained_ns` = `time_ns`.
    `parts`: None where the session's laws name no terms. `defect`: a sentence when the stage ran faster than the
    measured roofs allow. `too_close`: what of the sentence says that the run does not tell parts apart.
    """

    name: str
    group: str
    lane: str
    time_ns: float
    share: float | None
    calls: int
    flops: float | None
    bytes_min: float | None
    bytes_max: float | None
    work: dict[str, float]
    working_set: float | None
    verdict: str | None
    evidence: str
    sentence: str
    defect: str | None = None
    too_close: str | None = None
    transferred: float | None = None
    operations: dict[str, float] = field(default_factory=dict)
    arithmetic_ns: float | None = None
    traffic_min_ns: float | None = None
    traffic_max_ns: float | None = None
    compute_ns: float | None = None
    memory_ns: float | None = None
    unexplained_ns: float | None = None
    other_ns: float | None = None
    law_ns: float | None = None
    law: dict[str, float] = field(default_factory=dict)
    learned_ns: float = 0.0
    parts: Parts | None = None

    @property
    def intensity(self) -> float | None:
        """Operations per byte of compulsory traffic, or None."""
        return self.flops / self.bytes_min if self.flops and self.bytes_min else None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Time of the decode lane: `categories` (ns) add up to `wall_ns`; set-up and pace sleep lie outside.

    `stages`: their time on the decode lane and what lies between them, `between_ns`, add up to `wall_ns` as well.
    `rtf` = wall time / audio time, None without audio. `hidden_ns`: device work under host work, None where nothing
    measures it. `recorder`: of the whole session, whatever the stretch.
    `slowness`: of the session too, how much slower than their roofs arithmetic and memory ran when they were probed.
    """

    first_frame: int
    last_frame: int
    wall_ns: float
    audio_s: float
    rtf: float | None
    idle_ns: float
    setup_ns: float
    categories: dict[str, float]
    hidden_ns: float | None
    stages: list[StageRow]
    recorder: RecorderCost
    slowness: tuple[float, float] | None = None

    @property
    def between_ns(self) -> float:
        """What lies between the stages of the decode lane: overhead, and what other programs took of it."""
        known = (row.time_ns for row in self.stages if row.share is not None)
        return self.wall_ns - sum(known)

    def overhead(self) -> dict[str, float]:
        """Of what the category holds (ns): BETWEEN the stages, and the stages of overhead by name.

        Other programs took as large a part of the one as of the others.
        """
        found = {BETWEEN: self.between_ns}
        for row in self.stages:
            if row.group == OVERHEAD and row.share is not None:
                found[row.name] = row.time_ns
        whole = sum(found.values())
        left = self.categories[OVERHEAD] / whole if whole > 0 else 0.0
        return {name: ns * left for name, ns in found.items()}

    def parts_of(self, group: str) -> Parts | None:
        """The parts of all stages of `group` on the decode lane; None where the laws of none name terms."""
        mine = (row for row in self.stages if row.group == group and row.share is not None)
        return together((row.time_ns, row.parts) for row in mine)


def breakdown(
    session: Recorded,
    first_frame: int | None = None,
    last_frame: int | None = None,
    track: CostTrack | None = None,
) -> Breakdown:
    """Return the breakdown of the frames first_frame … last_frame − 1 (None: from the beginning, to the end).

    `track`: an up-to-date CostTrack of the same session, where there is one. With it, a stretch of an
    hour's recording takes milliseconds; without, everything is summed up first.
    """
    if track is None:
        track = CostTrack()
        track.update(session)
    track.stages.update(session)
    steps = breakdown_in_steps(session, track, first_frame, last_frame)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found: Breakdown = over.value
            return found


def breakdown_in_steps(
    session: Recorded,
    track: CostTrack,
    first_frame: int | None = None,
    last_frame: int | None = None,
) -> Generator[None, None, Breakdown]:
    """`breakdown` for a caller with something else to do meanwhile: rests after every kind of span and every row.

    `track`: up to date, and so its `stages`, which must stay as they are until the end.
    """
    first = 0 if first_frame is None else max(first_frame, 0)
    last = track.n_frames if last_frame is None else min(last_frame, track.n_frames)
    last = max(last, first)
    sums = track.total_ns(first, last)
    wall = float(sums.sum())
    whole = first == 0 and last == track.n_frames
    audio = audio_seconds(session.utterances, first, last)
    found: dict[tuple[int, int], list[tuple[int, Sums]]] = {}
    outside = {"idle": 0.0, "setup": 0.0}
    for lane, stage, epoch, part in _sums(session, track, first, last, whole):
        group = session.stages[stage].group
        if group in outside:
            outside[group] += part.time
        else:
            found.setdefault((lane, stage), []).append((epoch, part))
        yield
    rows = []
    for lane, stage in _in_order(session, found):
        replays = track.stages.beside.replays
        rows.append(_row(session, lane, stage, found[lane, stage], wall, replays))
        yield
    return Breakdown(
        first,
        last,
        wall,
        audio,
        real_time_factor(wall, audio),
        outside["idle"],
        outside["setup"],
        dict(zip(CATEGORIES, (float(v) for v in sums), strict=True)),
        hidden_ns(session, first, None if whole else last),
        rows,
        recorder_cost(session, wall if whole else None, track.misplaced),
        track.stages.beside.speed.mean(),
    )


def _sums(
    session: Recorded, track: CostTrack, first: int, last: int, whole: bool
) -> Iterator[tuple[int, int, int, Sums]]:
    """Give (lane, stage, epoch, sums) of a stretch.

    Of a whole session all that lies beside the frames comes too: set-up, pace sleep, what the devices did. Stages
    of the decode lane count by their part in the decoded frames even then: of an utterance that was stopped the
    features are there to its end, and their time is no part of the wall time either.
    """

    def nested(lane: int, stage: int) -> bool:
        return session.lanes[lane].decode and session.stages[stage].group not in ("idle", "setup")

    found = track.stages.within
    if not whole:
        yield from found(session, first, last)
        return
    yield from (row for row in found(session, None, None) if not nested(row[0], row[1]))
    yield from (row for row in found(session, first, last) if nested(row[0], row[1]))


def _in_order(session: Recorded, found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Lanes and stages as their rows follow each other."""
    lanes, order = list(session.lanes), {name: i for i, name in enumerate(GROUPS)}
    return sorted(
        found, key=lambda key: (order[session.stages[key[1]].group], key[1], lanes.index(key[0]))
    )


def _added(parts: list[Sums]) -> Sums:
    """The sums of several as those of one."""

    def columns(values: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
        return tuple(sum(column) for column in zip(*values, strict=True))

    work0, work1, work2 = columns(p.work for p in parts)
    return Sums(
        time=sum(p.time for p in parts),
        calls=sum(p.calls for p in parts),
        frames=sum(p.frames for p in parts),
        work=(work0, work1, work2),
        parts=columns(p.parts for p in parts),
        least=columns(p.least for p in parts),
        likely=columns(p.likely for p in parts),
        most=columns(p.most for p in parts),
    )


def _row(
    session: Recorded,
    lane: int,
    number: int,
    parts: list[tuple[int, Sums]],
    wall_ns: float,
    replays: Waiting,
) -> StageRow:
    """Put the sums of a stage's epochs together, each at the roofs of its own law."""
    stage, roof_table = session.stages[number], session.calibration
    total = _added([part for _, part in parts])
    model = _Model()
    for epoch, part in parts:
        model.add(session.costs.get((number, epoch)), part, roof_table)
    known, timed = model.known, model.known and bool(roof_table)
    found = None
    if timed:
        itself = total.parts[-1]
        found = intervals(total.parts, [*total.least, itself], [*total.most, itself], total.time)
    laws = (session.costs.get((number, epoch)) for epoch, _ in parts)
    replayed = any(replays.replayed(stage.name, law) for law in laws)
    verdict = judge(model.evidence(stage, total, found, replayed, bool(roof_table)))

    def given(value: float, there: bool) -> float | None:
        return value if there else None

    compute, memory, other = (float(v) for v in by_category(np.array(total.parts)))
    on_wall = session.lanes[lane].decode
    return StageRow(
        name=stage.name,
        group=stage.group,
        lane=session.lanes[lane].name,
        time_ns=total.time,
        share=total.time / wall_ns if wall_ns and on_wall else None,
        calls=round(total.calls) or 1,
        flops=given(sum(model.operations.values()), known),
        bytes_min=given(model.bytes_min, known),
        bytes_max=given(model.bytes_max, known),
        work={**_counts(stage, total), "frames": total.frames},
        working_set=given(model.working_set, known),
        verdict=verdict.verdict,
        evidence=verdict.evidence,
        sentence=verdict.sentence,
        defect=verdict.defect,
        too_close=verdict.too_close,
        transferred=given(model.transferred, known),
        operations=model.operations if known else {},
        arithmetic_ns=given(model.arithmetic, timed and not model.unknown),
        traffic_min_ns=given(model.traffic_min, timed),
        traffic_max_ns=given(model.traffic_max, timed),
        compute_ns=given(compute, timed),
        memory_ns=given(memory, timed),
        unexplained_ns=given(max(total.time - sum(total.parts), 0.0), timed),
        other_ns=given(other, timed),
        law_ns=given(sum(total.likely), timed),
        law=dict(zip(LAW_PARTS, total.likely, strict=True)) if timed else {},
        learned_ns=model.learned,
        parts=found if model.terms else None,
    )


def _counts(stage: StageInfo, total: Sums) -> dict[str, float]:
    return dict(zip(stage.work, total.work, strict=False))


@dataclass
class _Model:
    """What the cost laws say of a stage; `known` is false where any of its epochs has none."""

    known: bool = True
    terms: bool = True
    reason: str = ""
    operations: dict[str, float] = field(default_factory=dict)
    bytes_min: float = 0.0
    bytes_max: float = 0.0
    transferred: float = 0.0
    working_set: float = 0.0
    arithmetic: float = 0.0
    traffic_min: float = 0.0
    traffic_max: float = 0.0
    scattered: bool = False
    unknown: bool = False
    launches: float = 0.0
    learned: float = 0.0
    missing: list[str] = field(default_factory=list)

    def add(self, cost: Cost | None, part: Sums, roof_table: RoofTable) -> None:
        """Add what the law of an epoch says of its spans."""
        if cost is None or cost.is_empty:
            self.known = False
            self.reason = cost.unmodelled if cost is not None else ""
            return
        counts = (part.calls, part.frames, part.work)
        for name, count in cost.operations.items():
            self.operations[name] = self.operations.get(name, 0.0) + count.total(*counts)
        least, most = cost.bytes_min.total(*counts), cost.bytes_max.total(*counts)
        self.bytes_min += least
        self.bytes_max += max(least, most)
        self.transferred += cost.transferred.total(*counts)
        self.working_set = max(self.working_set, cost.working_set_bytes)
        self.scattered |= cost.scattered
        self.terms &= cost.terms is not None
        if not roof_table:
            return
        for term in cost.terms or ():
            if term.kind == CALL and term.roof.startswith("launch@"):
                self.launches += term.count.total(*counts)
        law = law_of_cached(cost, roof_table)
        # Arithmetic of which a part has no roof is unknown, not what the rest takes.
        self.unknown |= not cost.operations.keys().isdisjoint(law.missing)
        self.missing += law.missing
        self.learned += law.by_heart.total(*counts)
        self.arithmetic += law.arithmetic.mid.total(*counts)
        memory = roof_table.bandwidth(cost.working_set_bytes, cost.threads, device=cost.device)
        if memory is not None:
            self.traffic_min += least * NS / memory.median
            self.traffic_max += max(least, most) * NS / memory.median

    def evidence(
        self,
        stage: StageInfo,
        total: Sums,
        found: Parts | None,
        replayed: bool,
        roofs: bool,
    ) -> Evidence:
        """What the verdict on a stage rests on. `found`: its parts, where its law and the roofs are known."""
        counts = _counts(stage, total) if self.scattered else {}
        # The count that says most about how often the stage touched its data.
        unit = max(counts, key=lambda each: counts[each], default="")
        return Evidence(
            time_ns=total.time,
            calls=total.calls,
            frames=total.frames,
            parts=found,
            least_ns=None if found is None else sum(total.least),
            bytes_min=self.bytes_min if self.known else None,
            missing=tuple(dict.fromkeys(self.missing)),
            replayed=replayed,
            unit=unit,
            units=counts.get(unit, 0.0),
            reason=self.reason,
            roofs=roofs,
            unknown=self.unknown,
            launches=self.launches,
        )
