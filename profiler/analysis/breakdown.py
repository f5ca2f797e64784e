"""Where the time of a session, or of a stretch of its frames, went: by category and by stage.

Categories are those of the live chart, and stage rows come from `StageSums`, both of one pass over the spans
(`CostTrack`): table and chart agree to the last nanosecond. A span on the edge of a stretch counts by the part that
lies in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import numpy as np

from profiler.analysis.attribution import GROUPS as ATTRIBUTED
from profiler.analysis.attribution import SHARES, Attribution, Shares, by_law
from profiler.analysis.categories import CATEGORIES, NOT_OWN, OVERHEAD, PARTS
from profiler.analysis.machine_costs import NS, MachineCosts, Sums, counted
from profiler.analysis.recorded import Recorded, audio_seconds, counts_steps, real_time_factor
from profiler.analysis.stage_sums import Kind
from profiler.analysis.track import CostTrack
from profiler.analysis.verdict import COMPUTE_PARTS, MEMORY_PARTS, Evidence, Parts, judge, together
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable
from profiler.spans import GROUPS

BETWEEN: Final = "between the stages"  # Of the decode lane's time: what no stage covers
Found = dict[tuple[int, int], list[tuple[int, Sums]]]  # Epochs and their sums, by lane and stage


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage on one lane. Times in ns, sizes in bytes; None where unavailable, never 0.

    `share`: of the wall time. `operations`: counts by class; `flops`: their sum (exp and log count one). `work`: counts
    by name, and "frames". `arithmetic_ns`, `traffic_min_ns`: operations and bytes alone, at the roofs. `law`: ns of
    each of LAW_PARTS at the roofs (empty without a law; instructions are not counted). `lost_ns`: of the time, by
    NOT_OWN; None outside of the wall time. compute + memory + unexplained = `own_ns`, and of a group their sum is that
    of its categories. `parts`: None without a law. `replays`: how many the parts rest on. `defect`: a sentence if the
    stage ran faster than the roofs allow. `too_close`: the part of it that says which parts cannot be distinguished.
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
    compute_ns: float | None = None
    memory_ns: float | None = None
    unexplained_ns: float | None = None
    lost_ns: dict[str, float] | None = None
    law: dict[str, float] = field(default_factory=dict)
    parts: Parts | None = None
    replays: int = 0

    @property
    def own_ns(self) -> float:
        return self.time_ns - sum((self.lost_ns or {}).values())

    @property
    def intensity(self) -> float | None:
        """Operations per byte of compulsory traffic, or None."""
        return self.flops / self.bytes_min if self.flops and self.bytes_min else None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Time of the decode lane: `categories` (ns) add up to `wall_ns`; set-up and pace sleep lie outside.

    The decode lane's `stages` and `between_ns` add up to `wall_ns` too. `rtf`: None without audio. `stopped_ns`: for
    how long the process stood still, outside of it.
    """

    first_frame: int
    last_frame: int
    wall_ns: float
    audio_s: float
    rtf: float | None
    idle_ns: float
    setup_ns: float
    categories: dict[str, float]
    stages: list[StageRow]
    stopped_ns: float = 0.0

    @property
    def between_ns(self) -> float:
        known = (row.time_ns for row in self.stages if row.share is not None)
        return self.wall_ns - sum(known)

    def overhead(self) -> dict[str, float]:
        """Of what the category holds (ns): BETWEEN the stages, and the stages of overhead by name."""
        named = {row.name: row.own_ns for row in self.stages if row.group == OVERHEAD and row.share is not None}
        found = {BETWEEN: max(self.categories[OVERHEAD] - sum(named.values()), 0.0), **named}
        # A leaf that names other frames than its tile is cut elsewhere by the edge of a stretch.
        whole = sum(found.values())
        left = self.categories[OVERHEAD] / whole if whole > 0 else 0.0
        return {name: ns * left for name, ns in found.items()}

    def parts_of(self, group: str) -> Parts | None:
        """The parts of all stages of `group` on the decode lane; None where none of them has a law."""
        mine = (row for row in self.stages if row.group == group and row.share is not None)
        return together((row.time_ns, row.parts) for row in mine)


def breakdown(
    session: Recorded, first_frame: int | None = None, last_frame: int | None = None, track: CostTrack | None = None
) -> Breakdown:
    """Return the breakdown of the frames first_frame … last_frame − 1 (None: from the beginning, to the end).

    `track`: an up-to-date CostTrack of the same session, where there is one. With it, a stretch of an
    hour's recording takes milliseconds; without, everything is summed up first.
    """
    if track is None:
        track = CostTrack()
        track.update(session)
    first = max(first_frame or 0, 0)
    last = track.n_frames if last_frame is None else min(last_frame, track.n_frames)
    last = max(last, first)
    sums = track.total_ns(first, last)
    wall = float(sums.sum())
    audio = audio_seconds(session.utterances, first, last)
    found: Found = {}
    outside = {"idle": 0.0, "setup": 0.0}
    for (lane, stage, epoch), part in _sums(session, track, first, last, (first, last) == (0, track.n_frames)):
        group = session.stages[stage].group
        if group in outside:
            outside[group] += part.time
        else:
            found.setdefault((lane, stage), []).append((epoch, part))
    categories = dict(zip(CATEGORIES, sums.tolist(), strict=True))
    rows, stopped_ns = _rows(session, track, found, wall, last - first), track.stopped_ns(first, last)
    rtf = real_time_factor(wall, audio)
    return Breakdown(first, last, wall, audio, rtf, outside["idle"], outside["setup"], categories, rows, stopped_ns)


def stages_under(session: Recorded, track: CostTrack, epoch: int, first: int) -> list[StageRow]:
    """The stages from frame `first` on under an epoch, with shares of their sum; `track`: up to date."""
    found: Found = {}
    for (lane, stage, under), part in _sums(session, track, first, track.n_frames, whole=False):
        if under == epoch and session.stages[stage].group not in ("idle", "setup"):
            found[lane, stage] = [(epoch, part)]
    wall = sum(part.time for (lane, _), ((_, part),) in found.items() if session.lanes[lane].decode)
    return _rows(session, track, found, wall, track.n_frames - first)


def _sums(session: Recorded, track: CostTrack, first: int, last: int, whole: bool) -> Iterator[tuple[Kind, Sums]]:
    """Yield the sums of a stretch by kind; of a whole session also those outside frames: set-up, pace sleep, devices.

    Stages of the decode lane always count by their part in the decoded frames: of an utterance that was stopped,
    features are there to its end, and their time is no part of the wall time.
    """

    def nested(kind: Kind) -> bool:
        lane, stage, _ = kind
        return session.lanes[lane].decode and session.stages[stage].group not in ("idle", "setup")

    if whole:
        yield from ((kind, sums) for kind, sums in track.stages.totals() if not nested(kind))
    for kind, sums in track.stages.within(session.spans, first, last):
        if nested(kind) or not whole:
            yield kind, sums


def _rows(session: Recorded, track: CostTrack, sums: Found, wall_ns: float, frames: int) -> list[StageRow]:
    lanes, order = list(session.lanes), {name: i for i, name in enumerate(GROUPS)}
    keys = sorted(sums, key=lambda key: (order[session.stages[key[1]].group], key[1], lanes.index(key[0])))
    return [_row(session, *key, sums[key], wall_ns, track.attribution, frames) for key in keys]


def _row(
    session: Recorded,
    lane: int,
    number: int,
    parts: list[tuple[int, Sums]],
    wall_ns: float,
    attribution: Attribution,
    frames: int,
) -> StageRow:
    """Put the sums of a stage's epochs together, each by the shares of its own law; `frames`: of the stretch."""
    stage, roof_table = session.stages[number], session.calibration
    total = reduce(Sums.plus, (part for _, part in parts))
    on_wall = session.lanes[lane].decode
    lost = dict(zip(NOT_OWN, (total.other, total.throttled), strict=True))
    work = dict(zip(stage.work, total.work, strict=False))
    model = _Model()
    for epoch, part in parts:
        cost = session.costs.get((number, epoch))
        shares = attribution.of(number, epoch) if on_wall and stage.group in ATTRIBUTED else None
        model.add(cost, part, roof_table, shares or by_law(cost, part, roof_table))
    known, timed = model.known, model.known and bool(roof_table)
    divided = model.parts(lost) if timed else None
    # The count that says most about how often the stage touched its data.
    unit = max(work, key=lambda each: work[each], default="") if model.scattered else ""
    verdict = judge(
        Evidence(
            time_ns=total.own,
            calls=total.calls,
            frames=total.frames,
            all_frames=frames,
            parts=divided.own if divided else None,
            least_ns=model.least if timed else None,
            bytes_min=model.bytes_min if known else None,
            missing=tuple(dict.fromkeys(model.missing)),
            replayed=model.replays > 0,
            device=model.device,
            unit=unit,
            units=work.get(unit, 0.0),
            reason=model.reason,
            roofs=bool(roof_table),
            unknown=model.unknown,
            launches=model.launches,
            frame="step" if counts_steps(session) else "frame",
        )
    )
    compute = memory = rest = None
    if divided is not None:
        compute, memory = (sum(divided.likely[name] for name in names) for names in (COMPUTE_PARTS, MEMORY_PARTS))
        rest = max(total.own - compute - memory, 0.0)
    law = {
        "arithmetic": model.arithmetic,
        "bandwidth": model.traffic_min,
        "latency": model.latency,
        "calls": model.called,
    }
    return StageRow(
        name=stage.name,
        group=stage.group,
        lane=session.lanes[lane].name,
        time_ns=total.time,
        share=total.time / wall_ns if wall_ns and on_wall else None,
        calls=round(total.calls) or 1,
        flops=sum(model.operations.values()) if known else None,
        bytes_min=model.bytes_min if known else None,
        bytes_max=model.bytes_max if known else None,
        work={**work, "frames": total.frames},
        working_set=model.working_set if known else None,
        verdict=verdict.verdict,
        evidence=verdict.evidence,
        sentence=verdict.sentence,
        defect=verdict.defect,
        too_close=verdict.too_close,
        transferred=model.transferred if known else None,
        operations=model.operations if known else {},
        arithmetic_ns=model.arithmetic if timed and not model.unknown else None,
        traffic_min_ns=model.traffic_min if timed else None,
        compute_ns=compute,
        memory_ns=memory,
        unexplained_ns=rest,
        lost_ns=lost if on_wall else None,
        law={name: ns for name, ns in law.items() if ns > 0} if timed else {},
        parts=divided,
        replays=model.replays,
    )


@dataclass
class _Model:
    """What laws and shares say of a stage; `known`: each epoch has a law; `ends`: ns likely, low, high [3, SHARES]."""

    known: bool = True
    reason: str = ""
    operations: dict[str, float] = field(default_factory=dict)
    bytes_min: float = 0.0
    bytes_max: float = 0.0
    transferred: float = 0.0
    working_set: float = 0.0
    arithmetic: float = 0.0
    traffic_min: float = 0.0
    scattered: bool = False
    unknown: bool = False
    device: bool = False
    launches: float = 0.0
    least: float = 0.0
    latency: float = 0.0
    called: float = 0.0
    replayed: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    ends: Array = field(default_factory=lambda: np.zeros((3, len(SHARES))))

    @property
    def replays(self) -> int:
        """Of the epoch that has fewest."""
        return min(self.replayed, default=0)

    def add(self, cost: Cost | None, part: Sums, roof_table: RoofTable, shares: Shares | None) -> None:
        """Add what the law of an epoch says of its spans, and how their time is shared out."""
        if cost is None or cost.is_empty:
            self.known = False
            self.reason = cost.unmodelled if cost is not None else ""
            return
        counts = counted(cost, part)
        for name, count in counts.operations.items():
            self.operations[name] = self.operations.get(name, 0.0) + count
        self.bytes_min += counts.bytes_min
        self.bytes_max += counts.most_streamed
        self.transferred += cost.transferred.total(part.calls, part.frames, part.work)
        self.working_set = max(self.working_set, cost.working_set_bytes)
        self.scattered |= cost.scattered
        self.device |= bool(cost.device)
        self.launches += sum(n for kind, n in counts.calls.items() if kind.startswith("launch@"))
        if not roof_table or shares is None:
            return
        self.least += shares.least * part.own
        self.replayed.append(shares.replays)
        # Arithmetic of which a part has no roof is unknown, not what the rest takes.
        self.unknown |= shares.unknown
        self.missing += shares.missing
        self.ends += np.stack([shares.likely, shares.low, shares.high]) * part.own
        machine = MachineCosts(roof_table)
        for name, count in counts.operations.items():
            peak = machine.operation_ns(name, cost.threads)
            if peak is not None:
                self.arithmetic += count * float(peak[0])
        for kind, count in counts.calls.items():
            self.called += count * float(machine.call_ns(kind)[0])
        for each, count in counts.accesses:
            self.latency += count * float(machine.access_ns(each.pattern, each.bytes)[0])
        memory = roof_table.bandwidth(cost.working_set_bytes, cost.threads, device=cost.device)
        if memory is not None:
            self.traffic_min += counts.bytes_min * NS / memory.median

    def parts(self, lost: dict[str, float]) -> Parts:
        """The time by part, what was `lost` among them."""
        rows = (dict(zip(SHARES, row, strict=True)) | lost for row in self.ends.tolist())
        return Parts(*({name: row[name] for name in PARTS} for row in rows))
