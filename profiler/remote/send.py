"""The sending end of a stream (wire.py): what a session file has beyond a position, until the session ends.

Each round reads in one transaction and is sent after that, so that a slow link never stands in the way of the writer.

Next to a session that `asrscope record` records lie the run's named pipe for commands, NAME.asrs.control, as long as
the run lasts, and its log, NAME.asrs.log: what the recording process prints, a message of pipelines.worker on each
line; it stays. Both are their owner's alone.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from profiler.errors import BadInput
from profiler.machine.describe import own_version
from profiler.remote.wire import MAGIC, PROTOCOL, Position, Value, frame
from profiler.session.database import Queries
from profiler.session.format import rows, schema
from profiler.session.reader import SAMPLE, Session
from profiler.session.recover import Located, locate
from profiler.spans import RECORD_BYTES

LONGEST_COMMAND: Final = 4096  # With its end of line: such lines of two senders do not mix (PIPE_BUF)
STEERING: Final = ("set", "mark", "compare", "stop")

LONGEST_LINE: Final = 1 << 14  # Characters of a line of the log that are passed on

_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def control_of(session: Path) -> Path:
    return session.with_name(session.name + ".control")


def log_of(session: Path) -> Path:
    return session.with_name(session.name + ".log")


class Commands:
    """The sending end of the named pipe."""

    def __init__(self, session: Path) -> None:
        self._path = control_of(session)

    @property
    def open(self) -> bool:
        return self._write(b"")

    def send(self, line: bytes) -> bool:
        """Pass on a command line of pipelines.worker that steers a run, no other; return whether somebody takes it."""
        if len(line) >= LONGEST_COMMAND:
            return False
        try:
            steers = json.loads(line)["do"] in STEERING
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return steers and self._write(line + b"\n")

    def _write(self, line: bytes) -> bool:
        try:
            pipe = os.open(self._path, os.O_WRONLY | _FLAGS)
        except OSError:
            return False
        try:
            return stat.S_ISFIFO(os.fstat(pipe).st_mode) and os.write(pipe, line) == len(line)
        except OSError:
            return False
        finally:
            os.close(pipe)


class Log:
    """The lines of the log from byte `position` on."""

    def __init__(self, session: Path, position: int = 0) -> None:
        self._path, self._position = log_of(session), position

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give the whole lines that are new, each with the position after it."""
        with contextlib.suppress(OSError), open(os.open(self._path, os.O_RDONLY | _FLAGS), "rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield self._position, line.decode("utf-8", "replace").rstrip()[:LONGEST_LINE]


NUMBERED: Final = {
    "clock": ("rowid", 0),
    **dict.fromkeys(("stage", "cost", "config", "calibration", "sample_name"), ("id", 0)),
    "peaks": ("utterance", 0),
    "utterance": ("revision", 1),
    "marker": ("revision", 1),
    "counter": ("revision", 6),
}
"""Table → the column that numbers its rows, and its place among them. In this order: an utterance follows its peaks."""

OWN_FACTS: Final = frozenset({"session_id", "state", "writer"})  # Facts of `meta` that each file has for itself
ROUND_BYTES: Final = 4 << 20  # A round that has more is continued by the next one
POLL_SECONDS: Final = 0.1  # Between queries for news; each takes 3 ms of processor time that the run may need
ALIVE_SECONDS: Final = 1.0  # Between commits without news: writing is how a sender finds out that its link is gone
ENDING_SECONDS: Final = 5.0  # How long a recording process may take from the end of its session to its own


def position_of(text: str) -> Position:
    """Read a position as `--from` takes it; BadInput where it is none."""
    try:
        return msgspec.json.decode(text, type=Position)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise BadInput("--from takes a position as JSON, as a receiver sends it; {} is the beginning.") from None


class Tail(Session):
    """A session of which `refresh` collects the rows beyond `position` as `frames`."""

    def __init__(self, located: Located, position: Position) -> None:
        super().__init__(located)
        self.position = position
        self.frames: list[bytes] = []
        self._sent_lanes: dict[int, tuple[Value, ...]] = {}
        self._room = 0

    @classmethod
    def follow(cls, path: Path, position: Position) -> "Tail":
        return cls(locate(Path(os.path.abspath(path))), position)

    def _read_all(self, db: Queries) -> bool:
        before, self._room = len(self.frames), ROUND_BYTES
        known = dict(self._meta_text)
        self._read_meta(db)
        for key, value in self._meta_text.items():
            if known.get(key) != value and key not in OWN_FACTS:
                self._put(["meta", key, value])
        for row in db.rows("SELECT * FROM lane"):
            *about, recorded, dropped = row
            if self._sent_lanes.get(row[0]) != (*about, dropped):
                self._sent_lanes[row[0]] = (*about, dropped)
                self._put(["lane", *about, recorded, dropped])
        # In this order, and none after one that found the round full: a row is sent before what refers to it.
        full = any(self._numbered(db, table) for table in NUMBERED)
        full = full or self._blocks(db, "sample", "name", self.position.sample, SAMPLE.itemsize)
        full = full or self._blocks(db, "block", "lane", self.position.block, RECORD_BYTES)
        ended = self._located.state or rows.state(self.meta.get("state"))
        self.state = "recording" if full else ended
        if full:
            self._signature = None
        return len(self.frames) > before

    def _put(self, values: list[Value], blob: bytes | memoryview = b"") -> None:
        made = frame(values, blob)
        self._room -= len(made)
        self.frames.append(made)

    def _numbered(self, db: Queries, table: str) -> bool:
        """Put what is new of a table; whether the round is full."""
        column, at = NUMBERED[table]
        number = getattr(self.position, table)
        columns = "rowid, *" if column == "rowid" else "*"
        for row in db.rows(f"SELECT {columns} FROM {table} WHERE {column}>? ORDER BY {column}", number):
            # Counters change many at once, under one number.
            if self._room <= 0 and row[at] != number:
                return True
            number = row[at]
            blob = row[-1] if isinstance(row[-1], bytes) else b""
            self._put([table, *(row[:-1] if table == "peaks" else row)], blob)
            setattr(self.position, table, number)
        return False

    def _blocks(self, db: Queries, table: str, column: str, position: dict[int, int], record_bytes: int) -> bool:
        """Put the new records of each owner; whether the round is full."""
        for owner in self._sent_lanes if table == "block" else range(self.position.sample_name + 1):
            for data, end in db.blocks(table, column, owner, position.get(owner, 0), record_bytes):
                if self._room <= 0:
                    return True
                self._put([table, owner, end], data)
                position[owner] = end
        return False


def send(path: Path, position: Position, write: Callable[[bytes], object]) -> None:
    """Write the stream of a session to its end. SessionError where it cannot be read; what `write` raises goes up."""
    log, commands = Log(path, position.log), Commands(path)
    with contextlib.closing(Tail.follow(path, position)) as tail:
        tail.refresh()
        session_id = str(tail.meta.get("session_id"))
        write(MAGIC + frame(["hello", PROTOCOL, schema.VERSION, own_version() or "", session_id]))
        due = ending = 0.0
        while True:
            now = time.monotonic()
            state = tail.state
            if state != "recording" and commands.open:
                # Its last words follow its session.
                ending = ending or now + ENDING_SECONDS
                state = "recording" if now < ending else state
            lines = [frame(["log", after, line]) for after, line in log.lines()]
            if tail.frames or lines or state != "recording" or now >= due:
                write(b"".join([*tail.frames, *lines, frame(["commit", state])]))
                tail.frames.clear()
                due = now + ALIVE_SECONDS
            if state != "recording":
                return
            if not tail.refresh():
                time.sleep(POLL_SECONDS)
