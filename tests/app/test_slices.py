"""Long work in slices, which let the window be served."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer
from sample_session import Sample, write_sample

from app.model.pace import Slices
from profiler.analysis.breakdown import breakdown, breakdown_in_steps
from profiler.analysis.track import CostTrack
from profiler.session.reader import Session


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


def test_the_breakdown_in_steps_is_that_at_once(tmp_path: Path) -> None:
    with Session.open(write_sample(tmp_path / "a.asrs", frames=512, utterance_frames=256)) as one:
        track = CostTrack()
        track.update(one)
        at_once = breakdown(one, 10, 300, track)
        job = breakdown_in_steps(one, track, 10, 300)
        rests = 0
        while True:
            try:
                next(job)
            except StopIteration as over:
                found = over.value
                break
            rests += 1
    assert found == at_once
    assert rests > len(at_once.stages)


def test_the_session_may_grow_between_two_steps(tmp_path: Path) -> None:
    """An epoch and a thousand spans come while the stages of the beginning are worked out."""
    sample = Sample(tmp_path / "a.asrs", frames=2048, utterance_frames=256)
    sample.write(512)
    try:
        with Session.open(sample.path) as one:
            track = CostTrack()
            track.update(one)
            times = {row.name: row.time_ns for row in breakdown(one, 10, 300, track).stages}
            for steps in range(4):
                job = breakdown_in_steps(one, track, 10, 300)
                for _ in range(steps):
                    next(job)
                sample.write(sample.written + 384)
                one.refresh()
                track.update(one)
                while True:
                    try:
                        next(job)
                    except StopIteration as over:
                        result = over.value
                        break
                assert {row.name: row.time_ns for row in result.stages} == times
    finally:
        sample.close()
