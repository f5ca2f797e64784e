"""The worker process as the window talks to it: real runs, commands on stdin, and a kill in the middle."""

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

import assets
from pipelines import config as settings
from pipelines import worker
from pipelines.config import assign, presets, to_dict
from pipelines.on_host import OnHost, words
from pipelines.run import session_run
from profiler.analysis.breakdown import breakdown
from profiler.process import children
from profiler.remote.link import Host
from profiler.session.files import own_files
from profiler.session.reader import Session
from tests.pipelines.whole_runs import compiled
from tests.waiting import PATIENCE_S, wait_for_frames, wait_until


class Window:
    """What the window does with a worker, without the window."""

    def __init__(self, complaints: IO[bytes]) -> None:
        self.complaints = complaints
        self.process = subprocess.Popen(
            children.python("-m", "pipelines.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            encoding="utf-8",
            env=children.environment(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def write(self, line: str) -> None:
        self.stdin.write(line + "\n")
        self.stdin.flush()

    def say(self, **command: Any) -> None:
        self.write(json.dumps(command))

    def hear(self, event: str) -> dict[str, Any]:
        """The next event of this kind; whatever comes before it must not be an error."""
        for line in self.stdout:
            heard = json.loads(line)
            if heard["event"] == event:
                return heard
            assert heard["event"] == "progress", heard
        raise AssertionError(f"the worker ended without saying {event}")


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    with (tmp_path / "stderr").open("w+b") as complaints:
        window = Window(complaints)
        assert window.hear("ready")
        yield window
        with window.process as process:
            process.kill()


def order_of(out: Path, *audio: Path, **changes: Any) -> dict[str, Any]:
    # Neither replays nor calls timed again: nothing here is about figures.
    config = assign(presets.load("gmm-quick").config, {"replay": 0.0, **changes})
    heard = [str(path) for path in audio]
    return {"do": "start", "config": to_dict(config), "preset": "gmm-quick", "audio": heard, "out": str(out)}


def start(window: Window, out: Path, audio: Path, **changes: Any) -> None:
    window.say(**order_of(out, audio, **changes))
    assert window.hear("running")["session"] == str(out)


@pytest.fixture
def paced(window: Window, bundled_speech: Path, tmp_path: Path) -> Path:
    """The session of a run as fast as the speech, when it has some frames."""
    path = tmp_path / "paced.asrs"
    start(window, path, bundled_speech / "01-slt-morning.flac", pace=1.0)
    while window.hear("progress")["stage"] != "decoding":
        pass
    wait_for_frames(path, 50)
    return path


def state(path: Path) -> str:
    with closing(Session.open(path)) as session:
        return session.state


@pytest.fixture
def selection_compiled() -> None:
    compiled(presets.load("gmm-quick").config, {"gmm.selection.enabled": True})


@pytest.mark.slow
def test_a_run_takes_changes_and_marks_and_refuses_the_rest(selection_compiled, window, paced):
    window.say(do="set", key="gmm.selection.enabled", value=True)
    window.say(do="mark", text="here")
    window.say(do="set", key="model", value="ptm")
    assert "cannot change while a run goes on" in window.hear("refused")["message"]
    window.say(do="set", key="pace", value=0)
    assert window.hear("finished") == {"event": "finished", "session": str(paced), "state": "closed"}
    with closing(Session.open(paced)) as session:
        markers = {m.kind: m for m in session.markers}
        assert markers["user"].text == "here"
        keys = [m.key for m in session.markers if m.kind == "option"]
        assert keys == ["gmm.selection.enabled", "pace"]
        assert session.configs[-1].tree["gmm"]["selection"]["enabled"] is True


@pytest.mark.slow
def test_the_end_of_a_worker_does_not_wait_for_what_is_compiled(short, tmp_path, monkeypatch):
    begun, released, out = threading.Event(), threading.Event(), tmp_path / "a.asrs"

    def prepare(*_: object) -> None:
        """Looks at no request, as when numba compiles."""
        begun.set()
        released.wait()

    order = SimpleNamespace(about={}, prepare=prepare, run=lambda *_: None)
    monkeypatch.setattr(session_run, "execute", partial(session_run.execute, order=order))
    made = worker.Worker(io.StringIO())
    made._obey(order_of(out, short))
    begun.wait()
    assert made.end()
    assert state(out) == "stopped"
    assert not any(side.exists() for side in own_files(out)[1:3])
    released.set()  # otherwise the process would end here
    assert made._thread is not None
    made._thread.join()


@pytest.mark.slow
def test_it_can_run_again_after_an_error(window, short, tmp_path):
    window.say(do="start", config={}, audio=[str(tmp_path / "none.wav")], out=str(tmp_path / "a"))
    assert "none.wav" in window.hear("error")["message"]
    window.say(do="start", config={"colour": 1}, audio=[], out=str(tmp_path / "a.asrs"))
    assert "colour" in window.hear("error")["message"]
    start(window, tmp_path / "b.asrs", short)
    assert window.hear("finished")["state"] == "closed"


def test_what_is_no_command_is_answered(window):
    for line in ("nonsense", '{"do": "dance"}', "[]"):
        window.write(line)
        assert "Not a command" in window.hear("error")["message"]
    window.say(do="quit")
    assert window.process.wait(timeout=PATIENCE_S) == 0


def test_killed_in_the_middle_the_session_up_to_then_opens(window, paced):
    window.process.kill()
    window.process.wait()
    with closing(Session.open(paced)) as session:
        assert session.state == "crashed"
        parts = breakdown(session)
        assert parts.last_frame >= 50
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGINT, 0))]
)
def test_a_signal_or_a_window_that_goes_away_ends_the_run_cleanly(number, window, paced):
    if number:
        window.process.send_signal(number)
    else:
        window.stdin.close()
    assert window.hear("finished")["state"] == "stopped"
    assert window.process.wait(timeout=PATIENCE_S) == (128 + number if number else 0)
    assert state(paced) == "stopped"


@pytest.mark.slow
def test_a_crash_leaves_its_stack(window, paced):
    window.process.send_signal(signal.SIGSEGV)
    assert window.process.wait(timeout=PATIENCE_S) == -signal.SIGSEGV
    window.complaints.seek(0)
    said = window.complaints.read().decode()
    assert "Segmentation fault" in said
    # Of a thread that goes on meanwhile Python may read half a frame and give up: what is sure is that stacks begin.
    assert "(most recent call first):\n  File " in said
    # Which of its threads the system gives the signal to is not ours to say.
    assert children.last_words(said, -signal.SIGSEGV).startswith("it crashed (segmentation fault) ")


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")


def test_what_numba_would_refuse_is_said_and_not_waited_for(no_threads, window, bundled_speech, tmp_path):
    window.say(**order_of(tmp_path / "a", bundled_speech))
    assert "NUMBA_NUM_THREADS" in window.hear("error")["message"]


posix = pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")


@posix
def test_the_arguments_are_the_preset_and_what_differs():
    quick = presets.load("gmm-quick").config
    command = {"preset": "gmm-quick", "audio": ["/data/a b.wav"], "transcripts": "/data/t.tsv"}
    assert words(assign(quick, {"block": 8, "loop": False}), command) == [
        "--preset=gmm-quick",
        "--set=block=8",
        "--audio=/data/a b.wav",
        "--transcripts=/data/t.tsv",
    ]
    assert "--set=loop=true" in words(assign(quick, {"loop": True}), {"preset": "gmm-quick", "audio": []})


class Answers(io.StringIO):
    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.getvalue().splitlines()]
        return [event for event in lines if event["event"] == kind]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "asrscope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m app.cli.main "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path / "there"))
    monkeypatch.setenv("PYTHONPATH", str(Path(assets.__file__).parents[1]))
    return Host("gpu", ("env", f"PATH={tmp_path / 'bin'}:/usr/bin:/bin", "sh", "-c"))


@posix
def test_a_run_there_answers_like_one_here(host, tmp_path):
    answers, out = Answers(), tmp_path / "here.asrs"
    worker = OnHost(host, answers)
    worker._obey(order_of(out, pace=1.0))
    try:
        wait_until(lambda: bool(answers.events("running") or answers.events("error")))
        assert answers.events("running") == [{"event": "running", "session": str(out)}]
        wait_for_frames(out)
        for command in (
            {"do": "set", "key": "frames.skip", "value": 2},
            {"do": "mark", "text": "here"},
            {"do": "compare", "with": {"frames.skip": 1}},
            {"do": "compare", "with": None},
        ):
            worker._obey(command)
        with pytest.raises(settings.ConfigError, match="cannot change while a run goes on"):
            worker._obey({"do": "set", "key": "model", "value": "dnn"})
        with Session.open(out) as session:
            wait_until(lambda: session.refresh() and {"option", "user"} <= {marker.kind for marker in session.markers})
        worker._obey({"do": "stop"})
    finally:
        worker.end()
    assert answers.events("finished") == [{"event": "finished", "session": str(out), "state": "stopped"}]
    assert answers.events("error") == []
    assert {event["stage"] for event in answers.events("progress")} >= {"reaching gpu", "decoding"}


@posix
def test_what_is_wrong_there_is_an_error(host, tmp_path):
    answers, out = Answers(), tmp_path / "here.asrs"
    worker = OnHost(host, answers)
    worker._obey(order_of(out, Path("/no/such.wav")))
    worker.end()
    (error,) = answers.events("error")
    assert error["message"].startswith("gpu: /no/such.wav")
    assert answers.events("finished") == []
    assert not out.exists()
