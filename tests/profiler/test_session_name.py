"""The name of a session: who may read what is recorded under it, what it may not be, and what a renamed file holds."""

import os
import stat
from pathlib import Path

import pytest
from profiler_sessions import record

from profiler.session.errors import SessionError
from profiler.session.files import own_files
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.each import each
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif("sys.platform == 'win32'")


def test_a_session_is_its_owners_alone_from_the_first_byte(tmp_path):
    before = os.umask(0o022)
    try:
        writer = record(tmp_path / "s.asrs")
        files = [writer.path, *own_files(writer.path)[1:3]]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        writer.close()
        assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@each("replace", [False, True])
@each(
    "make, word",
    [
        (os.mkfifo, "a pipe or a device"),
        (lambda path: path.symlink_to("/dev/null"), "a link"),
        (lambda path: path.symlink_to(path.with_name("other.asrs")), "a link"),
        (lambda path: path.symlink_to("nowhere"), "a link"),
        (Path.mkdir, "a folder"),
    ],
)
def test_a_session_takes_the_place_of_no_link_pipe_device_or_folder(make, word, replace, tmp_path):
    record(tmp_path / "other.asrs").close()
    path = tmp_path / "s.asrs"
    make(path)
    before = path.lstat()
    with pytest.raises(SessionError, match=word):
        record(path, replace=replace)
    assert path.lstat() == before
    with Session.open(tmp_path / "other.asrs") as session:
        assert session.state == "closed"


@pytest.mark.parametrize("noticed", ["while recording", "at the end"])
def test_a_renamed_session(noticed, tmp_path, monkeypatch):
    every = 0.0 if noticed == "while recording" else 1e9
    monkeypatch.setattr("profiler.session.writer.PRESENCE_SECONDS", every)
    path, other = tmp_path / "s.asrs", tmp_path / "renamed.asrs"
    writer = SessionWriter(path, Recorder(), {})
    stage, lane = writer.recorder.stage("decode", "decode"), writer.recorder.lane("decode", decode=True)
    for i in range(500):
        lane.put(stage, 10 * i, 10 * i + 9, i, 1)
    path.rename(other)
    if noticed == "while recording":
        wait_until(lambda: writer.failed is not None)
    writer.close()
    assert "was only renamed" in str(writer.failed)
    assert os.listdir(tmp_path) == [other.name]
    with Session.open(other) as session:
        assert (session.state, session.notes) == ("failed", [])
        assert session.spans["first_frame"].tolist() == list(range(500))


def test_side_files_of_whoever_took_the_name_are_left_alone(tmp_path):
    path = tmp_path / "s.asrs"
    first = record(path)
    path.rename(tmp_path / "renamed.asrs")
    second = record(path)
    first.close()
    assert own_files(path).wal.exists()
    second.close()
    assert second.failed is None
    for name in ("s.asrs", "renamed.asrs"):
        with Session.open(tmp_path / name) as session:
            assert len(session.spans) == 85
