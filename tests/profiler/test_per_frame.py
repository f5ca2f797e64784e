"""Stretches of frames that are alike hold what an array with a value per frame would hold, however they are cut."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.per_frame import LONG, PerFrame, Spread
from profiler.session.format.grow import Growing, sweep
from profiler.spans import SPAN

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
    amounts = np.array([run[2] for run in batch]) / GRAINS
    for row in range(rows):
        spread.give(row, amounts[:, row])
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


@given(batches, st.data())
def test_answers_are_those_of_an_array(taken: list[list[Run]], data: st.DataObject) -> None:
    store = PerFrame(ROWS)
    for i, batch in enumerate(taken):
        store.add(spread_of(batch))
        wanted = plain(taken[: i + 1]) / GRAINS
        end = wanted.shape[1]
        assert store.frames == end
        first = data.draw(st.integers(0, end))
        last = data.draw(st.integers(first, end))
        at = np.sort(data.draw(st.lists(st.floats(0, end), min_size=1, max_size=9)))
        areas = store.area(range(ROWS), np.array(at))
        for number, frames in enumerate(wanted):
            row = store.row(number, end)
            assert np.array_equal(row[first:last], frames[first:last])
            assert np.array_equal(row[:], frames)
            assert row.total(first, last) == frames[first:last].sum()
            if first < last:
                highest = first + int(np.argmax(frames[first:last]))
                assert row.highest(first, last) == (highest, frames[highest])
            before = np.concatenate([[0.0], np.cumsum(frames)])
            whole = at.astype(np.int64)
            parts = np.append(frames, 0.0)[whole] * (at - whole)
            assert areas[number] == pytest.approx(before[whole] + parts)


@given(batches, st.randoms(use_true_random=False))
def test_order_and_pieces_leave_the_same_bits(taken: list[list[Run]], random: object) -> None:
    whole, pieces = PerFrame(ROWS), PerFrame(ROWS)
    whole.add(spread_of([run for batch in taken for run in batch]))
    mixed = [[run] for batch in taken for run in batch]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for batch in mixed:
        pieces.add(spread_of(batch))
        pieces.area(range(ROWS), np.array([0.0]))  # sums made on the way are kept up
    at = np.linspace(0, whole.frames, 77)
    assert pieces.area(range(ROWS), at).tobytes() == whole.area(range(ROWS), at).tobytes()
    for row in range(ROWS):
        assert pieces.row(row, 200)[:].tobytes() == whole.row(row, 200)[:].tobytes()


def test_a_row_made_later_is_zero_before_and_frames_beyond_a_row_are_not_in_it() -> None:
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
def test_blocks_of_a_long_session_take_a_stretch_each(room: int) -> None:
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
    begin, found, inside = values.ctypes.data, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in (place := line.split(maxsplit=1)[0]) and not place.endswith(":"):
            inside = begin <= int(place.partition("-")[0], 16) < begin + values.nbytes
        elif inside and place == "Rss:":
            found += 1024 * int(line.split()[1])
    return found


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="the system has no files without a name")
def test_what_nobody_looks_at_takes_no_memory_and_reads_as_before() -> None:
    kept, wanted = Growing(np.int64), np.arange(300_000)
    for part in np.array_split(wanted, 77):
        kept.extend(part)
        sweep()
    assert in_memory(kept.view) < kept.view.nbytes / 8
    np.testing.assert_array_equal(kept.view, wanted)


def test_without_a_folder_for_it_everything_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "file"))
    kept = Growing(np.int64)
    kept.extend(np.arange(300_000))
    sweep()
    np.testing.assert_array_equal(kept.view, np.arange(300_000))


def test_rows_may_be_written_to_after_a_sweep() -> None:
    store, frames = PerFrame(3), 16 * LONG
    wanted = np.zeros(frames)
    for first, count, amount in ((0, frames, 3), (0, 5, 7), (frames // 2, 9, 11), (frames - 9, 9, 1)):
        for begin in range(first, first + count, 1024):
            names = np.arange(begin, min(begin + 1024, first + count))
            spans = np.zeros(len(names), SPAN)
            spans["first_frame"], spans["frames"] = names, 1
            spread = Spread(spans)
            spread.give(0, np.full(len(names), float(amount)))
            store.add(spread)
        wanted[first : first + count] += amount
        store.mix((1,), 2, {0: (1.0,)}, anew=True)
        assert store.total(0, 3, frames - 2) == wanted[3:-2].sum()
        sweep()
        for number in range(2):
            np.testing.assert_array_equal(store.row(number, frames)[:], wanted)
