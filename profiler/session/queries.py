"""Queries of one reading of a session: rows that are new, and no more of them than the file can hold.

Files come from strangers. In a damaged one many rows can share one long value; a few kilobytes would then fill the
memory.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from profiler.session.errors import Damaged
from profiler.session.files import size_of
from profiler.session.format.schema import MAX_BLOCK_RECORDS

SLACK_BYTES: Final = 1 << 16
"""What a value may weigh in memory beyond its bytes in the file, for all rows of one reading together."""


class Queries:
    """Queries of one read transaction of `db`, the session in the file `path`.

    Raises Damaged when the rows of all queries together weigh more than the file itself, or a block is impossible.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._size = size_of(path)
        self._room = self._size + SLACK_BYTES

    def rows(self, query: str, *values: int) -> Iterator[tuple[Any, ...]]:
        """Give the rows of `query`, as long as they do not weigh more than the file itself."""
        for row in self._db.execute(query, values):
            self._room -= sum(len(value) for value in row if isinstance(value, bytes | str))
            if self._room < 0:
                # A live file has grown meanwhile.
                size = size_of(self._path)
                self._room, self._size = self._room + size - self._size, size
                if self._room < 0:
                    raise Damaged("it holds more than fits into the file")
            yield row

    def later(self, table: str, columns: str, last: dict[str, int]) -> list[tuple[Any, ...]]:
        """The rows of `table` with an id beyond last[table], which moves on to the newest of them."""
        query = f"SELECT id, {columns} FROM {table} WHERE id>? ORDER BY id"
        found = list(self.rows(query, last[table]))
        if found:
            last[table] = found[-1][0]
        return [row[1:] for row in found]

    def blocks(
        self, table: str, column: str, owner: int, seen: int, record_bytes: int
    ) -> Iterator[tuple[memoryview, int]]:
        """Give what is new of the blocks of `owner`: (records, count after them), no record twice."""
        query = f"SELECT end_record, data FROM {table} WHERE {column}=? AND end_record>? ORDER BY end_record"
        for end, data in self.rows(query, owner, seen):
            if not isinstance(end, int) or not isinstance(data, bytes):
                raise Damaged(f"a {table} of {column} {owner} is of no known kind")
            count, rest = divmod(len(data), record_bytes)
            begin = end - count
            if rest or count > MAX_BLOCK_RECORDS or not 0 <= begin <= seen < end:
                raise Damaged(f"a {table} of {column} {owner} has an impossible length")
            yield memoryview(data)[(seen - begin) * record_bytes :], end
            seen = end
