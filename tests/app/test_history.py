"""Back and forward through selections and ranges, and undo of settings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from shown_windows import start_run, wait_for_frames
from views_desk import drag, settle

from app.model.history import LONGEST
from app.model.time_axis import LIVE, WHOLE, TimeAxis
from app.window.main_window import MainWindow
from tests.waiting import PATIENCE_MS

ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
def opened(window: Callable[..., MainWindow], finished: Path, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    # Tests before may have pressed a button and never released it.
    monkeypatch.setattr(QGuiApplication, "mouseButtons", lambda: Qt.MouseButton.NoButton)
    made = window()
    made.history._settled.setInterval(PATIENCE_MS)  # `remember` says when it has
    made.open_session(finished)
    return made


def act(window: MainWindow, action: str) -> bool:
    """Whether there was something to do."""
    return window.actions_.trigger(action)


def step(window: MainWindow, action: str) -> bool:
    return act(window, f"view.{action}")


def remember(window: MainWindow) -> None:
    """What has happened so far is one step."""
    window.history._settled.timeout.emit()


def test_keys_go_back_and_forward_through_selections_and_ranges(qtbot, opened):
    axis = opened.axis
    whole = axis.visible
    axis.select(1.0, 2.0)
    remember(opened)
    axis.set_visible(3.0, 5.0)
    remember(opened)
    axis.select(3.5, 4.0)  # not remembered yet: going back does so
    qtbot.keyClick(opened, Qt.Key.Key_Left, ALT)
    assert (axis.visible, axis.selected) == ((3.0, 5.0), (1.0, 2.0))
    qtbot.keyClick(opened, Qt.Key.Key_Left, ALT)
    assert (axis.visible, axis.selected) == (whole, (1.0, 2.0))
    assert axis.following, "everything is shown, as at first"
    qtbot.keyClick(opened, Qt.Key.Key_Left, ALT)
    assert (axis.visible, axis.selected) == (whole, None)
    assert not step(opened, "back")
    for _ in range(3):
        qtbot.keyClick(opened, Qt.Key.Key_Right, ALT)
    assert (axis.visible, axis.selected) == ((3.0, 5.0), (3.5, 4.0))
    assert not step(opened, "forward")
    assert step(opened, "back")
    axis.select(7.0, 8.0)
    assert not step(opened, "forward"), "what is done after going back ends the way forward"


def test_stage_and_kind_of_scope_are_part_of_a_step(opened):
    axis, tree = opened.axis, opened.desk.breakdown.tree
    axis.choose_stage("search.emit")
    axis.choose_scope(LIVE)
    remember(opened)
    axis.choose_scope(WHOLE)
    axis.select(1.0, 2.0)
    axis.choose_stage("score.gaussians")
    remember(opened)
    assert step(opened, "back")
    settle()
    assert (axis.stage, axis.scope, axis.selected) == ("search.emit", LIVE, None)
    assert tree.explained().name == "search.emit"
    assert step(opened, "back")
    assert axis.stage is None
    assert not step(opened, "back")
    assert step(opened, "forward")
    assert step(opened, "forward")
    assert (axis.stage, axis.scope, axis.selected) == ("score.gaussians", WHOLE, (1.0, 2.0))


def test_a_drag_is_one_step_even_with_a_pause(opened, monkeypatch):
    drag(opened.desk.views["cost"].plot, 2.0, 4.0, keys=ALT)
    assert opened.history._settled.isActive()
    monkeypatch.setattr(QGuiApplication, "mouseButtons", lambda: Qt.MouseButton.LeftButton)
    remember(opened)
    assert opened.history._settled.isActive(), "the button is held"
    opened.axis.select(2.0, 5.0)
    monkeypatch.undo()
    remember(opened)
    assert step(opened, "back")
    assert opened.axis.selected is None
    assert not step(opened, "back")


def test_no_more_than_the_newest_steps_are_remembered(opened):
    for number in range(LONGEST + 10):
        opened.axis.select(number * 0.1, number * 0.1 + 1.0)
        remember(opened)
    steps = 0
    while step(opened, "back"):
        steps += 1
    assert steps == LONGEST - 1
    assert opened.axis.selected == pytest.approx((1.0, 2.0))


@pytest.mark.slow
def test_another_session_has_no_steps_of_this_one(opened, recording):
    opened.axis.select(1.0, 2.0)
    other = recording("other.asrs")
    other.write(600)
    other.close()
    opened.open_session(other.path)
    settle()
    assert not step(opened, "back")
    assert not step(opened, "forward")


def test_a_range_that_follows_by_itself_is_one_place():
    axis = TimeAxis()
    axis.reset()
    places = set()
    for second in (1.0, 12.0, 30.0, 40.0):
        axis.set_data(second, second)
        places.add(axis.place)
    axis.zoom(0.5)
    zoomed = axis.place
    axis.set_data(50.0, 50.0)
    assert (len(places), axis.place) == (1, zoomed)
    axis.pan(-1.0)
    assert axis.place != zoomed
    axis.go_to(zoomed)
    assert axis.following
    assert axis.visible == pytest.approx((40.0, 50.0))
    axis.go_to(*places)
    axis.set_data(60.0, 60.0)
    assert axis.visible == pytest.approx((40.0, 60.0))


CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
SKIP, BEAM, VOCABULARY = "frames.skip", "search.beam", "graph.vocabulary"


def undo(qtbot: QtBot, window: MainWindow, again: bool = False) -> None:
    qtbot.keyClick(window, Qt.Key.Key_Z, CTRL | SHIFT if again else CTRL)


@pytest.mark.slow
def test_live_changes_are_undone_and_redone_with_markers(qtbot, live):
    line = live.pipeline
    before = line.value(BEAM)
    line.set(SKIP, 2)
    line.set(BEAM, 9.0)
    undo(qtbot, live)
    assert (line.value(BEAM), line.value(SKIP)) == (before, 2)
    assert line.running.search.beam == before
    undo(qtbot, live)
    assert line.value(SKIP) == 1
    assert not act(live, "run.undo")
    undo(qtbot, live, again=True)
    assert line.value(SKIP) == 2
    expected = ["frames.skip=2", "search.beam=9.0", f"search.beam={before}", "frames.skip=1", "frames.skip=2"]
    qtbot.waitUntil(lambda: [marker.text for marker in live.playhead.session.markers] == expected)
    line.set(SKIP, 3)
    assert not act(live, "run.redo"), "another change ends what could be redone"
    undo(qtbot, live)
    assert line.value(SKIP) == 2


def test_without_a_run_the_form_is_undone_but_what_was_loaded_is_not(qtbot, window, finished):
    w = window()
    w.show_desk()
    before = w.pipeline.value(VOCABULARY)
    w.pipeline.set(VOCABULARY, 1234)
    undo(qtbot, w)
    assert w.pipeline.value(VOCABULARY) == before
    assert w.desk.form.fields[VOCABULARY].editor.value() == before
    undo(qtbot, w, again=True)
    assert w.pipeline.value(VOCABULARY) == 1234
    w.runs.choose_preset("dnn")
    assert not act(w, "run.undo"), "other settings were loaded"
    assert not act(w, "run.redo")
    w.pipeline.set(VOCABULARY, 1234)
    w.open_session(finished)
    assert not act(w, "run.undo")
    w.pipeline.edit()
    assert not act(w, "run.undo"), "its settings were loaded"
    w.pipeline.set(VOCABULARY, 2000)
    assert act(w, "run.undo")


def test_what_no_person_changed_is_not_undone(qtbot, window, tmp_path):
    w = window()
    w.pipeline.set(VOCABULARY, 1234)
    w.runs.demo()
    assert not act(w, "run.undo")
    wait_for_frames(qtbot, w)
    assert not act(w, "run.undo")
    act(w, "toggle.frames.skip")
    assert w.pipeline.value(SKIP) == 2
    assert act(w, "run.undo")
    assert w.pipeline.value(SKIP) == 1


@pytest.mark.slow
def test_a_change_that_cannot_be_made_again_is_forgotten(qtbot, window, tmp_path):
    w = window("refuse")
    start_run(qtbot, w, tmp_path)
    w.pipeline.set(SKIP, 2)
    qtbot.waitUntil(lambda: any(b.kind == "error" for b in w.notices.banners))
    assert w.pipeline.waits(SKIP), "kept for the next run"
    undo(qtbot, w)
    assert w.pipeline.value(SKIP) == 1
    assert not w.pipeline.waits(SKIP)


def test_a_field_being_edited_keeps_its_own_undo(qtbot, window):
    w = window()
    w.show_desk()
    w.pipeline.set(VOCABULARY, 1234)
    box = w.desk.form.fields[BEAM].editor
    shown = box.text()
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "9")
    assert box.text() != shown
    qtbot.keyClick(box, Qt.Key.Key_Z, CTRL)
    assert box.text() == shown
    assert w.pipeline.value(VOCABULARY) == 1234
    before = w.pipeline.value(BEAM)  # a field that is not being edited leaves undo to the window
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Up)
    assert w.pipeline.value(BEAM) == box.value() > before
    qtbot.keyClick(box, Qt.Key.Key_Z, CTRL)
    assert w.pipeline.value(BEAM) == box.value() == before
