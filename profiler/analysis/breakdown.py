"""Where the time of a session, or of a stretch of its frames, went: by category and by stage.

Categories come from the same per-frame sums as the live chart, so that table and chart agree to the last
nanosecond. Stage rows add up their spans, those on the edge of a stretch by the part that lies in it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from profiler.analysis.attribution import Evidence, judge, times
from profiler.analysis.tiles import LEAF_GROUPS, group_codes, tile
from profiler.analysis.track import CATEGORIES, CostTrack, by_stage_and_epoch, threads_by_epoch
from profiler.session.reader import Session
from profiler.spans import GROUPS

FRAME_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage on one lane. Times in ns, sizes in bytes; None where unavailable, never 0.

    `share`: of the wall time. `operations`: counts by class; `flops`: their sum, exp and log counting one.
    `work`: counts by name, and "frames". `arithmetic_ns`, `traffic_min_ns`, `traffic_max_ns`: what the
    roofs say; `compute_ns` + `memory_ns` + `unexplained_ns` = `time_ns`. `defect`: a sentence when the
    stage ran faster than the measured roofs allow.
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
    transferred: float | None = None
    operations: dict[str, float] = field(default_factory=dict)
    arithmetic_ns: float | None = None
    traffic_min_ns: float | None = None
    traffic_max_ns: float | None = None
    compute_ns: float | None = None
    memory_ns: float | None = None
    unexplained_ns: float | None = None

    @property
    def intensity(self) -> float | None:
        """Operations per byte of compulsory traffic, or None."""
        return self.flops / self.bytes_min if self.flops and self.bytes_min else None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Time of the decode lane: `categories` (ns) add up to `wall_ns`; set-up and pace sleep lie outside.

    `rtf` = wall time / audio time, None without audio. `hidden_ns`: device work under host work, None where
    nothing measures it. `recorder`: ns_per_span, spans, dropped, perturbation (fraction of the wall time).
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
    recorder: dict[str, Any]


def breakdown(
    session: Session,
    first_frame: int | None = None,
    last_frame: int | None = None,
    track: CostTrack | None = None,
) -> Breakdown:
    """Return the breakdown of the frames first_frame … last_frame − 1 (None: from the beginning, to the end).

    `track`: an up-to-date CostTrack of the same session, where there is one (it saves making another).
    """
    if track is None:
        track = CostTrack()
        track.update(session)
    first = 0 if first_frame is None else max(first_frame, 0)
    last = track.n_frames if last_frame is None else min(last_frame, track.n_frames)
    last = max(last, first)
    sums = track.categories_ns[first:last].sum(axis=0)
    wall = float(track.wall_ns[first:last].sum())
    whole = first_frame is None and last_frame is None
    audio = _audio_seconds(session, first, last)
    idle, setup = _outside(session, first, last, whole)
    return Breakdown(
        first,
        last,
        wall,
        audio,
        wall / 1e9 / audio if audio else None,
        idle,
        setup,
        dict(zip(CATEGORIES, (float(v) for v in sums), strict=True)),
        None,
        _rows(session, first, last, whole, wall),
        recorder_cost(session, wall if whole else None),
    )


def recorder_cost(session: Session, wall_ns: float | None) -> dict[str, Any]:
    """Return what recording itself has cost: ns per span, spans, dropped, share of `wall_ns`."""
    spans = sum(lane.recorded for lane in session.lanes.values())
    dropped = sum(lane.dropped for lane in session.lanes.values())
    measured = session.meta.get("recorder")
    per_span = measured.get("ns_per_span") if isinstance(measured, dict) else None
    if not isinstance(per_span, int | float):
        per_span = None
    on_wall = sum(lane.recorded + lane.dropped for lane in session.lanes.values() if lane.decode)
    share = on_wall * per_span / wall_ns if per_span is not None and wall_ns else None
    return {"ns_per_span": per_span, "spans": spans, "dropped": dropped, "perturbation": share}


def _audio_seconds(session: Session, first: int, last: int) -> float:
    """Return the audio time of the decoded frames in range; a whole utterance counts its whole length."""
    seconds, named = 0.0, 0
    for utterance in session.utterances:
        begin, end = utterance.first_frame, utterance.first_frame + utterance.n_frames
        inside = min(end, last) - max(begin, first)
        if inside > 0:
            seconds += utterance.audio_s * inside / utterance.n_frames
            named += inside
    return seconds + max(last - first - named, 0) * FRAME_SECONDS


def _part(spans: np.ndarray, first: int, last: int, whole: bool) -> np.ndarray:
    """Return which part of each span lies in the frames [first, last), float64 [n] of 0…1."""
    if whole:
        return np.ones(len(spans))
    frames = np.maximum(spans["frames"], 1).astype(np.int64)
    begin = spans["first_frame"].astype(np.int64)
    inside = np.minimum(begin + frames, last) - np.maximum(begin, first)
    return np.clip(inside, 0, None) / frames


def _outside(session: Session, first: int, last: int, whole: bool) -> tuple[float, float]:
    """Return idle and setup time in ns, of all lanes."""
    spans, codes = session.spans, group_codes(session.stages)
    if not len(spans):
        return 0.0, 0.0
    group = codes[spans["stage"]]
    found = []
    for name in ("idle", "setup"):
        chosen = spans[group == GROUPS.index(name)]
        found.append(float(chosen["duration_ns"] @ _part(chosen, first, last, whole)))
    return found[0], found[1]


def _rows(session: Session, first: int, last: int, whole: bool, wall_ns: float) -> list[StageRow]:
    spans, codes = session.spans, group_codes(session.stages)
    shown = [GROUPS.index(group) for group in (*LEAF_GROUPS, "overhead")]
    rows: list[tuple[int, StageRow]] = []
    for lane in session.lanes.values():
        mine = spans[spans["lane"] == lane.id]
        if not len(mine):
            continue
        if lane.decode:
            # A leaf outside every tile belongs to no wall time, and to no row either.
            group = codes[mine["stage"]]
            tiled = tile(mine, codes)
            keep = group == GROUPS.index("overhead")
            keep[tiled.leaf_positions] = True
            mine = mine[keep]
        else:
            mine = mine[np.isin(codes[mine["stage"]], shown)]
        part = _part(mine, first, last, whole)
        mine, part = mine[part > 0], part[part > 0]
        by_stage: dict[int, list[tuple[np.ndarray, int]]] = {}
        for picked, stage, epoch in by_stage_and_epoch(mine):
            by_stage.setdefault(stage, []).append((picked, epoch))
        for stage, pieces in by_stage.items():
            row = _row(session, stage, lane.name, lane.decode, mine, part, pieces, wall_ns)
            rows.append((stage, row))
    order = {name: i for i, name in enumerate(GROUPS)}
    rows.sort(key=lambda item: (order[item[1].group], item[0]))
    return [row for _, row in rows]


def _row(
    session: Session,
    number: int,
    lane: str,
    on_wall: bool,
    spans: np.ndarray,
    part: np.ndarray,
    pieces: list[tuple[np.ndarray, int]],
    wall_ns: float,
) -> StageRow:
    stage = session.stages[number]
    threads = threads_by_epoch(session)
    sums: dict[str, float] = {}
    operations: dict[str, float] = {}
    modelled = complete = True
    working_set = 0.0

    def add(name: str, amounts: Any, weight: np.ndarray) -> None:
        sums[name] = sums.get(name, 0.0) + float(np.asarray(amounts, np.float64) @ weight)

    for picked, epoch in pieces:
        some, weight = spans[picked], part[picked]
        duration = some["duration_ns"].astype(np.float64)
        add("time", duration, weight)
        add("calls", np.ones(len(some)), weight)
        add("frames", some["frames"], weight)
        for i, name in enumerate(stage.work):
            add(f"work {name}", some[f"work{i}"], weight)
        cost = session.costs.get((number, epoch))
        if cost is None or cost.is_empty:
            modelled = False
            continue
        for name, law in cost.operations.items():
            operations[name] = operations.get(name, 0.0) + float(law.of(some) @ weight)
        add("bytes_min", cost.bytes_min.of(some), weight)
        add("bytes_max", cost.bytes_max.of(some), weight)
        add("transferred", cost.transferred.of(some), weight)
        working_set = max(working_set, cost.working_set_bytes)
        roof = times(some, cost, session.calibration, threads.get(epoch, 1))
        complete &= roof.complete
        add("arithmetic", roof.arithmetic, weight)
        add("traffic_min", roof.traffic_min, weight)
        add("traffic_max", roof.traffic_max, weight)
        add("least", roof.least, weight)
        compute = np.clip(roof.arithmetic, 0.0, duration)
        add("compute", compute, weight)
        add("memory", np.clip(roof.traffic_min - roof.arithmetic, 0.0, duration - compute), weight)

    roofs = modelled and bool(session.calibration)

    def of(name: str, there: bool) -> float | None:
        return sums.get(name) if there else None

    verdict = judge(
        Evidence(
            sums["time"],
            sums["calls"],
            sums["frames"],
            of("arithmetic", roofs),
            of("traffic_min", roofs),
            of("traffic_max", roofs),
            of("least", roofs),
            of("bytes_min", modelled),
            session.calibration.overhead_ns("numpy"),
            complete,
        )
    )
    return StageRow(
        stage.name,
        stage.group,
        lane,
        sums["time"],
        sums["time"] / wall_ns if wall_ns and on_wall else None,
        round(sums["calls"]) or 1,
        sum(operations.values()) if modelled else None,
        of("bytes_min", modelled),
        of("bytes_max", modelled),
        {**{name: sums[f"work {name}"] for name in stage.work}, "frames": sums["frames"]},
        working_set if modelled else None,
        verdict.verdict,
        verdict.evidence,
        verdict.sentence,
        verdict.defect,
        of("transferred", modelled),
        operations if modelled else {},
        of("arithmetic", roofs),
        of("traffic_min", roofs),
        of("traffic_max", roofs),
        of("compute", roofs),
        of("memory", roofs),
        max(sums["time"] - sums["compute"] - sums["memory"], 0.0) if roofs else None,
    )
