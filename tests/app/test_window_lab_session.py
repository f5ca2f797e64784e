"""The session of a lab on the desk: its frames are steps, and nothing is said of it that is true of speech alone."""

import re

import pytest
from command_line import here
from lab_worker import NAME, PLANTED
from PySide6.QtWidgets import QApplication

from pipelines import labs
from pipelines.labs import record
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.app.text_geometry import texts as texts_of

STEPS = 120
STEP_NS = 20_000_000


@pytest.fixture
def lab_session(tmp_path):
    """A lab of 120 steps of 20 ms."""
    lab = labs.load(NAME)
    fact = record.stored(NAME, lab.parameters, PLANTED, lab.judge(PLANTED))
    recorder, path = Recorder(), tmp_path / "lab.asrs"
    writer = SessionWriter(path, recorder, {record.KEY: fact})
    stage, step = recorder.stage("training", "scoring"), recorder.stage("lab", "decode")
    lane = recorder.lane("lab", decode=True)
    for number in range(STEPS):
        start = number * STEP_NS
        lane.put(stage, start, start + STEP_NS, number, 1)
        lane.put(step, start, start + STEP_NS, number, 1)
    writer.close()
    return path


@pytest.mark.slow
def test_steps_of_a_lab_are_no_audio(opened, lab_session):
    assert opened.top.rtf.value != "–"
    assert opened.desk.transport.note.full.count("s of audio") == 1
    opened.open_session(lab_session)
    QApplication.processEvents()
    assert opened.top.rtf.value == "–"
    note = opened.desk.transport.note.full
    assert f"{NAME} · {STEPS} steps" in note
    assert "audio" not in note
    for view in ("cost", "breakdown"):
        assert opened.desk.views[view].note.startswith("ms per step of the lab")
    cost = opened.desk.views["cost"].model()
    assert not cost.realtime_shown


def test_preset_and_device_during_a_lab_are_those_of_the_next_run(opened, finished, lab_session):
    assert not opened.top.preset.text().startswith("next: ")
    opened.open_session(lab_session)
    assert opened.top.preset.text().startswith("next: ")
    assert opened.top.device.full == ""
    assert not opened.recorded_settings.offered
    opened.open_session(finished)
    assert not opened.top.preset.text().startswith("next: ")
    assert opened.top.device.full != ""


def test_figures_of_steps_are_not_called_those_of_frames(window, lab_session):
    w = window()
    w.open_session(lab_session)
    for view_id in ("cost", "work", "breakdown", "statistics", "faster"):
        w.desk.docks.go_to(view_id)
        QApplication.processEvents()
        view = w.desk.views[view_id]
        view.settle()
        texts = [view.note, view.summary(), *view.table()[0]]
        assert not [text for text in texts if re.search(r"frames?\b", text)], view_id
        assert view_id in ("work", "faster") or any("step" in text for text in texts), view_id
    statistics = w.desk.views["statistics"]
    assert statistics.note.startswith(f"{STEPS} steps")
    assert statistics.summary().startswith("whole step: mean 20.0 ms per step, ")
    assert "slowest step: 20.0 ms · at step " in statistics.about.full
    assert {"steps", "ms of a step"} <= {text.text for text in texts_of(statistics.plot)}
    second = w.axis.visible[1] / 2
    cost = w.desk.views["cost"]
    assert [line.name for line in cost.readout(cost.model(), second)][-1] == "sum, ms per step"
    assert "cost per step is 20.0 ms on average; most of it is " in cost.summary()
    assert [row[0] for row in statistics.table()[1]] == ["whole step", "training"]


def test_the_report_is_of_steps(lab_session):
    shown = here("show", lab_session).stdout
    assert f"{STEPS} steps in {STEPS * STEP_NS / 1e9:.2f} s: 20 ms per step (set-up" in shown
    assert "RTF" not in shown
    page = here("report", lab_session).stdout
    assert "## Time per step" in page
    assert f"## Slowest steps, 10 of {STEPS}" in page
    assert "| whole frame |" not in page
