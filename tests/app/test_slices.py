"""Long work in slices, which let the window be served."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from PySide6.QtCore import QObject, QTimer

from app.model.pace import Slices


def steps(count: int, done: list[int]) -> Generator[None, None, str]:
    for number in range(count):
        done.append(number)
        yield
    return "found"


def test_a_job_is_done_when_the_window_is_served_or_at_once_on_request(qtbot) -> None:
    parent, done, found = QObject(), [], []
    slices: Slices[str] = Slices(parent, found.append)
    slices.start(steps(5, done))
    assert slices.busy
    assert not done
    qtbot.waitUntil(lambda: found == ["found"])
    assert done == [0, 1, 2, 3, 4]
    assert not slices.busy
    slices.start(steps(3, done))
    slices.finish()
    assert found == ["found", "found"]
    slices.start(steps(3, done))
    slices.drop()
    slices.finish()
    assert len(found) == 2


def test_a_job_longer_than_a_slice_rests_after_each_and_goes_on_where_it_was(
    qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.model.pace.SLICE_S", 0.0)  # every step is a slice
    parent, done, found, served = QObject(), [], [], []
    others = QTimer(parent, interval=0)
    others.timeout.connect(lambda: served.append(len(done)))
    others.start()
    Slices(parent, found.append).start(steps(4, done))
    qtbot.waitUntil(lambda: bool(found))
    others.stop()
    assert {1, 2, 3} <= set(served), "the window is served between two slices"
    assert done == [0, 1, 2, 3]
