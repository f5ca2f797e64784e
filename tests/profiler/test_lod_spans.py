"""Busy time per column of a timeline: exact, whatever the number of spans and however they arrive."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.lod.spans import CHUNK, KINDS, RowKey, SpanRow, Timeline
from profiler.spans import SPAN, Stage
from tests.each import each


def spans_of(starts: list[int], durations: list[int], stages: list[int]) -> np.ndarray:
    spans = np.zeros(len(starts), SPAN)
    spans["start_ns"], spans["duration_ns"], spans["stage"] = starts, durations, stages
    return spans


def row_of(gaps: list[int], durations: list[int], kinds: list[int], pieces: int) -> SpanRow:
    """Spans one after the other, appended in this number of pieces."""
    row = SpanRow(RowKey("stages", 0))
    starts = np.cumsum(gaps) + np.concatenate([[0], np.cumsum(durations)[:-1]])
    row.spans = spans_of(starts.tolist(), durations, [0] * len(gaps))
    for part in np.array_split(np.arange(len(gaps)), pieces):
        row.add(part, np.array(kinds, np.uint8)[part])
    return row


@given(st.data())
def test_busy_time_is_that_of_every_single_span(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 3 * CHUNK + 5))
    number = st.integers(0, 50)
    gaps, durations = (data.draw(st.lists(number, min_size=n, max_size=n)) for _ in range(2))
    kinds = data.draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=n, max_size=n))
    row = row_of(gaps, durations, kinds, data.draw(st.integers(1, min(n, 4))))
    end = sum(gaps) + sum(durations)
    edges = np.sort(data.draw(st.lists(st.floats(-10, end + 10), min_size=2, max_size=9).map(np.array)))
    expected = np.zeros((len(edges) - 1, len(KINDS)))
    starts = np.cumsum(gaps) + np.concatenate([[0], np.cumsum(durations)[:-1]])
    for start, duration, kind in zip(starts, durations, kinds, strict=True):
        low = np.clip(edges[:-1], start, start + duration)
        expected[:, kind] += np.clip(edges[1:], start, start + duration) - low
    np.testing.assert_allclose(row.busy(edges), expected, atol=1e-6)


def test_spans_that_arrive_late_find_their_place() -> None:
    row = SpanRow(RowKey("setup", 0))
    row.spans = spans_of([100, 200, 50, 150, 300], [10] * 5, [1] * 5)
    for numbers in ([0, 1], [2, 3], [4]):
        row.add(np.array(numbers), np.full(len(numbers), 6, np.uint8))
    assert [span.start_ns for span in row.within(0, 1000)] == [50, 100, 150, 200, 300]
    assert [span.number for span in row.within(0, 1000)] == [2, 0, 3, 1, 4]
    assert row.busy(np.array([0.0, 60.0, 1000.0])).sum(axis=1).tolist() == [10.0, 40.0]


@each("t_ns, number", [(5, None), (10, 0), (19, 0), (25, None), (30, 1)])
def test_the_span_under_a_moment(t_ns: int, number: int | None) -> None:
    row = SpanRow(RowKey("stages", 0))
    row.spans = spans_of([10, 30], [10, 10], [0, 0])
    row.add(np.arange(2), np.zeros(2, np.uint8))
    found = row.span_at(t_ns)
    assert (None if found is None else found.number) == number


def test_frames_and_times_of_blocks_are_mapped_both_ways() -> None:
    stages = {0: Stage(0, "decode.block", "decode"), 1: Stage(1, "score.mixture", "scoring")}
    spans = spans_of([100, 110, 300], [100, 50, 100], [0, 1, 0])
    spans["first_frame"], spans["frames"] = [0, 0, 16], [16, 16, 16]
    lanes = {0: SimpleNamespace(id=0, decode=True)}
    session = SimpleNamespace(generation=1, spans=spans, lanes=lanes, stages=stages)
    timeline = Timeline()
    timeline.follow(session)  # type: ignore[arg-type]
    assert timeline.ns_at(np.array([0.0, 8.0, 24.0, 40.0])).tolist() == [100, 200, 350, 400]
    assert timeline.frames_at(np.array([0.0, 200.0, 350.0, 900.0])).tolist() == [0, 8, 24, 32]
    assert {key.kind: len(row) for key, row in timeline.rows.items()} == {"blocks": 2, "stages": 1}
    assert timeline.extent_ns == (100, 400)


def test_between_blocks_times_lie_on_a_line() -> None:
    """As `np.interp` has it, also where two blocks meet at one frame or one moment, and beyond the ends."""
    random = np.random.default_rng(5)
    timeline = Timeline()
    frames, times = (np.cumsum(random.integers(0, 3, 500)).astype(np.float64) for _ in range(2))
    timeline._frames.extend(frames)
    timeline._times.extend(times)
    timeline._reached, timeline._end_ns = frames[-1] + 5, times[-1] + 7
    at = np.concatenate([frames, frames + 0.3, [-5.0, 1e6]])
    frames, times = np.append(frames, frames[-1] + 5), np.append(times, times[-1] + 7)
    np.testing.assert_allclose(timeline.ns_at(at), np.interp(at, frames, times), atol=1e-9)
    np.testing.assert_allclose(timeline.frames_at(at), np.interp(at, times, frames), atol=1e-9)
    assert Timeline().ns_at(at).tolist() == [0.0] * len(at)
