"""Records appended as BLOBs: small ones while they are fresh, merged into full ones as they come.

Every flush appends a small block, so that a crash loses little; once those of one owner (a lane, a sampled quantity)
hold BLOCK_RECORDS, one block replaces them in the same transaction. So memory stays constant and closing has nothing
left to do. Readers count records, not blocks.
"""

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from profiler.session.format.schema import BLOCK_RECORDS, MAX_BLOCK_RECORDS

STEP_PAGES: Final = 2000
"""Pages given back per transaction; a -wal of that many is checkpointed and used again."""


ROWS_AT_ONCE: Final = 100
"""Small blocks of different owners per statement."""


class Statements(Protocol):
    """Where statements are run, or wait to be."""

    def execute(self, statement: str, values: Sequence[Any], /) -> object:
        """Run one."""


class Blocks:
    """Appends to `table`(`owner`, end_record, data), records of `record_bytes` each.

    `ends`: how many records each owner has in the file already.

    Against a busy Python thread every statement costs waits for the interpreter lock, so as few as
    possible are run.
    """

    def __init__(self, table: str, owner: str, record_bytes: int, ends: Mapping[int, int] | None = None) -> None:
        self._insert = f"INSERT INTO {table}({owner}, end_record, data) VALUES (?,?,?)"
        self._delete = f"DELETE FROM {table} WHERE {owner}=? AND end_record>?"
        self._record_bytes = record_bytes
        self._fresh: dict[int, list[bytes]] = {}
        self._merged = dict(ends or {})
        self._end = dict(ends or {})

    def end(self, owner: int) -> int:
        """Return how many records `owner` has in the file."""
        return self._end.get(owner, 0)

    def append(self, to: Statements, news: Mapping[int, bytes]) -> None:
        """Append whole records, owner → data, inside a transaction."""
        small: list[int | bytes] = []
        for owner, data in news.items():
            end = self._end[owner] = self.end(owner) + len(data) // self._record_bytes
            self._fresh.setdefault(owner, []).append(data)
            if end - self._merged.get(owner, 0) >= BLOCK_RECORDS:
                self._merge(to, owner)
            else:
                small += (owner, end, data)
        for begin in range(0, len(small), 3 * ROWS_AT_ONCE):
            values = small[begin : begin + 3 * ROWS_AT_ONCE]
            to.execute(self._insert + ",(?,?,?)" * (len(values) // 3 - 1), values)

    def seal(self, to: Statements) -> None:
        for owner, fresh in self._fresh.items():
            if len(fresh) > 1:
                self._merge(to, owner)

    def _merge(self, to: Statements, owner: int) -> None:
        fresh, end = self._fresh[owner], self._end[owner]
        if len(fresh) > 1:
            to.execute(self._delete, (owner, self._merged.get(owner, 0)))
        data = b"".join(fresh)
        size = MAX_BLOCK_RECORDS * self._record_bytes
        for begin in range(0, len(data), size):
            left = max(len(data) - begin - size, 0) // self._record_bytes
            to.execute(self._insert, (owner, end - left, data[begin : begin + size]))
        self._merged[owner] = end
        fresh.clear()


def give_back(connection: sqlite3.Connection) -> None:
    """Cut off the room that merging has freed; a disk too full for that keeps a longer file."""
    with contextlib.suppress(sqlite3.Error):
        while True:
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()
            (left,) = connection.execute("PRAGMA freelist_count").fetchone()
            if not left or left >= free:
                return
