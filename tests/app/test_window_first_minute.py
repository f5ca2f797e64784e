"""The first minute on a machine with nothing cached: a recorded session stands in; the set-up of a run as one bar."""

import pytest
from PySide6.QtCore import Qt
from shown_windows import texts

from app.model.current_run import SET_UP
from app.model.recent import Memory
from app.model.runs import RECORDED_DEMO
from app.model.setup_progress import PHASE_NAMES, USUAL_S, SetUp


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


STEPS = (
    ("reading the acoustic model", None),
    ("untying the codebooks", 0.0),
    ("untying the codebooks", 0.66),
    ("finding the search graph", None),
    ("building graph: determinise", 0.55),
    ("building graph: checking the graph", 0.95),
    ("compiling the kernels", None),
    ("clustering the Gaussians", 0.0),
    ("clustering the Gaussians", 0.9),
    ("listing the Gaussians", 0.1),
    ("measuring the machine: call/3", 0.0),
    ("measuring the machine: tile", 0.5),
)


def test_it_is_one_bar_in_plain_words_that_never_goes_back():
    made, shares, texts = SetUp(0.0), [], []
    for number, (step, share) in enumerate(STEPS):
        made.update(step, share, now=4.0 * number)
        texts.append(made.steps(4.0 * number)[-1][0])
        shares.append(made.share(4.0 * number))
        shares.append(made.share(4.0 * number + 2.0))
    assert shares == sorted(shares)
    assert shares[0] >= 0.0
    assert shares[-1] < 1.0
    assert list(dict.fromkeys(texts)) == list(PHASE_NAMES)
    assert not any(name in text for text in texts for name in ("/", "kernel", ":"))


def test_the_time_left_becomes_less():
    made = SetUp(0.0, (1.0, 1.0, 40.0, 1.0))
    made.update("compiling the kernels", None, 1.0)
    left = [made.left_s(1.0 + seconds) for seconds in range(0, 60, 5)]
    assert left == sorted(left, reverse=True)
    assert made.left_to_show(1.5) is None, "it has just begun"
    assert made.left_to_show(6.0) in (35, 40)
    assert made.left_to_show(80.0) is None, "it is late, and nobody knows"
    assert made.steps(80.0) == [("Reading the acoustic model", 1), ("Preparing scoring and search", 79)]


def test_what_phases_took_is_what_they_take_next_time():
    made = SetUp(0.0)
    for now, (step, share) in enumerate(STEPS):
        made.update(step, share, float(now))
    took = made.durations(float(len(STEPS)))
    assert sum(took) == pytest.approx(len(STEPS))
    again = SetUp(0.0, took)
    again.update(*STEPS[0], 0.0)
    assert again.left_s(0.0) < sum(USUAL_S)


@pytest.mark.parametrize("usual", [(), (1.0,), (float("nan"),) * 4, (-1.0,) * 4])
def test_what_was_remembered_wrongly_is_forgotten(usual):
    assert SetUp(0.0, usual).left_s(0.0) == pytest.approx(sum(USUAL_S))
