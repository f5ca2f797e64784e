"""A preset chosen while a run is under way, and settings that the run under way can do nothing with."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from shown_windows import NOT_READ, press, texts

from app.model.pipeline import Pipeline
from app.window.main_window import MainWindow
from app.window.notices import Banner
from pipelines import config as settings
from pipelines.config import presets

SELECTION, LAZY = "gmm.selection.enabled", "dnn.senones"


def choose(window: MainWindow, name: str) -> Banner:
    """Choose a preset at the top; return the question that this brings up."""
    title = presets.load(name).title
    entry = next(a for a in window.top.preset.choices.actions() if a.text() == title)
    entry.trigger()
    (question,) = [b for b in window.notices.banners if b.kind == "question"]
    assert title in question.text
    return question


def requested_changes(window: MainWindow) -> list[str]:
    """Return the changes requested of the worker, from its markers."""
    return [m.text for m in window.playhead.session.markers]


@pytest.mark.slow
def test_a_run_goes_on_as_it_is_until_the_question_is_answered(qtbot, live):
    before, session = live.pipeline.next, live.playhead.path
    question = choose(live, "dnn")
    assert live.pipeline.running == live.pipeline.next == before
    frames = live.playhead.n_frames
    qtbot.waitUntil(lambda: live.playhead.n_frames > frames + 40)
    press(question, "Cancel")
    assert texts(live, "question") == []
    assert live.pipeline.waiting is None
    assert requested_changes(live) == []
    assert live.playhead.path == session


@pytest.mark.slow
def test_for_the_next_run_it_waits_and_this_one_is_unchanged(qtbot, live):
    before = live.pipeline.next
    press(choose(live, "dnn"), "For the next run")
    assert live.pipeline.next == before
    assert live.top.preset.text().startswith("next: ")
    assert live.top.toggles[0].title.text() == "Gaussian selection"
    qtbot.wait(200)
    assert requested_changes(live) == []
    live.runs.stop()
    qtbot.waitUntil(live.when.is_idle)
    assert live.pipeline.next == presets.load("dnn").config
    assert live.pipeline.preset.name == "dnn"
    assert live.pipeline.waiting is None


@pytest.mark.slow
def test_the_run_is_finished_and_the_preset_started(qtbot, live):
    first = live.playhead.path
    press(choose(live, "dnn"), "Finish this run and start")
    qtbot.waitUntil(lambda: live.when.is_running() and live.playhead.path not in (None, first))
    assert live.runs.control.request.preset == "dnn"
    assert live.runs.control.request.config == settings.to_dict(presets.load("dnn").config)
    assert live.pipeline.running == presets.load("dnn").config


@pytest.mark.slow
def test_the_question_is_answered_by_keys(qtbot, live):
    choose(live, "dnn")
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert not live.playhead.following
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert texts(live, "question") == []
    question = choose(live, "dnn")
    first = question.findChildren(QPushButton)[0]
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is first
    qtbot.keyClick(first, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: live.runs.control.request.preset == "dnn")


@pytest.mark.slow
def test_another_model_for_the_next_run_leaves_the_toggles_to_this_one(qtbot, live):
    """A net's toggle over the data of mixtures would write a marker for nothing."""
    live.pipeline.set("model", "dnn")
    assert live.pipeline.waits("model")
    assert live.top.toggles[0].title.text() == "Gaussian selection"
    assert live.top.toggles[0].switch.isEnabled()
    lazy = live.actions_[f"toggle.{LAZY}"]
    assert not lazy.isEnabled()
    assert "acts only with model = dnn" in lazy.toolTip()
    assert "next run" in lazy.toolTip()
    qtbot.keyClick(live, Qt.Key.Key_E)
    assert live.pipeline.value(LAZY) == "all"
    field = live.desk.form.fields[LAZY]
    assert not field.editor.isEnabled()
    assert field.unavailable_reason is not None
    assert not live.pipeline.set(LAZY, "active")
    qtbot.keyClick(live, Qt.Key.Key_G)
    assert live.pipeline.running.gmm.selection.enabled
    qtbot.waitUntil(lambda: bool(requested_changes(live)))
    assert requested_changes(live) == [f"{SELECTION}=True"]


def test_without_a_run_settings_are_judged_by_the_next_one():
    pipeline = Pipeline()
    pipeline.set("model", "dnn")
    assert pipeline.unavailable_reason(LAZY) is None
    assert pipeline.set(LAZY, "active")
    pipeline.run_started(presets.load(presets.DEFAULT).config)
    assert pipeline.unavailable_reason(LAZY) is not None
    assert pipeline.unavailable_reason("dnn.net") is not None
    assert pipeline.unavailable_reason("graph.vocabulary") is None
    pipeline.run_ended()
    assert pipeline.unavailable_reason(LAZY) is None


def chosen_own(w: MainWindow, folder: Path) -> list[str]:
    file = folder / "own.wav"
    file.write_bytes(NOT_READ)
    w.files.take_audio([file])
    return [banner.text for banner in w.notices.banners if banner.text.startswith("The next run")]


@pytest.mark.slow
def test_files_of_ones_own_do_not_inherit_loop_and_pace_of_the_demo(qtbot, window, tmp_path):
    w = window()
    w.runs.demo()
    qtbot.waitUntil(w.when.is_running)
    (said,) = chosen_own(w, tmp_path)
    assert said == ("The next run decodes 1 file, once and at full speed: loop and pace were the demo's.")
    assert w.pipeline.running.loop, "the demo goes on as it is"
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert (w.pipeline.next.loop, w.pipeline.next.pace) == (False, 0.0)
    w.runs.start()
    qtbot.waitUntil(w.when.is_running)
    assert not w.runs.control.request.config["loop"]


def test_a_loop_that_a_person_chose_stays(window, tmp_path):
    w = window()
    w.pipeline.set("loop", True)
    (said,) = chosen_own(w, tmp_path)
    assert said == "The next run decodes 1 file."
    assert w.pipeline.next.loop


def test_what_the_next_run_decodes_is_said_until_it_begins(qtbot, window, tmp_path):
    w = window()
    chosen_own(w, tmp_path)
    (banner,) = w.notices.banners
    press(banner, "Run")
    assert w.runs.control.busy
    assert banner not in w.notices.banners


def test_a_title_says_that_settings_differ_from_the_preset_and_the_file_does(qtbot, window, tmp_path):
    w = window()
    w.runs.choose_preset("gmm")
    title = presets.load("gmm").title
    w.pipeline.set("loop", True)
    w.pipeline.set("pace", 4.0)
    assert w.top.preset.full == title, "that is the course of a run, and no other work"
    w.pipeline.set("search.beam", 9.0)
    assert w.top.preset.full == f"{title} (modified)"
    w.runs.start()
    assert "-gmm-modified" in str(w.runs.control.request.out)
    checked = [name for name, entry in w.top.preset._entries.items() if entry.isChecked()]
    assert checked == ["gmm"]
