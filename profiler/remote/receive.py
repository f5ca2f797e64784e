"""The receiving end of a stream (wire.py): rows of a stranger, each of them checked, appended to a session file here.

Views follow that file like one that is recorded here; this process is its writer. What a stream may hold is what a
session of a stranger may hold (profiler.session.format.rows), and positions only grow. Nothing that it names is opened.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from profiler.remote.send import NUMBERED, OWN_FACTS
from profiler.remote.wire import Position, Value
from profiler.session import database
from profiler.session.errors import Damaged, SessionError, plain, reason
from profiler.session.files import claim, connect_alone, identity, inode, owner_alive, recorded_here
from profiler.session.format import rows, schema
from profiler.session.format.tables import COUNT_SPANS, Blocks, Round, to_json
from profiler.session.reader import SAMPLE
from profiler.session.recover import locate
from profiler.spans import RECORD_BYTES, SPAN

Row = tuple[Value, ...]
Check = Callable[[Row], object]


def _later(check: Check, row: Row) -> None:
    """Check a row whose number comes before the columns that `check` knows."""
    rows.integer(row[0], "a number")
    check(row[1:])


def _second(check: Check, row: Row) -> None:
    """Check a row of `marker` or `utterance`: the table has id and revision, `check` has revision and id."""
    check((row[1], row[0], *row[2:]))


CHECKS: Final[dict[str, Check]] = {
    "clock": rows.clock,
    "stage": rows.stage,
    "cost": partial(_later, rows.cost),
    "config": partial(_later, rows.config),
    "calibration": partial(_later, rows.calibration),
    "sample_name": rows.sample_name,
    "utterance": partial(_second, partial(rows.utterance, wave=np.empty((0, 2), np.int8))),
    "marker": partial(_second, rows.marker),
    "counter": rows.counter,
}
"""Table → what refuses a row that no writer produces (Damaged, or another ValueError)."""

GAPLESS: Final = frozenset({"stage", "sample_name"})  # Tables that number their rows 0, 1, 2 …

UNFIT: Final = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError)
"""Errors that values of a row cause, and no disk."""


class Copy:
    """A session file that grows with a stream; `position`: what it holds, `state`: of the source's last commit."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.state = "recording"
        self.position = Position()
        self._connection = connection
        self._lanes: set[int] = set()
        self._key = inode(path)
        if self._key is not None:
            recorded_here.add(self._key)
        self._checkpointer = database.Checkpointer(path)
        try:
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(COUNT_SPANS)
            self._execute("DELETE FROM meta WHERE key='problem'")  # of an earlier stream
            self._execute("INSERT OR REPLACE INTO meta VALUES('state', '\"recording\"')")
            self._execute("INSERT OR REPLACE INTO meta VALUES('writer', ?)", to_json(identity()))
            self._load()
        except BaseException:
            self._let_go()
            raise

    @classmethod
    def create(cls, path: Path, session_id: str, replace: bool = False) -> "Copy":
        """Make the file, empty as yet."""
        path = Path(os.path.abspath(path))
        facts = {"session_id": session_id, "state": "recording", "writer": identity()}
        claim(path, replace)
        return cls(path, database.create(path, [(key, to_json(value)) for key, value in facts.items()]))

    @classmethod
    def reopen(cls, path: Path) -> "Copy":
        """Go on with a file that an earlier stream left; SessionError where somebody is writing to it."""
        path = Path(os.path.abspath(path))
        # Folds in what a killed process left, and refuses what is no session.
        locate(path).release()
        if owner_alive(path):
            raise SessionError(f"{path}: another asrscope is recording into this session; choose another name")
        try:
            connect_alone(path).close()
            return cls(path, database.connect(path))
        except (sqlite3.Error, Damaged) as error:
            raise SessionError(f"{path}: the session cannot be continued: {reason(error)}") from error

    def take(self, values: Sequence[Value], blob: bytes) -> bool:
        """Take a frame; True for a commit. Damaged where no sender sends such a frame, and nothing of it is kept."""
        if not values:
            raise Damaged("it sent an empty frame")
        name, row = values[0], tuple(values[1:])
        try:
            self._take(name, row, blob)
        except Damaged:
            raise
        except (ValueError, OverflowError, *UNFIT) as error:
            raise Damaged(f"it sent a row of {plain(str(name)):.40} that no recording writes") from error
        except sqlite3.Error as error:
            raise SessionError(f"{self.path}: the session cannot be written: {reason(error)}") from error
        return name == "commit"

    def roll_back(self) -> None:
        """Forget what came since the last commit."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._load()
        except sqlite3.Error as error:
            raise SessionError(f"{self.path}: the session cannot be written: {reason(error)}") from error

    def close(self, problem: str = "") -> None:
        """Leave one portable file; without a last commit the session has failed, and `problem` says why. Idempotent."""
        if self._key is None:
            return
        state = self.state
        try:
            with contextlib.suppress(sqlite3.Error):  # a full disk: what is committed stays
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if state == "recording":
                    state = "failed"
                    self._execute("INSERT OR REPLACE INTO meta VALUES('problem', ?)", to_json(problem))
                else:
                    self._round = Round(self._connection)
                    self._spans.seal(self._round.execute)
                    self._samples.seal(self._round.execute)
                    self._round.finish()
                self._execute("UPDATE meta SET value=? WHERE key='state'", to_json(state))
        finally:
            self._let_go(finish=True)

    def _let_go(self, finish: bool = False) -> None:
        self._checkpointer.stop()
        with contextlib.suppress(sqlite3.Error):
            if finish:
                database.finish(self._connection)
        self._connection.close()
        if self._key is not None:
            recorded_here.discard(self._key)
        self._key = None

    def _execute(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)

    def _load(self) -> None:
        """Find out from the file what it holds."""
        query = self._connection.execute
        at = {}
        for table, (column, _) in NUMBERED.items():
            (highest,) = query(f"SELECT max({column}) FROM {table}").fetchone()
            if highest is not None:
                at[table] = highest
        self._lanes = {number for (number,) in query("SELECT id FROM lane")}
        blocks = dict(query("SELECT lane, max(end_record) FROM block GROUP BY lane"))
        samples = dict(query("SELECT name, max(end_record) FROM sample GROUP BY name"))
        self.position = Position(**at, block=blocks, sample=samples, log=self.position.log)
        self._spans = Blocks("block", "lane", RECORD_BYTES, blocks)
        self._samples = Blocks("sample", "name", SAMPLE.itemsize, samples)
        self._round = Round(self._connection)
        found = query("SELECT value FROM meta WHERE key='session_id'").fetchone()
        self.session_id = str(msgspec.json.decode(found[0])) if found else ""

    def _take(self, name: object, row: Row, blob: bytes) -> None:
        if name == "commit":
            (state,) = row
            self.state = rows.state(state)
            self._round.finish()
            if inode(self.path) != self._key:
                raise SessionError(f"{self.path}: the session file was removed or replaced while it was being written")
        elif name == "meta":
            key, value = row
            key = rows.text(key, "meta")
            rows.json(value, f"meta {key:.40}")
            if key in OWN_FACTS:
                raise Damaged(f"it sent the {key} of another file")
            self._round.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))
        elif name == "lane":
            info = rows.lane(row)
            self._lanes.add(info.id)
            if len(self._lanes) > rows.MAX_LANES:
                raise Damaged(f"it has more than {rows.MAX_LANES} lanes")
            # What is recorded here, not there.
            values = (*row[:4], self._spans.end(info.id), row[5])
            self._round.execute("INSERT OR REPLACE INTO lane VALUES(?,?,?,?,?,?)", values)
        elif name == "block":
            self._append(self._spans, self.position.block, row, blob)
        elif name == "sample":
            self._append(self._samples, self.position.sample, row, blob)
        elif name == "peaks":
            rows.peaks(blob)
            self._store("peaks", (*row, blob), 0)
        elif isinstance(name, str) and name in CHECKS:
            CHECKS[name](row)
            self._store(name, row, NUMBERED[name][1])
        else:
            raise Damaged(f"it sent a row of a table that no session has: {plain(str(name)):.40}")

    def _store(self, table: str, row: tuple[Value | bytes, ...], at: int) -> None:
        """Store a checked row, whose column `at` has its number."""
        number, last = rows.integer(row[at], table), getattr(self.position, table)
        # All counters that change together have one revision.
        again = table == "counter" and number == last
        if (number <= last and not again) or (table in GAPLESS and number != last + 1):
            raise Damaged(f"it sent row {number} of {table} after row {last}")
        setattr(self.position, table, number)
        if table == "clock":
            self._round.execute("INSERT INTO clock(rowid, mono_ns, wall_ns) VALUES(?,?,?)", row)
        else:
            places = ",".join("?" * len(row))
            self._round.execute(f"INSERT OR REPLACE INTO {table} VALUES({places})", row)

    def _append(self, blocks: Blocks, position: dict[int, int], row: Row, blob: bytes) -> None:
        owner, end = row
        spans = blocks is self._spans
        known = self._lanes if spans else range(self.position.sample_name + 1)
        count, rest = divmod(len(blob), RECORD_BYTES if spans else SAMPLE.itemsize)
        if not isinstance(owner, int) or owner not in known or rest or not 0 < count <= schema.MAX_BLOCK_RECORDS:
            raise Damaged(f"it sent {len(blob):,} bytes of records that belong to nothing ({plain(str(owner)):.40})")
        if end != blocks.end(owner) + count:
            raise Damaged(f"it sent records of {owner} that do not follow those before")
        if spans:
            rows.check_spans(np.frombuffer(blob, SPAN), owner, self.position.stage)
        blocks.append(self._round.execute, {owner: blob})
        position[owner] = blocks.end(owner)
