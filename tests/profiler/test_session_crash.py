"""Killed writers, full disks, files that vanish: what was committed stays and opens."""

import itertools
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from profiler_sessions import BLOCKS, record

from profiler.session import recover
from profiler.session.files import alive, identity, own_files
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder
from tests.each import each
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif("sys.platform == 'win32'")

SPANS = 1 + BLOCKS * 7  # of what `record` makes

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
    return subprocess.Popen([sys.executable, "-c", CHILD, path, str(rounds)], stdout=subprocess.PIPE, text=True)


def kill(child: subprocess.Popen[str]) -> int:
    """Kill -9 and return the last number of spans that the child acknowledged."""
    child.send_signal(signal.SIGKILL)
    rest = child.communicate()[0].splitlines()
    return max((int(line) for line in rest if line.isdigit()), default=0)


def refreshed(session: Session) -> Session:
    session.refresh()
    return session


def check(session: Session, acknowledged: int) -> None:
    count = len(session.spans)
    assert count >= acknowledged
    assert session.spans["work0"].tolist() == list(range(count))
    with closing(sqlite3.connect(session.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("followed", [False, True])
def test_kill_9_while_recording_keeps_what_was_acknowledged(followed, tmp_path):
    path = tmp_path / "s.asrs"
    child = run_child(path, 100_000)
    for _ in range(random.Random(followed).randrange(5, 40)):
        child.stdout.readline()
    if followed:
        follower = Session.open(path)
        assert follower.state == "recording"
    acknowledged = kill(child)
    assert own_files(path).wal.exists()
    if followed:
        wait_until(lambda: refreshed(follower).state == "crashed")
        assert follower.notes
        check(follower, acknowledged)
        follower.close()
    for recovered in (followed, True):
        with Session.open(path) as session:
            assert session.state == "crashed"
            assert session.notes or recovered
            assert session.meta["preset"] == "crash"
            check(session, acknowledged)
            assert session.refresh() is False
        assert [p.name for p in tmp_path.iterdir()] == ["s.asrs"]


@each("trial", range(3))
def test_kill_9_while_closing_loses_nothing(trial, tmp_path):
    path = tmp_path / "s.asrs"
    child = run_child(path, 30)
    while child.stdout.readline() != "closing\n":
        pass
    time.sleep(random.Random(trial).random() * 0.01)
    kill(child)
    with Session.open(path) as session:
        assert session.state in ("crashed", "closed")
        check(session, 30 * 60)


def test_another_process_of_the_same_number_is_not_the_writer():
    writer = identity()
    assert alive(writer) is True
    assert alive({**writer, "started": writer["started"] - 100.0}) is False
    assert alive({**writer, "host": "elsewhere"}) is None


def crashed_copy(tmp_path: Path) -> Path:
    """A crashed session of this process's making: its files as they are while it records."""
    writer = record(tmp_path / "live.asrs", writer=None)
    wait_until_written(writer)
    copy = tmp_path / "crashed" / "s.asrs"
    copy.parent.mkdir()
    shutil.copyfile(writer.path, copy)
    shutil.copyfile(own_files(writer.path).wal, own_files(copy).wal)
    # The writer in the copy's own description is this process, which lives: say it is another one.
    writer.close()
    return copy


@pytest.fixture
def dead_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiler.session.recover.alive", lambda owner: False)


@pytest.mark.usefixtures("dead_writer")
def test_a_missing_wal_is_said_and_the_rest_is_shown_untouched(tmp_path):
    copy = crashed_copy(tmp_path)
    wal, before = own_files(copy).wal, copy.read_bytes()
    kept = wal.read_bytes()
    wal.unlink()
    with Session.open(copy) as session:
        assert session.state == "crashed"
        assert "s.asrs-wal is missing" in session.notes[0]
        assert session.meta["preset"] == "test"
    assert copy.read_bytes() == before
    wal.write_bytes(kept)
    with Session.open(copy) as session:
        assert (session.state, len(session.spans)) == ("crashed", SPANS)


@pytest.mark.usefixtures("dead_writer")
def test_a_crash_in_a_read_only_folder(tmp_path, monkeypatch):
    copy = crashed_copy(tmp_path)
    files = (copy, own_files(copy).wal)
    before = [file.read_bytes() for file in files]
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
    assert (session.path, session.state, len(session.spans)) == (copy, "crashed", SPANS)
    session.close()
    assert not private.exists()
    assert [file.read_bytes() for file in files] == before


def put_until_failed(writer: SessionWriter) -> None:
    stage, lane = writer.recorder.stage("s", "search"), writer.recorder.lane("a")
    number = itertools.count()

    def put_some() -> bool:
        for i in itertools.islice(number, 200):
            lane.put(stage, i, i + 1, work0=i)
        return writer.failed is not None

    wait_until(put_some)


def test_a_full_disk_stops_the_file_not_the_program(tmp_path):
    writer = SessionWriter(tmp_path / "s.asrs", Recorder(), {})
    pages = writer._rounds._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._rounds._connection.execute(f"PRAGMA max_page_count = {pages + 40}")
    put_until_failed(writer)
    first = writer.failed
    assert "the disk is full" in str(first)
    assert "\n" not in str(first)
    (lane,) = writer.recorder.lanes
    for i in range(200_000):
        lane.put(0, i, i)
        if i % 20_000 == 0:
            wait_until(lambda: not lane.waiting)
    assert lane.dropped == 0
    writer.marker("note", "said to nobody", 0)
    writer.close()
    assert writer.failed is first
    with Session.open(writer.path) as session:
        assert session.state == "failed"
        assert len(session.spans) > 0
        check(session, 0)


def test_a_removed_folder_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("profiler.session.writer.PRESENCE_SECONDS", 0.0)
    folder = tmp_path / "f"
    folder.mkdir()
    writer = SessionWriter(folder / "s.asrs", Recorder(), {})
    shutil.rmtree(folder)
    put_until_failed(writer)
    assert "was removed or replaced" in str(writer.failed)
    writer.close()
    assert not folder.exists()


def test_a_reader_of_a_removed_session_says_so(tmp_path):
    writer = record(tmp_path / "s.asrs")
    session = Session.open(writer.path)
    # Any error of the writing thread is kept.
    writer.marker("note", "x", 2**70)
    wait_until(lambda: writer.failed is not None)
    assert "recording has stopped" in str(writer.failed)
    writer.close()
    writer.path.unlink()
    with pytest.raises(OSError, match=r"no such file|cannot be opened"):
        session.refresh()


def hot_journal(path: Path) -> Path:
    """Give a closed session the rollback journal of a program killed in the middle of a change."""
    side = path.with_name("other.asrs")
    shutil.copyfile(path, side)
    with closing(sqlite3.connect(side, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE meta SET value='\"dreaming\"' WHERE key='state'")
        # More pages than the cache holds: the change is in the file before it is committed.
        connection.execute("UPDATE block SET data=zeroblob(42000)")
        shutil.copyfile(side, path)
        shutil.copyfile(own_files(side).journal, own_files(path).journal)
        connection.execute("ROLLBACK")
    side.unlink()
    return own_files(path).journal


def test_a_change_cut_short_by_a_kill_is_taken_back(small):
    before = small.read_bytes()
    journal = hot_journal(small)
    assert small.read_bytes() != before
    assert journal.stat().st_size > 512
    with Session.open(small) as session:
        assert (session.state, session.notes, len(session.spans)) == ("closed", [], SPANS)
    assert not journal.exists()
    assert small.read_bytes() == before


def test_a_journal_that_names_another_file_touches_none(small, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("")
    name = os.fsencode(victim)
    journal = hot_journal(small)
    record = struct.pack(">I", 0) + name + struct.pack(">II", len(name), sum(name))
    journal.write_bytes(journal.read_bytes() + record + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(OSError, match="names other files") as caught:
        Session.open(small)
    assert "\n" not in str(caught.value)
    assert victim.exists()


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_linked_side_files_are_refused(suffix, small, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("years of work")
    side = small.with_name(small.name + suffix)
    for make in (lambda: side.symlink_to(victim), lambda: os.mkfifo(side)):
        make()
        with pytest.raises(OSError, match="a link or a device"):
            Session.open(small)
        side.unlink()
    assert victim.read_text() == "years of work"


def test_the_wal_of_another_session_is_not_read(small, tmp_path):
    writer = record(tmp_path / "live.asrs")
    wait_until_written(writer)
    shutil.copyfile(own_files(writer.path).wal, own_files(small).wal)
    writer.close()
    with Session.open(small) as session:
        assert (session.state, len(session.spans)) == ("closed", SPANS)


def wait_until_written(writer: SessionWriter) -> None:
    with Session.open(writer.path) as session:
        lane = writer.recorder.lanes[0]
        wait_until(lambda: len(refreshed(session).spans) == lane.recorded)


def test_a_held_session_is_not_crashed(tmp_path, monkeypatch):
    # As from another machine or container, where the writer's process cannot be seen.
    monkeypatch.setattr("profiler.session.recover.alive", lambda owner: None)
    monkeypatch.setattr("profiler.session.recover.FOLD_SECONDS", 0.1)
    writer = record(tmp_path / "live.asrs")
    with Session.open(writer.path) as session:
        assert session.state == "recording"
    writer.close()
    with Session.open(writer.path) as session:
        assert session.state == "closed"


KILLED = """
import os, signal, sqlite3, sys
from profiler.session import recover
from profiler.session.reader import Session
steps = int(sys.argv[2])
connect = sqlite3.connect
def connected(*arguments, **more):
    connection = connect(*arguments, **more)
    def step(statement):
        global steps
        steps -= 1
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
    connection.set_trace_callback(step)
    return connection
sqlite3.connect = connected
recover.sqlite3.connect = connected
Session.open(sys.argv[1]).close()
print("opened")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("dead_writer")
def test_kill_9_while_folding_loses_nothing(tmp_path):
    copy = crashed_copy(tmp_path)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("""UPDATE meta SET value='{"pid":1,"boot":""}' WHERE key='writer'""")
        kept = [copy.read_bytes(), own_files(copy).wal.read_bytes()]
    killed = 0
    for step in range(1, 60, 4):
        copy.write_bytes(kept[0])
        own_files(copy).wal.write_bytes(kept[1])
        done = subprocess.run(
            [sys.executable, "-c", KILLED, copy, str(step)], capture_output=True, text=True, check=False
        )
        killed += done.returncode == -signal.SIGKILL
        with Session.open(copy) as session:
            assert session.state == "crashed"
            assert len(session.spans) == SPANS
        if "opened" in done.stdout:
            break
    assert killed > 2
