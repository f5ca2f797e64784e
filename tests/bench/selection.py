"""How long the breakdown of a selected stretch takes in an hour of recording, against summing everything up.

    asrscope bench selection

A made-up hour at block 16 and at block 1 (eight spans per block). The peer is the same function without
the sums that it keeps; both must give the same rows. Audio and transcripts are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from profiler.analysis.breakdown import breakdown
from profiler.analysis.track import CostTrack
from profiler.machine.roofs.table import BANDWIDTH, RATE, Roof, RoofTable
from profiler.session.model import ConfigEpoch, LaneInfo
from profiler.spans import SPAN, Cost, Linear, Stage
from tests.bench._rounds import result, timed

HOUR_FRAMES = 360_000
SCORING = ("score.gaussians", "score.exp", "score.mixture", "score.log")
SEARCH = ("search.emit", "search.epsilon", "search.prune")
SPAN_NS, TILE_NS = 100, 1000


def run(audio: list[str], transcripts: str | None, repeat: int, progress: Callable[..., None]) -> dict[str, Any]:
    """Time selections of three widths in both recordings; the ratio is that of block 16."""
    rows = []
    for block in (16, 1):
        progress(f"an hour at block {block}", None)
        session = hour(block)
        track = CostTrack()
        track.update(session)
        _, first = timed(lambda t=track, s=session: breakdown(s, track=t))
        for width in (500, HOUR_FRAMES // 2, HOUR_FRAMES - 3000):
            begin = (HOUR_FRAMES - width) // 2 + 7
            part = (session, begin, begin + width)
            summed = [timed(lambda p=part, t=track: breakdown(*p, track=t)) for _ in range(max(repeat, 9))]
            times = [seconds for _, seconds in summed]
            plain, everything = timed(lambda p=part: breakdown(*p))
            rows.append(
                {
                    "block": block,
                    "spans": len(session.spans),
                    "frames": width,
                    "ms": float(np.median(times)) * 1e3,
                    "worst_ms": max(times) * 1e3,
                    "first_time_ms": first * 1e3,
                    "everything_ms": everything * 1e3,
                    "same": _same(summed[-1][0], plain),
                }
            )
    return result(
        "the same breakdown without kept sums",
        [row["everything_ms"] / row["ms"] for row in rows if row["block"] == 16],
        "time without kept sums / time with them, median of selections at block 16",
        {"rows equal within 1e-9": all(row["same"] for row in rows)},
        rows,
    )


def hour(block: int) -> Any:
    """What the analysis reads of a session of an hour."""
    names = [("decode.block", "decode")]
    names += [(name, "scoring") for name in SCORING] + [(name, "search") for name in SEARCH]
    stages = {i: Stage(i, name, group, ("counted",) if i else ()) for i, (name, group) in enumerate(names)}
    n = HOUR_FRAMES // block
    spans = np.zeros(n * len(names), SPAN)
    start = np.arange(n) * TILE_NS
    for place, stage in enumerate([*range(1, len(names)), 0]):
        mine = spans[place :: len(names)]
        mine["stage"], mine["frames"], mine["work0"] = stage, block, 1000 + stage
        mine["first_frame"] = np.arange(n) * block
        mine["start_ns"] = start + (SPAN_NS * (stage - 1) if stage else 0)
        mine["duration_ns"] = SPAN_NS if stage else TILE_NS
    law = Cost({"gemm": Linear(per_work=(3.0, 0.0, 0.0))}, Linear(2e3), Linear(4e3), 1e6)
    peaks = RoofTable(
        (
            Roof(RATE, "gemm", "float32", 1, 0, 1e11, 9e10, 1.1e11, "op/s"),
            Roof(BANDWIDTH, "read", "float32", 1, 1 << 20, 1e11, 9e10, 1.1e11, "B/s"),
        )
    )
    return SimpleNamespace(
        spans=spans,
        stages=stages,
        lanes={0: LaneInfo(0, "decode", "cpu", True, len(spans), 0)},
        costs={(stage, 0): law for stage in stages if stage},
        calibration=peaks,
        configs=[ConfigEpoch(0, 0, {}, 0)],
        generation=0,
        utterances=[],
        meta={},
    )


def _same(kept: Any, plain: Any) -> bool:
    return kept.wall_ns == plain.wall_ns and all(
        np.isclose(getattr(a, name), getattr(b, name), rtol=1e-9)
        for a, b in zip(kept.stages, plain.stages, strict=True)
        for name in ("time_ns", "flops", "bytes_min", "compute_ns", "memory_ns")
    )
