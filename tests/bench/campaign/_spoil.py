"""Random damage to a session file, byte by byte and through SQL: by a bad disk, a bad copy or a stranger.

`spoil(seed, bases, folder)` makes one spoiled session from sound ones, the same one for the same seed.
"""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from profiler.session.files import side_files
from profiler.spans import SPAN
from tests.bench.campaign import _session_purposes as purposes
from tests.bench.campaign._damage import mutated
from tests.bench.campaign._session_base import Base

PAGE: Final = 4096
WAL_HEADER: Final = 32
WAL_FRAME: Final = 24 + PAGE

NUMBERS: Final = (
    *(0, 1, -1, 127, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53),
    *(2**62, 2**63 - 1, -(2**63), -(2**31)),
)
REALS: Final = (0.0, -1.0, 1e-300, 1e300, float("inf"), float("-inf"), 0.5)
TEXTS: Final = (
    "", "\0", "null", "[]", "{}", "0", "-1", "1e999", "NaN", '"recording"', '"closed"', "true", "[[]]", "[1,2,3]",
    '[["a",0,1]]', '[["a",4294967295,4294967295]]', "decode", "scoring", "prepare", "idle", "../../../../etc/passwd",
    "/dev/stdin", "C:\\con", "=cmd|'/c calc'!A1", "\x1b]0;title\x07\x1b[2J", "a\nb\rc\u2028d",
    "<script>alert(1)</script>", "\ud7ff\uffff\U0010ffff", "%s%n%x{0}{__class__}", "x" * 100_000, "[" * 5000,
    "9" * 5000,
    '{"operations":{},"bytes_min":[0,0,0,0,0],"bytes_max":[0,0,0,0,0],"working_set_bytes":1e308}',
    '{"pid":1,"started":0,"host":"","boot":""}',
)  # fmt: skip
SCHEMES: Final = (
    *(statements for name, statements in purposes.SQL.items() if "many" not in name and "stage per" not in name),
    ("CREATE TRIGGER t BEFORE INSERT ON meta BEGIN SELECT load_extension('x'); END",),
    ("DROP TABLE cost",),
    ("DROP TABLE lane", "CREATE TABLE lane(id, name, kind, decode, recorded, dropped)"),
    ("PRAGMA user_version = 0",),
    ("PRAGMA user_version = 2147483647",),
    ("PRAGMA application_id = 0",),
    ("PRAGMA journal_mode = WAL",),
    ("PRAGMA auto_vacuum = 0", "VACUUM"),
    ("PRAGMA page_size = 512", "PRAGMA journal_mode = DELETE", "VACUUM"),
    ("PRAGMA encoding = 'UTF-16'", "VACUUM"),
)  # fmt: skip
SCHEMA_EDITS: Final = (
    *(
        f"UPDATE sqlite_schema SET {change}"
        for change in (
            "sql = replace(sql, ' STRICT', '') WHERE name = 'meta'",
            "rootpage = 2",
            "rootpage = 4000000000",
            "rootpage = (SELECT rootpage FROM sqlite_schema WHERE name='block')",
            "rootpage = 1 WHERE name = 'meta'",
            "type = 'view' WHERE name = 'lane'",
            "name = 'meta' WHERE type = 'table'",
            "tbl_name = 'clock'",
        )
    ),
    "INSERT INTO sqlite_schema VALUES('table','z','z',3,'CREATE VIRTUAL TABLE z USING zipfile(''/etc/passwd'')')",
)


def spoil(seed: int, bases: Sequence[Base], folder: Path) -> tuple[Path, str]:
    """Write spoiled session number `seed` to `folder`; return its path and a description of the damage."""
    rng = random.Random(seed)
    base = rng.choice(bases)
    path = folder / "spoiled.asrs"
    wal = side_files(path)[0]
    path.unlink(missing_ok=True)
    damages: list[str] = [base.name]
    main, log = bytearray(base.main), bytearray(base.wal)
    structured = rng.random() < 0.45
    if structured:
        _write(path, main, log)
        damages += [_by_sql(rng, path) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
        main = bytearray(path.read_bytes())
        log = bytearray(wal.read_bytes()) if wal.exists() else bytearray()
    if not structured or rng.random() < 0.1:
        for _ in range(rng.choice((1, 1, 2, 4))):
            damages.append(_by_bytes(rng, main, log, rng.choice(bases)))
    _write(path, main, log)
    return path, ", ".join(damages)


def _write(path: Path, main: bytearray, log: bytearray) -> None:
    for file in (*side_files(path), path.with_name(f"{path.name}-journal")):
        file.unlink(missing_ok=True)
    path.write_bytes(main)
    if log:
        side_files(path)[0].write_bytes(log)


# -- bytes -------------------------------------------------------------------------------------------


def _by_bytes(rng: random.Random, main: bytearray, log: bytearray, other: Base) -> str:
    if not log and other.wal and rng.random() < 0.1:
        log += other.wal
        return "stray wal"
    changes: list[Callable[[], str]] = [
        lambda: _mutate(rng, main),
        lambda: _mutate(rng, main),
        lambda: _header(rng, main),
        lambda: _page_header(rng, main),
        lambda: _cell(rng, main),
        lambda: _cut(rng, main),
        lambda: _pages(rng, main),
        lambda: _splice(rng, main, other.main),
    ]
    if log:
        changes += [
            lambda: "wal " + _mutate(rng, log),
            lambda: "wal " + _cut(rng, log),
            lambda: _wal_frames(rng, log),
            lambda: _wal_rewrite(rng, log),
            lambda: _wal_lost(log),
        ]
    return rng.choice(changes)()


def _mutate(rng: random.Random, data: bytearray) -> str:
    data[:] = mutated(rng, bytes(data))
    return "mutated"


def _cut(rng: random.Random, data: bytearray) -> str:
    """At the end of a page or anywhere, or some bytes more."""
    if rng.random() < 0.3 or not data:
        data += rng.choice((b"\0", b"\xff")) * rng.choice((1, 100, PAGE, 3 * PAGE + 5))
        return "extended"
    length = rng.randrange(len(data))
    del data[length - length % rng.choice((1, PAGE)) :]
    return f"cut to {len(data)}"


def _header(rng: random.Random, data: bytearray) -> str:
    at = rng.choice((16, 18, 19, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 62, 64, 68, 92, 96))
    value = rng.choice((0, 1, 2, 3, 4, 5, 255, rng.randrange(256)))
    if at < len(data):
        data[at] = value
    return f"header byte {at} = {value}"


def _page_header(rng: random.Random, data: bytearray) -> str:
    page = rng.randrange(max(len(data) // PAGE, 1))
    at = page * PAGE + (100 if page == 0 else 0) + rng.randrange(12)
    if at < len(data):
        data[at] = rng.choice((0, 2, 5, 10, 13, 255, rng.randrange(256)))
    return f"page {page} header"


def _cell(rng: random.Random, data: bytearray) -> str:
    """Give a cell an enormous length: the beginning of a random cell becomes long varints."""
    page = rng.randrange(max(len(data) // PAGE, 1))
    begin = page * PAGE
    if len(data) < begin + PAGE:
        return "nothing"
    offset = 100 if page == 0 else 0
    kind = data[begin + offset]
    pointers = begin + offset + (12 if kind in (2, 5) else 8)
    count = struct.unpack_from(">H", data, begin + offset + 3)[0]
    if kind not in (2, 5, 10, 13) or not 0 < count < 500:
        return "nothing"
    (cell,) = struct.unpack_from(">H", data, pointers + 2 * rng.randrange(count))
    length = rng.choice((1, 2, 5, 9))
    varint = bytes([rng.choice((0x81, 0xFF))] * (length - 1) + [rng.choice((0x7F, 0xFF, 0))])
    at = begin + cell + rng.choice((0, 0, 1, 4))
    if at + length <= len(data):
        data[at : at + length] = varint
    return f"varint of page {page}"


def _pages(rng: random.Random, data: bytearray) -> str:
    pages = len(data) // PAGE
    if pages < 2:
        return "nothing"
    a, b = rng.randrange(pages), rng.randrange(pages)
    kept = data[a * PAGE : (a + 1) * PAGE]
    if rng.random() < 0.5:
        data[a * PAGE : (a + 1) * PAGE] = data[b * PAGE : (b + 1) * PAGE]
    data[b * PAGE : (b + 1) * PAGE] = kept
    return f"pages {a} and {b}"


def _splice(rng: random.Random, data: bytearray, other: bytes) -> str:
    """Put a stretch of another session into this one, or its second half behind this one's first."""
    if not data:
        return "nothing"
    unit = rng.choice((1, PAGE))
    at = rng.randrange(len(data)) // unit * unit
    if rng.random() < 0.3:
        data[at:] = other[at:]
        return f"splice tail at {at}"
    length = rng.choice((16, 200, PAGE, 4 * PAGE))
    source = rng.randrange(max(len(other) - length, 1)) // unit * unit
    data[at : at + length] = other[source : source + length]
    return f"splice {length} at {at}"


def _wal_frames(rng: random.Random, log: bytearray) -> str:
    frames = (len(log) - WAL_HEADER) // WAL_FRAME
    if frames < 2:
        return "nothing"
    a, b = (WAL_HEADER + rng.randrange(frames) * WAL_FRAME for _ in range(2))
    log[a : a + WAL_FRAME], log[b : b + WAL_FRAME] = (
        log[b : b + WAL_FRAME],
        log[a : a + WAL_FRAME],
    )
    return "wal frames swapped"


def _wal_rewrite(rng: random.Random, log: bytearray) -> str:
    """Change pages, page numbers or database sizes in the -wal and make its checksums right again."""
    frames = (len(log) - WAL_HEADER) // WAL_FRAME
    if frames < 1:
        return "nothing"
    for _ in range(rng.choice((1, 3))):
        begin = WAL_HEADER + rng.randrange(frames) * WAL_FRAME
        what = rng.randrange(3)
        if what < 2:
            value = rng.choice((0, 1, 2, 2**31, 2**32 - 1, 10**9, rng.randrange(60)))
            struct.pack_into(">I", log, begin + 4 * what, value)
        else:
            log[begin + 24 + rng.randrange(PAGE)] ^= 1 << rng.randrange(8)
    big = bool(struct.unpack_from(">I", log, 0)[0] & 1)
    sums = _checksum(log[:24], (0, 0), big)
    struct.pack_into(">II", log, 24, *sums)
    for i in range(frames):
        begin = WAL_HEADER + i * WAL_FRAME
        log[begin + 8 : begin + 16] = log[16:24]
        sums = _checksum(log[begin : begin + 8], sums, big)
        sums = _checksum(log[begin + 24 : begin + WAL_FRAME], sums, big)
        struct.pack_into(">II", log, begin + 16, *sums)
    return "wal rewritten"


def _checksum(data: bytes | bytearray, start: tuple[int, int], big: bool) -> tuple[int, int]:
    """SQLite's -wal checksum (file format, section 4.2)."""
    a, b = start
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for i in range(0, len(words), 2):
        a = (a + words[i] + b) & 0xFFFFFFFF
        b = (b + words[i + 1] + a) & 0xFFFFFFFF
    return a, b


def _wal_lost(log: bytearray) -> str:
    log.clear()
    return "wal lost"


# -- SQL ---------------------------------------------------------------------------------------------


def _by_sql(rng: random.Random, path: Path) -> str:
    """Change a session through SQLite: sound pages with contents that no writer writes."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        kinds = (_sql_schema, *(_sql_spans,) * 3, *(_sql_value,) * 6)
        return rng.choice(kinds)(rng, connection)
    except (sqlite3.Error, UnicodeEncodeError) as error:
        return f"({error!s:.40})"
    finally:
        connection.close()


def _sql_schema(rng: random.Random, connection: sqlite3.Connection) -> str:
    if rng.random() < 0.5:
        statement = rng.choice(SCHEMA_EDITS)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
        return statement
    statements = rng.choice(SCHEMES)
    for statement in statements:
        connection.execute(statement)
    return statements[0]


def _sql_value(rng: random.Random, connection: sqlite3.Connection) -> str:
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall()
    (table,) = rng.choice(tables)
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    column = rng.choice(columns)
    if rng.random() < 0.1:
        connection.execute(f"DELETE FROM {table} WHERE rowid % {rng.choice((1, 2, 5))} = 0")
        return f"delete from {table}"
    value = rng.choice((*NUMBERS, *REALS, *TEXTS, b"", b"\0" * 42, b"\xff" * 4242, None))
    some = rng.choice(("", "", " WHERE rowid % 3 = 1", f" WHERE rowid = {rng.randrange(20)}"))
    connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{some}", (value,))
    return f"{table}.{column} = {value!r:.30}{some}"


def _sql_spans(rng: random.Random, connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT id, data FROM block").fetchall()
    if not rows:
        return "nothing"
    number, data = rng.choice(rows)
    if not isinstance(data, bytes) or len(data) % SPAN.itemsize:
        return "nothing"
    spans = np.frombuffer(data, SPAN).copy()
    names = [name for name in SPAN.names or () if name != "lane" or rng.random() < 0.1]
    field = rng.choice(names)
    info = np.iinfo(SPAN[field])
    value = min(max(rng.choice((*NUMBERS, 2**42, 2**61, 2**25, 3)), info.min), info.max)
    count = rng.choice((1, 3, len(spans)))
    at = rng.randrange(max(len(spans) - count, 0) + 1)
    spans[field][at : at + count] = value
    connection.execute("UPDATE block SET data=? WHERE id=?", (spans.tobytes(), number))
    return f"span {field} = {value} ×{count}"
