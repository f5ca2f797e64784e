"""The one error of session files: a single sentence that a user can act on."""

import os
import sqlite3


class SessionError(OSError):
    """A session cannot be written or read; the message is one sentence naming file and remedy."""


def reason(error: BaseException) -> str:
    """Put an SQLite or operating-system error into few words."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    known = {
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_READONLY: "it cannot be written (read-only)",
        sqlite3.SQLITE_BUSY: "another program holds it",
        sqlite3.SQLITE_LOCKED: "another program holds it",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened there",
        sqlite3.SQLITE_CORRUPT: "its contents are damaged",
        sqlite3.SQLITE_NOTADB: "it is not a session file",
        sqlite3.SQLITE_IOERR: "the disk refused to read or write (full, removed or failing)",
        sqlite3.SQLITE_PERM: "permission is denied",
    }
    if code in known:
        return known[code]
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
