"""The files of a session: telling one from anything else, claiming a name, folding in a -wal, and who records it.

A process number alone is reused; with its start time, the host and the boot it names one process.

Nothing here trusts a file: the header is looked at before SQLite is.
"""

import contextlib
import os
import platform
import sqlite3
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from profiler.session.errors import Damaged, SessionError, reason
from profiler.session.format import rows, schema
from profiler.session.format.schema import APPLICATION_ID, VERSION

START_TOLERANCE_S = 2.0  # Start times are read with the kernel's tick and a boot time that may be corrected by a second


def identity() -> dict[str, Any]:
    """Describe this process so that another one can ask later whether it lives."""
    return {"pid": os.getpid(), "started": psutil.Process().create_time(), "host": platform.node(), "boot": _boot()}


def alive(owner: object) -> bool | None:
    """Say whether the process that `identity` described lives; None where it cannot be known."""
    if not isinstance(owner, dict):
        return None
    pid, started = owner.get("pid"), owner.get("started")
    if not isinstance(pid, int) or not 0 < pid < 2**31 or not isinstance(started, int | float):
        return None
    if owner.get("host") != platform.node():
        return None
    if owner.get("boot") != _boot():
        return False
    try:
        process = psutil.Process(pid)
        same = bool(abs(process.create_time() - started) < START_TOLERANCE_S)
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


recorded_here: set[tuple[int, int]] = set()
"""(device, inode) of the sessions that this very process records. Opening and closing such a file by hand
would drop SQLite's locks on it (POSIX gives up all of a process's locks at the first close)."""

MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = struct.Struct(">16xHB9xI8xI16xI4xI28x")
"""Of SQLite's header (file format, section 1.3): bytes of a page, 1 for a rollback journal or 2 for a write-ahead log,
pages, changes of the schema (0 until the first table is made), user_version, application_id."""

_NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_SUPER_JOURNAL_END: Final = bytes.fromhex("d9d505f920a163d7")  # Of a journal that names a file to delete
OWNER_ONLY: Final = 0o600  # A session holds paths, command and host: it is its owner's until passed on
STEPS_BETWEEN_LOOKS: Final = 10_000
MIN_STEPS: Final = 500_000
STEPS_PER_BYTE: Final = 4
"""SQLite's steps that reading may take: some 10 per row, and no row is shorter than 8 bytes. Only in a
damaged file, whose tree of pages runs in circles, is there more to do."""

MAX_VALUE_BYTES: Final = 1 << 27  # The largest value of SQLite, the wave form of a week; none outgrows its file
MIN_VALUE_BYTES: Final = 1 << 20  # A file being recorded grows while it is read
SCHEMA_STEPS: Final = 9_000  # Steps that reading the schema may take; it takes some 500

LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 4096,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4096,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 40,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 20,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""What SQLite is held to in a stranger's file: our longest statement has 500 characters, our widest table 18
columns. The first is raised once the schema is known."""


class Files(NamedTuple):
    """A session, and the files that SQLite may keep with it."""

    session: Path
    wal: Path
    shm: Path
    journal: Path


def own_files(path: str | os.PathLike[str]) -> Files:
    session = Path(path)
    return Files(session, *(session.with_name(session.name + end) for end in ("-wal", "-shm", "-journal")))


def inode(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, which stay its own under any name; None where there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


class Header(NamedTuple):
    """What the first 100 bytes of a session say."""

    version: int
    uses_wal: bool


def read_header(path: Path) -> Header:
    """Read a session's header; SessionError with one sentence when it is not a session to be read."""
    try:
        if path.is_dir():
            raise SessionError(f"{path}: this is a folder; name a session file (.asrs) in it")
        if not stat.S_ISREG(path.stat().st_mode):
            raise SessionError(f"{path}: this is a pipe or a device, not a session file")
        if inode(path) in recorded_here:
            return Header(VERSION, True)
        # Should it be exchanged for a pipe just now, opening must not wait for its other end.
        with open(os.open(path, os.O_RDONLY | _NO_WAITING), "rb") as file:
            head = file.read(_HEADER.size)
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
        raise SessionError(f"{path}: this is not a session file (a session is an SQLite database made by asrscope)")
    if len(head) < _HEADER.size:
        raise SessionError(f"{path}: the file ends after {len(head)} bytes; it has been cut off")
    page, journal, pages, tables, version, application = _HEADER.unpack(head)
    if application == 0 and tables == 0:
        raise SessionError(
            f"{path}: nothing has been written to this file yet; if a run is just starting, open it in a moment"
        )
    if application != APPLICATION_ID:
        raise SessionError(f"{path}: this is an SQLite database of another program, not an asrscope session")
    if version > VERSION:
        raise SessionError(
            f"{path}: the session has format version {version}, this program reads up to version "
            f"{VERSION}; open it with a newer asrscope"
        )
    whole = pages * (65536 if page == 1 else page)
    # With a -wal beside it the main file may be behind its own header (a checkpoint under way).
    if size < whole and not own_files(path).wal.exists():
        raise SessionError(
            f"{path}: the file has been cut off ({size} bytes of {whole}); copy it again from where it was recorded"
        )
    return Header(version, journal == 2)


def check_side_files(path: Path) -> None:
    """Refuse side files that SQLite would follow to somewhere else; SessionError says which."""
    _, *sides = own_files(path)
    for side in sides:
        if side.is_symlink() or (side.exists() and not side.is_file()):
            raise SessionError(
                f"{path}: {side.name} beside it is a link or a device, which no recording leaves; remove it"
            )
    journal = own_files(path).journal
    with contextlib.suppress(FileNotFoundError), journal.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - len(_SUPER_JOURNAL_END), 0))
        if file.read() == _SUPER_JOURNAL_END and file.tell() > _HEADER.size:
            raise SessionError(
                f"{path}: {journal.name} beside it names other files, which no recording does; remove it"
            )


def state_and_owner(connection: sqlite3.Connection) -> tuple[str, object]:
    """Return a session's state and writer as the file says; Damaged where it has no state."""
    query = "SELECT key, value FROM meta WHERE key IN ('state', 'writer')"
    found = rows.texts(connection.execute(query), "meta")
    if "state" not in found:
        raise Damaged("meta holds no state")
    return str(rows.json(found["state"], "meta state")), rows.json(found.get("writer", "null"), "meta writer")


def owner_alive(path: Path) -> bool | None:
    """Say whether the process that records into `path` lives; False once it has ended in order."""
    with contextlib.suppress(sqlite3.Error, OSError, Damaged):
        with contextlib.closing(connect_read_only(path)) as connection:
            state, owner = state_and_owner(connection)
        return alive(owner) if state == "recording" else False
    return None


def claim(path: Path, replace: bool) -> None:
    """Make an empty file at `path`, or SessionError; `replace` removes only a session that nobody records."""
    check_claim(path, replace)
    try:
        if replace:
            path.unlink(missing_ok=True)
        # SQLite gives the -wal and the -shm the rights of the file itself.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
        _, *sides = own_files(path)
        for side in sides:
            side.unlink(missing_ok=True)
    except FileExistsError:
        raise SessionError(
            f"{path}: another asrscope has just begun to record into this session; choose another name"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise SessionError(f"{path}: the folder {path.parent} does not exist; make it or choose another") from None
    except (OSError, ValueError) as error:
        raise SessionError(f"{path}: the session cannot be recorded there: {reason(error)}") from error


def check_claim(path: Path, replace: bool) -> None:
    """Refuse a name under which something lies that a new session may not take the place of."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return  # nothing there, or nothing that can be; making the file says what is wrong
    if stat.S_ISDIR(mode):
        raise SessionError(f"{path}: this is a folder; name a file in it to record to")
    if stat.S_ISLNK(mode):
        raise SessionError(f"{path}: this is a link, and a session is recorded into a file of its own; name that file")
    if not stat.S_ISREG(mode):
        raise SessionError(
            f"{path}: this is a pipe or a device, and a session is recorded into a file; choose another name"
        )
    try:
        read_header(path)
    except SessionError as error:
        # A newer session is still somebody's session.
        if "format version" not in str(error):
            raise SessionError(
                f"{path}: a file that is not an asrscope session lies there and is not overwritten; choose another name"
            ) from None
    if owner_alive(path):
        raise SessionError(f"{path}: another asrscope is recording into this session; choose another name")
    if not replace:
        raise SessionError(f"{path}: a session of this name exists; choose another name or ask to replace it")


def connect_read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """Open a session for reading only, its schema found to be its version's own (`_distrust`)."""
    return _connect(path, "mode=ro" + ("&immutable=1" if immutable else ""), "query_only = ON", VERSION, 1.0)


def connect_alone(path: Path, version: int = VERSION) -> sqlite3.Connection:
    """Open a session for writing with nobody else in it, its schema found to be that version's own."""
    # Before anything is read: not even a writer whose life cannot be seen from here may be in it.
    return _connect(path, "mode=rw", "locking_mode = EXCLUSIVE", version, 0.05)


def _connect(path: Path, mode: str, pragma: str, version: int, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=timeout)
    try:
        connection.execute(f"PRAGMA {pragma}")
        _distrust(connection, path, version)
    except BaseException:  # whatever ends this, nobody else has the connection
        connection.close()
        raise
    return connection


def _distrust(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Limit what the contents of a stranger's file can make SQLite do, and check its schema; Damaged if it is other.

    The first query makes SQLite parse the schema and the statistics of its planner. Functions run between two steps,
    where no progress handler is called: until the schema is known, values and steps are few.
    """
    connection.set_progress_handler(_after(SCHEMA_STEPS), SCHEMA_STEPS)
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    schema.check(connection, version)
    size = size_of(path)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, MIN_VALUE_BYTES), MAX_VALUE_BYTES))
    connection.set_progress_handler(_after(MIN_STEPS + STEPS_PER_BYTE * size), STEPS_BETWEEN_LOOKS)


def _after(steps: int) -> Callable[[], bool]:
    """Return a progress handler that aborts the query after `steps` steps of SQLite."""
    looks = iter(range(steps // STEPS_BETWEEN_LOOKS))
    return lambda: next(looks, None) is None


def size_of(path: Path) -> int:
    """Return the bytes of a session and its -wal, 0 where there are none."""
    size = 0
    for file in own_files(path)[:2]:
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size
