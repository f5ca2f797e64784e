"""The database of a session that is recorded: how it is made, and how it ends as one file."""

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from profiler.session.errors import SessionError, reason
from profiler.session.files import side_files
from profiler.session.format import schema
from profiler.session.format.blocks import give_back

RELEASE_SECONDS: Final = 3.0
"""How long closing waits for readers to let go; they hold the file for milliseconds at a time."""


def create(
    path: Path, meta: Iterable[tuple[str, str]], clock: tuple[int, int]
) -> sqlite3.Connection:
    """Make the tables in `path`, which the caller has claimed, with `meta` (key, JSON) and the first clock pair.

    WAL with synchronous=NORMAL, without automatic checkpoints. SessionError where that cannot be; nothing is then
    left of the file.
    """
    connection = None
    try:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=2.0
        )
        # So that the room of the small blocks can be given back at the end.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise SessionError(
                f"{path}: a session cannot be recorded on this file system (it lacks the "
                "shared memory that SQLite's WAL needs); record to a local disk"
            )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("BEGIN IMMEDIATE")
        schema.create(connection)
        connection.executemany("INSERT INTO meta VALUES(?,?)", meta)
        connection.execute("INSERT INTO clock VALUES(?,?)", clock)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        for leftover in (path, *side_files(path)):
            leftover.unlink(missing_ok=True)
        if isinstance(error, SessionError):
            raise
        raise SessionError(
            f"{path}: the session cannot be recorded there: {reason(error)}"
        ) from error
    return connection


def finish(connection: sqlite3.Connection) -> None:
    """Give back the room of small blocks and fold everything into the one file."""
    give_back(connection)
    execute = connection.execute
    execute("PRAGMA busy_timeout = 50")
    deadline = time.monotonic() + RELEASE_SECONDS
    while True:
        try:
            execute("PRAGMA wal_checkpoint(TRUNCATE)")
            execute("PRAGMA journal_mode = DELETE")
            return
        except sqlite3.OperationalError:
            # A reader is in the file at this moment. Should one never let go, nothing is lost:
            # the main file is complete, only marked as WAL.
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)
