"""Work on several arrays side by side is the same work."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.lod import columns
from profiler.analysis.lod.columns import LARGE, run_parallel
from tests.each import each


@each("size", [10, LARGE])
@each("processors", [1, 2])
def test_items_are_done_once(size: int, processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    there = set(range(processors))
    monkeypatch.setattr(columns.os, "sched_getaffinity", lambda _: there, raising=False)
    rows = np.zeros((7, size))

    def add(number: int) -> None:
        rows[number] += number + 1

    run_parallel(add, range(7), size)
    assert (rows == np.arange(1, 8)[:, None]).all()


def test_a_fault_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)

    def fail(_: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_parallel(fail, range(3), LARGE)
