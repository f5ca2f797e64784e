"""The worker process seen from the window: a scripted worker, real processes, real signals."""

import sys
from pathlib import Path

import pytest
from shown_windows import NOT_READ

from app.model.processes.run_control import RunControl, RunRequest
from profiler.session.reader import Session
from tests.app.worker_process import process_id

WORKER = Path(__file__).with_name("window_worker.py")


class Signals:
    """The signals of a run control, in order."""

    def __init__(self, control: RunControl) -> None:
        self.news: list[tuple] = []
        for name in ("running", "finished", "failed", "refused", "died", "progress"):
            getattr(control, name).connect(lambda *values, name=name: self.news.append((name, *values)))

    def of(self, name: str) -> list[tuple]:
        return [values for kind, *values in self.news if kind == name]


@pytest.fixture
def start(tmp_path):
    made: list[RunControl] = []

    def begin(*modes: str) -> tuple[RunControl, Signals]:
        control = RunControl((sys.executable, str(WORKER), *modes))
        made.append(control)
        heard = Signals(control)
        control.start(request(tmp_path / "run.asrs"))
        return control, heard

    yield begin
    for control in made:
        control.shutdown()


def request(out: Path) -> RunRequest:
    return RunRequest(config={}, preset="gmm", audio=("voice.wav",), out=str(out))


def test_a_run_goes_from_start_to_its_end_and_the_worker_stays(qtbot, start, tmp_path):
    control, heard = start("short")
    assert control.state == "starting"
    with pytest.raises(ValueError, match="under way"):
        control.start(request(tmp_path / "other.asrs"))
    qtbot.waitUntil(lambda: bool(heard.of("finished")))
    assert heard.of("running") == [[str(tmp_path / "run.asrs")]]
    assert heard.of("finished") == [[str(tmp_path / "run.asrs"), "closed"]]
    assert ["building graph: determinise", 0.25] in heard.of("progress")
    assert control.state == "idle"
    before = process_id(control)
    control.start(request(tmp_path / "second.asrs"))
    qtbot.waitUntil(lambda: len(heard.of("finished")) == 2)
    assert process_id(control) == before
    assert Session.open(tmp_path / "second.asrs").state == "closed"
    assert heard.of("died") == []


def test_stop_leaves_a_whole_session(qtbot, start, tmp_path):
    control, heard = start()
    qtbot.waitUntil(lambda: control.state == "running")
    control.mark("here")
    control.set("search.beam", 10.0)
    qtbot.wait(100)
    control.stop()
    assert control.state == "stopping"
    qtbot.waitUntil(lambda: bool(heard.of("finished")))
    session = Session.open(tmp_path / "run.asrs")
    assert session.state == "stopped"
    assert [m.text for m in session.markers] == ["here", "search.beam=10.0"]
    assert not list(tmp_path.glob("run.asrs-*"))


def test_giving_up_before_the_worker_is_ready_drops_all_it_says(qtbot, start):
    control, heard = start("short")
    control.stop()
    assert control.state == "idle"
    qtbot.wait(800)
    assert heard.of("running") == []
    assert heard.of("finished") == [["", "stopped"]]
    assert heard.of("died") == []


def test_late_news_of_a_run_that_is_over_are_dropped(qtbot, start):
    control, heard = start("short", "chatty")
    qtbot.waitUntil(lambda: bool(heard.of("finished")))
    qtbot.wait(300)
    assert [len(heard.of(name)) for name in ("finished", "running", "failed")] == [1, 1, 0]
    assert "still here" not in [stage for stage, _ in heard.of("progress")]
    assert control.state == "idle"


def test_words_of_a_library_are_no_events_but_stand_in_the_report(qtbot, start):
    control, heard = start("error", "noise")
    qtbot.waitUntil(lambda: bool(heard.of("failed")))
    assert len(heard.of("failed")) == 1
    assert "OpenBLAS" in control.report("")
    assert "the last words" in control.report("")


def test_a_refusal_names_the_setting(qtbot, start):
    control, heard = start("refuse")
    qtbot.waitUntil(lambda: control.state == "running")
    control.set("model", "x")
    qtbot.waitUntil(lambda: bool(heard.of("refused")))
    assert heard.of("refused") == [["model", "model cannot be changed just now."]]
    assert control.state == "running"


def test_a_worker_that_cannot_be_started_is_one_sentence(qtbot, tmp_path):
    control = RunControl(("/nonexistent/python", "-m", "nothing"))
    heard = Signals(control)
    control.start(request(tmp_path / "run.asrs"))
    qtbot.waitUntil(lambda: bool(heard.of("failed")))
    assert "/nonexistent/python cannot be started" in heard.of("failed")[0][0]
    assert control.state == "idle"


def test_speech_chosen_during_a_run_is_said_to_be_that_of_the_next(live, tmp_path, qtbot):
    speech = live.desk.form.speech
    assert speech.text() == "one.wav"
    (tmp_path / "b.wav").write_bytes(NOT_READ)
    for name, text in (("b.wav", "next: b.wav"), ("one.wav", "one.wav")):
        live.files.take_audio([tmp_path / name])
        live.refresh()
        assert speech.text() == text
    live.files.take_audio([tmp_path / "b.wav"])
    live.runs.stop()
    qtbot.waitUntil(live.when.is_idle)
    assert speech.text() == "b.wav"
