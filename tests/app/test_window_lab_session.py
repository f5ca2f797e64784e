"""The session of a lab on the desk: its frames are steps, and nothing is said of it that is true of speech alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lab_worker import NAME, PLANTED
from PySide6.QtWidgets import QApplication

from app.window.main_window import MainWindow
from pipelines import labs
from pipelines.labs import record
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

STEPS = 120
STEP_NS = 20_000_000


@pytest.fixture
def lab_session(tmp_path: Path) -> Path:
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


def test_steps_of_a_lab_are_no_audio(window: Callable[..., MainWindow], finished: Path, lab_session: Path) -> None:
    w = window()
    w.open_session(finished)
    assert w.top.rtf.value != "–"
    assert w.desk.transport.note.full.count("s of audio") == 1
    w.open_session(lab_session)
    QApplication.processEvents()
    assert w.top.rtf.value == "–"
    note = w.desk.transport.note.full
    assert f"{NAME} · {STEPS} steps" in note
    assert "audio" not in note
    for view in ("cost", "breakdown"):
        assert w.desk.views[view].note.startswith("ms per step of the lab")
    cost = w.desk.views["cost"].model()
    assert not cost.realtime_shown


def test_preset_and_device_during_a_lab_are_those_of_the_next_run(
    window: Callable[..., MainWindow], finished: Path, lab_session: Path
) -> None:
    w = window()
    w.open_session(finished)
    assert not w.top.preset.text().startswith("next: ")
    w.open_session(lab_session)
    assert w.top.preset.text().startswith("next: ")
    assert w.top.device.full == ""
    assert not w.recorded_settings.offered
    w.open_session(finished)
    assert not w.top.preset.text().startswith("next: ")
    assert w.top.device.full != ""
