"""From the window: what would make it faster, a sweep, and how many streams; what is entered, and the command of it."""

import argparse
import json
import sys
from pathlib import Path

import msgspec
import pytest
from made_study import SWEEP
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from test_documents import CAPACITY, WHATIF
from views_desk import figures_of, settle, view_on
from views_desk import opened as opened_session

from app.cli import capacity, sweep
from app.cli import whatif as verb
from app.model import audio_choice
from app.model.document import RatioRow
from app.model.faster import candidates, unchanged
from app.model.processes.leaving import EXPLAINS, Leaving
from app.model.time_axis import WHOLE
from app.style.plain_text import Button
from app.views.faster import WHAT, FasterView
from app.window.tasks import replays
from app.window.tasks import study as study_window
from app.window.tasks.page import TaskPage
from app.window.tasks.replays import CapacityPage
from app.window.tasks.sweep import SweepPage
from pipelines import config as settings
from pipelines.experiments.sweep.space import Choice, Range
from profiler.analysis import whatif
from profiler.plain import rtf_text
from profiler.session.model import ConfigEpoch
from tests.waiting import wait_until

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def made(window):
    w = window()
    w.pipeline.choose("gmm-quick")
    assert w.pipeline.set("block", 8)
    w.actions_["run.sweep"].trigger()
    (found,) = w.findChildren(SweepPage)
    return found


def enter(dialog: SweepPage, *texts: str) -> None:
    """Choose a setting and enter its values in each row."""
    for row, text in zip(dialog.rows, texts, strict=False):
        key, _, values = text.partition("=")
        row.choose(key)
        row.values.setText(values)


def test_what_is_entered_becomes_the_sweep_of_the_form(made):
    enter(made, "search.beam=7..13", "frames.skip=1,2", "gmm.component=full,int8")
    made.trials.setValue(30)
    made.objectives["memory"].setChecked(True)
    parser = argparse.ArgumentParser()
    sweep.arguments(parser)
    arguments = parser.parse_args(made.words())
    found = sweep._sweep(arguments)
    wanted = settings.assign(made.window().pipeline.next, {"pace": 0.0, "loop": False})
    assert found.reference == wanted
    assert found.reference.block == 8
    assert found.axes == (
        Range("search.beam", 7.0, 13.0, whole=False),
        Choice("frames.skip", (1, 2)),
        Choice("gmm.component", ("full", "int8")),
    )
    assert found.objectives == ("rtf", "wer", "memory")
    bundled = audio_choice.bundled()
    assert bundled is not None
    assert {str(item.path) for item in found.items} == set(bundled.paths)
    assert arguments.trials == 30


def test_audio_of_the_next_run_is_named(window, bundled_speech, tmp_path):
    w = window()
    assert "--audio" not in SweepPage(w).words()  # the bundled voices are what a command takes anyway
    w.files.take_audio([bundled_speech / "08-kal16-short.flac"])
    words = SweepPage(w).words()
    assert words[words.index("--audio") + 1] == str(bundled_speech / "08-kal16-short.flac")
    assert words[words.index("--transcripts") + 1] == str(bundled_speech / "transcripts.tsv")
    (tmp_path / "u.wav").write_bytes((bundled_speech / "08-kal16-short.flac").read_bytes())
    w.files.take_audio([tmp_path / "u.wav"])
    without = SweepPage(w)
    assert not without.objectives["wer"].isEnabled()
    words = without.words()
    assert words[words.index("--objectives") + 1] == "rtf"
    assert "--transcripts" not in words


def test_how_many_trials_there_will_be_or_what_is_wrong(made):
    for texts, says in (
        ((), "Enter values: 7,9,12 or, for a range of numbers, 7..13."),
        (("search.beam=7,9,12", "frames.skip=1,2"), "6 combinations; each is tried once."),
        (("search.beam=7..13", ""), "24 trials, chosen by Optuna's sampler."),
        (("block=1..64",), "24 trials, chosen by Optuna's sampler."),
        (("search.beam=9..8",), "search.beam=9..8 is an empty range; the lower end comes first."),
        (("search.beam=7,nine",), "search.beam must be a number from 1 to 40, not 'nine'."),
        (("block=8,16", "block=4,8"), "A setting has two rows; enter all its values in one."),
    ):
        enter(made, *texts)
        assert made.remark.text() == says
        assert made.take.isEnabled() == ("trial" in says or "combination" in says)
    enter(made, "block=8,16", "")
    for box in made.objectives.values():
        box.setChecked(False)
    assert made.remark.text() == "Choose at least one objective."
    assert not made.take.isEnabled()


def test_values_that_can_be_listed_are_offered(made):
    row = made.rows[0]
    row.choose("gmm.selection.enabled")
    assert row.values.text() == "false,true"
    row.choose("gmm.component")
    assert set(row.values.text().split(",")) <= {"full", "partial-distance", "int8", "max"}
    assert "full" in row.values.text()
    row.choose("block")
    assert row.values.text() == ""
    assert row.values.placeholderText() == "now 8, from 1 to 256, as 7,9,12 or 7..13"
    assert row.key.findData("pace") == row.key.findData("audio.raw") == -1


def test_a_sweep_is_started_and_its_trials_are_shown(qtbot, made, tmp_path, monkeypatch):
    window = made.window()
    monkeypatch.setattr(study_window, "SWEEP", (sys.executable, "-c", SWEEP, str(Path(__file__).parent)))
    enter(made, "search.beam=7,8")
    words = made.words()
    qtbot.mouseClick(made.take, LEFT)
    (shown,) = window.findChildren(study_window.StudyPage)
    assert shown.folder.parent == tmp_path / "sessions"
    qtbot.waitUntil(lambda: bool(shown.study.trials))
    begun = (shown.folder.parent / "begun0").read_text()
    assert begun == " ".join([*words, "--out", str(shown.folder), "--json"])
    shown.close()
    qtbot.waitUntil(lambda: Leaving.find(EXPLAINS) is None)


def begins(parent: QWidget, tree: dict[str, object], code: str = "{}") -> CapacityPage:
    """A page whose command is `code`, where `{}` prints the tree."""
    document = json.dumps(json.dumps({"document": msgspec.to_builtins(capacity.document(tree))}))
    code = code.replace("{}", f"print({document})")
    made = CapacityPage((), "Use the machine for nothing else.", parent, (sys.executable, "-c", code))
    made.show()
    return made


def test_how_many_and_why_stand_above_chart_and_table(qtbot, parent):
    made = begins(parent, CAPACITY)
    assert not made.command.running
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.command.running)
    assert made.state.text() == (
        "12 streams on 2 cores (by single measurements 12 to 13): p99 of the delay is at most 0.5 s, "
        "and no queue grows."
    )
    made.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "Waiting for a core grows most." in copied
    assert "12\t0.200\t0.267\t0.400\t0.400\t0.400\t–\t0.400\t0.040\t0.100\t40.0\t1980\t129\t400\tno\t3 of 3" in copied
    assert "calls.capacity" in copied
    (chart,) = made.body.charts
    assert chart.accessibleDescription() == made.state.text()
    chart.grab()
    assert not made.form.isVisible()
    made.close()


def test_a_stop_shows_what_was_measured(qtbot, parent, tmp_path):
    begun = tmp_path / "begun"
    code = (
        "import pathlib, signal, sys, time\n"
        "def end(*_): {}; sys.exit(143)\n"
        f"signal.signal(signal.SIGTERM, end); pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    )
    made = begins(parent, CAPACITY | {"finished": False}, code)
    qtbot.mouseClick(made.start, LEFT)
    assert made.start.text() == "Stop"
    assert not made.form.isEnabled()
    wait_until(begun.exists)
    qtbot.mouseClick(made.start, LEFT)
    qtbot.waitUntil(lambda: not made.command.running)
    assert made.state.text().startswith("So far 12 streams on 2 cores")
    assert len(made.body.tables) == 1
    made.close()


def test_what_is_entered_becomes_the_command_of_the_form(window, monkeypatch):
    w = window()
    w.pipeline.choose("gmm-quick")
    assert w.pipeline.set("block", 8)
    w.actions_["run.capacity"].trigger()
    (made,) = w.findChildren(CapacityPage)
    begun: list[list[str]] = []
    monkeypatch.setattr(CapacityPage, "begin", lambda self, words: begun.append(list(words)))
    made.bound.setValue(0.4)
    made.most.setValue(20)
    made._begin()
    (words,) = begun
    assert words[-2] == "--out"
    assert words[-1].endswith(".capacity")
    parser = argparse.ArgumentParser()
    capacity.arguments(parser)
    arguments = parser.parse_args(words[words.index("capacity") + 1 :])
    assert (arguments.streams, arguments.bound, arguments.json) == ((1, 20), 0.4, True)
    config = capacity._preset(arguments).config
    assert (config.block, config.stream.chunk_ms, config.pace) == (8, 160, 1.0)
    made.close()


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
    chosen = view.tree.chosen()
    assert chosen is not None
    view.tree._named = []
    view.draw(view.snapshot)
    assert view.tree.chosen() == chosen
    assert view.try_it.isEnabled()


def test_sliders_predict_the_run_as_the_command_line_does(view, qtbot):
    first, second = (one.name for one in view.model()[:2])
    assert not view.what_if.predicted.isVisible()  # nothing is faster yet

    def predicted(factors: dict[str, float]) -> str:
        after = whatif.scaled(unchanged(view.snapshot.desk), factors.items())
        return f"RTF {rtf_text(after.rtf)} → {rtf_text(after.predicted_rtf)}"

    view.tree.setCurrentItem(view.tree.topLevelItem(0))
    assert view.what_if.stage.full == f"If {first} took 1.00×"
    view.what_if.slider.setFocus()
    qtbot.keyClick(view.what_if.slider, Qt.Key.Key_Home)
    assert predicted({first: 0.0}) in view.what_if.predicted.text()
    view.tree.setCurrentItem(view.tree.topLevelItem(1))
    assert view.what_if.slider.value() == view.what_if.slider.maximum()  # each stage has its own
    view.what_if.slider.setValue(view.what_if.slider.maximum() * 3 // 4)
    both = predicted({first: 0.0, second: 0.75})
    assert both in view.what_if.predicted.text()
    assert both != predicted({first: 0.0})
    view.tree.setCurrentItem(view.tree.topLevelItem(0))
    assert view.what_if.slider.value() == 0
    view.what_if.slider.setValue(view.what_if.slider.maximum())
    assert predicted({second: 0.75}) in view.what_if.predicted.text()
    assert first not in view.what_if.predicted.text()


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
        qtbot.waitUntil(lambda made=made: not made.command.running)
        assert made.state.text().startswith(says)
        (keep,) = (button for button in made.findChildren(Button) if button.text() == "Keep it for the next run")
        assert keep.isEnabled() == good
        assert [row.name for row in outcomes] == ["whole run"] * good
        if good:
            qtbot.mouseClick(keep, Qt.MouseButton.LeftButton)
            assert opened.pipeline.next.search.beam == 7.5
        made.close()
        qtbot.waitUntil(lambda: not opened.findChildren(TaskPage))
