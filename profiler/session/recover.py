"""Finds out what a session file needs before it can be read.

A finished session is one plain file. A live one has a -wal and a living writer. A crashed one has a -wal that is folded
in, in place or in a private copy; where its -wal was left behind, it is read as far as it goes and left untouched. An
older schema is migrated in a private copy.
"""

import contextlib
import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from profiler.session.errors import Damaged, SessionError, reason
from profiler.session.files import (
    alive,
    check_side_files,
    connect_alone,
    connect_read_only,
    journal_of,
    read_header,
    side_files,
    state_and_owner,
)
from profiler.session.format import rows, schema

FOLD_SECONDS: Final = 1.0
"""How long folding waits for other readers, who hold the file for milliseconds."""

_NOT_HERE: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL)
_HELD: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@dataclass
class Located:
    """Where to read a session from; `state` overrules the file's own word where that is out of date."""

    path: Path
    read_from: Path
    immutable: bool = False
    state: str | None = None
    notes: list[str] = field(default_factory=list)
    private: Path | None = None

    def release(self) -> None:
        if self.private is not None:
            shutil.rmtree(self.private, ignore_errors=True)
            self.private = None


def locate(path: Path) -> Located:
    """Make `path` readable; SessionError with one sentence when it is not a session to be read."""
    header = read_header(path)
    located = Located(path, path)
    try:
        if header.version < schema.VERSION:
            # Before anything is copied: a file without a way forward may be of any size.
            if header.version not in schema.MIGRATIONS or header.version not in schema.LAYOUTS:
                raise _no_way(path, header.version, "no migration leads on from it")
            check_side_files(path)
            _copy(located)
            _fold(located.read_from, header.version)
            _migrate(located, header.version)
        else:
            settle(located)
    except SessionError:
        located.release()
        raise
    except Damaged as error:
        located.release()
        raise SessionError(f"{path}: the session is damaged: {error}") from error
    except (sqlite3.Error, OSError, ValueError, MemoryError) as error:
        located.release()
        raise SessionError(f"{path}: the session cannot be read: {reason(error)}") from error
    return located


def settle(located: Located) -> None:
    """Decide how to read `located`, folding in what a dead writer left."""
    path = located.read_from
    located.immutable, located.state = False, None
    check_side_files(path)
    wal = side_files(path)[0]
    uses_wal = read_header(path).uses_wal
    if not (journal_of(path).exists() or (uses_wal and wal.exists())):
        # Nobody is writing; then SQLite must not ask for a -wal, nor take a stray one for its own.
        located.immutable = True
        state, _ = _peek(path, immutable=True)
        if state == "recording":
            located.state = "crashed"
            if uses_wal:
                located.notes.append(
                    f"The recording broke off and {wal.name} is missing beside the session, so its "
                    "last part cannot be shown; bring that file to this folder and open it again."
                )
        return
    try:
        state, owner = _peek(path)
    except sqlite3.OperationalError as error:
        if _code(error) not in _NOT_HERE:
            raise
        state, owner = "", None
    living = alive(owner)
    if living:
        return
    try:
        if _fold(path) == "crashed":
            located.notes.append("The recording broke off; what had been stored until then has been recovered.")
        located.immutable = True
    except sqlite3.OperationalError as error:
        if _code(error) in _HELD:
            # Whoever holds it is the writer (on another machine) or a reader that folds just now.
            return
        if _code(error) not in _NOT_HERE or located.private is not None:
            raise
        _copy(located)
        settle(located)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _peek(path: Path, immutable: bool = False) -> tuple[str, object]:
    with contextlib.closing(connect_read_only(path, immutable=immutable)) as connection:
        return state_and_owner(connection)


def _fold(path: Path, version: int = schema.VERSION) -> str:
    """Fold the -wal into the file, mark a session that was being recorded as crashed; return its state.

    SQLite's errors go up. A program killed in here leaves what the next opening can fold in.
    """
    deadline = time.monotonic() + FOLD_SECONDS
    while True:
        try:
            return _fold_once(path, version)
        except sqlite3.OperationalError as error:
            if _code(error) not in _HELD or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _fold_once(path: Path, version: int) -> str:
    # Writing may run what a schema holds: none but ours is here.
    with contextlib.closing(connect_alone(path, version)) as connection:
        state = ""
        if version == schema.VERSION:
            # Still in the -wal: leaving WAL mode makes it lasting together with everything else.
            connection.execute("UPDATE meta SET value='\"crashed\"' WHERE key='state' AND value='\"recording\"'")
            found = connection.execute("SELECT value FROM meta WHERE key='state'").fetchone()
            state = str(rows.json(found[0], "meta")) if found else ""
        connection.execute("PRAGMA journal_mode = DELETE")
    # The dead writer's shared memory means nothing any more; an exclusive lock makes SQLite ignore it.
    with contextlib.suppress(OSError):
        side_files(path)[1].unlink(missing_ok=True)
    return state


def _copy(located: Located) -> None:
    """Copy the session (and its -wal) to a private folder and read it there."""
    located.private = Path(tempfile.mkdtemp(prefix="asrscope-"))
    copy = located.private / "session.asrs"
    shutil.copyfile(located.path, copy)
    for source, target in (
        (side_files(located.path)[0], side_files(copy)[0]),
        (journal_of(located.path), journal_of(copy)),
    ):
        if source.exists():
            shutil.copyfile(source, target)
    located.read_from = copy


def _migrate(located: Located, version: int) -> None:
    with contextlib.closing(connect_alone(located.read_from, version)) as connection:
        try:
            schema.migrate(connection, version)
        except ValueError as error:
            raise _no_way(located.path, version, str(error)) from error
    located.notes.append(
        f"The session was recorded in format version {version} and is shown converted; the file itself is unchanged."
    )


def _no_way(path: Path, version: int, why: str) -> SessionError:
    return SessionError(
        f"{path}: the session has format version {version}, which this program "
        f"(version {schema.VERSION}) cannot convert: {why}"
    )
