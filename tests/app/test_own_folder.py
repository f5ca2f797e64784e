"""Folders for temporary files: none stays, whatever becomes of the window that made it."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.model.processes.command import LOCK, OwnFolder

PREFIX = "asrscope-test-"

OTHER_WINDOW = f"""
import sys, time
from app.model.processes.command import OwnFolder
folder = OwnFolder({PREFIX!r})
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_next_window_removes_what_a_killed_one_left(folder: Path) -> None:
    command = [sys.executable, "-c", OTHER_WINDOW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        left = Path(other.stdout.readline().strip())
        (left / "audio.wav").touch()
        mine = OwnFolder(PREFIX)
        assert (left / "audio.wav").exists(), "its window lives"
        mine.remove()
        assert not mine.path.exists()
        other.kill()
        other.wait()
    assert left.exists()
    mine = OwnFolder(PREFIX)
    assert list(folder.iterdir()) == [mine.path]
    mine.remove()
    assert list(folder.iterdir()) == []


def test_what_is_no_such_folder_stays(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (folder / f"{PREFIX}link").symlink_to(elsewhere)
    (folder / f"{PREFIX}file").touch()
    (folder / f"{PREFIX}without").mkdir()
    before = set(folder.rglob("*"))
    OwnFolder(PREFIX).remove()
    assert set(folder.rglob("*")) == before
