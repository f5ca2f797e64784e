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

from profiler.session import files
from profiler.session.errors import Damaged, SessionError, code_of, reason
from profiler.session.files import alive, own_files
from profiler.session.format import rows, schema

FOLD_SECONDS: Final = 1.0  # How long folding waits for other readers, who hold the file for milliseconds

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
    version = files.read_header(path).version
    located = Located(path, path)
    with contextlib.ExitStack() as undo:
        undo.callback(located.release)
        try:
            if version < schema.VERSION:
                _convert(located, version)
            else:
                settle(located)
        except SessionError:
            raise
        except Damaged as error:
            raise SessionError(f"{path}: the session is damaged: {error}") from error
        except (sqlite3.Error, OSError, ValueError, MemoryError) as error:
            raise SessionError(f"{path}: the session cannot be read: {reason(error)}") from error
        undo.pop_all()
    return located


def settle(located: Located) -> None:
    """Decide how to read `located`, folding in what a dead writer left."""
    path = located.read_from
    located.immutable, located.state = False, None
    files.check_side_files(path)
    own = own_files(path)
    uses_wal = files.read_header(path).uses_wal
    if not (own.journal.exists() or (uses_wal and own.wal.exists())):
        # Nobody is writing; then SQLite must not ask for a -wal, nor take a stray one for its own.
        located.immutable = True
        if _peek(path, immutable=True)[0] == "recording":
            located.state = "crashed"
            if uses_wal:
                located.notes.append(
                    f"The recording broke off and {own.wal.name} is missing beside the session, so its "
                    "last part cannot be shown; bring that file to this folder and open it again."
                )
        return
    owner: object = None
    try:
        _, owner = _peek(path)
    except sqlite3.OperationalError as error:
        if code_of(error) not in _NOT_HERE:
            raise
    if alive(owner):
        return
    try:
        if _fold(path) == "crashed":
            located.notes.append("The recording broke off; what had been stored until then has been recovered.")
        located.immutable = True
    except sqlite3.OperationalError as error:
        if code_of(error) in _HELD:
            # Whoever holds it is the writer (on another machine) or a reader that folds just now.
            return
        if code_of(error) not in _NOT_HERE or located.private is not None:
            raise
        _copy(located)
        settle(located)


def _peek(path: Path, immutable: bool = False) -> tuple[str, object]:
    with contextlib.closing(files.connect_read_only(path, immutable=immutable)) as connection:
        return files.state_and_owner(connection)


def _fold(path: Path, version: int = schema.VERSION) -> str:
    """Fold the -wal in, mark a recording session as crashed, return its state; can be repeated if interrupted."""
    deadline = time.monotonic() + FOLD_SECONDS
    while True:
        try:
            return _fold_once(path, version)
        except sqlite3.OperationalError as error:
            if code_of(error) not in _HELD or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _fold_once(path: Path, version: int) -> str:
    # Writing may run what a schema holds: none but ours is here.
    with contextlib.closing(files.connect_alone(path, version)) as connection:
        state = ""
        if version == schema.VERSION:
            # Still in the -wal: leaving WAL mode makes it lasting together with everything else.
            connection.execute("UPDATE meta SET value='\"crashed\"' WHERE key='state' AND value='\"recording\"'")
            found = connection.execute("SELECT value FROM meta WHERE key='state'").fetchone()
            state = str(rows.json(found[0], "meta")) if found else ""
        connection.execute("PRAGMA journal_mode = DELETE")
    # The dead writer's shared memory means nothing any more; an exclusive lock makes SQLite ignore it.
    with contextlib.suppress(OSError):
        own_files(path).shm.unlink(missing_ok=True)
    return state


def _copy(located: Located) -> None:
    """Copy the session (and its -wal) to a private folder and read it there."""
    located.private = Path(tempfile.mkdtemp(prefix="asrscope-"))
    source, copy = own_files(located.path), own_files(located.private / "session.asrs")
    shutil.copyfile(source.session, copy.session)
    for side, target in ((source.wal, copy.wal), (source.journal, copy.journal)):
        if side.exists():
            shutil.copyfile(side, target)
    located.read_from = copy.session


def _convert(located: Located, version: int) -> None:
    """Bring a private copy of a session of an older version to this one."""
    # Before anything is copied: a file without a way forward may be of any size.
    if version not in schema.MIGRATIONS:
        raise SessionError(
            f"{located.path}: the session has format version {version}, which this program "
            f"(version {schema.VERSION}) cannot convert: no migration leads on from it"
        )
    files.check_side_files(located.path)
    _copy(located)
    _fold(located.read_from, version)
    with contextlib.closing(files.connect_alone(located.read_from, version)) as connection:
        schema.migrate(connection, version)
    located.notes.append(
        f"The session was recorded in format version {version} and is shown converted; the file itself is unchanged."
    )
