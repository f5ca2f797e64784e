"""What a session file is: an SQLite database with these tables, version and marks.

This is the contract between writer, reader and other people's tools; docs/session-format.md says the
same in prose. `APPLICATION_ID` tells a session from any other SQLite file, `VERSION` (user_version)
counts released schemas, and `MIGRATIONS` lead from each older one to the next.
"""

import contextlib
import functools
import sqlite3
from collections.abc import Callable
from typing import Any, Final

from profiler.session.errors import Damaged, plain

APPLICATION_ID: Final = 0x41535253  # The letters ASRS in SQLite's application_id field (byte 68 of the file)
VERSION: Final = 2  # The schema written here, in SQLite's user_version field (byte 60 of the file)

BLOCK_RECORDS: Final = 1000
"""Small blocks of one owner are merged once they hold this many records: few enough to write twice, many
enough to load fast. Merged blocks hold no fewer, but for the last one of a closed session."""

BLOCK_SECONDS: Final = 0.05  # While recording, a block is what came within this time, so that a crash loses little
MAX_BLOCK_RECORDS: Final = 1 << 16  # No writer makes longer blocks; a file that claims one is damaged
SAMPLE_LAYOUT: Final = "<qd"  # One reading: t_ns and value, packed
LONGEST_MARK: Final = 1 << 16  # Characters of a marker's text; of a longer one the beginning is stored

STATES: Final = ("recording", "closed", "stopped", "failed", "crashed")

TABLES: Final[dict[str, str]] = {
    # value: JSON
    "meta": "CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT",
    # the monotonic clock of all *_ns columns, and the wall clock (ns since 1970) at the same moment
    "clock": "CREATE TABLE clock(mono_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL) STRICT",
    # work: JSON list of the names of work0…work2
    "stage": (
        "CREATE TABLE stage(id INTEGER PRIMARY KEY, name TEXT NOT NULL, grp TEXT NOT NULL, work TEXT NOT NULL) STRICT"
    ),
    # recorded: spans in this file; dropped: spans lost to a full ring; decode: 1 where wall time counts
    "lane": (
        "CREATE TABLE lane(id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, "
        "decode INTEGER NOT NULL, recorded INTEGER NOT NULL, dropped INTEGER NOT NULL) STRICT"
    ),
    # law: JSON of profiler.spans.Cost
    "cost": (
        "CREATE TABLE cost(id INTEGER PRIMARY KEY, stage INTEGER NOT NULL, epoch INTEGER NOT NULL, "
        "law TEXT NOT NULL) STRICT"
    ),
    # tree: JSON, the configuration as run from first_frame on
    "config": (
        "CREATE TABLE config(id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, "
        "first_frame INTEGER NOT NULL, applied_ns INTEGER NOT NULL, tree TEXT NOT NULL) STRICT"
    ),
    # data: records of profiler.spans.SPAN of one lane; end_record: the lane's count after this block,
    # so that a reader knows what it has seen even when blocks have been merged meanwhile
    "block": (
        "CREATE TABLE block(id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, "
        "end_record INTEGER NOT NULL, data BLOB NOT NULL) STRICT"
    ),
    "sample_name": "CREATE TABLE sample_name(id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT",
    # data: records (int64 t_ns, float64 value) of one quantity; blocks as those of spans
    "sample": (
        "CREATE TABLE sample(id INTEGER PRIMARY KEY, name INTEGER NOT NULL, "
        "end_record INTEGER NOT NULL, data BLOB NOT NULL) STRICT"
    ),
    # value: JSON; revision: grows with every change of any marker or utterance
    "marker": (
        "CREATE TABLE marker(id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, kind TEXT NOT NULL, "
        "text TEXT NOT NULL, t_ns INTEGER NOT NULL, asked_frame INTEGER NOT NULL, "
        "applied_frame INTEGER, epoch INTEGER, key TEXT, value TEXT) STRICT"
    ),
    # words: JSON list of [word, first_frame, n_frames]; epochs: JSON list; complete: 0 where a grammar's result is
    # no sentence of it, null without a grammar; notes: JSON list of what was done to the sound or left out of it;
    # part: JSON object, which part of the file it is (empty: all of it)
    "utterance": (
        "CREATE TABLE utterance(id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, "
        "name TEXT NOT NULL, path TEXT NOT NULL, first_frame INTEGER NOT NULL, "
        "n_frames INTEGER NOT NULL, audio_s REAL NOT NULL, reference TEXT, hypothesis TEXT, "
        "words TEXT NOT NULL, wall_ns INTEGER, epochs TEXT NOT NULL, errors INTEGER, "
        "reference_words INTEGER, done INTEGER NOT NULL, complete INTEGER, notes TEXT NOT NULL, "
        "part TEXT NOT NULL) STRICT"
    ),
    # data: int8 [n, 2], lowest and highest sample per frame, -127…127
    "peaks": "CREATE TABLE peaks(utterance INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
    # what counters (hardware, kernel) added up to for a stage under an epoch, on one lane; revision grows
    # with every change. Absent counters have no row. source: how it was counted
    "counter": (
        "CREATE TABLE counter(lane INTEGER NOT NULL, stage INTEGER NOT NULL, epoch INTEGER NOT NULL, "
        "name TEXT NOT NULL, value INTEGER NOT NULL, source TEXT NOT NULL, "
        "revision INTEGER NOT NULL, PRIMARY KEY(lane, stage, epoch, name)) STRICT"
    ),
    # one measured roof of the machine; phase: start, or end where measured again
    "calibration": (
        "CREATE TABLE calibration(id INTEGER PRIMARY KEY, phase TEXT NOT NULL, kind TEXT NOT NULL, "
        "name TEXT NOT NULL, dtype TEXT NOT NULL, threads INTEGER NOT NULL, bytes INTEGER NOT NULL, "
        "median REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, unit TEXT NOT NULL) STRICT"
    ),
}

CALIBRATION: Final = ("phase", "kind", "name", "dtype", "threads", "bytes", "median", "low", "high", "unit")
"""The columns of a calibration row, as `RoofTable.rows()` names them."""

INDEXES: Final[dict[str, str]] = {
    "block_by_record": "CREATE INDEX block_by_record ON block(lane, end_record)",
    "sample_by_record": "CREATE INDEX sample_by_record ON sample(name, end_record)",
    "marker_by_revision": "CREATE INDEX marker_by_revision ON marker(revision)",
    "counter_by_revision": "CREATE INDEX counter_by_revision ON counter(revision)",
    "utterance_by_revision": "CREATE INDEX utterance_by_revision ON utterance(revision)",
}

_UTTERANCE_1: Final = TABLES["utterance"].replace(", complete INTEGER, notes TEXT NOT NULL, part TEXT NOT NULL", "")

LAYOUTS: Final[dict[int, tuple[str, ...]]] = {
    1: (*(TABLES | {"utterance": _UTTERANCE_1}).values(), *INDEXES.values()),
    VERSION: (*TABLES.values(), *INDEXES.values()),
}
"""Schema version → the statements that lay it out. A file of that version holds exactly these."""


def _from_1(connection: sqlite3.Connection) -> None:
    """Version 1 knew nothing of `complete`, `notes` and `part`."""
    connection.execute("DROP INDEX utterance_by_revision")
    connection.execute("ALTER TABLE utterance RENAME TO old")
    connection.execute(TABLES["utterance"])
    connection.execute("INSERT INTO utterance SELECT *, NULL, '[]', '{}' FROM old")
    connection.execute("DROP TABLE old")
    connection.execute(INDEXES["utterance_by_revision"])


MIGRATIONS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {1: _from_1}
"""Schema version → function that turns such a database into the next version, in place.

Readers run them on a private copy; the user's file stays as it is. The layout of the version stays in `LAYOUTS`.
"""


def create(connection: sqlite3.Connection) -> None:
    """Lay out an empty database as a session of this version; inside a transaction."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in LAYOUTS[VERSION]:
        connection.execute(statement)


@functools.cache
def _master(layout: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
    """What SQLite's own table of the schema holds of a layout: type, name, table and statement of each."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        for statement in layout:
            empty.execute(statement)
        return tuple(empty.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def check(connection: sqlite3.Connection, version: int) -> None:
    """Refuse a database that is not laid out exactly as that version is; Damaged says what is other.

    Whatever could make SQLite compute something (expressions, generated columns, views, triggers, virtual tables,
    planner statistics) stands in the text of a statement, and every text is compared.
    """
    wanted = _master(LAYOUTS[version])
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?"
    found = connection.execute(query, (len(wanted) + 1,)).fetchall()
    for row in found:
        if row not in wanted:
            kind, name = (plain(str(value)) for value in row[:2])
            raise Damaged(f"no session has the {kind:.10} {name:.40} that it holds; it may have been tampered with")
    for row in wanted:
        if row not in found:
            raise Damaged(f"the {row[0]} {row[1]} is missing")
    if len(found) > len(wanted):
        raise Damaged("it holds a table twice")


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a database of an older `version`, one of MIGRATIONS, to `VERSION`."""
    for step in range(version, VERSION):
        connection.execute("BEGIN")
        MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {step + 1}")
        connection.execute("COMMIT")
