"""Sums by stage against a plain loop over all spans, for any recording, any stretch, fed in any way."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiler_sessions import GAUSSIANS_COST, fake_session, spans_of

from profiler.analysis import stage_sums
from profiler.analysis.breakdown import breakdown
from profiler.analysis.stage_sums import CHUNK
from profiler.analysis.track import CostTrack
from profiler.session.model import LaneInfo
from profiler.spans import SPAN, Cost, Linear, Stage

STAGES = [
    Stage(0, "decode.block", "decode"),
    Stage(1, "score.gaussians", "scoring", ("gaussians", "senones")),
    Stage(2, "search.emit", "search", ("tokens", "arcs", "senones")),
    Stage(3, "setup.model", "setup"),
    Stage(4, "copy", "transfer"),
]
LANES = (LaneInfo(0, "decode", "cpu", True, 0, 0), LaneInfo(1, "stream", "cuda", False, 0, 0))
COSTS = {
    (1, 0): GAUSSIANS_COST,
    (1, 1): Cost({"exp": Linear(per_work=(2.0, 0.0, 0.0))}, Linear(per_frame=3e4), Linear()),
    (4, 0): Cost({}, Linear(1e5), Linear(1e5), 1e6),
}


def recording(seed: int, blocks: int) -> np.ndarray:
    """Blocks with leaves of several stages, lanes and epochs; some leaves name frames far from here."""
    draw = random.Random(seed)
    rows, lanes, epochs = [], [], []
    now = frame = 0
    for block in range(blocks):
        start, frames = now, draw.randint(0, 20)
        for _ in range(draw.randint(0, 4)):
            length = draw.randint(0, 5000)
            first = frame if draw.random() < 0.9 else draw.randint(0, 3000)
            work = [draw.randint(0, 10**5) for _ in range(3)]
            lane = int(draw.random() < 0.2)
            stage = 4 if lane else draw.choice((1, 1, 2, 2, 3))
            rows.append((now, length, stage, first, draw.randint(0, 30), *work))
            lanes.append(lane)
            epochs.append(int(block > blocks // 2))
            now += length
        rows.append((start, now - start, 0, frame, frames))
        lanes.append(0)
        epochs.append(int(block > blocks // 2))
        frame += frames
    spans = spans_of(rows)
    spans["lane"], spans["epoch"] = lanes, epochs
    return spans


class Plain:
    """The sums, span by span."""

    def __init__(self, spans: np.ndarray) -> None:
        self._rows = []
        for span in spans[spans["stage"] > 0]:
            row = [span["duration_ns"], 1, span["frames"], *(span[f"work{i}"] for i in range(3))]
            values = np.array([*map(float, row)])
            key = (int(span["lane"]), int(span["stage"]), int(span["epoch"]))
            begin, frames = int(span["first_frame"]), max(int(span["frames"]), 1)
            self._rows.append((key, begin, frames, values))

    def within(self, first: int | None, last: int | None) -> dict[Any, np.ndarray]:
        sums: dict[Any, np.ndarray] = {}
        for key, begin, frames, values in self._rows:
            part = 1.0
            if first is not None and last is not None:
                part = max(min(begin + frames, last) - max(begin, first), 0) / frames
            if part:
                sums[key] = sums.get(key, 0.0) + part * values
        return sums


def read(session: Any) -> CostTrack:
    track = CostTrack()
    track.update(session)
    return track


def answers(track: CostTrack, session: Any, first: int | None, last: int | None) -> dict[Any, Any]:
    sums = track.stages
    found = sums.totals() if first is None or last is None else sums.within(session.spans, first, last)
    return {key: np.array([s.time, s.calls, s.frames, *s.work]) for key, s in found}


def same(got: dict[Any, Any], wanted: dict[Any, Any]) -> None:
    assert got.keys() == wanted.keys()
    for key, values in wanted.items():
        np.testing.assert_allclose(got[key], values, rtol=1e-9, atol=1e-6)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**9), st.integers(0, 60), st.lists(st.integers(0, 200), max_size=6))
def test_any_stretch_equals_the_plain_sum(seed: int, blocks: int, cuts: list[int]) -> None:
    # Chunks of four spans, so that small recordings have many.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_sums, "CHUNK", 4)
        spans = recording(seed, blocks)
        session = fake_session(spans, STAGES, COSTS, lanes=LANES)
        whole, pieces, plain = read(session), CostTrack(), Plain(spans)
        for cut in [*sorted(cuts), len(spans)]:
            pieces.update(fake_session(spans[:cut], STAGES, COSTS, lanes=LANES))
        draw = random.Random(seed)
        for _ in range(60):
            first = draw.randint(0, 700)
            last = draw.randint(first, 700)
            same(answers(whole, session, first, last), plain.within(first, last))
        same(answers(whole, session, None, None), plain.within(None, None))
        for stretch in ((None, None), (7, 260)):
            got, wanted = answers(pieces, session, *stretch), answers(whole, session, *stretch)
            assert {key: values.tobytes() for key, values in got.items()} == {
                key: values.tobytes() for key, values in wanted.items()
            }


def test_a_selection_looks_at_the_spans_on_its_edges_alone(monkeypatch) -> None:
    blocks = 40 * CHUNK
    spans = np.tile(spans_of([(0, 5, 1, 0, 4, 10), (5, 5, 2, 0, 4), (0, 12, 0, 0, 4)]), blocks)
    spans["start_ns"] += np.repeat(np.arange(blocks) * 12, 3)
    spans["first_frame"] = np.repeat(np.arange(blocks) * 4, 3)
    session = fake_session(spans, STAGES, COSTS)
    track = read(session)
    looked_at = []
    monkeypatch.setattr(stage_sums, "pick", lambda s, at: looked_at.append(len(at)) or s[at], raising=True)
    parts = breakdown(session, 1000, 4 * blocks - 1001, track)
    assert sum(looked_at) <= 2 * 3 * CHUNK
    assert [row.time_ns for row in parts.stages] == [5 * (blocks - 500.25)] * 2
    assert parts.wall_ns == 12 * (blocks - 500.25)


def test_no_spans_no_sums() -> None:
    track = read(fake_session(np.empty(0, SPAN), STAGES))
    assert list(track.stages.totals()) == []
