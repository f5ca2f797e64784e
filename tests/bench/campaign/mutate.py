"""The mutator: bytes, words, nodes of JSON and rows of a database in any sound file; and what stands in a file's place.

A damage takes the path of a sound file and a source of random numbers.
"""

import bz2
import gzip
import json
import os
import random
import re
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from profiler.spans import SPAN

Damage = Callable[[Path, random.Random], None]
PAGE: Final = 4096  # of SQLite: half of the changes fall on the beginning of the file or of such a page
HUGE: Final = 2**32 - 1
LONG: Final = "name " * 20_000
MARKUP: Final = (
    "<img src='/dev/zero'>", "<img src='file:///dev/zero'><img src='\\\\\\\\host\\\\share\\\\x.png'>",
    "<a href='file:///etc/passwd'>a</a>", "<table>" + "<tr><td>" * 3000, "<b>bold</b> & <i>x</i> &amp; &lt;img&gt;",
    "<style>*{background:url(/dev/zero)}</style><body background='/dev/zero'>",
    "<?xml version='1.0'?><svg xmlns='x'><image href='/dev/zero'/></svg>",
)  # fmt: skip
ODD: Final = (
    "", " ", "\x1b]0;title\x07\x1b[2J", "a\nb\r\nc\u2028d\te", "\u202egnp.exe \u2066x\u2069", "&Save && all",
    "\u0300" * 3000, "\ufdfd" * 300, "{0}{1}%s%n{__class__}", "]]></title><script>1</script>", LONG,
)  # fmt: skip
NUMBERS: Final = (0, 1, -1, 255, 65_535, 2**31 - 1, -(2**31), HUGE, 2**62, -(2**62), 2**63 - 1, -(2**63))
REALS: Final = (-1.0, 0.0, 0.5, 1e-300, 1e15, 1e300, -1e300, float("inf"))
FLOATS: Final = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0)
TEXTS: Final = (
    *ODD, *MARKUP, "\0", "null", "[]", "{}", "-1", "1e999", "NaN", "inf", "9" * 5000, "1_0", "²", "true", "closed",
    '"recording"', "[[]]", '[["a",4294967295,4294967295]]', "[" * 5000, "../../../../etc/passwd", "/dev/zero",
    "/proc/self/mem", "~nobody-of-this-name/x", "C:\\con", "=cmd|'/c calc'!A1", "\ud7ff\uffff\U0010ffff", "caf\udce9",
    "decode", "scoring", "idle", '{"pid":1,"started":0,"host":"","boot":""}',
)  # fmt: skip
NODES: Final = (
    "null", "true", "-1", "0", "1.5", "1e308", "-1e-308", "9223372036854775807", "9" * 400, f'"{"9" * 5000}"', '"x"',
    '""', '"\\u001b]0;t\\u0007"', '"/dev/zero"', "[]", "[[1],[2]]", "{}", '{"":null}', "[" * 600 + "]" * 600,
    '{"a":' * 60 + "1" + "}" * 60, "NaN", "Infinity", '"\\ud800"', f"[{'1,' * 8999}1]",
)  # fmt: skip
"""What a node is replaced by, as JSON text."""
SCHEMA_EDITS: Final = (
    *("rootpage=2", "rootpage=4000000000", "rootpage=1 WHERE name='meta'", "type='view' WHERE name='lane'"),
    *("name='meta' WHERE type='table'", "tbl_name='clock'", "sql=replace(sql, ' STRICT', '')", "sql=lower(sql)"),
    "rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='block')",
)  # fmt: skip
HEADS: Final = (
    *(b"PK\x03\x04", b"SQLite format 3\0", b"[" * 50_000, b'{"a":' * 50_000, b"\0" * 5000, b"a\n" * 1_000_000, b""),
)
"""Beginnings of files of another kind; bytes at random follow."""
_HERE: Final = "@node@"


def changed(rng: random.Random, content: bytes) -> bytes:
    """`content` with one to four changes of bytes; never the same."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _bytes(rng, data)
    return bytes(data) if data != content else content + b"\0"


def _bytes(rng: random.Random, data: bytearray) -> None:
    if len(data) < 16:
        data += rng.randbytes(40)
        return
    at = rng.randrange(len(data))
    if rng.random() < 0.5:
        at = min(rng.choice((0, at // PAGE * PAGE)) + rng.randrange(rng.choice((12, 100, 400))), len(data) - 1)
    size = rng.choice((4, 8))
    match rng.randrange(12):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at] = rng.choice((0, 1, 2, 0x7F, 0x81, 0xFF, rng.randrange(256)))
        case 2:
            number = rng.choice(NUMBERS) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        case 3:
            for _ in range(rng.choice((1, 1, 200))):
                data[at : at + 4] = struct.pack("<f", rng.choice(FLOATS))
                at = rng.randrange(len(data))
        case 4:
            del data[at:]
        case 5:
            del data[at : at + rng.choice((1, 2, 4, 50, 500))]
        case 6:
            data[at:at] = data[at : at + rng.choice((1, 4, 50, 2_000))] * rng.choice((1, 2, 20))
        case 7:
            data[at:at] = rng.randbytes(rng.choice((1, 3, 40)))
        case 8:  # a sum stays the same
            at = min(at, len(data) - 16) // size * size
            for place, change in ((at, 1), (at + size, -1)):
                word = int.from_bytes(data[place : place + size], "little") + change
                data[place : place + size] = (word % (1 << 8 * size)).to_bytes(size, "little")
        case 9:
            data[at:] = bytes(len(data) - at)
        case 10:  # integers of Kaldi, each behind its size
            sized = [i for i in range(len(data) - 5) if data[i] == 4 and data[i + 3 : i + 5] in (b"\0\0", b"\xff\xff")]
            for i in rng.choices(sized[:400], k=rng.choice((1, 1, 100))) if sized else ():
                struct.pack_into("<i", data, i + 1, rng.choice(NUMBERS) % 2**31)
        case _:  # two pages
            a, b = (rng.randrange(-(-len(data) // PAGE)) * PAGE for _ in range(2))
            data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]


def reworded(rng: random.Random, text: str) -> str:
    """`text` with one to four words or signs replaced, left out or repeated."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", text) or [""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(parts))
        odd = rng.choice((*TEXTS, *map(str, NUMBERS), rng.choice(parts)))
        parts[at] = rng.choice((odd, odd, "", parts[at] * 2, parts[at] * 3000, parts[at] + odd))
    return "".join(parts)


def node(rng: random.Random, text: str) -> str:
    """A text of JSON with a node replaced, or a member of it that is unknown; ValueError for another text."""
    top: list[Any] = [json.loads(text)]
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        keys = list(part) if isinstance(part, dict) else range(min(len(part), 6)) if isinstance(part, list) else ()
        for key in keys:
            places.append((part, key))
            walk(part[key])

    walk(top)
    part, key = rng.choice(places)
    if isinstance(top[0], dict) and rng.random() < 0.1:
        part, key = top[0], "unknown"
    part[key] = _HERE
    return json.dumps(top[0]).replace(f'"{_HERE}"', rng.choice(NODES))


def row(path: Path, rng: random.Random) -> None:
    """What the writer of a database does not write: a node of JSON, a field of spans, an odd value, the schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db, suppress(sqlite3.Error, UnicodeError):
        db.execute("PRAGMA ignore_check_constraints = ON")
        if rng.random() < 0.08:
            db.execute("PRAGMA writable_schema = ON")
            db.execute(f"UPDATE sqlite_schema SET {rng.choice(SCHEMA_EDITS)}")
            return
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        table = rng.choice((*tables, "meta", "block", "config"))
        column = rng.choice([about[1] for about in db.execute(f"PRAGMA table_info({table})")])
        if rng.random() < 0.08:
            db.execute(f"DELETE FROM {table} WHERE rowid % {rng.choice((1, 2, 5))} = 0")
            return
        rows = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall() or [(0, None)]
        number, old = rng.choice(rows)
        some = rng.choice((f" WHERE rowid = {number}", f" WHERE rowid = {number}", "", " WHERE rowid % 3 = 1"))
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{some}", (_value(rng, old),))


def _value(rng: random.Random, old: object) -> object:
    odd = rng.choice((*NUMBERS, *REALS, *TEXTS, b"", b"\xff" * 4242, None))
    if rng.random() < 0.2:
        return odd
    if isinstance(old, str):
        with suppress(ValueError):
            return node(rng, old)
    if isinstance(old, bytes) and old:
        if len(old) % SPAN.itemsize:
            return changed(rng, old)
        fields = [name for name in SPAN.names or () if name != "lane" or rng.random() < 0.1]
        at = rng.randrange(len(old) // SPAN.itemsize)
        return spans_set(old, rng.choice(fields), rng.choice((*NUMBERS, 3, 2**25, 2**42)), at, rng.choice((1, 3, None)))
    return odd


def spans_set(data: bytes, name: str, value: int, first: int = 0, count: int | None = None) -> bytes:
    """Spans with a field of some of them (None: of all) set to `value`, or as near as its type allows."""
    spans = np.frombuffer(data, SPAN).copy()
    limits = np.iinfo(SPAN[name])
    spans[name][first if count else 0 : first + count if count else None] = min(max(value, limits.min), limits.max)
    return spans.tobytes()


def mutated(path: Path, rng: random.Random) -> None:
    """A change that fits what the file holds; bytes for anything."""
    content = path.read_bytes()
    if content.startswith(b"SQLite format 3") and rng.random() < 0.6:
        return row(path, rng)
    for head, unpack, pack in ((b"\x1f\x8b", gzip.decompress, gzip.compress), (b"BZh", bz2.decompress, bz2.compress)):
        if content.startswith(head) and rng.random() < 0.6:
            path.write_bytes(pack(_written(rng, unpack(content))))
            return None
    path.write_bytes(_written(rng, content))
    return None


def _written(rng: random.Random, content: bytes) -> bytes:
    with suppress(ValueError):
        text = content.decode()
        if "\0" not in text and rng.random() < 0.7:
            lines = text.splitlines(keepends=True)
            at = rng.randrange(len(lines))
            before, after = "".join(lines[:at]), "".join(lines[at + 1 :])
            for other in (lambda: node(rng, text), lambda: f"{before}{node(rng, lines[at])}\n{after}"):
                with suppress(ValueError):
                    return other().encode("utf-8", "surrogatepass")
            return reworded(rng, text).encode("utf-8", "surrogatepass")
    return changed(rng, content)


def another_kind(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice(HEADS) * 9 + rng.randbytes(rng.randrange(5000)))


def _folder(path: Path, rng: random.Random) -> None:
    path.mkdir()
    (path / "means.npy").write_bytes(b"half")


def _sparse(path: Path, rng: random.Random) -> None:
    path.touch()
    os.truncate(path, rng.choice((30 << 20, 60 << 30, 1 << 40)))


LINKED: Final = ("/dev/zero", "/dev/tty", "nowhere", "/proc/self/mem", "/etc/shadow")
PLACES: Final[dict[str, Damage]] = {
    "missing": lambda path, rng: None,
    "empty": lambda path, rng: path.touch(),
    "pipe": lambda path, rng: os.mkfifo(path),
    "link": lambda path, rng: path.symlink_to(rng.choice((*LINKED, path.name))),
    "folder": _folder,
    "sparse": _sparse,
}
"""What is put in the place of a file."""


def misplaced(path: Path, rng: random.Random, what: str = "") -> None:
    path.unlink()
    PLACES[what or rng.choice(list(PLACES))](path, rng)


DAMAGES: Final[tuple[Damage, ...]] = (mutated, mutated, mutated, another_kind, misplaced, misplaced)
