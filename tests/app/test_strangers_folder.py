"""The program started in a folder full of a stranger's code: none of it runs."""

import random
import subprocess
from pathlib import Path

import pytest
from command_line import command
from pytestqt.qtbot import QtBot

from app.model.processes.command import DeviceProbe
from app.model.processes.run_control import RunControl, RunRequest
from tests.strangers_folder import plant, ran
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

WORDS = ("yes", "no", "one", "two", "three", "four", "five", "six", "seven", "stop", "go", "left", "right", "up")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "folder"


@pytest.fixture
def marks(folder: Path) -> Path:
    return plant(folder)


def started(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("words", [["doctor"], ["presets"]])
def test_verbs_that_start_children(words: list[str], folder: Path, marks: Path) -> None:
    done = started(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    assert ran(marks) == []


def test_a_run_that_has_a_graph_compiled(folder: Path, marks: Path, bundled_speech: Path) -> None:
    # No cache has a graph of these words in this order.
    phrases = [" ".join(random.SystemRandom().sample(WORDS, 5)) for _ in range(3)]
    (folder / "own.txt").write_text("\n".join(["yes of course", *phrases]) + "\n")
    done = started(
        "run", "--preset", "gmm-quick", "--set", "graph.grammar=own.txt", "--no-profile",
        "--audio", bundled_speech / "08-kal16-short.flac", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "building graph" in done.stderr
    assert "yes of course" in done.stdout
    assert ran(marks) == []


def test_what_the_window_starts(qtbot: QtBot, folder: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    control, probe = RunControl(), DeviceProbe()
    heard: list[object] = []
    control.failed.connect(lambda message, session: heard.append(message))
    control.died.connect(lambda reason, session: heard.append(reason))
    probe.found.connect(heard.append)
    try:
        # The worker lives and answers: there is no such sound file in the folder it stands in.
        control.start(RunRequest({}, "gmm", ["none.wav"], str(folder / "out.asrs")))
        probe.ask()
        qtbot.waitUntil(lambda: len(heard) == 2)
    finally:
        control.shutdown()
        probe.stop()
    assert any("none.wav" in str(words) for words in heard), heard
    assert any(isinstance(words, dict) for words in heard), heard
    assert ran(marks) == []
