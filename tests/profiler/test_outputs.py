"""The writer of every output: whole or not at all, never over anything but a plain file."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.files import outputs
from profiler.files.outputs import OutputError, writing
from tests.each import each
from tests.waiting import PATIENCE_S

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX links, pipes and devices")


def write(target: str | Path, sources: Sequence[Path] = (), content: bytes = b"new") -> None:
    with writing(target, "the table", sources) as draft:
        draft.write_bytes(content)


def sentence(target: str | Path, sources: Sequence[Path] = ()) -> str:
    with pytest.raises(OutputError) as caught:
        write(target, sources)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert "the table" in text
    return text


def half_written(target: Path, problem: BaseException) -> None:
    with writing(target, "the table") as draft:
        draft.write_bytes(b"half")
        raise problem


def test_a_new_file_and_an_old_one_are_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    write(target)
    assert target.read_bytes() == b"new"
    write(target, content=b"newer")
    assert target.read_bytes() == b"newer"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_what_goes_wrong_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    target.write_bytes(b"old")
    for problem in (OutputError("no"), KeyboardInterrupt(), ZeroDivisionError()):
        with pytest.raises(type(problem)):
            half_written(target, problem)
        assert target.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no space left on device"):
        half_written(tmp_path / "a", OSError(errno.ENOSPC, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@posix
def test_the_source_is_never_written_over_by_whatever_name(tmp_path: Path) -> None:
    source = tmp_path / "s.asrs"
    source.write_bytes(b"session")
    (tmp_path / "hard").hardlink_to(source)
    (tmp_path / "sub").mkdir()
    for name in (source, tmp_path / "hard", tmp_path / "sub" / ".." / "s.asrs", os.path.relpath(source)):
        assert "made from" in sentence(name, [source])
    assert source.read_bytes() == b"session"


@posix
def test_links_devices_and_folders_are_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in sentence(tmp_path / "link")
    assert "symbolic link" in sentence(tmp_path / "dangling")
    assert "folder" in sentence(tmp_path)
    for device in ("/dev/null", "/dev/full"):
        assert "device" in sentence(device)
        assert not Path(device).is_file()
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "nowhere").exists()


@posix
def test_a_name_for_the_draft_cannot_be_taken_beforehand(tmp_path: Path) -> None:
    """A link that waits where the draft would be, by the name that it had when it could be foreseen."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f".a.csv.{os.getpid()}").symlink_to(victim)
    write(tmp_path / "a.csv")
    assert victim.read_bytes() == b"precious"
    with writing(tmp_path / "a.csv", "it") as one, writing(tmp_path / "b.csv", "it") as two:
        assert one.name != two.name
        assert one.stat().st_mode & 0o777 == 0o600


@posix
def test_permissions_are_those_of_the_old_file_or_the_usual_ones(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    write(old)
    write(new)
    mask = os.umask(0)
    os.umask(mask)
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode & 0o777 == 0o666 & ~mask


@posix
def test_a_pipe_is_written_straight_through_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, content=b"x" * 200_000)
    reader.join(PATIENCE_S)
    assert read == [b"x" * 200_000]
    assert pipe.is_fifo()


@posix
def test_a_pipe_without_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "READER_SECONDS", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "cannot be written there" in sentence(pipe)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@posix
def test_a_pipe_of_the_shells_is_a_pipe(tmp_path: Path) -> None:
    if not Path("/dev/fd").exists():
        pytest.skip("no /dev/fd here")
    reading, writing_end = os.pipe()
    try:
        write(f"/dev/fd/{writing_end}")
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)
        os.close(writing_end)


def test_standard_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    write("-")
    assert out.getvalue() == b"new"
    assert list(tmp_path.iterdir()) == []


@each("name", ["", "no/such/folder/a", "a\0b", "x" * 5000, "no/"])
def test_names_that_cannot_be(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(sentence(name)) < 400
    assert list(tmp_path.iterdir()) == []
