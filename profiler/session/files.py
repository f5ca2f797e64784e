"""The files of a session: telling one from anything else, claiming a name, folding in a -wal.

Nothing here trusts a file: the header is looked at before SQLite is.
"""

import contextlib
import os
import sqlite3
import stat
import struct
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from profiler.session.errors import SessionError, reason
from profiler.session.owner import alive
from profiler.session.schema import APPLICATION_ID, VERSION

HEADER_BYTES: Final = 100
"""Length of SQLite's database header (file format, section 1.3)."""

MAGIC: Final = b"SQLite format 3\0"


recorded_here: set[tuple[int, int]] = set()
"""(device, inode) of the sessions that this very process records. Opening and closing such a file by hand
would drop SQLite's locks on it (POSIX gives up all of a process's locks at the first close)."""


class Header(NamedTuple):
    """What the first 100 bytes of a session say."""

    version: int
    uses_wal: bool


_NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_SUPER_JOURNAL_END: Final = bytes.fromhex("d9d505f920a163d7")
"""Ends a rollback journal that names another file, which SQLite might delete (file format, section 3)."""

STEPS_BETWEEN_LOOKS: Final = 10_000
LEAST_STEPS: Final = 500_000
STEPS_PER_BYTE: Final = 4
"""SQLite's steps that reading may take: some 10 per row, and no row is shorter than 8 bytes. Only in a
damaged file, whose tree of pages runs in circles, is there more to do."""

MAX_VALUE_BYTES: Final = 1 << 27
"""The largest value that SQLite may hand out: the wave form of a week."""


def side_files(path: Path) -> tuple[Path, Path]:
    """Return the names of the -wal and -shm files beside a session."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def read_header(path: Path) -> Header:
    """Read a session's header; SessionError with one sentence when it is not a session to be read."""
    try:
        if path.is_dir():
            raise SessionError(f"{path}: this is a folder; name a session file (.asrs) in it")
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise SessionError(f"{path}: this is a pipe or a device, not a session file")
        if (about.st_dev, about.st_ino) in recorded_here:
            return Header(VERSION, True)
        # Should it be exchanged for a pipe just now, opening must not wait for its other end.
        with open(os.open(path, os.O_RDONLY | _NO_WAITING), "rb") as file:
            head = file.read(HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except SessionError:
        raise
    except FileNotFoundError:
        raise SessionError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise SessionError(f"{path}: the file cannot be read: {reason(error)}") from error
    if not head:
        raise SessionError(f"{path}: the file is empty, not a session")
    if not head.startswith(MAGIC[: len(head)]):
        raise SessionError(
            f"{path}: this is not a session file (a session is an SQLite database made by asrscope)"
        )
    if len(head) < HEADER_BYTES:
        raise SessionError(f"{path}: the file ends after {len(head)} bytes; it has been cut off")
    (application,) = struct.unpack_from(">I", head, 68)
    if application != APPLICATION_ID:
        raise SessionError(
            f"{path}: this is an SQLite database of another program, not an asrscope session"
        )
    (version,) = struct.unpack_from(">I", head, 60)
    if version > VERSION:
        raise SessionError(
            f"{path}: the session has format version {version}, this program reads up to version "
            f"{VERSION}; open it with a newer asrscope"
        )
    (page,) = struct.unpack_from(">H", head, 16)
    (pages,) = struct.unpack_from(">I", head, 28)
    page = 65536 if page == 1 else page
    # With a -wal beside it the main file may be behind its own header (a checkpoint under way).
    if size < page * pages and not side_files(path)[0].exists():
        raise SessionError(
            f"{path}: the file has been cut off ({size} bytes of {page * pages}); "
            "copy it again from where it was recorded"
        )
    # Bytes 18 and 19: 1 for a rollback journal, 2 for a write-ahead log.
    return Header(version, head[18] == 2)


def journal_of(path: Path) -> Path:
    """Return the name of the rollback journal that leaving WAL mode makes for a moment."""
    return path.with_name(path.name + "-journal")


def check_side_files(path: Path) -> None:
    """Refuse side files that SQLite would follow to somewhere else; SessionError says which."""
    for side in (*side_files(path), journal_of(path)):
        try:
            about = side.lstat()
        except OSError:
            continue
        if not stat.S_ISREG(about.st_mode):
            raise SessionError(
                f"{path}: {side.name} beside it is a link or a device, which no recording leaves; "
                "remove it"
            )
    journal = journal_of(path)
    with contextlib.suppress(FileNotFoundError), journal.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - len(_SUPER_JOURNAL_END), 0))
        if file.read() == _SUPER_JOURNAL_END and file.tell() > HEADER_BYTES:
            raise SessionError(
                f"{path}: {journal.name} beside it names other files, which no recording does; "
                "remove it"
            )


def owner_alive(path: Path) -> bool | None:
    """Say whether the process that records into `path` lives; False once it has ended in order."""
    with contextlib.suppress(sqlite3.Error, msgspec.DecodeError, RecursionError, OSError):
        with contextlib.closing(connect_read_only(path)) as connection:
            rows = dict(
                connection.execute(
                    "SELECT key, value FROM meta WHERE key IN ('state', 'writer')"
                ).fetchall()
            )
        if msgspec.json.decode(rows.get("state", "null")) != "recording":
            return False
        return alive(msgspec.json.decode(rows.get("writer", "null")))
    return None


def claim(path: Path, replace: bool) -> None:
    """Make an empty file at `path` that nobody else has; SessionError says why it cannot be.

    An existing session is removed only when `replace` is true and nobody records into it; any other
    existing file is never touched.
    """
    if path.exists() or path.is_symlink():
        if path.is_dir():
            raise SessionError(f"{path}: this is a folder; name a file in it to record to")
        try:
            read_header(path)
            is_session = True
        except SessionError as error:
            # A newer or a cut-off session is still somebody's session: only the mark counts here.
            is_session = "format version" in str(error)
        if not is_session:
            raise SessionError(
                f"{path}: a file that is not an asrscope session lies there and is not overwritten; "
                "choose another name"
            )
        if owner_alive(path):
            raise SessionError(
                f"{path}: another asrscope is recording into this session; choose another name"
            )
        if not replace:
            raise SessionError(
                f"{path}: a session of this name exists; choose another name or ask to replace it"
            )
    try:
        if replace:
            path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        for side in side_files(path):
            side.unlink(missing_ok=True)
    except FileExistsError:
        raise SessionError(
            f"{path}: another asrscope has just begun to record into this session; "
            "choose another name"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise SessionError(
            f"{path}: the folder {path.parent} does not exist; make it or choose another"
        ) from None
    except (OSError, ValueError) as error:
        raise SessionError(
            f"{path}: the session cannot be recorded there: {reason(error)}"
        ) from error


def connect_read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """Open a database for reading only, its own SQL functions and schema tricks distrusted."""
    uri = path.as_uri() + "?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=1.0)
    try:
        distrust(connection, path)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def distrust(connection: sqlite3.Connection, path: Path) -> None:
    """Limit what the contents of a stranger's file can make SQLite do: no code, no end of work."""
    steps = LEAST_STEPS + STEPS_PER_BYTE * size_of(path)
    looks = iter(range(steps // STEPS_BETWEEN_LOOKS))
    connection.set_progress_handler(lambda: next(looks, None) is None, STEPS_BETWEEN_LOOKS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def size_of(path: Path) -> int:
    """Return the bytes of a session and its -wal, 0 where there are none."""
    size = 0
    for file in (path, side_files(path)[0]):
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size
