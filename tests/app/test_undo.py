"""Undo of settings: a live change is taken back by another one, which the session marks too."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from shown_windows import start_run, wait_for_frames

from app.window.main_window import MainWindow

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
SKIP, BEAM, VOCABULARY = "frames.skip", "search.beam", "graph.vocabulary"


def marks(window: MainWindow) -> list[str]:
    session = window.playhead.session
    return [] if session is None else [marker.text for marker in session.markers]


def undo(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_Z, CTRL)


def redo(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_Z, CTRL | SHIFT)


@pytest.mark.slow
def test_live_changes_are_undone_and_redone_with_markers(qtbot, live):
    line = live.pipeline
    before = line.value(BEAM)
    line.set(SKIP, 2)
    line.set(BEAM, 9.0)
    undo(qtbot, live)
    assert (line.value(BEAM), line.value(SKIP)) == (before, 2)
    assert line.running is not None
    assert line.running.search.beam == before
    undo(qtbot, live)
    assert line.value(SKIP) == 1
    assert not live.actions_.trigger("run.undo")
    redo(qtbot, live)
    assert line.value(SKIP) == 2
    expected = ["frames.skip=2", "search.beam=9.0", f"search.beam={before}", "frames.skip=1", "frames.skip=2"]
    qtbot.waitUntil(lambda: marks(live) == expected)
    line.set(SKIP, 3)
    assert not live.actions_.trigger("run.redo"), "another change ends what could be redone"
    undo(qtbot, live)
    assert line.value(SKIP) == 2


def test_without_a_run_the_form_is_undone(qtbot, window):
    w = window()
    w.show_desk()
    before = w.pipeline.value(VOCABULARY)
    w.pipeline.set(VOCABULARY, 1234)
    undo(qtbot, w)
    assert w.pipeline.value(VOCABULARY) == before
    assert w.desk.form.fields[VOCABULARY].editor.value() == before
    redo(qtbot, w)
    assert w.pipeline.value(VOCABULARY) == 1234
    w.runs.choose_preset("dnn")
    assert not w.actions_.trigger("run.undo"), "other settings were loaded"
    assert not w.actions_.trigger("run.redo")


def test_what_no_person_changed_is_not_undone(qtbot, window, tmp_path):
    w = window()
    w.pipeline.set(VOCABULARY, 1234)
    w.runs.demo()
    assert w.pipeline.value("loop") is True
    assert not w.actions_.trigger("run.undo")
    wait_for_frames(qtbot, w)
    assert not w.actions_.trigger("run.undo")
    w.actions_.trigger("toggle.frames.skip")
    assert w.pipeline.value(SKIP) == 2
    assert w.actions_.trigger("run.undo")
    assert w.pipeline.value(SKIP) == 1


def test_a_recording_has_nothing_to_undo(qtbot, window, finished):
    w = window()
    w.pipeline.set(VOCABULARY, 1234)
    w.open_session(finished)
    assert not w.actions_.trigger("run.undo")
    w.pipeline.edit()
    assert not w.actions_.trigger("run.undo"), "its settings were loaded"
    w.pipeline.set(VOCABULARY, 2000)
    assert w.actions_.trigger("run.undo")


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
    path = w.desk.form.fields["graph.grammar"].editor
    path.setFocus()
    qtbot.keyClicks(path, "ab")
    qtbot.keyClick(path, Qt.Key.Key_Z, CTRL)
    assert path.text() == ""
    assert w.pipeline.value(VOCABULARY) == 1234


def test_a_field_that_is_not_being_edited_leaves_undo_to_the_window(qtbot, window):
    w = window()
    w.show_desk()
    box = w.desk.form.fields[BEAM].editor
    before = box.value()
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Up)
    assert w.pipeline.value(BEAM) == box.value() > before
    qtbot.keyClick(box, Qt.Key.Key_Z, CTRL)
    assert w.pipeline.value(BEAM) == box.value() == before
