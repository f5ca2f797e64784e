"""What a recording's thread writes in each round: the statements behind `SessionWriter`.

All of it happens inside a `Round`, which the writer finishes: it becomes visible at once.

Records are appended as BLOBs: small ones while they are fresh, merged into full ones as they come. Every flush appends
a small block, so that a crash loses little; once those of one owner (a lane, a sampled quantity) hold BLOCK_RECORDS,
one block replaces them in the same transaction. So memory stays constant and closing has nothing left to do.
Readers count records, not blocks.
"""

import contextlib
import itertools
import os
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from profiler.session.format import schema
from profiler.session.format.schema import BLOCK_RECORDS, MAX_BLOCK_RECORDS
from profiler.session.model import CounterTotal
from profiler.spans import RECORD_BYTES, Recorder

STEP_PAGES: Final = 2000  # Pages given back per transaction; a -wal of that many is checkpointed and used again
ROWS_AT_ONCE: Final = 100  # Small blocks of different owners per statement

Execute = Callable[[str, Sequence[Any]], object]  # Runs a statement with its values, or has it wait for others


class Blocks:
    """Appends records to `table` after `ends` by owner, in few statements: each waits for the interpreter lock."""

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

    def append(self, execute: Execute, news: Mapping[int, bytes]) -> None:
        """Append whole records, owner → data, inside a transaction."""
        small: list[int | bytes] = []
        for owner, data in news.items():
            end = self._end[owner] = self.end(owner) + len(data) // self._record_bytes
            self._fresh.setdefault(owner, []).append(data)
            if end - self._merged.get(owner, 0) >= BLOCK_RECORDS:
                self._merge(execute, owner)
            else:
                small += (owner, end, data)
        for begin in range(0, len(small), 3 * ROWS_AT_ONCE):
            values = small[begin : begin + 3 * ROWS_AT_ONCE]
            execute(self._insert + ",(?,?,?)" * (len(values) // 3 - 1), values)

    def seal(self, execute: Execute) -> None:
        for owner, fresh in self._fresh.items():
            if len(fresh) > 1:
                self._merge(execute, owner)

    def _merge(self, execute: Execute, owner: int) -> None:
        fresh, end = self._fresh[owner], self._end[owner]
        if len(fresh) > 1:
            execute(self._delete, (owner, self._merged.get(owner, 0)))
        data = b"".join(fresh)
        size = MAX_BLOCK_RECORDS * self._record_bytes
        for begin in range(0, len(data), size):
            left = max(len(data) - begin - size, 0) // self._record_bytes
            execute(self._insert, (owner, end - left, data[begin : begin + size]))
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


PARTIAL_BYTES_PER_SECOND: Final = 200_000  # They are stored whole: the longer, the less often

REVISION: Final = object()
"""Stands for the next revision, which is given in the order of writing: a follower asks for what is newer
than it knows, so none may become visible after a higher one."""

Word = tuple[str, int, int]


COUNT_SPANS: Final = (
    "CREATE TEMP TRIGGER count_spans AFTER INSERT ON main.block BEGIN "
    "UPDATE lane SET recorded = new.end_record WHERE id = new.lane; END"
)
"""Keeps the lanes' counts without a statement of their own; it is the connection's and not in the file."""


class Round:
    """Statements that become visible together; one alone needs no transaction: each waits for the interpreter lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._first: tuple[str, Sequence[Any]] | None = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement, the first one only when there is another or at the end."""
        if self._first is None and not self._connection.in_transaction:
            self._first = statement, values
        else:
            self.executemany(statement, (values,))

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
            self._run_first()
        for values in rows:
            self._connection.execute(statement, values)

    def finish(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        else:
            self._run_first()

    def _run_first(self) -> None:
        if self._first is not None:
            first, self._first = self._first, None
            self._connection.execute(*first)


class Tables:
    """The tables of one session being recorded, and what is not yet in them."""

    def __init__(self, connection: sqlite3.Connection, recorder: Recorder) -> None:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(COUNT_SPANS)
        self.round = Round(connection)
        self._recorder = recorder
        self._revision = itertools.count(1)
        self._counter_revision = 0
        self._stages_written = 0
        self._costs_written = 0
        self._lanes_written: dict[int, int] = {}
        self._spans = Blocks("block", "lane", RECORD_BYTES)
        self._samples = Blocks("sample", "name", struct.calcsize(schema.SAMPLE_LAYOUT))
        self._sample_names: dict[str, int] = {}
        self._readings: dict[int, bytes] = {}
        self._partials: dict[int, tuple[str, list[Word]]] = {}
        self._partial_due: dict[int, float] = {}

    def has_news(self, lanes: Sequence[tuple[Any, int]], now: float) -> bool:
        """Whether anything must be written at `now`; `lanes`: (lane, number of waiting spans)."""
        return (
            len(self._recorder.stages) > self._stages_written
            or len(self._recorder.costs) > self._costs_written
            or any(now >= self._partial_due.get(number, 0.0) for number in self._partials)
            or any(count or self._lanes_written.get(lane.id) != lane.dropped for lane, count in lanes)
        )

    def write(self, lanes: Sequence[tuple[Any, int]], now: float) -> None:
        """Write everything that has come since the last round, `count` spans of each lane."""
        self.write_partials(now)
        for stage in self._recorder.stages[self._stages_written :]:
            values = (stage.id, text(stage.name), stage.group, to_json(stage.work))
            self.round.execute("INSERT INTO stage VALUES(?,?,?,?)", values)
            self._stages_written += 1
        for stage_id, epoch, cost in self._recorder.costs[self._costs_written :]:
            law = (stage_id, epoch, to_json(cost.as_dict()))
            self.round.execute("INSERT INTO cost(stage, epoch, law) VALUES(?,?,?)", law)
            self._costs_written += 1
        self._samples.append(self.round.execute, self._readings)
        self._readings.clear()
        taken = {lane.id: lane.take(min(count, schema.MAX_BLOCK_RECORDS)) for lane, count in lanes if count}
        self._spans.append(self.round.execute, taken)
        for lane, _ in lanes:
            dropped = lane.dropped
            if self._lanes_written.get(lane.id) != dropped:
                about = (lane.id, text(lane.name), text(lane.kind), int(lane.decode), self._spans.end(lane.id), dropped)
                self.round.execute("INSERT OR REPLACE INTO lane VALUES(?,?,?,?,?,?)", about)
                self._lanes_written[lane.id] = dropped

    def seal(self) -> None:
        self.write_partials(float("inf"))
        self._spans.seal(self.round.execute)
        self._samples.seal(self.round.execute)

    def execute(self, statement: str, values: Sequence[Any]) -> None:
        self.round.execute(statement, [next(self._revision) if value is REVISION else value for value in values])

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        statement = f"INSERT INTO {table}({', '.join(row)}) VALUES({', '.join('?' * len(row))})"
        self.execute(statement, [_to_column(value) for value in row.values()])

    def update(self, table: str, number: int, changes: Mapping[str, Any]) -> None:
        """Change columns of a row, which gets the next revision."""
        columns = ", ".join(f"{column}=?" for column in changes)
        values = [REVISION, *map(_to_column, changes.values()), number]
        self.execute(f"UPDATE {table} SET revision=?, {columns} WHERE id=?", values)

    def keep_partial(self, utterance: int, hypothesis: str, words: list[Word]) -> None:
        self._partials[utterance] = hypothesis, words

    def drop_partial(self, utterance: int) -> None:
        self._partials.pop(utterance, None)
        self._partial_due.pop(utterance, None)

    def write_partials(self, now: float) -> None:
        """Store the words so far that are due at `now`, s (infinity: all)."""
        for utterance in list(self._partials):
            if now >= self._partial_due.get(utterance, 0.0):
                hypothesis, words = self._partials.pop(utterance)
                encoded = to_json(words)
                self.execute(
                    "UPDATE utterance SET revision=?, hypothesis=?, words=? WHERE id=?",
                    (REVISION, text(hypothesis), encoded, utterance),
                )
                self._partial_due[utterance] = now + len(encoded) / PARTIAL_BYTES_PER_SECOND

    def keep_samples(self, t_ns: int, values: Mapping[str, float | None]) -> None:
        """Keep readings for this round's blocks; None and NaN are left out."""
        for name, value in values.items():
            # NaN is the one number that differs from itself.
            if value is None or value != value:  # noqa: PLR0124
                continue
            number = self._sample_names.get(name)
            if number is None:
                number = self._sample_names[name] = len(self._sample_names)
                self.round.execute("INSERT INTO sample_name VALUES(?,?)", (number, text(name)))
            record = struct.pack(schema.SAMPLE_LAYOUT, t_ns, float(value))
            self._readings[number] = self._readings.get(number, b"") + record

    def write_counters(self, totals: Sequence[CounterTotal]) -> None:
        """Store totals; a later one replaces an earlier one."""
        # Numbered here, in the order of writing: a follower asks for what is newer than it knows.
        self._counter_revision += 1
        self.round.executemany(
            "INSERT OR REPLACE INTO counter VALUES(?,?,?,?,?,?,?)",
            [(t.lane, t.stage, t.epoch, text(t.name), t.value, text(t.source), self._counter_revision) for t in totals],
        )


def to_json(value: object) -> str:
    """Encode as JSON: numpy values as numbers and lists, NaN as null, what is no UTF-8 with backslashes."""
    try:
        return msgspec.json.encode(value, enc_hook=_encode_other).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_as_text(value), enc_hook=_encode_other).decode()


def _to_column(value: object) -> Any:
    if isinstance(value, str):
        return text(value)
    return value.item() if isinstance(value, np.generic) else value


def text(value: str) -> str:
    """Return `value` with what UTF-8 cannot say (bytes of odd file names) written with backslashes."""
    return value.encode("utf-8", "backslashreplace").decode()


def _as_text(value: object) -> object:
    if isinstance(value, str | os.PathLike):
        return text(os.fspath(value))
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value


def _encode_other(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a session cannot store a {type(value).__name__}")
