"""The first minute on a machine with nothing cached: a recorded session stands in until the run has its first block."""

import pytest
from PySide6.QtCore import Qt
from shown_windows import texts

from app.model.current_run import SET_UP
from app.model.recent import Memory
from app.model.runs import RECORDED_DEMO

SELECTION = "gmm.selection.enabled"


@pytest.fixture
def waiting(qtbot, window):
    """A window whose demo is being set up, for the first time."""
    w = window("late")
    w.runs.demo()
    qtbot.waitUntil(w.when.is_running)
    return w


def test_a_recorded_demo_stands_in_until_the_run_has_its_first_block(qtbot, waiting):
    w = waiting
    assert w.playhead.path == RECORDED_DEMO
    assert w.pages.currentWidget() is w.desk
    assert w.top.rtf.value != "–"
    said, steps = texts(w, "progress")[0].split("\n")
    assert said.startswith("Recorded on 20")
    assert "your machine is being measured" in said
    assert " s" in steps
    # The form is that of the run; its switches wait, and no hint asks for them.
    assert w.pipeline.locked is None
    assert not w.desk.form.which.recorded.isVisible()
    toggle = w.top.toggles[0]
    assert not toggle.switch.isEnabled()
    assert "ready" in toggle.subtitle.full
    qtbot.keyClick(w, Qt.Key.Key_G)
    assert not w.pipeline.next.gmm.selection.enabled
    assert w.hints.current is None
    own = w.runs.control.session
    qtbot.waitUntil(lambda: str(w.playhead.path) == own and w.playhead.n_frames > 0)
    qtbot.waitUntil(lambda: not texts(w, "progress"))
    assert w.playhead.live
    assert toggle.switch.isEnabled()
    assert "ready" not in toggle.subtitle.full
    assert w.hints.current is not None
    qtbot.keyClick(w, Qt.Key.Key_G)
    assert w.pipeline.running.gmm.selection.enabled
    assert [str(path) for path in Memory().sessions()] == [own], "the recorded one is none of the user's"


def test_a_demo_that_is_cancelled_meanwhile_leaves_neither_session(qtbot, waiting):
    w = waiting
    path = w.runs.control.session
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert w.playhead.path is None
    assert w.pages.currentWidget() is w.welcome
    assert Memory().sessions() == []
    assert path is not None
    assert w.pipeline.ready_in == ""


def test_another_session_that_is_opened_meanwhile_stays(qtbot, waiting, finished):
    w = waiting
    assert w.open_session(finished)
    qtbot.waitUntil(lambda: not texts(w, "progress"))
    assert w.playhead.path == finished
    assert w.actions_["run.show"].isEnabled()


def test_where_a_set_up_is_short_the_run_is_shown_at_once(qtbot, window):
    w = window("late")
    w.memory.remember(SET_UP, ["0.5"] * 4)
    w.runs.demo()
    qtbot.waitUntil(lambda: w.playhead.path is not None)
    assert w.playhead.path != RECORDED_DEMO
