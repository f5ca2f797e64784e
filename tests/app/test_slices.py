"""Nothing holds the window up for long: what takes its time is done apart, in slices, or ahead. Counts, not times."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from sample_session import write_sample

from app import gui
from app.model.pace import Pace, Slices
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.views.breakdown import BreakdownView
from app.views.view import TABLE_REFRESH_S
from profiler.analysis.breakdown import breakdown, breakdown_in_steps
from profiler.analysis.track import CostTrack
from profiler.session.reader import Session


def steps(count: int, done: list[int]) -> Generator[None, None, str]:
    for number in range(count):
        done.append(number)
        yield
    return "found"


def test_a_job_is_done_when_the_window_is_served_or_at_once_when_asked(qtbot) -> None:
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
    parent, done, found = QObject(), [], []
    job: Slices[str] = Slices(parent, found.append)
    rested: list[tuple[int, bool]] = []
    go_on = job._go_on

    def watched(seconds: float) -> None:
        go_on(seconds)
        rested.append((len(done), job._timer.isActive()))

    monkeypatch.setattr(job, "_go_on", watched)
    job.start(steps(4, done))
    qtbot.waitUntil(lambda: bool(found))
    assert rested == [(1, True), (2, True), (3, True), (4, True), (4, False)]
    assert done == [0, 1, 2, 3]
    assert found == ["found"]


def test_what_is_dear_is_not_added_to_the_drawing_of_a_moving_cursor(qtbot) -> None:
    parent, told = QObject(), []
    pace = Pace(parent, 1, lambda: told.append(None), apart=True)
    pace.ask(moving=True)
    assert not told
    qtbot.waitUntil(lambda: len(told) == 1)
    pace.ask(moving=False)
    assert len(told) == 2


def test_what_was_read_is_drawn_in_an_event_of_its_own(qtbot, recording) -> None:
    playhead = Playhead(TimeAxis())
    run = recording()
    run.write(100)

    def opened() -> bool:
        playhead.open(run.path)
        return playhead.n_frames == 100

    qtbot.waitUntil(opened)
    drawn: list[int] = []
    playhead.changed.connect(lambda shown: drawn.append(shown.track.n_frames))
    playhead._timer.timeout.disconnect()
    playhead._timer.stop()
    run.write(50)

    def read() -> bool:
        playhead._last_read = 0.0
        playhead._redraw()
        return playhead.n_frames == 150

    qtbot.waitUntil(read)
    assert 150 not in drawn
    playhead._redraw()
    assert drawn[-1] == 150
    playhead.close()


@pytest.mark.parametrize("table", [False, True])
def test_the_sentence_that_is_spoken_waits_until_the_hand_rests_and_a_table_does_not(
    opened: tuple[BreakdownView, Playhead], table: bool
) -> None:
    view, playhead = opened
    view.show_table(table)
    view._late.start(1)  # as good as due
    playhead.axis.set_visible(1.0, 2.0)
    assert view._late.interval() == (1 if table else round(1000 * TABLE_REFRESH_S))


@pytest.fixture
def opened(tmp_path: Path, qapp: QApplication) -> Iterator[tuple[BreakdownView, Playhead]]:
    axis = TimeAxis()
    playhead = Playhead(axis)
    view = BreakdownView(axis)
    playhead.changed.connect(view.update_snapshot)
    playhead.open(write_sample(tmp_path / "a.asrs", frames=512, utterance_frames=256))
    yield view, playhead
    playhead.close()
    view.close()
    view.deleteLater()


def test_stages_are_counted_in_slices_while_the_cursor_moves(
    opened: tuple[BreakdownView, Playhead], monkeypatch: pytest.MonkeyPatch
) -> None:
    view, playhead = opened
    assert view.tree.stages  # at once, where nothing moves
    view.clear()
    playhead.playing = True
    snapshot = playhead.snapshot()
    assert snapshot is not None
    assert snapshot.moving
    view.snapshot = snapshot
    view.draw(snapshot)
    assert view.count._slices.busy
    assert not view.tree.stages
    view.settle()
    assert view.tree.stages
    assert not view.count._slices.busy
    playhead.playing = False


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


def test_all_objects_are_looked_through_rarely_while_a_window_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, kept = gc.get_threshold(), list[bool]()
    monkeypatch.setattr(gc, "freeze", lambda: kept.append(True))
    try:
        gui.keep_what_is_there()
        assert gc.get_threshold() == (*before[:2], gui.RARELY)
        assert kept == [True]
    finally:
        gc.set_threshold(*before)
