"""Memory gone through in the amounts that cost laws name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiler.costs import ACCESS, STREAM
from profiler.machine.roofs import _kernels, timing
from profiler.machine.roofs.traffic import Traffic


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"read": [], "gathered": []}

    def read(values: np.ndarray, repeats: int) -> None:
        found["read"].append((len(values), values.ctypes.data))

    def gather(places: np.ndarray, order: np.ndarray, place: np.ndarray, accesses: int) -> None:
        at = (place[0] + np.arange(accesses)) % len(order)
        found["gathered"].append((places, order[at]))
        place[0] = (place[0] + accesses) % len(order)

    monkeypatch.setattr(_kernels, "read", read)
    monkeypatch.setattr(_kernels, "gather", gather)
    return found


def test_a_frame_reads_on_from_where_the_one_before_stopped(touched) -> None:
    traffic = Traffic({(STREAM, 4000): 1600.0})
    traffic.frames(3)
    begin = touched["read"][0][1]
    # 400 of 1 000 values a frame; the third goes round.
    assert [(n, (at - begin) // 4) for n, at in touched["read"]] == [
        (400, 0), (400, 400), (200, 800), (200, 0),
    ]  # fmt: skip
    traffic.rewind()
    traffic.frames(1)
    assert touched["read"][-1] == (400, begin)


def test_more_than_there_is_is_read_once(touched) -> None:
    Traffic({(STREAM, 4000): 1e6}).frames(1)
    assert [n for n, _ in touched["read"]] == [1000]


def test_accesses_are_to_other_lines_each_frame_until_all_had_their_turn(touched) -> None:
    traffic = Traffic({(ACCESS, 64 * 100): 40.0})
    traffic.frames(5)
    places, _ = touched["gathered"][0]
    assert places.nbytes == 6400
    lines = np.concatenate([order for _, order in touched["gathered"]])
    assert len(lines) == 200
    assert (lines % 16 == 0).all()
    assert (np.bincount(lines // 16) == 2).all()
    traffic.rewind()
    traffic.frames(1)
    assert (touched["gathered"][-1][1] == touched["gathered"][0][1]).all()


def test_data_of_no_size_are_left_out_and_the_time_is_told(touched, monkeypatch) -> None:
    ticks = iter([10.0, 10.25])
    monkeypatch.setattr(timing, "clock", lambda: next(ticks))
    assert Traffic({(ACCESS, 0): 5.0, (STREAM, 32): 8.0}).frames(2) == 0.25
    assert touched == {"read": [], "gathered": []}


def test_the_kernels_themselves_go_through_it() -> None:
    traffic = Traffic({(STREAM, 1 << 16): 5000.0, (ACCESS, 1 << 16): 300.0})
    assert traffic.frames(40) > 0
