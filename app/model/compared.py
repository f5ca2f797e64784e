"""What a comparison shows next to its ratios: words that differ, and how the time of single frames is spread. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.model.statistics import WHOLE, Statistics, ends, spread, stage_names, stage_ns
from pipelines.audio import word_errors as wer
from profiler.analysis.comparison.arms import by_key
from profiler.analysis.track import CostTrack
from profiler.arrays import F64, I64

if TYPE_CHECKING:
    from app.model.report import Tree
    from profiler.analysis.comparison.arms import Arm
    from profiler.analysis.comparison.compare import Comparison
    from profiler.session.reader import Session

LISTED: Final = 100  # Utterances with other words that are listed; more are counted


def differing_words(compared: Comparison) -> Tree:
    """The utterances whose recognised words differ: of how many, their number, and those where B is worst, LISTED."""
    both = list(zip(compared.decoded_a, compared.decoded_b, strict=True))
    rows = [
        {"id": a.name, "reference": a.reference, "a": words_a, "b": words_b, "errors_a": a.errors, "errors_b": b.errors}
        for a, b in both
        if wer.words(words_a := a.hypothesis or "") != wer.words(words_b := b.hypothesis or "")
    ]

    def more_errors(row: Tree) -> float:  # Without a transcript they come last
        a, b = row["errors_a"], row["errors_b"]
        return -np.inf if a is None or b is None else b - a

    rows.sort(key=more_errors, reverse=True)
    return {"of": len(both), "differ": len(rows), "utterances": rows[:LISTED]}


class Side(msgspec.Struct):
    """How the time of single frames is spread on one side."""

    frames: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    highest_ms: float
    counts: list[int]

    @property
    def figures(self) -> tuple[float, ...]:
        return self.mean_ms, self.p50_ms, self.p90_ms, self.p99_ms, self.highest_ms


class FrameTimes(msgspec.Struct):
    """The times of whole frames or of a stage on both sides, with the edges of one histogram."""

    name: str
    edges_ms: list[float]
    a: Side
    b: Side

    def statistics(self, side: Side) -> Statistics:
        edges, counts = np.array(self.edges_ms), np.array(side.counts, np.int64)
        quantiles = side.p50_ms, side.p90_ms, side.p99_ms
        nobody = np.empty(0, np.int64), np.empty(0)
        return Statistics(self.name, side.frames, side.mean_ms, quantiles, side.highest_ms, edges, counts, *nobody)


def frame_times(compared: Comparison) -> list[FrameTimes]:
    """How the time of single frames that are compared is spread, of whole frames and of each stage of both A and B."""
    sides = [_Side(arm, compared) for arm in (compared.a, compared.b)]
    rows = []
    for name in (name for name in sides[0].names if name in sides[1].names):
        times = [side.times(name) for side in sides]
        if all(len(ms) for _, ms in times):
            between = ends(np.concatenate([ms for _, ms in times]))
            a, b = (spread(name, frames, ms, between) for frames, ms in times)
            sides_of = (Side(s.frames, s.mean, *s.quantiles, s.highest, s.counts.tolist()) for s in (a, b))
            rows.append(FrameTimes(name, a.edges.tolist(), *sides_of))
    return rows


class _Side:
    def __init__(self, arm: Arm, compared: Comparison) -> None:
        self._session: Session = arm.session
        self._track = CostTrack()
        self._track.update(arm.session)
        self.names: Sequence[str] = stage_names(arm.session, self._track)
        decoded = by_key(arm.utterances)
        counted = [u for key in compared.matched for u in decoded[key][-compared.repeats :]]
        each = [np.arange(u.first_frame, min(u.end_frame, self._track.n_frames)) for u in counted]
        self._frames: I64 = np.concatenate(each)

    def times(self, name: str) -> tuple[I64, F64]:
        """The frames on which a stage (or WHOLE) ran, and its ms on each."""
        if name == WHOLE:
            return self._frames, self._track.wall_row[:][self._frames] * 1e-6
        ns = stage_ns(self._session, name, 0, int(self._track.n_frames))[self._frames]
        return self._frames[ns > 0], ns[ns > 0] * 1e-6
