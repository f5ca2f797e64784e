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
from profiler.export import Format, write_text

if TYPE_CHECKING:
    from profiler.analysis.breakdown import Breakdown
    from profiler.session.reader import Session

COLUMNS: Final = (
    *("stage", "group", "lane", "calls", "time_ns", "share", "mean_ns", "median_ns", "p95_ns"),
    *("flops", "bytes_min", "bytes_max", "transferred_bytes", "working_set_bytes"),
    *("compute_ns", "memory_ns", "unexplained_ns", *(f"{name}_ns" for name in NOT_OWN)),
    *(f"part_{name}{end}_ns" for name in PARTS for end in ("", "_low", "_high")),
    *("frames", "work", "verdict", "evidence", "defect", "sentence"),
)
"""Those of stages by the names of `StageRow`, but for what `_fill` adds."""


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

    table = csv.DictWriter(file, COLUMNS)
    table.writeheader()
    stages = {stage.name: stage.id for stage in session.stages.values()}
    lanes = {lane.name: lane.id for lane in session.lanes.values()}
    for row in parts.stages:
        spans = session.spans
        chosen = (spans["stage"] == stages[row.name]) & (spans["lane"] == lanes[row.lane])
        median, p95 = percentiles(spans["duration_ns"][chosen].astype(np.float64))
        values: dict[str, object] = {name: getattr(row, name) for name in COLUMNS if hasattr(row, name)}
        values |= {"stage": text_cell(row.name), "lane": text_cell(row.lane), "time_ns": round(row.time_ns)}
        values |= {"mean_ns": row.time_ns / row.calls, "median_ns": median, "p95_ns": p95}
        values |= {"transferred_bytes": row.transferred, "working_set_bytes": row.working_set}
        values |= {f"{name}_ns": ns for name, ns in (row.lost_ns or {}).items()}
        ends = () if row.parts is None else (row.parts.likely, row.parts.low, row.parts.high)
        for end, part_ns in zip(("", "_low", "_high"), ends, strict=False):
            values |= {f"part_{name}{end}_ns": ns for name, ns in part_ns.items()}
        counts = " ".join(f"{k}={v:.0f}" for k, v in row.work.items() if k != "frames")
        table.writerow(values | {"frames": row.work["frames"], "work": counts})
    table.writerows(_between(session, parts))


def _between(session: Session, parts: Breakdown) -> list[dict[str, object]]:
    """The rows of what lies between the stages, or was lost of it; they make up for the rounding of the stages."""
    from profiler.analysis.categories import OVERHEAD

    rows = [row for row in parts.stages if row.share is not None]
    between = round(parts.wall_ns) - sum(round(row.time_ns) for row in rows)
    lost = {n: max(parts.categories[n] - sum((row.lost_ns or {}).get(n, 0.0) for row in rows), 0.0) for n in NOT_OWN}
    left = between - sum(map(round, lost.values()))
    lane = text_cell(next((lane.name for lane in session.lanes.values() if lane.decode), ""))
    found: list[dict[str, object]] = []
    for name, exact, ns in (
        (OVERHEAD, parts.between_ns - sum(lost.values()), left),
        *((name, exact, round(exact)) for name, exact in lost.items()),
    ):
        if name == OVERHEAD or ns:
            share = exact / parts.wall_ns if parts.wall_ns else None
            found.append({"stage": name, "group": name, "lane": lane, "time_ns": ns, "share": share})
    return found


def text_cell(value: str) -> str:
    """Keep a spreadsheet from taking a name out of a stranger's session for a formula."""
    return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
