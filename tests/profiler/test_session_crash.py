"""Killed writers, full disks, files that vanish: what was committed stays and opens."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from profiler_sessions import BLOCKS, record

from profiler.session.files import side_files
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

pytestmark = pytest.mark.skipif("sys.platform == 'win32'")

# Says after each round how many spans a reader has seen in the file; a reader sees what is committed.
CHILD = """
import sys, time
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
recorder = Recorder()
writer = SessionWriter(sys.argv[1], recorder, {"preset": "crash"})
stage, lane = recorder.stage("s", "search"), recorder.lane("a", decode=True)
session = Session.open(sys.argv[1])
rounds = int(sys.argv[2])
i = 0
while rounds:
    for _ in range(60):
        lane.put(stage, i, i + 1, work0=i)
        i += 1
    time.sleep(0.005)
    session.refresh()
    print(len(session.spans), flush=True)
    rounds -= 1
while len(session.spans) < i:
    session.refresh()
print(len(session.spans), flush=True)
print("closing", flush=True)
writer.close()
print("closed", flush=True)
time.sleep(60)
"""


def run_child(path: Path, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, path, str(rounds)], stdout=subprocess.PIPE, text=True
    )


def kill(child: subprocess.Popen[str]) -> int:
    """Kill -9 and return the last number of spans that the child acknowledged."""
    child.send_signal(signal.SIGKILL)
    rest = child.communicate()[0].splitlines()
    return max((int(line) for line in rest if line.isdigit()), default=0)


def check(session: Session, acknowledged: int) -> None:
    count = len(session.spans)
    assert count >= acknowledged
    assert session.spans["work0"].tolist() == list(range(count))
    connection = sqlite3.connect(session.path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.parametrize("trial", range(4))
def test_kill_9_while_recording_keeps_what_was_acknowledged(trial: int, tmp_path: Path) -> None:
    path = tmp_path / "s.asrs"
    child = run_child(path, 100_000)
    assert child.stdout is not None
    for _ in range(random.Random(trial).randrange(5, 40)):
        child.stdout.readline()
    acknowledged = kill(child)
    assert side_files(path)[0].exists()
    with Session.open(path) as session:
        assert session.state == "crashed"
        assert session.notes
        assert session.meta["preset"] == "crash"
        check(session, acknowledged)
        assert session.refresh() is False
    assert [p.name for p in tmp_path.iterdir()] == ["s.asrs"]
    with Session.open(path) as again:
        assert again.state == "crashed"
        check(again, acknowledged)


@pytest.mark.parametrize("trial", range(4))
def test_kill_9_while_closing_loses_nothing(trial: int, tmp_path: Path) -> None:
    path = tmp_path / "s.asrs"
    child = run_child(path, 30)
    assert child.stdout is not None
    while child.stdout.readline() != "closing\n":
        pass
    time.sleep(random.Random(trial).random() * 0.01)
    kill(child)
    with Session.open(path) as session:
        assert session.state in ("crashed", "closed")
        check(session, 30 * 60)


def test_a_reader_that_follows_sees_its_writer_die(tmp_path: Path) -> None:
    path = tmp_path / "s.asrs"
    child = run_child(path, 100_000)
    assert child.stdout is not None
    for _ in range(5):
        child.stdout.readline()
    session = Session.open(path)
    assert session.state == "recording"
    acknowledged = kill(child)
    end = time.monotonic() + 30
    while session.state == "recording" and time.monotonic() < end:
        session.refresh()
        time.sleep(0.03)
    assert session.state == "crashed"
    assert session.notes
    check(session, acknowledged)


def crashed_copy(tmp_path: Path) -> Path:
    """A crashed session of this process's making: its files as they are while it records."""
    writer = record(tmp_path / "live.asrs", writer=None)
    folder = tmp_path / "crashed"
    folder.mkdir()
    end = time.monotonic() + 20
    while True:
        with Session.open(writer.path) as session:
            if len(session.spans) == 1 + BLOCKS * 7 and session.utterances:
                break
        assert time.monotonic() < end
        time.sleep(0.01)
    copy = folder / "s.asrs"
    for source, target in zip(
        (writer.path, side_files(writer.path)[0]), (copy, side_files(copy)[0]), strict=True
    ):
        shutil.copyfile(source, target)
    # The writer in the copy's own description is this process, which lives: say it is another one.
    writer.close()
    return copy


@pytest.fixture
def dead_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiler.session.recover.alive", lambda owner: False)


@pytest.mark.usefixtures("dead_writer")
def test_a_missing_wal_is_said_and_the_rest_is_shown_untouched(tmp_path: Path) -> None:
    copy = crashed_copy(tmp_path)
    wal = side_files(copy)[0]
    kept = wal.read_bytes()
    wal.unlink()
    before = copy.read_bytes()
    with Session.open(copy) as session:
        assert session.state == "crashed"
        assert "s.asrs-wal is missing" in session.notes[0]
        assert session.meta["preset"] == "test"
    assert copy.read_bytes() == before
    wal.write_bytes(kept)
    with Session.open(copy) as session:
        assert session.state == "crashed"
        assert len(session.spans) == 1 + BLOCKS * 7


@pytest.mark.usefixtures("dead_writer")
def test_a_damaged_wal_costs_only_what_is_damaged(tmp_path: Path) -> None:
    copy = crashed_copy(tmp_path)
    wal = side_files(copy)[0]
    wal.write_bytes(wal.read_bytes()[: wal.stat().st_size // 2])
    with Session.open(copy) as session:
        assert session.state == "crashed"
        assert session.meta["preset"] == "test"


@pytest.mark.usefixtures("dead_writer")
def test_a_crashed_session_in_a_folder_that_cannot_be_written_is_read_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = crashed_copy(tmp_path)
    files = (copy, side_files(copy)[0])
    before = [file.read_bytes() for file in files]
    from profiler.session import recover

    fold = recover._fold

    def refuse(path: Path) -> None:
        if path == copy:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = sqlite3.SQLITE_READONLY
            raise error
        fold(path)

    monkeypatch.setattr(recover, "_fold", refuse)
    session = Session.open(copy)
    private = session._located.private
    assert session.path == copy
    assert session.state == "crashed"
    assert len(session.spans) == 1 + BLOCKS * 7
    assert private is not None
    session.close()
    assert not private.exists()
    assert [file.read_bytes() for file in files] == before


def put_until_failed(writer: SessionWriter, recorder: Recorder) -> int:
    stage, lane = recorder.stage("s", "search"), recorder.lane("a")
    i = 0
    end = time.monotonic() + 30
    while writer.failed is None:
        assert time.monotonic() < end
        for _ in range(200):
            lane.put(stage, i, i + 1, work0=i)
            i += 1
        time.sleep(0.002)
    return i


def test_a_full_disk_stops_the_file_not_the_program(tmp_path: Path) -> None:
    recorder = Recorder()
    writer = SessionWriter(tmp_path / "s.asrs", recorder, {})
    pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._connection.execute(f"PRAGMA max_page_count = {pages + 40}")
    put_until_failed(writer, recorder)
    first = writer.failed
    assert "the disk is full" in str(first)
    assert "\n" not in str(first)
    lane = recorder.lanes[0]
    for i in range(200_000):
        lane.put(0, i, i)
        if i % 20_000 == 0:
            time.sleep(0.06)
    assert lane.dropped == 0
    writer.marker("note", "said to nobody", 0)
    writer.close()
    assert writer.failed is first
    with Session.open(writer.path) as session:
        assert session.state == "failed"
        count = len(session.spans)
        assert count > 0
        assert session.spans["work0"].tolist() == list(range(count))


LIMITED = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
recorder = Recorder()
writer = SessionWriter(sys.argv[1], recorder, {})
stage, lane = recorder.stage("s", "search"), recorder.lane("a")
i = 0
while writer.failed is None:
    for _ in range(200):
        lane.put(stage, i, i + 1, work0=i); i += 1
    time.sleep(0.002)
writer.close()
print(writer.failed)
"""


def test_a_file_that_may_not_grow_keeps_what_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "s.asrs"
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "recording has stopped" in child.stdout
    assert child.stdout.count("\n") == 1
    with Session.open(path) as session:
        assert session.state in ("failed", "crashed")
        count = len(session.spans)
        assert count > 0
        assert session.spans["work0"].tolist() == list(range(count))


def test_a_folder_removed_under_the_recording_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profiler.session.writer.PRESENCE_SECONDS", 0.0)
    folder = tmp_path / "f"
    folder.mkdir()
    recorder = Recorder()
    writer = SessionWriter(folder / "s.asrs", recorder, {})
    shutil.rmtree(folder)
    put_until_failed(writer, recorder)
    assert "was removed or replaced" in str(writer.failed)
    writer.close()
    assert not folder.exists()


def test_a_reader_of_a_removed_session_says_so(tmp_path: Path) -> None:
    writer = record(tmp_path / "s.asrs")
    session = Session.open(writer.path)
    writer.close()
    writer.path.unlink()
    with pytest.raises(OSError, match=r"no such file|cannot be opened"):
        session.refresh()


def test_any_error_of_the_writing_thread_is_kept_not_lost(tmp_path: Path) -> None:
    recorder = Recorder()
    writer = SessionWriter(tmp_path / "s.asrs", recorder, {})
    writer.marker("note", "x", 2**70)
    end = time.monotonic() + 20
    while writer.failed is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert "recording has stopped" in str(writer.failed)
    writer.close()
    assert np.frombuffer(recorder.lane("x").take()).size == 0
