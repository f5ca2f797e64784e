"""The stages as CSV (RFC 4180): one row per stage, units in the column names, blank where unavailable.

The last row is the overhead that no stage explains, so that the times of all rows with a share add up to the wall
time of the decode lane; those of the other lanes have none.
"""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np

from profiler.analysis.categories import NOT_OWN, PARTS
from profiler.analysis.verdict import Parts
from profiler.export import Format, write_text

if TYPE_CHECKING:
    from profiler.analysis.breakdown import Breakdown
    from profiler.session.reader import Session

COLUMNS: Final = (
    "stage",
    "group",
    "lane",
    "calls",
    "time_ns",
    "share",
    "mean_ns",
    "median_ns",
    "p95_ns",
    "flops",
    "bytes_min",
    "bytes_max",
    "transferred_bytes",
    "working_set_bytes",
    "compute_ns",
    "memory_ns",
    "unexplained_ns",
    *(f"{name}_ns" for name in NOT_OWN),
    *(f"part_{name}{end}_ns" for name in PARTS for end in ("", "_low", "_high")),
    "frames",
    "work",
    "verdict",
    "evidence",
    "defect",
    "sentence",
)


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the stages of the whole session to `path`; OutputError with one sentence."""
    from profiler.analysis.breakdown import breakdown

    write_text(session, path, lambda file: _fill(session, breakdown(session), file))


FORMAT: Final = Format(
    name="csv",
    option="csv",
    help="write the stages as a table (F = - : to standard output)",
    title="Stages as a table (CSV)",
    kind="CSV",
    suffix=".csv",
    mime="text/csv",
    place=1,
    write=write,
)


def _fill(session: Session, parts: Breakdown, file: TextIO) -> None:
    from profiler.analysis.comparison.statistics import percentiles

    table = csv.writer(file)
    table.writerow(COLUMNS)
    stages = {stage.name: stage.id for stage in session.stages.values()}
    lanes = {lane.name: lane.id for lane in session.lanes.values()}
    for row in parts.stages:
        spans = session.spans
        chosen = (spans["stage"] == stages[row.name]) & (spans["lane"] == lanes[row.lane])
        median, p95 = percentiles(spans["duration_ns"][chosen].astype(np.float64))
        counts = " ".join(f"{k}={v:.0f}" for k, v in row.work.items() if k != "frames")
        values = (
            text_cell(row.name),
            row.group,
            text_cell(row.lane),
            row.calls,
            round(row.time_ns),
            row.share,
            row.time_ns / row.calls,
            median,
            p95,
            row.flops,
            row.bytes_min,
            row.bytes_max,
            row.transferred,
            row.working_set,
            row.compute_ns,
            row.memory_ns,
            row.unexplained_ns,
            *(None if row.lost_ns is None else row.lost_ns[name] for name in NOT_OWN),
            *_parts(row.parts),
            row.work["frames"],
            counts,
            row.verdict,
            row.evidence,
            row.defect,
            row.sentence,
        )
        table.writerow(["" if value is None else value for value in values])
    table.writerows(_between(session, parts))


def _parts(parts: Parts | None) -> list[float | None]:
    """Likely, least and most of each part; blank where the stage's law names none."""
    if parts is None:
        return [None] * (3 * len(PARTS))
    return [ends[name] for name in PARTS for ends in (parts.likely, parts.low, parts.high)]


def _between(session: Session, parts: Breakdown) -> list[list[object]]:
    """The rows of what lies between the stages: overhead, and what was lost of it, if anything.

    Times of stages are rounded, and these make up for it.
    """
    from profiler.analysis.categories import OVERHEAD

    rows = [row for row in parts.stages if row.share is not None]
    between = round(parts.wall_ns) - sum(round(row.time_ns) for row in rows)
    lost = {n: max(parts.categories[n] - sum((row.lost_ns or {}).get(n, 0.0) for row in rows), 0.0) for n in NOT_OWN}
    left = between - sum(map(round, lost.values()))
    lane = text_cell(next((lane.name for lane in session.lanes.values() if lane.decode), ""))
    found = []
    for name, exact, ns in (
        (OVERHEAD, parts.between_ns - sum(lost.values()), left),
        *((name, exact, round(exact)) for name, exact in lost.items()),
    ):
        if name == OVERHEAD or ns:
            share = exact / parts.wall_ns if parts.wall_ns else ""
            known = {"stage": name, "group": name, "lane": lane, "time_ns": ns, "share": share}
            found.append([known.get(column, "") for column in COLUMNS])
    return found


def text_cell(value: str) -> str:
    """Keep a spreadsheet from taking a name out of a stranger's session for a formula."""
    return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
