"""Run on…: what is entered runs on that machine, the machines are remembered, and the next run is here again."""

import sys
from pathlib import Path

import pytest
from shown_windows import start_run, wait_for_frames

from app.model import runs
from app.model.runs import Elsewhere
from app.window.tasks.next_run import RunOnPage

WORKER = Path(__file__).with_name("window_worker.py")


@pytest.fixture
def opened(window, monkeypatch):
    # A scripted worker in place of the one that reaches another machine: its last argument is no mode.
    monkeypatch.setattr(runs, "ON_HOST", (sys.executable, str(WORKER)))
    w = window()
    w.actions_["run.on"].trigger()
    (dialog,) = w.findChildren(RunOnPage)
    return w, dialog


def test_a_machine_is_needed(opened):
    _, dialog = opened
    assert not dialog.take.isEnabled()
    for name in ("-oProxyCommand=x", "a b", " "):
        dialog.host.setEditText(name)
        assert not dialog.take.isEnabled()
        assert "Enter a name that ssh knows" in dialog.remark.text()
    dialog.host.setEditText(" me@gpu ")
    assert dialog.take.isEnabled()
    assert dialog.elsewhere == Elsewhere("me@gpu")


@pytest.mark.slow
def test_what_is_entered_runs_there_and_toggles_act(qtbot, opened, tmp_path):
    w, dialog = opened
    dialog.host.setEditText("gpu")
    dialog.audio.setText("/data/talk.wav")
    dialog.transcripts.setText("/data/t.tsv")
    dialog.take.click()
    wait_for_frames(qtbot, w)
    assert w.runs.control._process is not None
    assert w.runs.control._process.arguments()[-1] == "gpu"
    request = w.runs.control.request
    assert request is not None
    assert (request.audio, request.transcripts) == (("/data/talk.wav",), "/data/t.tsv")
    assert w.runs.current.is_shown
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    assert w.runs.next.hosts() == ["gpu"]
    # Again on that machine; the next run of this one is here.
    w.runs.restart()
    wait_for_frames(qtbot, w)
    assert w.runs.control._process.arguments()[-1] == "gpu"
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    start_run(qtbot, w, tmp_path)
    assert w.runs.control._process.arguments()[-1] != "gpu"


def test_the_machines_are_remembered_the_last_one_first(qtbot, opened):
    w, dialog = opened
    dialog.close()
    for name in ("again", *map(str, range(10)), "again"):
        w.runs.start_on(Elsewhere(name))  # all but the first find a run under way
    qtbot.waitUntil(w.when.is_running)
    w.runs.stop()
    qtbot.waitUntil(w.when.is_idle)
    w.actions_["run.on"].trigger()
    dialog = w.findChildren(RunOnPage)[-1]
    assert [dialog.host.itemText(row) for row in range(dialog.host.count())] == ["again", *"9876543"]
    assert dialog.host.currentText() == "again"
