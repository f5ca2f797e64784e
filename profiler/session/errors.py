"""The one error of session files: a single sentence that a user can act on."""

import os
import sqlite3
from typing import Final

MAX_REASON: Final = 120  # Characters of another library's message that are passed on


class SessionError(OSError):
    """A session cannot be written or read; the message is one sentence naming file and remedy."""


class Damaged(ValueError):
    """Something in a file that no writer puts there, in a few words."""


def code_of(error: BaseException) -> int:
    """Return SQLite's code of an error, 0 for others'."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def reason(error: BaseException) -> str:
    """Put an SQLite or operating-system error into few words."""
    known = {
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_READONLY: "it cannot be written (read-only)",
        sqlite3.SQLITE_BUSY: "another program holds it",
        sqlite3.SQLITE_LOCKED: "another program holds it",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened there",
        sqlite3.SQLITE_CORRUPT: "its contents are damaged",
        sqlite3.SQLITE_NOTADB: "it is not a session file",
        sqlite3.SQLITE_INTERRUPT: "its contents are damaged (reading them would not end)",
        sqlite3.SQLITE_TOOBIG: "its contents are damaged (a value is too large)",
        sqlite3.SQLITE_NOMEM: "there is not enough memory",
        sqlite3.SQLITE_IOERR: "the disk refused to read or write (full, removed or failing)",
        sqlite3.SQLITE_PERM: "permission is denied",
    }
    if code_of(error) in known:
        return known[code_of(error)]
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return plain(str(error)) or type(error).__name__


def plain(text: str) -> str:
    """Return `text` fit for a sentence on a terminal, whatever a hostile file has put into it."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 2 * MAX_REASON])
    return shown if len(shown) <= MAX_REASON else shown[:MAX_REASON] + "…"
