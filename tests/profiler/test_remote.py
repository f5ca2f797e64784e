"""A session that comes from another machine: equal to the one there, whatever the link does; hostile streams end."""

import io
import os
import random
import shlex
import signal
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from profiler_sessions import edit, record

from profiler.errors import BadInput
from profiler.remote import link, send, wire
from profiler.remote.link import Following, Host, LinkError, Steering, ssh
from profiler.remote.receive import Copy
from profiler.remote.wire import MAGIC, Position, Value, frame, frames
from profiler.session.errors import Damaged, SessionError
from profiler.session.files import own_files
from profiler.session.reader import Session
from tests.each import each
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands of POSIX")

DOUBLE = Path(__file__).with_name("remote_double.py")
OWN = "('session_id', 'state', 'writer')"

Contents = dict[str, list[tuple[object, ...]]]


def contents(path: Path) -> Contents:
    """All rows of a session that it does not have for itself, the records of each lane and quantity in one piece."""
    with closing(sqlite3.connect(path)) as db:
        tables = "stage lane cost config calibration sample_name peaks utterance marker counter"
        found = {table: sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in tables.split()}
        found["clock"] = db.execute("SELECT rowid, * FROM clock ORDER BY 1").fetchall()
        found["meta"] = db.execute(f"SELECT * FROM meta WHERE key NOT IN {OWN} ORDER BY 1").fetchall()
        for table, owner in (("block", "lane"), ("sample", "name")):
            rows: dict[int, bytes] = {}
            for number, data in db.execute(f"SELECT {owner}, data FROM {table} ORDER BY {owner}, end_record"):
                rows[number] = rows.get(number, b"") + data
            found[table] = list(rows.items())
    assert all(found[table] for table in ("meta", "block", "sample", "utterance", "marker", "counter", "calibration"))
    return found


def stream_of(path: Path, position: str = "{}") -> bytes:
    """What `asrscope tail` writes."""
    pieces: list[bytes] = []
    send.send(path, send.position_of(position), pieces.append)
    return b"".join(pieces)


def rest_of(path: Path, out: Path) -> bytes:
    """What the copy `out` lacks."""
    with closing(Copy.reopen(out)) as copy:
        return stream_of(path, wire.msgspec.json.encode(copy.position).decode())


def sending(stream: bytes, folder: Path) -> Host:
    """A machine that sends these bytes."""
    file = folder / "stream"
    file.write_bytes(stream)
    return Host("gpu", ("sh", "-c", f"cat {shlex.quote(str(file))}"))


def state_of(path: Path) -> str:
    with closing(Session.open(path)) as session:
        return session.state


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "WAITS_S", (0.0,) * 3)


@pytest.mark.parametrize("state", ["closed", "crashed"])
def test_a_session_that_has_ended_arrives_whole(state, small, tmp_path):
    if state == "crashed":
        edit(small, "UPDATE meta SET value='\"recording\"' WHERE key='state'")
    out = tmp_path / "here.asrs"
    assert Following(sending(stream_of(small), tmp_path), str(small), out).run() == state
    assert contents(out) == contents(small)
    assert state_of(out) == state
    assert not any(side.exists() for side in own_files(out)[1:3])


def test_a_session_that_grows_is_followed(tmp_path):
    there, out = tmp_path / "there.asrs", tmp_path / "here.asrs"
    writer = record(there)
    (tmp_path / "plan").touch()
    following = Following(Host("gpu", (sys.executable, str(DOUBLE), str(tmp_path / "plan"))), str(there), out)
    with ThreadPoolExecutor(1) as pool:
        state = pool.submit(following.run)
        wait_until(out.exists)
        wait_until(lambda: count(out, "utterance") == 1)
        assert state_of(out) == "recording"
        writer.marker("user", "later", 7)
        wait_until(lambda: count(out, "marker") == 2)
        writer.close("stopped")
        assert state.result() == state_of(out) == "stopped"
    assert contents(out) == contents(there)


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        try:
            return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # not made yet


@pytest.mark.slow
def test_a_link_that_drops_at_twenty_places_loses_and_doubles_nothing(small, tmp_path, monkeypatch):
    monkeypatch.setattr(link, "WAITS_S", (0.0,) * 20)
    # Rounds of a few rows, so that links end before, within and after them.
    size = len(stream_of(small))
    places = random.Random(1).sample(range(size // 4), 20)
    (tmp_path / "plan").write_text("\n".join(map(str, [3, 11, *places[2:]])))
    out, drops = tmp_path / "here.asrs", list[str]()
    host = Host("gpu", (sys.executable, str(DOUBLE), str(tmp_path / "plan")))
    assert Following(host, str(small), out, progress=drops.append).run() == "closed"
    assert drops == ["the link to gpu dropped; trying again"] * len(drops)
    assert len(drops) > 5  # the last ones may never come: all is there
    assert contents(out) == contents(small)


@each("size", [0, 5, 8, 19, 30, 400])
def test_every_cut_is_a_dropped_link(size, small, tmp_path, no_waiting):
    sentence = r"^the link to gpu does not come back\. The session there stays; `asrscope tail"
    with pytest.raises(LinkError, match=sentence):
        Following(sending(stream_of(small)[:size], tmp_path), str(small), tmp_path / "here.asrs").run()


@pytest.mark.parametrize("child", ["sleep 1000 &", "yes >&2 &"])
def test_whatever_a_command_leaves_open_its_end_is_the_end(child, small, tmp_path, no_waiting, monkeypatch):
    """A process that ssh has started in a session of its own, out of reach of signals, holds output and errors open."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.05)
    monkeypatch.setattr(link, "LOOK_S", 0.01)
    (tmp_path / "stream").write_bytes(stream_of(small))
    pids = tmp_path / "pids"
    words = f"setsid sh -c 'echo $$ >> {pids}; {child}'; cat {shlex.quote(str(tmp_path / 'stream'))}; exit 255"
    try:
        out = tmp_path / "here.asrs"
        assert Following(Host("gpu", ("sh", "-c", words)), str(small), out).run() == "closed"
        assert state_of(out) == "closed"
        (tmp_path / "stream").write_bytes(b"")  # now the output itself must end
        with pytest.raises(LinkError, match="gpu cannot be reached"):
            Following(Host("gpu", ("sh", "-c", words)), str(small), tmp_path / "again.asrs").run()
    finally:
        for pid in pids.read_text().split():
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)


def in_rounds(path: Path) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send, "ROUND_BYTES", 1500)
        return stream_of(path)


def test_another_session_is_not_mixed_in_and_one_that_somebody_records_not_continued(small, tmp_path):
    out = tmp_path / "here.asrs"
    Following(sending(stream_of(small), tmp_path), "there", out).run()
    before = contents(out)
    with record(tmp_path / "other.asrs"), pytest.raises(SessionError, match="another asrscope is recording"):
        Following(Host("gpu", ("false",)), "there", tmp_path / "other.asrs", resume=True)
    with pytest.raises(LinkError, match="another session than that on gpu"):
        Following(sending(stream_of(tmp_path / "other.asrs"), tmp_path), "there", out, resume=True).run()
    after = contents(out)
    assert [row for row in after.pop("meta") if row[0] != "problem"] == before.pop("meta")
    assert after == before


Rows = list[tuple[list[Value], bytes]]
Attack = Callable[[Rows], object]


def place(rows: Rows, table: str) -> int:
    """Of the first row of a table."""
    return next(number for number, (values, _) in enumerate(rows) if values[0] == table)


def cell(table: str, column: int, value: Value) -> Attack:
    """Another value in the first row of a table."""
    return lambda rows: rows[place(rows, table)][0].__setitem__(column + 1, value)


def again(table: str) -> Attack:
    """The first row of a table comes a second time."""
    return lambda rows: rows.insert(-1, rows[place(rows, table)])


def blob(table: str, change: Callable[[bytes], bytes]) -> Attack:
    """Other bytes in the first BLOB of a table."""

    def spoil(rows: Rows) -> None:
        values, data = rows[place(rows, table)]
        rows[place(rows, table)] = values, change(data)

    return spoil


def put(*values: Value) -> Attack:
    """Another frame before the last commit."""
    return lambda rows: rows.insert(-1, (list(values), b""))


ATTACKS: dict[str, tuple[Attack, str]] = {
    "another format version": (cell("hello", 1, 3), "sends sessions of format version 3"),
    "another protocol": (cell("hello", 0, 2), r"\(protocol 2\)"),
    "no greeting": (lambda rows: rows.__delitem__(0), "its first frame is no greeting"),
    "a table that does not exist": (put("sqlite_master", 1, "x"), "a table that no session has: sqlite_master"),
    "an empty frame": (put(), "an empty frame"),
    "a stage of text": (cell("stage", 0, "0"), "where a number below 512 belongs"),
    "a stage out of order": (cell("stage", 0, 3), "row 3 of stage after row -1"),
    "a stage twice": (again("stage"), "row 0 of stage after row 4"),
    "a clock that goes back": (again("clock"), "row 1 of clock after row"),
    "a law twice": (again("cost"), "of cost after row"),
    "a block twice": (again("block"), "do not follow those before"),
    "a block of a huge count": (cell("block", 1, 1 << 62), "do not follow those before"),
    "a block of no lane": (cell("block", 0, 9), "belong to nothing"),
    "half a record": (blob("block", lambda data: data[:-1]), "belong to nothing"),
    "spans of no stage": (blob("block", lambda data: b"\xff" * len(data)), "a span with impossible values"),
    "a reading of no quantity": (cell("sample", 0, 5), "belong to nothing"),
    "half a wave": (blob("peaks", lambda data: data + b"x"), "an impossible length"),
    "a lane beyond all": (
        lambda rows: [put("lane", lane, "x", "cpu", 1, 0, 0)(rows) for lane in range(65)], "more than 64 lanes"
    ),
    "an utterance of text": (cell("utterance", 4, "many"), "where a count belongs"),
    "words of another kind": (cell("utterance", 9, '{"a": 1}'), "JSON of another kind"),
    "too few columns": (put("marker", 9, 99), "that no recording writes"),
    "a text where a number is stored": (cell("calibration", 7, "x"), "where a number belongs"),
    "a flag of text": (cell("lane", 3, "yes"), "that no recording writes"),
    "a law that is none": (cell("cost", 3, "[1]"), "cost|law"),
    "a fact that is no JSON": (put("meta", "x", "{"), "is not JSON"),
    "deep JSON": (put("meta", "x", "[" * 5000 + "]" * 5000), "deep|nested|levels|JSON"),
    "a fact of our own": (put("meta", "writer", "{}"), "the writer of another file"),
    "an endless name": (put("stage", 5, "x" * 20_000, "search", "[]"), "20,000 characters"),
    "a state that is none": (lambda rows: rows.__setitem__(-1, (["commit", "lost"], b"")), "its state is"),
    "a log that does not go on": (put("log", 0, "a"), "out of order"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_row_ends_in_a_sentence(name, small, tmp_path):
    attack, sentence = ATTACKS[name]
    rows: Rows = []
    with suppress(wire.Dropped):
        rows.extend(frames(io.BytesIO(stream_of(small))))
    attack(rows)
    stream = MAGIC + b"".join(frame(values, data) for values, data in rows)
    out = tmp_path / "here.asrs"
    with pytest.raises(LinkError, match=sentence) as refused:
        Following(sending(stream, tmp_path), "there", out).run()
    assert str(refused.value).startswith("gpu cannot be followed: ")
    assert "\n" not in str(refused.value)
    if out.exists():  # nothing of the round is in it
        assert state_of(out) == "failed"
        assert count(out, "block") == 0


@each(
    "stream, sentence",
    [
        (b"Welcome to gpu!\nYou have mail.\n", "other text before the session: Welcome to gpu!"),
        (MAGIC + wire.HEAD.pack(1 << 62, 10), "a frame of 4,611,686,018,427,387,904 bytes"),
        (MAGIC + wire.HEAD.pack(100, 97), "a frame of 100 bytes, 97 of them JSON"),
        (MAGIC + wire.HEAD.pack(3, 0), "a frame of 3 bytes"),
        (MAGIC + wire.HEAD.pack(wire.MAX_FRAME, wire.MAX_JSON + 1), "of them JSON"),
        (MAGIC + wire.HEAD.pack(10, 6) + b"[true]", "a frame that is no row"),
        (MAGIC + wire.HEAD.pack(6, 2) + b"\xff\xff", "a frame that is no row"),
    ],
)
def test_hostile_bytes_end_in_a_sentence(stream, sentence, tmp_path):
    with pytest.raises(LinkError, match=sentence.replace("(", r"\(")) as refused:
        Following(sending(stream, tmp_path), "there", tmp_path / "here.asrs").run()
    assert str(refused.value).isprintable()
    assert not (tmp_path / "here.asrs").exists()


def test_a_frame_takes_no_more_memory_than_came_of_it(monkeypatch):
    stream = io.BytesIO(MAGIC + wire.HEAD.pack(wire.MAX_FRAME, 10) + b"[1,2,3,45]" + b"few")
    counting = Mock(wraps=stream)
    with pytest.raises(wire.Dropped):
        list(frames(counting))
    assert max(call.args[0] for call in counting.read.call_args_list) == wire.PIECE


def test_mutated_streams_end_in_a_sentence_or_whole(small, tmp_path):
    good, rng = in_rounds(small), random.Random(3)
    for number in range(40):
        stream = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            stream[rng.randrange(len(stream))] = rng.randrange(256)
        out = tmp_path / f"{number}.asrs"
        with closing(Copy.create(out, "x")) as copy, suppress(wire.Dropped, Damaged):
            for values, data in frames(io.BytesIO(bytes(stream))):
                if values[:1] not in (["hello"], ["log"]) and copy.take(values, data) and copy.state != "recording":
                    break
        # Its rows are sound one by one; that they fit together, the reader checks.
        with suppress(SessionError), closing(Session.open(out)) as session:
            assert session.state in ("closed", "failed", "stopped", "crashed")


@pytest.mark.parametrize("problem", ["a full disk here", "a link that does not come back"])
def test_what_came_stays_and_is_continued(problem, tmp_path, monkeypatch):
    there, out = tmp_path / "there.asrs", tmp_path / "here.asrs"
    with record(there) as writer:
        for _ in range(5):
            writer.marker("note", "x" * 60_000, 0)
    stream = in_rounds(there)
    with monkeypatch.context() as patch:
        if problem == "a full disk here":
            sentence = r"here\.asrs: the session cannot be written: the disk is full\. The session there"
            made = Copy.create

            def small_disk(path: Path, session_id: str, replace: bool = False) -> Copy:
                copy = made(path, session_id, replace)
                pages = copy._connection.execute("PRAGMA page_count").fetchone()[0]
                copy._connection.execute(f"PRAGMA max_page_count = {pages + 10}")
                return copy

            patch.setattr(Copy, "create", small_disk)
        else:
            sentence, stream = "does not come back", stream[: len(stream) * 2 // 3]
            patch.setattr(link, "WAITS_S", ())
        with pytest.raises(LinkError, match=sentence):
            Following(sending(stream, tmp_path), str(there), out).run()
    with closing(Session.open(out)) as session:
        assert (session.state, len(session.stages)) == ("failed", 5)
    rest = rest_of(there, out)
    assert len(rest) < len(stream)
    Following(sending(rest, tmp_path), str(there), out, resume=True).run()
    assert contents(out) == contents(there)
    assert state_of(out) == "closed"


def test_a_file_removed_meanwhile_is_a_sentence(small, tmp_path):
    copy = Copy.create(tmp_path / "here.asrs", "x")
    (tmp_path / "here.asrs").unlink()
    with pytest.raises(SessionError, match="was removed or replaced"):
        copy.take(["commit", "recording"], b"")
    copy.close()
    assert not (tmp_path / "here.asrs").exists()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'sh: 1: asrscope: not found' >&2; exit 127", "^gpu has no asrscope on the PATH of commands over ssh"),
        ("echo 'ssh: connect to host gpu port 22: Connection timed out' >&2; exit 255",
         r"^gpu cannot be reached: ssh: connect to host gpu port 22: Connection timed out\."),
        ("exit 255", "^gpu cannot be reached: ssh gave no reason"),
        ("echo 'asrscope: x.asrs: there is no such file' >&2; exit 2", r"^gpu: x\.asrs: there is no such file\."),
        ("printf '\\033[2Jx\\n' >&2; exit 1", r"^gpu: \\x1b\[2Jx\."),
        ("exit 4", "^gpu: exit status 4"),
    ],
)  # fmt: skip
def test_a_machine_that_does_not_answer_is_a_sentence(script, sentence, tmp_path):
    host = Host("gpu", ("sh", "-c", script))
    with pytest.raises(LinkError, match=sentence):
        Following(host, "there", tmp_path / "here.asrs").run()
    with pytest.raises(LinkError, match=sentence.partition("; ")[0]):
        link.record(host, [])


@each(
    "script, sentence",
    [
        ("echo Welcome", "no answer of asrscope: Welcome"),
        ("yes y | tr -d '\\n' | head -c 1000000", "no answer of asrscope: yyy"),
        ("""printf %s '{"session": "x.asrs", "pid": 1}'""", "no name of a session: x.asrs"),
        ("""printf %s '{"session": "/x\\u001b.asrs", "pid": 1}'""", "no name of a session"),
        ("echo 'asrscope: unrecognized arguments: --protocol=1.2; `asrscope --help`' >&2; exit 2",
         r"an older asrscope, without `asrscope record`; install"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_sentence(script, sentence):
    with pytest.raises(LinkError, match=sentence):
        link.record(Host("gpu", ("sh", "-c", script)), [])
    with pytest.raises(LinkError, match="gpu cannot be reached: there is no no-such-ssh here"):
        link.record(Host("gpu", ("no-such-ssh",)), [])


def test_words_reach_the_shell_there_as_they_are():
    *options, end, name, command = ssh("gpu").words("record", "--audio=it's; $(x) *.wav")
    assert (end, name) == ("--", "gpu")
    assert "BatchMode=yes" in options
    assert shlex.split(command) == ["asrscope", "record", "--audio=it's; $(x) *.wav"]
    for no_machine in ("", "-oProxyCommand=x", "a b", "a\nb"):
        with pytest.raises(BadInput, match="--on takes a name that ssh knows"):
            ssh(no_machine)


def test_a_stop_waits_for_the_link(tmp_path):
    # The machine there sends back what it is sent; that is no stream, and the sentence quotes it.
    steering = Steering()
    steering.stop()
    host = Host("gpu", ("sh", "-c", "head -n 1"))
    with pytest.raises(LinkError, match=r'other text before the session: \{"do": "stop"\}'):
        Following(host, "there", tmp_path / "here.asrs", steering=steering).run()


def test_a_position_is_checked():
    assert send.position_of('{"block": {"3": 40}, "clock": 2}') == Position(clock=2, block={3: 40})
    for text in ("", "[]", '{"clock": -2}', '{"clock": "1"}', '{"block": {"x": 1}}', '{"other": 1}', "[" * 10_000):
        with pytest.raises(BadInput, match="--from takes a position"):
            send.position_of(text)


def test_an_older_format_is_sent_converted(tmp_path):
    kept = Path(__file__).parents[1] / "data" / "sessions" / "v1.asrs"
    out = tmp_path / "here.asrs"
    Following(sending(stream_of(kept), tmp_path), "there", out).run()
    with closing(Session.open(kept)) as there, closing(Session.open(out)) as here:
        assert here.spans.tobytes() == there.spans.tobytes()
        assert list(here.utterances) == list(there.utterances)
