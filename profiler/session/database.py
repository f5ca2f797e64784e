"""The database of a session: how it is made, how its -wal is moved, how it ends as one file, and how it is queried.

A checkpoint waits for the disk. Were it made by the connection that commits (SQLite's own habit), spans would wait in
memory meanwhile, where a crash loses them; so a thread of its own moves the -wal into the main file.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from profiler.session.errors import Damaged, SessionError, reason
from profiler.session.files import own_files, size_of
from profiler.session.format import schema
from profiler.session.format.schema import MAX_BLOCK_RECORDS
from profiler.session.format.tables import give_back

RELEASE_SECONDS: Final = 3.0  # How long closing waits for readers, which hold the file for milliseconds


def connect(path: Path) -> sqlite3.Connection:
    """Open the file for the writer of its session: WAL with synchronous=NORMAL, without automatic checkpoints."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=2.0)
    try:
        # So that the room of the small blocks can be given back at the end.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise SessionError(
                f"{path}: a session cannot be recorded on this file system (it lacks the "
                "shared memory that SQLite's WAL needs); record to a local disk"
            )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:  # whatever ends this, nobody else has the connection
        connection.close()
        raise
    return connection


def create(path: Path, meta: Iterable[tuple[str, str]], *clock: tuple[int, int]) -> sqlite3.Connection:
    """Make the tables in the claimed `path`, with `meta` and clock pairs; SessionError, and no file, otherwise."""
    connection = None
    try:
        connection = connect(path)
        connection.execute("BEGIN IMMEDIATE")
        schema.create(connection)
        connection.executemany("INSERT INTO meta VALUES(?,?)", meta)
        connection.executemany("INSERT INTO clock VALUES(?,?)", clock)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        for leftover in own_files(path):
            leftover.unlink(missing_ok=True)
        if isinstance(error, SessionError):
            raise
        raise SessionError(f"{path}: the session cannot be recorded there: {reason(error)}") from error
    return connection


def finish(connection: sqlite3.Connection) -> None:
    """Give back the room of small blocks and fold everything into the one file."""
    give_back(connection)
    connection.execute("PRAGMA busy_timeout = 50")
    deadline = time.monotonic() + RELEASE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
            return
        except sqlite3.OperationalError:
            # A reader is in the file at this moment. Should one never let go, nothing is lost:
            # the main file is complete, only marked as WAL.
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)


EVERY_SECONDS: Final = 5.0  # Between checkpoints; a decode at real-time pace writes some 2 MB of -wal meanwhile
PASSES: Final = 4  # The -wal is reused once all of it has moved; each pass has less to move than the last


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move what can be moved without stopping anybody; True if nothing is left to move."""
    for _ in range(PASSES):
        with contextlib.suppress(sqlite3.Error):
            # A full disk is for the writer to find: here nothing is lost, the -wal only grows.
            _, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages == moved:
                return True
    return False


class Checkpointer:
    """The thread that checkpoints `path`, from construction until `stop`."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session-checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and let go of the file; idempotent."""
        self._stopping.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_SECONDS):
            checkpoint(self._connection)


SLACK_BYTES: Final = 1 << 16  # What the values of a reading may weigh in memory beyond their bytes in the file


class Queries:
    """Queries of one read transaction; Damaged when all rows outweigh the file `path`, or a block is impossible."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._size = size_of(path)
        self._room = self._size + SLACK_BYTES

    def rows(self, query: str, *values: int) -> Iterator[tuple[Any, ...]]:
        """Give the rows of `query`, as long as they do not weigh more than the file itself."""
        for row in self._db.execute(query, values):
            self._room -= sum(len(value) for value in row if isinstance(value, bytes | str))
            if self._room < 0:
                # A live file has grown meanwhile.
                size = size_of(self._path)
                self._room, self._size = self._room + size - self._size, size
                if self._room < 0:
                    raise Damaged("it holds more than fits into the file")
            yield row

    def later(self, table: str, columns: str, last: dict[str, int]) -> list[tuple[Any, ...]]:
        """The rows of `table` with an id beyond last[table], which moves on to the newest of them."""
        query = f"SELECT id, {columns} FROM {table} WHERE id>? ORDER BY id"
        found = list(self.rows(query, last[table]))
        if found:
            last[table] = found[-1][0]
        return [row[1:] for row in found]

    def blocks(
        self, table: str, column: str, owner: int, seen: int, record_bytes: int
    ) -> Iterator[tuple[memoryview, int]]:
        """Give what is new of the blocks of `owner`: (records, count after them), no record twice."""
        query = f"SELECT end_record, data FROM {table} WHERE {column}=? AND end_record>? ORDER BY end_record"
        for end, data in self.rows(query, owner, seen):
            if not isinstance(end, int) or not isinstance(data, bytes):
                raise Damaged(f"a {table} of {column} {owner} is of no known kind")
            count, rest = divmod(len(data), record_bytes)
            begin = end - count
            if rest or count > MAX_BLOCK_RECORDS or not 0 <= begin <= seen < end:
                raise Damaged(f"a {table} of {column} {owner} has an impossible length")
            yield memoryview(data)[(seen - begin) * record_bytes :], end
            seen = end
