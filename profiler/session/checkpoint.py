"""Moves what the -wal holds into the main file on a thread of its own.

A checkpoint waits for the disk. Were it made by the connection that commits (SQLite's own habit), spans would wait in
memory meanwhile, where a crash loses them.
"""

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Final

EVERY_SECONDS: Final = 5.0
"""Between checkpoints; a decode at real-time pace writes some 2 MB of -wal meanwhile."""

PASSES: Final = 4
"""The -wal is used again from its start only once all of it has been moved, and commits go on meanwhile:
each pass has less to move than the one before."""


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
