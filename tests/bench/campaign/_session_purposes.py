"""Each known way to spoil a session file, made on purpose; `purposes` names every case."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from profiler.session.files import side_files
from profiler.spans import SPAN
from tests.bench.campaign._session_base import NAME, full

SLOW: Final = "instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || '1')"
"""Half a minute in one step of SQLite's, at the least."""

DEAD: Final = (
    "UPDATE meta SET value='\"recording\"' WHERE key='state'",
    "UPDATE meta SET value='{}' WHERE key='writer'",
)

SQL: Final[dict[str, tuple[str, ...]]] = {
    "a view for a table": (
        "ALTER TABLE lane RENAME TO other",
        "CREATE VIEW lane AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i AS id, "
        "'a' AS name, 'cpu' AS kind, 1 AS decode, 0 AS recorded, 0 AS dropped FROM r",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER UPDATE ON meta BEGIN DELETE FROM block; END", *DEAD),
    "a virtual table": ("CREATE VIRTUAL TABLE v USING fts5(x)",),
    "a generated column": ("ALTER TABLE meta ADD COLUMN g TEXT AS (hex(zeroblob(1000000000)))",),
    "a partial index": ("CREATE INDEX i ON meta(key) WHERE instr(value, 'x')",),
    "an index of many": tuple(f"CREATE INDEX i{i} ON meta(key)" for i in range(2000)),
    "no index": ("DROP INDEX block_by_record",),
    "statistics": ("ANALYZE",),
    "another table": ("CREATE TABLE notes(x DEFAULT (randomblob(1000000000)))",),
    "no stages": ("DELETE FROM stage",),
    "a stage per span": (
        "WITH RECURSIVE r(i) AS (SELECT max(id)+1 FROM stage UNION ALL SELECT i+1 FROM r WHERE i<65000) "
        "INSERT INTO stage SELECT i, 'stage ' || i, 'scoring', '[]' FROM r",
    ),
    "many lanes": (
        "WITH RECURSIVE r(i) AS (SELECT 20 UNION ALL SELECT i+1 FROM r WHERE i<65000) "
        "INSERT INTO lane SELECT i, 'lane ' || i, 'cpu', 1, 0, 0 FROM r",
    ),
    "frames beyond the sound": ("UPDATE utterance SET n_frames = 4294967295",),
    "utterances far away": ("UPDATE utterance SET first_frame = 4294967295",),
    "no audio": ("UPDATE utterance SET audio_s = 0, n_frames = 0",),
    "endless audio": ("UPDATE utterance SET audio_s = 9e999",),
    "negative audio": ("UPDATE utterance SET audio_s = -5",),
    "negative times": ("UPDATE utterance SET wall_ns = -1",),
    "negative counts": ("UPDATE lane SET dropped = -9000000000000000000",),
    "great counts": ("UPDATE lane SET dropped = 9000000000000000000",),
    "great counters": ("INSERT INTO counter VALUES(0, 3, 0, 'cycles', 9223372036854775807, 'perf_event', 1)",),
    "no words": ("UPDATE utterance SET words='[]', hypothesis=NULL, reference=''",),
    "no wave forms": ("DELETE FROM peaks",),
    "far clock": ("UPDATE clock SET wall_ns = 9223372036854775807, mono_ns = -9223372036854775807",),
    "markers out of the world": ("UPDATE marker SET asked_frame=4294967295, t_ns=-9e18",),
    "no roofs": ("DELETE FROM calibration",),
    "roofs of nothing": ("UPDATE calibration SET median=0, low=0, high=0",),
    "endless roofs": ("UPDATE calibration SET median=9e999, low=9e999, high=9e999",),
    "great laws": ("UPDATE cost SET law = replace(law, '4.0', '9e23')",),
    "no laws": ("DELETE FROM cost",),
    "no settings": ("DELETE FROM config",),
    "settings of nothing": ("UPDATE config SET tree='{}'",),
    "everything recorded by nobody": DEAD,
    "a name of HTML": (
        "UPDATE meta SET value='\"<img src=''/dev/zero''>\"' WHERE key='preset'",
        "UPDATE utterance SET name='<img src=\"/dev/zero\"><h1>', hypothesis='<b>x</b>', reference='<i>y</i>'",
        "UPDATE marker SET text='<table><img src=/dev/zero>'",
        "UPDATE stage SET name='<img src=/dev/zero>' || id",
        "UPDATE lane SET name='<a href=file:///etc/passwd>'",
    ),
    "a name of escapes": (
        "UPDATE meta SET value='\"\\u001b]0;title\\u0007\\u001b[2J\\u202e\"' WHERE key='preset'",
        "UPDATE stage SET name=char(27) || '[2J' || id || char(10)",
        "UPDATE utterance SET name=char(27) || ']52;c;AAAA' || char(7), hypothesis=char(8238)",
        "UPDATE marker SET text=char(27) || '[31m' || char(0)",
        "UPDATE config SET tree=replace(tree, '\"cpu\"', '\"\\u001b[2J\"')",
    ),
    "a name of 10 MB": ("UPDATE stage SET name=hex(zeroblob(5000000))",),
    "a preset of 10 MB": ("UPDATE meta SET value='\"' || hex(zeroblob(5000000)) || '\"' WHERE key='preset'",),
}
"""What is done to the full session, by name of the attack."""

MASTER: Final[dict[str, tuple[str, ...]]] = {
    "an index over an expression": (
        "UPDATE sqlite_schema SET sql='CREATE INDEX marker_by_revision ON meta(length(value) + "
        + SLOW.replace("'", "''")
        + ")', tbl_name='meta' WHERE name='marker_by_revision'",
    ),
    "an index over another table": (
        "UPDATE sqlite_schema SET sql='CREATE INDEX marker_by_revision ON meta(value)' WHERE name='marker_by_revision'",
    ),
    "a default": (
        "UPDATE sqlite_schema SET sql=replace(sql, 'value TEXT', 'value TEXT DEFAULT (hex(zeroblob(9)))') "
        "WHERE name='meta'",
    ),
    "a check": (
        "UPDATE sqlite_schema SET sql=replace(sql, 'value TEXT', 'value TEXT CHECK ("
        + SLOW.replace("'", "''")
        + " = 0)') WHERE name='meta'",
    ),
    "an index named as SQLite's own": (
        "UPDATE sqlite_schema SET name='sqlite_autoindex_x_1', sql='CREATE INDEX sqlite_autoindex_x_1 ON "
        "marker(abs(revision))' WHERE name='marker_by_revision'",
    ),
    "no STRICT": ("UPDATE sqlite_schema SET sql=replace(sql, ' STRICT', '')",),
    "without rowid": (
        "UPDATE sqlite_schema SET sql=replace(sql, 'STRICT', 'STRICT, WITHOUT ROWID') WHERE name='counter'",
    ),
    "everything twice": ("INSERT INTO sqlite_schema SELECT * FROM sqlite_schema",),
    "another case": ("UPDATE sqlite_schema SET sql=lower(sql)",),
    "a comment": ("UPDATE sqlite_schema SET sql=sql || ' -- ' || hex(zeroblob(100000))",),
    "parentheses": (
        "UPDATE sqlite_schema SET sql='CREATE INDEX marker_by_revision ON marker(' || "
        "replace(hex(zeroblob(400)), '0', '(') || '1' || replace(hex(zeroblob(400)), '0', ')') || ')' "
        "WHERE name='marker_by_revision'",
    ),
    "a huge schema": (
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<40000) INSERT INTO sqlite_schema "
        "SELECT 'table', 't'||i, 't'||i, 2, 'CREATE TABLE t'||i||'(a,b,c,d,e,f,g)' FROM r",
    ),
}
"""Changes of SQLite's own table of the schema, which no CREATE statement would make."""


def spoiled(name: str, folder: Path) -> None:
    """Write the session of `purposes` of that name."""
    path = folder / NAME
    special = SPECIAL.get(name)
    path.write_bytes(full("two arms" in name))
    if special is not None:
        special(path)
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("BEGIN")
        for statement in SQL.get(name) or (*DEAD, *MASTER[name]):
            connection.execute(statement)
        connection.execute("COMMIT")
        if name in MASTER:
            _leave_wal(path, connection)


def _leave_wal(path: Path, connection: sqlite3.Connection) -> None:
    """Leave the session as a recording that was killed does: opening it writes into it."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA user_version = 1")
    files = [path, side_files(path)[0]]
    kept = [file.read_bytes() for file in files]
    connection.close()
    for file, content in zip(files, kept, strict=True):
        file.write_bytes(content)


def _generated_statistics(path: Path) -> None:
    """SQLite reads its planner's statistics with the schema, before any query: a generated column is computed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ANALYZE")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql='CREATE TABLE sqlite_stat1(tbl,idx,stat AS ("
            + SLOW.replace("'", "''")
            + "))' WHERE name='sqlite_stat1'"
        )


def _spans(path: Path, change: Callable[[np.ndarray], None]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number, data in connection.execute("SELECT id, data FROM block").fetchall():
            spans = np.frombuffer(data, SPAN).copy()
            change(spans)
            connection.execute("UPDATE block SET data=? WHERE id=?", (spans.tobytes(), number))


def _fill(field: str, value: int) -> Callable[[Path], None]:
    def change(spans: np.ndarray) -> None:
        spans[field] = value

    return lambda path: _spans(path, change)


def _scatter(path: Path) -> None:
    rng = np.random.default_rng(7)

    def change(spans: np.ndarray) -> None:
        spans["first_frame"] = rng.integers(0, 1 << 32, len(spans))

    _spans(path, change)


def _net_of_pipe(path: Path) -> None:
    """The card of the net that the second configuration names is a pipe that nobody writes to."""
    os.mkfifo(path.with_name("trap.json"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE config SET tree=replace(tree, '\"small\"', '\"trap.safetensors\"') WHERE epoch=1")


def _files_of_pipes(path: Path) -> None:
    """Settings that name pipes; only running them again looks at them."""
    os.mkfifo(path.with_name("pipe.dict"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE config SET tree=json_set(tree, '$.graph.dictionary', 'pipe.dict', '$.dnn.net', '/dev/zero.onnx')"
        )


def _replaced_by(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _sides(suffix: str, make: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda path: make(path.with_name(path.name + suffix))


def _sparse(path: Path) -> None:
    os.truncate(path, 1 << 40)


SPECIAL: Final[dict[str, Callable[[Path], None]]] = {
    "generated statistics": _generated_statistics,
    "all in frame 0": _fill("first_frame", 0),
    "all in the last frame": _fill("first_frame", (1 << 32) - 1),
    "first frames at random": _scatter,
    "spans of no frames": _fill("frames", 0),
    "spans of no time": _fill("duration_ns", 0),
    "spans of all frames": _fill("frames", (1 << 32) - 1),
    "spans of one stage": _fill("stage", 0),
    "spans of one moment": _fill("start_ns", 0),
    "work without end": _fill("work0", (1 << 32) - 1),
    "spans of no epoch": _fill("epoch", 65535),
    "a net whose card is a pipe": _net_of_pipe,
    "settings that name pipes": _files_of_pipes,
    "a pipe": _replaced_by(os.mkfifo),
    "a device": _replaced_by(lambda path: path.symlink_to("/dev/zero")),
    "a folder": _replaced_by(Path.mkdir),
    "a link to itself": _replaced_by(lambda path: path.symlink_to(path)),
    "nothing": Path.unlink,
    "an empty file": _replaced_by(Path.touch),
    "a -wal that is a pipe": _sides("-wal", os.mkfifo),
    "a -shm that is a link": _sides("-shm", lambda path: path.symlink_to("/etc/passwd")),
    "a -journal that is a device": _sides("-journal", lambda path: path.symlink_to("/dev/zero")),
    "a -wal of nonsense": _sides("-wal", lambda path: path.write_bytes(b"\x37\x7f\x06\x82" * 999)),
    "a terabyte": _sparse,
    "two arms": lambda path: None,
    "a sound one": lambda path: None,
}
"""Attacks that SQL alone does not make."""


def purposes() -> list[str]:
    """The names of all cases made on purpose."""
    return [*SPECIAL, *SQL, *MASTER]
