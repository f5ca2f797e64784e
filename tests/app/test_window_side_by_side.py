"""Which settings are held against which, the A/B switch, and hints: when they can be used, and when they end."""

from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from shown_windows import start_run

from app.model import configurations
from app.model.configurations import Sides, going_on, settings_of_arm, sides
from app.model.processes.run_control import RunControl
from app.model.recent import Memory
from pipelines import config as settings
from pipelines.config import Value, presets
from profiler.session.model import ConfigEpoch

SELECTION, BLOCK, PACE = "gmm.selection.enabled", "block", "pace"


@pytest.fixture
def comparisons(monkeypatch):
    """The comparisons requested of workers, in order."""
    reported: list[object] = []
    monkeypatch.setattr(RunControl, "compare", lambda self, other: reported.append(other))
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
def test_a_change_during_an_ab_says_what_it_waits_for_and_the_end_of_the_run_ends_it(qtbot, live):
    QTest.keyClick(live, Qt.Key.Key_K)
    assert live.status.message.full == "", "it acts at once"
    QTest.keyClick(live, Qt.Key.Key_B)
    QTest.keyClick(live, Qt.Key.Key_K)
    assert live.status.message.full.startswith("Frame skipping waits for the end of this turn")
    live.runs.stop()
    qtbot.waitUntil(live.when.is_idle)
    assert not live.side_by_side.active


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
    ("model", "block", "falls"),
    [("ptm", 1, "Gaussians"), ("continuous", 1, "memory"), ("continuous", 16, "Gaussians"), ("dnn", 1, None)],
)
def test_a_hint_is_true_of_the_model_that_runs(qtbot, window, tmp_path, model, block, falls):
    """Memory takes half of the time where each frame reads a large model, and a twentieth at ptm."""
    w = window()
    w.pipeline.set("model", model)
    w.pipeline.set(BLOCK, block)
    start_run(qtbot, w, tmp_path)
    text = w.status.hint_text.full
    if falls is None:
        assert text.startswith("Hint 2 of 3"), "the first cannot be followed"
        return
    assert text.startswith("Hint 1 of 3: switch Gaussian selection on")
    assert falls in text.partition("watch")[2]
    assert ("memory" in text) == (falls == "memory")


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


class Made(SimpleNamespace):
    __hash__ = object.__hash__


def session(*changes: tuple[int, dict[str, Value]], **meta: Any) -> Any:
    """A session whose settings are those of a preset with what differs from a frame on; epochs count from 0."""
    plain = presets.load("demo").config
    trees = [settings.to_dict(settings.assign(plain, differs)) for _, differs in changes]
    rows = [ConfigEpoch(n, frame, trees[n], 0) for n, (frame, _) in enumerate(changes)]
    return Made(configs=rows, meta=meta)


ON: dict[str, Value] = {SELECTION: True}
LARGE: dict[str, Value] = {BLOCK: 16}


def test_settings_have_been_in_force_since_they_changed_the_work():
    made = session((0, {}), (100, {PACE: 4.0}), (200, ON | {PACE: 4.0}))
    assert [configurations.since(made, end) for end in (0, 150, 200, 300)] == [0, 0, 0, 200]
    assert [epochs for epochs, _ in configurations.every(made)] == [{0, 1}, {2}]


@pytest.mark.parametrize(
    ("keys", "before"),
    [({SELECTION}, {SELECTION: False}), ({SELECTION, BLOCK}, {SELECTION: False}), ({BLOCK}, None), ({PACE}, None)],
)
def test_the_last_settings_that_differ_in_nothing_else_are_those_before(keys, before):
    made = session((0, {}), (100, LARGE), (200, LARGE | ON))
    assert configurations.before(made, 300, keys) == before


def test_without_a_change_there_is_nothing_before():
    made = session((0, {}))
    assert configurations.before(made, 100, {SELECTION}) is None
    assert sides(made, 100, None) is None
    assert sides(Made(configs=[], meta={}), 100, None) is None


@pytest.fixture
def compared():
    """Selection switched on at frame 100; from 300 to 500 an A/B against off; at 600 larger blocks."""
    arms = [{"name": "A", "epoch": 2}, {"name": "B", "epoch": 3}]
    return session(
        (0, {}), (100, ON), (300, {}), (400, ON), (500, ON), (600, ON | LARGE),
        ab={"arms": arms, "measured_from": 300, "ended": 500},
    )  # fmt: skip


def test_an_ab_goes_on_from_its_first_frame_to_its_last(compared):
    assert [end for end in (299, 300, 301, 500, 501) if going_on(compared, end)] == [301, 500]
    shown = [settings_of_arm(compared, end).get(SELECTION) for end in (299, 350, 450, 501)]
    assert shown == [None, None, True, None], "what the other arm has is not known before its turn"
    compared.meta["ab"]["ended"] = None
    assert settings_of_arm(compared, 550) == {}
    assert going_on(compared, 9999) is not None
    compared.meta["ab"]["arms"].pop()
    assert going_on(compared, 400) is None


def test_an_ab_holds_its_arms_against_each_other_once_both_had_a_turn(compared):
    before = Sides(frozenset({0}), frozenset({1}), in_turn=False)
    assert sides(compared, 300, {SELECTION}) == before
    assert sides(compared, 350, {SELECTION}) == before, "the other had no turn yet"
    both = Sides(frozenset({0, 2}), frozenset({1, 3}), in_turn=True)
    assert sides(compared, 450, {SELECTION}) == both


def test_a_change_after_an_ab_has_no_turns_of_its_own(compared):
    assert sides(compared, 700, {BLOCK}) == Sides(frozenset({1, 3, 4}), frozenset({5}), in_turn=False)
    assert sides(compared, 700, {SELECTION}) is None, "with these blocks it was never off"
