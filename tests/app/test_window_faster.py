"""What would make it faster: stages ranked by what they could give, changes that fit, and trying one."""

import json
import sys

import msgspec
import pytest
from PySide6.QtCore import Qt
from test_documents import WHATIF
from views_desk import figures_of, settle, view_on
from views_desk import opened as opened_session

from app.cli import whatif as verb
from app.model.document import RatioRow
from app.model.faster import candidates, unchanged
from app.model.time_axis import WHOLE
from app.style.plain_text import Button
from app.views.faster import WHAT, FasterView
from app.window.tasks import replays
from app.window.tasks.page import TaskPage
from pipelines import config as settings
from profiler.analysis import whatif
from profiler.plain import rtf_text
from profiler.session.model import ConfigEpoch


@pytest.fixture
def view(sample, qapp, qtbot):
    with view_on(FasterView, sample, qtbot, (420, 500)) as (made, playhead):
        assert playhead.session is not None
        ran_with = settings.assign(settings.Config(), {"model": "continuous", "block": 1})
        playhead.session.configs[:] = [ConfigEpoch(0, 0, settings.to_dict(ran_with), 0)]
        playhead._desk = None
        playhead.changed.emit(playhead.snapshot())
        settle()
        made.settle()
        yield made


def test_stages_are_ranked_by_share_times_what_is_above_the_roof(sample):
    """Of the run's own time: other programs give nothing, and nobody is offered its bookkeeping."""
    with opened_session(sample) as (session, track):
        desk = figures_of(session, track, kind=WHOLE)
    ranked = candidates(desk, None)
    rows = {row.name: row for row in desk.costs.stages}
    gives = [one.could_give for one in ranked]
    assert gives == sorted(gives, reverse=True)
    assert any(one.headroom is not None for one in ranked)
    assert {one.group for one in ranked} <= {"scoring", "search", "frontend", "transfer"}
    whole = desk.own_ms * desk.frames * 1e6
    for one in ranked:
        row = rows[one.name]
        headroom = 1.0
        if row.arithmetic_ns is not None and row.traffic_min_ns is not None:
            headroom = 1.0 - min(1.0, max(row.arithmetic_ns, row.traffic_min_ns) / row.own_ns)
        assert one.could_give == pytest.approx(row.own_ns / whole * headroom)
        assert not one.changes  # the settings are not known


def test_only_changes_that_fit_the_settings_are_offered(sample):
    with opened_session(sample) as (session, track):
        found = figures_of(session, track, kind=WHOLE)

    def offered(*assigned: str) -> set[str]:
        tree = settings.assign(settings.Config(), dict(settings.parse_assignment(text) for text in assigned))
        ranked = candidates(found, tree)
        changes = [change for one in ranked for change in one.changes]
        for change in changes:
            changed = settings.assign(tree, change.settings)
            settings.check(changed)
            assert changed != tree
        keys = [key for change in changes for key in change.settings]
        assert len(keys) == len(set(keys))
        return set(keys)

    mixtures = offered("model=continuous", "block=1")
    assert {"block", "gmm.selection.enabled", "frames.skip", "search.beam"} <= mixtures
    assert "dnn.dtype" not in mixtures
    assert "block" not in offered("model=continuous", "block=64")
    assert "dnn.dtype" in offered("model=dnn")
    assert not {"search.beam"} & offered("search.beam=6")


def test_a_change_is_chosen_and_tried(view, qtbot):
    names = [one.name for one in view.model()]
    assert [view.tree.topLevelItem(at).text(WHAT) for at in range(len(names))] == names
    assert not view.try_it.isEnabled()
    stage = next(at for at, one in enumerate(view.model()) if one.changes)
    view.tree.setCurrentItem(view.tree.topLevelItem(stage).child(0))
    assert view.try_it.isEnabled()
    with qtbot.waitSignal(view.tried) as caught:
        qtbot.mouseClick(view.try_it, Qt.MouseButton.LeftButton)
    change = view.model()[stage].changes[0]
    assert caught.args[0] == dict(change.settings)
    row = view.tree.topLevelItem(stage).child(0)
    assert row.text(WHAT) == f"{change.title}: {change.why} · not tried"
    caught.args[1](RatioRow("whole run", 0.5, (0.4, 0.6), "B faster"))
    rtfs = (rtf_text(view.snapshot.desk.rtf * ratio) for ratio in (1.0, 0.5, 0.4, 0.6))
    assert row.text(WHAT) == "{}: RTF {} → {} ({} – {})".format(change.title, *rtfs)
    # All others are tried one after the other.
    with qtbot.waitSignal(view.tried) as caught:
        qtbot.mouseClick(view.try_all, Qt.MouseButton.LeftButton)
    assert caught.args[0] == dict(view.model()[stage].changes[1].settings)
    with qtbot.waitSignal(view.tried) as again:
        caught.args[1](RatioRow("whole run", 0.9, None, "undecided"))
    assert again.args[0] not in ({}, caught.args[0], dict(change.settings))
    assert names[0] in view.summary()
    assert len(view.table()[1]) == len(names) + sum(len(one.changes) for one in view.model())


def test_the_change_that_is_chosen_stays_so_when_stages_change_places(view):
    stage = next(at for at, one in enumerate(view.model()) if one.changes)
    view.tree.setCurrentItem(view.tree.topLevelItem(stage).child(1))
    chosen = view.chosen()
    assert chosen is not None
    view._candidates = ()
    view.draw(view.snapshot)
    assert view.chosen() == chosen
    assert view.try_it.isEnabled()


def test_sliders_predict_the_run_as_the_command_line_does(view, qtbot):
    first, second = (one.name for one in view.model()[:2])
    assert not view.predicted.isVisible()  # nothing is faster yet

    def predicted(factors: dict[str, float]) -> str:
        after = whatif.scaled(unchanged(view.snapshot.desk), factors.items())
        return f"RTF {rtf_text(after.rtf)} → {rtf_text(after.predicted_rtf)}"

    view.tree.setCurrentItem(view.tree.topLevelItem(0))
    assert view.stage.full == f"If {first} took 1.00×"
    view.slider.setFocus()
    qtbot.keyClick(view.slider, Qt.Key.Key_Home)
    assert predicted({first: 0.0}) in view.predicted.text()
    view.tree.setCurrentItem(view.tree.topLevelItem(1))
    assert view.slider.value() == view.slider.maximum()  # each stage has its own
    view.slider.setValue(view.slider.maximum() * 3 // 4)
    both = predicted({first: 0.0, second: 0.75})
    assert both in view.predicted.text()
    assert both != predicted({first: 0.0})
    view.tree.setCurrentItem(view.tree.topLevelItem(0))
    assert view.slider.value() == 0
    view.slider.setValue(view.slider.maximum())
    assert predicted({second: 0.75}) in view.predicted.text()
    assert first not in view.predicted.text()


def test_a_change_that_was_tried_can_be_kept(qtbot, opened, monkeypatch):
    for tree, says, good in (
        ({"document": msgspec.to_builtins(verb.document(WHATIF))}, "Measured on this machine", True),
        ({"document": None}, "What the command printed cannot be read.", False),
    ):
        monkeypatch.setattr(replays, "VERB", (sys.executable, "-c", f"print({json.dumps(json.dumps(tree))})"))
        outcomes: list[RatioRow] = []
        opened.desk.faster.tried.emit({"search.beam": 7.5}, outcomes.append)
        made = opened.findChildren(TaskPage)[-1]
        assert made.windowTitle() == "Try search.beam=7.5"
        qtbot.waitUntil(lambda made=made: not made.working)
        assert made.state.text().startswith(says)
        (keep,) = (button for button in made.findChildren(Button) if button.text() == "Keep it for the next run")
        assert keep.isEnabled() == good
        assert [row.name for row in outcomes] == ["whole run"] * good
        if good:
            qtbot.mouseClick(keep, Qt.MouseButton.LeftButton)
            assert opened.pipeline.next.search.beam == 7.5
        made.close()
        qtbot.waitUntil(lambda: not opened.findChildren(TaskPage))
