"""The A/B switch and the hints, with a scripted worker: when they can be used, what they ask for, when they end."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from shown_windows import start_run

from app.model.processes.run_control import RunControl
from app.model.recent import Memory

SELECTION, BLOCK = "gmm.selection.enabled", "block"


@pytest.fixture
def comparisons(monkeypatch):
    """The comparisons requested of workers, in order."""
    reported: list[object] = []
    plain = RunControl.compare

    def compare(self: RunControl, other) -> None:
        reported.append(other)
        plain(self, other)

    monkeypatch.setattr(RunControl, "compare", compare)
    return reported


def test_without_a_run_there_is_nothing_to_compare(qtbot, window, comparisons, finished):
    w = window()
    action = w.actions_["run.compare"]
    assert not action.isEnabled()
    assert "needs a run that is going on" in action.toolTip()
    assert w.open_session(finished)
    QTest.keyClick(w, Qt.Key.Key_B)
    assert comparisons == []
    assert not w.side_by_side.active


@pytest.mark.slow
def test_before_any_change_the_first_toggle_is_tried_until_the_key_or_the_worker_ends_it(live, comparisons):
    QTest.keyClick(live, Qt.Key.Key_B)
    (other,) = comparisons
    assert other[SELECTION] is True
    assert live.actions_["run.compare"].isChecked()
    assert live.desk.transport.compare.isChecked()
    QTest.keyClick(live, Qt.Key.Key_B)
    assert comparisons[1:] == [None], "the same key ends it"
    assert not live.desk.transport.compare.isChecked()
    QTest.keyClick(live, Qt.Key.Key_B)
    live.runs.control.refused.emit("", "Both sides of the comparison have the same settings.")
    assert not live.side_by_side.active
    assert live.notices.banners[-1].kind == "error"


@pytest.mark.slow
def test_a_change_during_an_ab_says_what_it_waits_for(live):
    QTest.keyClick(live, Qt.Key.Key_K)
    assert live.status.message.full == "", "it acts at once"
    QTest.keyClick(live, Qt.Key.Key_B)
    QTest.keyClick(live, Qt.Key.Key_K)
    assert live.status.message.full.startswith("Frame skipping waits for the end of this turn")


def test_switch_and_form_show_the_arm_that_runs(window):
    w = window()
    toggle = w.top.toggles[0]
    field = w.desk.form.fields[SELECTION].editor
    assert not toggle.switch.isChecked()
    toggle.show_effect(None, {SELECTION: True})
    w.desk.form.show_arm({SELECTION: True})
    assert toggle.switch.isChecked()
    assert field.isChecked()
    assert w.pipeline.value(SELECTION) is False, "the settings of the run are what they were"
    toggle.show_effect(None)
    w.desk.form.show_arm({})
    assert not toggle.switch.isChecked()
    assert not field.isChecked()


def test_a_run_that_ends_takes_its_comparison_with_it(qtbot, live, comparisons):
    QTest.keyClick(live, Qt.Key.Key_B)
    assert live.side_by_side.active
    live.runs.stop()
    qtbot.waitUntil(live.when.is_idle)
    assert not live.side_by_side.active


@pytest.mark.slow
def test_hints_lead_on_in_a_run_and_are_remembered(qtbot, window, tmp_path):
    w = window()
    assert w.status.hint.isHidden()
    assert not w.status.machine.isHidden()
    w.pipeline.set(BLOCK, 1)
    start_run(qtbot, w, tmp_path)
    status = w.status
    assert status.hint_text.full.startswith("Hint 1 of 3: switch Gaussian selection on")
    assert w.status.machine.isHidden(), "the hint has its place"
    QTest.keyClick(w, Qt.Key.Key_G)
    assert status.hint_text.full.startswith("Hint 2 of 3: set Block to 16")
    QTest.mouseClick(status.away, Qt.MouseButton.LeftButton)
    assert status.hint_text.full.startswith("Hint 3 of 3: choose the preset")
    assert Memory().texts("hints") == ["block", "selection"]
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert status.hint.isHidden()
    w.close()
    again = window()
    start_run(qtbot, again, tmp_path)
    assert again.status.hint_text.full.startswith("Hint 3 of 3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "block", "falls"), [("ptm", 1, "Gaussians"), ("continuous", 1, "memory"), ("continuous", 16, "Gaussians")]
)
def test_a_hint_is_true_of_the_model_that_runs(qtbot, window, tmp_path, model, block, falls):
    """Memory takes half of the time where each frame reads a large model, and a twentieth at ptm."""
    w = window()
    w.pipeline.set("model", model)
    w.pipeline.set(BLOCK, block)
    start_run(qtbot, w, tmp_path)
    text = w.status.hint_text.full
    assert text.startswith("Hint 1 of 3: switch Gaussian selection on")
    assert falls in text.partition("watch")[2]
    assert ("memory" in text) == (falls == "memory")


def test_a_hint_that_cannot_be_followed_is_passed_over(qtbot, window, tmp_path):
    w = window()
    w.pipeline.set("model", "dnn")
    w.pipeline.set(BLOCK, 1)
    start_run(qtbot, w, tmp_path)
    assert w.status.hint_text.full.startswith("Hint 2 of 3")


def test_the_demo_takes_its_own_preset_whatever_is_remembered(qtbot, window, tmp_path):
    memory = Memory()
    memory.remember("preset", "gmm-quick")
    w = window()
    assert w.pipeline.preset.name == "gmm-quick"
    w.pipeline.set("search.beam", 9.0)
    w.runs.demo()
    assert w.pipeline.preset.name == "demo"
    assert not w.pipeline.differs()
    assert w.runs.control.request.preset == "demo"
    assert w.runs.control.request.config["block"] == 1
