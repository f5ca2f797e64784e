"""The form with a recording: the settings applied at the cursor, read-only."""

import pytest
from PySide6.QtCore import Qt
from shown_windows import start_run

from app.window.main_window import MainWindow
from pipelines import config as settings
from pipelines.config import presets

SELECTION = "gmm.selection.enabled"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def changed(recording):
    """Twelve seconds: Gaussian selection and another beam from 6 s on."""
    made = recording("changed.asrs")
    made.write(600)
    later = settings.assign(settings.Config(), {SELECTION: True, "search.beam": 9.0})
    made.epoch = made.lane.epoch = 1
    made.writer.config(1, 600, settings.to_dict(later))
    made.write(600)
    made.close()
    return made.path


@pytest.fixture
def opened(window, changed):
    made = window()
    made.open_session(changed)
    return made


def beam(window: MainWindow) -> float:
    value: float = window.desk.form.fields["search.beam"].editor.value()
    return value


@pytest.mark.slow
def test_form_and_toggles_follow_the_cursor(opened):
    switch = opened.top.toggles[0].switch
    for frame, on, wide in ((1200, True, 9.0), (600, False, 13.0), (601, True, 9.0)):
        opened.playhead.seek(frame)
        assert beam(opened) == wide
        assert switch.isChecked() == on
        assert opened.actions_[f"toggle.{SELECTION}"].isChecked() == on
        assert opened.desk.form.fields[SELECTION].editor.isChecked() == on


@pytest.mark.slow
def test_nothing_of_a_recording_can_be_changed(qtbot, opened):
    before = opened.pipeline.next
    opened.playhead.seek(300)
    form = opened.desk.form
    assert not any(field.editor.isEnabled() for field in form.fields.values())
    assert not opened.top.toggles[0].switch.isEnabled()
    assert "Recorded" in opened.top.toggles[0].toolTip()
    assert not opened.actions_[f"toggle.{SELECTION}"].isEnabled()
    qtbot.keyClick(opened, Qt.Key.Key_G)
    qtbot.mouseClick(opened.top.toggles[0].switch, LEFT)
    assert not opened.pipeline.set("search.beam", 5.0)
    assert opened.pipeline.next == before
    assert beam(opened) == 13.0


@pytest.mark.slow
def test_the_next_run_is_changed_on_request_and_kept(qtbot, opened):
    opened.playhead.seek(300)
    which, speech = opened.desk.form.which, opened.desk.form.speech
    assert which.recorded.isChecked()
    assert (speech.text(), speech.isEnabled()) == ("voice.wav", False)
    qtbot.mouseClick(which.next, LEFT)
    assert which.next.isChecked()
    assert (speech.text(), speech.isEnabled()) == (f"{opened.runs.next.audio.files} voices", True)
    assert beam(opened) == 9.0, "a session opened is repeated as it ended"
    qtbot.keyClick(opened, Qt.Key.Key_K)
    assert opened.pipeline.next.frames.skip == 2
    qtbot.mouseClick(which.recorded, LEFT)
    assert beam(opened) == 13.0
    assert not opened.top.toggles[1].switch.isChecked()
    assert opened.pipeline.next.frames.skip == 2


@pytest.mark.slow
def test_the_preset_named_is_that_of_the_settings_shown(qtbot, opened):
    opened.playhead.seek(300)
    form, button = opened.desk.form, opened.top.preset
    assert form._preset.full == "gmm"
    opened.runs.choose_preset("dnn")
    assert form._preset.full == "dnn"
    assert button.text() == presets.load("dnn").title
    qtbot.mouseClick(form.which.recorded, LEFT)
    assert form._preset.full == "gmm"
    assert button.text().startswith("next: ")
    opened.playhead.close()
    assert form._preset.full == "dnn"
    assert not button.text().startswith("next: ")


@pytest.mark.slow
def test_without_a_recording_there_is_no_choice(qtbot, window, tmp_path):
    w = window()
    w.show_desk()
    form = w.desk.form
    assert form.which.said.full == "settings of the next run"
    assert not form.which.recorded.isVisible()
    start_run(qtbot, w, tmp_path)
    assert form.which.said.full == "settings of this run"
    w.playhead.seek(10)
    assert w.pipeline.recorded is None, "a run under way can be changed wherever one looks"
    w.runs.stop()
    qtbot.waitUntil(lambda: w.when.is_idle() and not w.playhead.live)
    w.playhead.seek(5)
    assert form.which.recorded.isVisible()
    assert form.which.recorded.isChecked()


def test_settings_of_another_version_leave_the_form_to_the_next_run(window, recording):
    made = recording("other.asrs")
    made.writer.config(0, 0, {"a setting of": "another version"})
    made.write(600)
    made.close()
    w = window()
    w.open_session(made.path)
    w.playhead.seek(300)
    assert w.pipeline.recorded is None
    assert w.desk.form.which.next.isChecked()
