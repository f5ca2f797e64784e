"""Merging the small blocks of a live recording into full ones.

A live session has a block per lane and 50 ms; a closed one has blocks of 1 000 spans, which load several
times faster. Batches are merged in transactions of their own, so memory stays constant, a crash in
between loses nothing, and readers (who count records, not blocks) never notice.
"""

import contextlib
import sqlite3
from typing import Final

from profiler.session.schema import BLOCK_RECORDS
from profiler.spans import RECORD_BYTES

BATCH_BLOCKS: Final = 128

STEP_PAGES: Final = 2000
"""Pages given back per transaction; a -wal of that many is checkpointed and used again."""


def compact(connection: sqlite3.Connection) -> None:
    """Merge the blocks of every lane; `connection` is in autocommit mode and may write."""
    for (lane,) in connection.execute("SELECT DISTINCT lane FROM block").fetchall():
        done = 0
        while True:
            rows = connection.execute(
                "SELECT id, end_record, data FROM block WHERE lane=? AND end_record>? "
                "ORDER BY end_record LIMIT ?",
                (lane, done, BATCH_BLOCKS),
            ).fetchall()
            sizes = [len(row[2]) for row in rows]
            full = BLOCK_RECORDS * RECORD_BYTES
            if any(size != full for size in sizes[:-1]) or max(sizes, default=0) > full:
                done = _merge(connection, lane, done, rows)
            elif rows:
                done = rows[-1][1]
            if len(rows) < BATCH_BLOCKS:
                break


def give_back(connection: sqlite3.Connection) -> None:
    """Cut off the room that merging has freed; a disk too full for that keeps a longer file."""
    with contextlib.suppress(sqlite3.Error):
        while True:
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()
            (left,) = connection.execute("PRAGMA freelist_count").fetchone()
            if not left or left >= free:
                return


def _merge(
    connection: sqlite3.Connection, lane: int, start: int, rows: list[tuple[int, int, bytes]]
) -> int:
    """Replace `rows` by full blocks and a rest; return the record after the last full block."""
    data = b"".join(row[2] for row in rows)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("DELETE FROM block WHERE id=?", [(row[0],) for row in rows])
    size = BLOCK_RECORDS * RECORD_BYTES
    end = done = start
    for offset in range(0, len(data), size):
        piece = data[offset : offset + size]
        end += len(piece) // RECORD_BYTES
        connection.execute(
            "INSERT INTO block(lane, end_record, data) VALUES(?,?,?)", (lane, end, piece)
        )
        if len(piece) == size:
            done = end
    connection.execute("COMMIT")
    return done
