"""Sums by stage against a plain loop over all spans, for any recording, any stretch, fed in any way."""

import os
import random
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiler_sessions import GAUSSIANS_COST, fake_session, spans_of, tracked

from profiler.analysis import stage_sums
from profiler.analysis.breakdown import breakdown
from profiler.analysis.lod.spans import CHUNK as CHUNK_LOD
from profiler.analysis.lod.spans import KINDS, RowKey, SpanRow, Timeline
from profiler.analysis.per_frame import LONG, PerFrame, Spread
from profiler.analysis.stage_sums import CHUNK
from profiler.analysis.track import CostTrack
from profiler.session.format.grow import Growing, sweep
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
    rows = []
    now = frame = 0
    for _ in range(blocks):
        start, frames = now, draw.randint(0, 20)
        for _ in range(draw.randint(0, 4)):
            length = draw.randint(0, 5000)
            first = frame if draw.random() < 0.9 else draw.randint(0, 3000)
            work = [draw.randint(0, 10**5) for _ in range(3)]
            rows.append((now, length, draw.choice((1, 1, 2, 2, 3, 4)), first, draw.randint(0, 30), *work))
            now += length
        rows.append((start, now - start, 0, frame, frames))
        frame += frames
    spans = spans_of(rows)
    spans["lane"], spans["epoch"] = spans["stage"] == 4, np.arange(len(spans)) > len(spans) // 2
    return spans


def plain_sums(spans: np.ndarray, first: int | None, last: int | None) -> dict[Any, np.ndarray]:
    """The sums of a stretch, span by span."""
    sums: dict[Any, np.ndarray] = {}
    for span in spans[spans["stage"] > 0]:
        key = (int(span["lane"]), int(span["stage"]), int(span["epoch"]))
        begin, frames = int(span["first_frame"]), max(int(span["frames"]), 1)
        part = 1.0
        if first is not None and last is not None:
            part = max(min(begin + frames, last) - max(begin, first), 0) / frames
        if part:
            row = [span["duration_ns"], 1, span["frames"], *(span[f"work{i}"] for i in range(3))]
            sums[key] = sums.get(key, 0.0) + part * np.array([*map(float, row)])
    return sums


def answers(track: CostTrack, session: Any, first: int | None, last: int | None) -> dict[Any, np.ndarray]:
    sums = track.stages
    found = sums.totals() if first is None or last is None else sums.within(session.spans, first, last)
    return {key: np.array([s.time, s.calls, s.frames, *s.work]) for key, s in found}


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**9), st.integers(0, 60), st.lists(st.integers(0, 200), max_size=6))
def test_any_stretch_equals_the_plain_sum(seed, blocks, cuts):
    draw = random.Random(seed)
    stretches = [(None, None), *(sorted((draw.randint(0, 700), draw.randint(0, 700))) for _ in range(20))]
    spans = recording(seed, blocks)
    session = fake_session(spans, STAGES, COSTS, lanes=LANES)
    # Chunks of four spans, so that small recordings have many.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_sums, "CHUNK", 4)
        track, pieces = tracked(session), CostTrack()
        for cut in [*sorted(cuts), len(spans)]:
            pieces.update(fake_session(spans[:cut], STAGES, COSTS, lanes=LANES))
        for stretch in stretches:
            got, wanted = answers(track, session, *stretch), plain_sums(spans, *stretch)
            assert got.keys() == wanted.keys()
            for key, values in wanted.items():
                np.testing.assert_allclose(got[key], values, rtol=1e-9, atol=1e-6)
            again = answers(pieces, session, *stretch)
            assert {key: values.tobytes() for key, values in again.items()} == {
                key: values.tobytes() for key, values in got.items()
            }


def test_a_selection_looks_at_the_spans_on_its_edges_alone(monkeypatch):
    blocks = 40 * CHUNK
    spans = np.tile(spans_of([(0, 5, 1, 0, 4, 10), (5, 5, 2, 0, 4), (0, 12, 0, 0, 4)]), blocks)
    spans["start_ns"] += np.repeat(np.arange(blocks) * 12, 3)
    spans["first_frame"] = np.repeat(np.arange(blocks) * 4, 3)
    session = fake_session(spans, STAGES, COSTS)
    track = tracked(session)
    looked_at = []
    monkeypatch.setattr(stage_sums, "pick", lambda s, at: looked_at.append(len(at)) or s[at], raising=True)
    parts = breakdown(session, 1000, 4 * blocks - 1001, track)
    assert sum(looked_at) <= 2 * 3 * CHUNK
    assert [row.time_ns for row in parts.stages] == [5 * (blocks - 500.25)] * 2
    assert parts.wall_ns == 12 * (blocks - 500.25)


def row_of(starts: np.ndarray, durations: list[int], kinds: list[int], pieces: list[list[int]]) -> SpanRow:
    """A row to which the spans are appended in pieces, by their numbers."""
    row = SpanRow(RowKey("stages", 0))
    row.spans = spans_of([(start, duration, 0, 0, 0) for start, duration in zip(starts, durations, strict=True)])
    for numbers in pieces:
        row.add(np.array(numbers), np.array(kinds, np.uint8)[numbers])
    return row


@given(st.data())
def test_busy_time_is_that_of_every_single_span(data):
    n = data.draw(st.integers(1, 3 * CHUNK_LOD + 5))
    number = st.integers(0, 50)
    gaps, durations = (data.draw(st.lists(number, min_size=n, max_size=n)) for _ in range(2))
    kinds = data.draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=n, max_size=n))
    starts = np.cumsum(gaps) + np.cumsum([0, *durations[:-1]])
    row = row_of(starts, durations, kinds, np.array_split(np.arange(n), data.draw(st.integers(1, min(n, 4)))))
    end = sum(gaps) + sum(durations)
    edges = np.sort(data.draw(st.lists(st.floats(-10, end + 10), min_size=2, max_size=9).map(np.array)))
    expected = np.zeros((len(edges) - 1, len(KINDS)))
    for start, duration, kind in zip(starts, durations, kinds, strict=True):
        expected[:, kind] += np.diff(np.clip(edges, start, start + duration))
    np.testing.assert_allclose(row.busy(edges), expected, atol=1e-6)


def test_spans_that_arrive_late_find_their_place():
    row = row_of(np.array([100, 200, 50, 150, 300]), [10] * 5, [6] * 5, [[0, 1], [2, 3], [4]])
    assert [(span.start_ns, span.number) for span in row.within(0, 1000)] == [
        (50, 2), (100, 0), (150, 3), (200, 1), (300, 4),
    ]  # fmt: skip
    assert row.busy(np.array([0.0, 60.0, 1000.0])).sum(axis=1).tolist() == [10.0, 40.0]
    under = [row.span_at(t_ns) for t_ns in (49, 50, 59, 65, 300)]
    assert [span and span.number for span in under] == [None, 2, 2, None, 4]


def test_spans_that_arrive_late_by_many_chunks_are_counted_once():
    starts, durations, kinds = np.arange(200) * 10, [7] * 200, [n % len(KINDS) for n in range(200)]
    edges = np.linspace(-5.0, 2005.0, 31)
    expected = row_of(starts, durations, kinds, [[*range(200)]])
    late = [*range(100), *range(150, 200)], [*range(100, 150)]
    for pieces in (late, [[*range(100, 200)], [*range(100)]], [[*range(0, 200, 2)], [*range(1, 200, 2)]]):
        row = row_of(starts, durations, kinds, pieces)
        assert [span.number for span in row.within(0, 2000)] == [*range(200)]
        assert row.busy(edges).tolist() == expected.busy(edges).tolist()
        assert row.ends(row.places(995, 1017)).tolist() == [[990, 997], [1000, 1007], [1010, 1017]]


def test_frames_and_times_of_blocks_are_mapped_both_ways():
    timeline = Timeline()
    spans = spans_of([(100, 100, 0, 0, 16), (110, 50, 1, 0, 16), (300, 100, 0, 16, 16)])
    timeline.follow(fake_session(spans, STAGES))
    assert timeline.ns_at(np.array([0.0, 8.0, 24.0, 40.0])).tolist() == [100, 200, 350, 400]
    assert timeline.frames_at(np.array([0.0, 200.0, 350.0, 900.0])).tolist() == [0, 8, 24, 32]
    assert {key.kind: len(row) for key, row in timeline.rows.items()} == {"blocks": 2, "stages": 1}
    assert timeline.extent_ns == (100, 400)


ROWS = 3
GRAINS = 65536.0
runs = st.tuples(
    st.integers(0, 120),  # first frame
    st.integers(0, 40),  # frames
    st.lists(st.integers(0, 10**9), min_size=ROWS, max_size=ROWS),  # grains by row
)
batches = st.lists(st.lists(runs, min_size=1, max_size=6), min_size=1, max_size=5)
Run = tuple[int, int, list[int]]


def spread_of(batch: list[Run], rows: int = ROWS) -> Spread:
    spans = np.zeros(len(batch), SPAN)
    spans["first_frame"], spans["frames"] = zip(*(run[:2] for run in batch), strict=True)
    spread = Spread(spans)
    for row in range(rows):
        spread.give(row, np.array([run[2][row] for run in batch]) / GRAINS)
    return spread


def plain(taken: list[list[Run]]) -> np.ndarray:
    """One value per frame and row, in grains, [rows, frames]."""
    found = np.zeros((ROWS, 200), np.int64)
    end = 0
    for first, frames, amounts in (run for batch in taken for run in batch):
        frames = max(frames, 1)
        end = max(end, first + frames)
        for row, amount in enumerate(amounts):
            found[row, first : first + frames] += amount // frames
            found[row, first] += amount % frames
    return found[:, :end]


@given(batches, st.data(), st.randoms(use_true_random=False))
def test_answers_are_those_of_an_array_whatever_the_order(taken, data, random):
    store = PerFrame(ROWS)
    for i, batch in enumerate(taken):
        store.add(spread_of(batch))
        wanted = plain(taken[: i + 1]) / GRAINS
        end = wanted.shape[1]
        assert store.frames == end
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, end)] * 2)))
        at = np.array(sorted(data.draw(st.lists(st.floats(0, end), min_size=1, max_size=9))))
        areas = store.area(range(ROWS), at)
        for number, frames in enumerate(wanted):
            row = store.row(number, end)
            assert np.array_equal(row[first:last], frames[first:last])
            assert np.array_equal(row[:], frames)
            assert row.total(first, last) == frames[first:last].sum()
            if first < last:
                highest = first + int(np.argmax(frames[first:last]))
                assert row.highest(first, last) == (highest, frames[highest])
            before = np.concatenate([[0.0], np.cumsum(frames)])
            assert areas[number] == pytest.approx(np.interp(at, np.arange(end + 1), before))
    # One by one in another order they leave the same bits.
    pieces, mixed = PerFrame(ROWS), [[run] for batch in taken for run in batch]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for batch in mixed:
        pieces.add(spread_of(batch))
        pieces.area(range(ROWS), np.array([0.0]))  # sums made on the way are kept up
    at = np.linspace(0, store.frames, 77)
    assert pieces.area(range(ROWS), at).tobytes() == store.area(range(ROWS), at).tobytes()
    for row in range(ROWS):
        assert pieces.row(row, 200)[:].tobytes() == store.row(row, 200)[:].tobytes()


def test_a_row_made_later_is_zero_before_and_frames_beyond_a_row_are_not_in_it():
    store = PerFrame(1)
    store.add(spread_of([(0, 16, [16, 0, 0]), (16, 16, [32, 0, 0])], rows=1))
    assert store.new_row() == 1
    assert store.row(1, 32)[:].tolist() == [0.0] * 32
    store.add(spread_of([(40, 2, [0, 8, 0])], rows=2))
    assert store.row(1, 99)[30:].tolist() == [0.0] * 10 + [4 / GRAINS] * 2
    assert len(store.row(0, 20)) == 20
    assert store.row(0, 20).total(16, 32) == 4 * 2 / GRAINS
    assert store.row(0, 0)[:].tolist() == []


@pytest.mark.parametrize("room", [0, 7000])
def test_blocks_of_a_long_session_take_a_stretch_each(room):
    """More of them than there is room for at first; an utterance made ready ahead is cut by its blocks."""
    store = PerFrame(ROWS)
    for utterance in range(200):
        begin = utterance * 100
        store.add(spread_of([(begin, 100, [100 * 7, 0, 0])]))
        blocks = [(begin + at, min(16, 100 - at), [0, 16 * 9, 3]) for at in range(0, 100, 16)]
        store.add(spread_of(blocks))
        assert store.area([0], np.array([begin + 99.5])) == (begin + 99.5) * 7 / GRAINS
        if utterance == 2:
            store.reserve(room)
            assert store.area([0], np.array([300.0])) == 300 * 7 / GRAINS
    assert store.stretches == 200 * 7
    assert (store.row(0, 20_000)[:] == 7 / GRAINS).all()
    assert store.row(2, 20_000)[:].sum() == 200 * 7 * 3 / GRAINS


def in_memory(values: np.ndarray) -> int:
    """Bytes of the pages under `values` that the process has in memory."""
    begin, end = values.ctypes.data, values.ctypes.data + values.nbytes
    maps = psutil.Process().memory_maps(grouped=False)
    return sum(one.rss for one in maps if begin <= int(one.addr.partition("-")[0], 16) < end)


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="the system has no files without a name")
@pytest.mark.parametrize("place", ["a folder", "none"])
def test_what_nobody_looks_at_takes_no_memory_and_reads_as_before(place, tmp_path, monkeypatch):
    if place == "none":
        (tmp_path / "file").touch()
        monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "file"))
    kept, wanted = Growing(np.int64), np.arange(300_000)
    for part in np.array_split(wanted, 77):
        kept.extend(part)
        sweep()
    assert place == "none" or in_memory(kept.view) < kept.view.nbytes / 8
    np.testing.assert_array_equal(kept.view, wanted)


def test_rows_may_be_written_to_after_a_sweep():
    store, frames = PerFrame(3), 16 * LONG
    wanted = np.zeros(frames)
    for first, count, amount in ((0, frames, 3), (0, 5, 7), (frames // 2, 9, 11), (frames - 9, 9, 1)):
        for begin in range(first, first + count, 1024):
            names = np.arange(begin, min(begin + 1024, first + count))
            store.add(spread_of([(name, 1, [amount * int(GRAINS)]) for name in names], rows=1))
        wanted[first : first + count] += amount
        store.mix((1,), 2, {0: (1.0,)}, anew=True)
        assert store.row(0, frames).total(3, frames - 2) == wanted[3:-2].sum()
        sweep()
        for number in range(2):
            np.testing.assert_array_equal(store.row(number, frames)[:], wanted)
