"""The mutator: bytes, words, nodes of JSON and rows of a database in any sound file; and files that are none.

A damage takes the path of a sound file and a source of random numbers.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import re
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from profiler.spans import SPAN

Damage = Callable[[Path, random.Random], None]

PAGE: Final = 4096
"""Of SQLite: half of the changes fall on the beginning of the file or of such a page."""
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
TEXTS: Final = (
    *ODD, *MARKUP, "\0", "null", "[]", "{}", "-1", "1e999", "NaN", "inf", "9" * 5000, "1_0", "²", "true", "closed",
    '"recording"', "[[]]", '[["a",4294967295,4294967295]]', "[" * 5000, "../../../../etc/passwd", "/dev/zero",
    "/proc/self/mem", "~nobody-of-this-name/x", "C:\\con", "=cmd|'/c calc'!A1", "\ud7ff\uffff\U0010ffff", "caf\udce9",
    "decode", "scoring", "idle", '{"pid":1,"started":0,"host":"","boot":""}',
)  # fmt: skip
NODES: Final[dict[str, str]] = {
    "null": "null", "true": "true", "minus one": "-1", "nought": "0", "one and a half": "1.5", "great": "1e308",
    "small": "-1e-308", "63 bits": "9223372036854775807", "400 digits": "9" * 400, "5000 digits": f'"{"9" * 5000}"',
    "a word": '"x"', "no word": '""', "an escape": '"\\u001b]0;t\\u0007"', "a device": '"/dev/zero"',
    "a list": "[]", "lists": "[[1],[2]]", "a table": "{}", "nothing": '{"":null}', "600 deep": "[" * 600 + "]" * 600,
    "60 tables deep": '{"a":' * 60 + "1" + "}" * 60, "no number": "NaN", "no end": "Infinity",
    "half a character": '"\\ud800"', "9000 ones": f"[{'1,' * 8999}1]",
}  # fmt: skip
"""What a node is replaced by, as JSON text."""
SCHEMA_EDITS: Final = (
    *("rootpage=2", "rootpage=4000000000", "rootpage=1 WHERE name='meta'", "type='view' WHERE name='lane'"),
    *("name='meta' WHERE type='table'", "tbl_name='clock'", "sql=replace(sql, ' STRICT', '')", "sql=lower(sql)"),
    "rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='block')",
)  # fmt: skip
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
    match rng.randrange(10):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at] = rng.choice((0, 1, 2, 0x7F, 0x81, 0xFF, rng.randrange(256)))
        case 2:
            number = rng.choice(NUMBERS) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        case 3:
            value = rng.choice((np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0))
            data[at : at + 4] = struct.pack("<f", value)
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


def paths(tree: Any, most: int = 6) -> Iterator[tuple[Any, ...]]:
    """The path to every node of a value of JSON, of long lists to the first ones."""
    yield ()
    items = list(tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ())
    for key, value in items[: None if isinstance(tree, dict) else most]:
        yield from ((key, *path) for path in paths(value, most))


def node_replaced(tree: Any, path: tuple[Any, ...], other: str) -> str:
    """`tree` as JSON with the node at `path` replaced by the text `other`."""

    def replaced(part: Any, keys: tuple[Any, ...]) -> Any:
        if not keys:
            return _HERE
        copy = part.copy()
        copy[keys[0]] = replaced(part[keys[0]], keys[1:])
        return copy

    return json.dumps(replaced(tree, path)).replace(f'"{_HERE}"', other)


def node(rng: random.Random, text: str) -> str:
    """A text of JSON with a node replaced, or a member of it that is unknown; ValueError for another text."""
    tree = json.loads(text)
    if isinstance(tree, dict) and rng.random() < 0.1:
        return node_replaced({**tree, "unknown": 0}, ("unknown",), rng.choice(list(NODES.values())))
    return node_replaced(tree, rng.choice(list(paths(tree))), rng.choice(list(NODES.values())))


def row(path: Path, rng: random.Random) -> None:
    """What the writer of a database does not write: a node of JSON, a field of spans, an odd value, the schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db, suppress(sqlite3.Error, UnicodeEncodeError):
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
    """Another value for one of a database."""
    odd = rng.choice((*NUMBERS, *REALS, *TEXTS, b"", b"\xff" * 4242, None))
    if isinstance(old, str):
        with suppress(ValueError):
            return node(rng, old) if rng.random() < 0.8 else odd
    if isinstance(old, bytes) and old and rng.random() < 0.8:
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
    """Changed as JSON, as a line of JSON, as text, or as bytes."""
    with suppress(ValueError):
        text = content.decode()
        if "\0" not in text and rng.random() < 0.7:
            with suppress(ValueError):
                return node(rng, text).encode("utf-8", "surrogatepass")
            lines = text.splitlines(keepends=True)
            at = rng.randrange(len(lines))
            with suppress(ValueError):
                lines[at] = node(rng, lines[at]) + "\n"
                return "".join(lines).encode("utf-8", "surrogatepass")
            return reworded(rng, text).encode("utf-8", "surrogatepass")
    return changed(rng, content)


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(max(path.stat().st_size, 1))])


def flipped(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def one_more_one_less(path: Path, rng: random.Random) -> None:
    """Two words of the second half: sums stay the same."""
    content = bytearray(path.read_bytes().ljust(32, b"\0"))
    at = rng.randrange(len(content) // 2, len(content) - 8) // 4 * 4
    for place, change in ((at, 1), (at + 4, -1)):
        word = int.from_bytes(content[place : place + 4], "little") + change
        content[place : place + 4] = (word % (1 << 32)).to_bytes(4, "little")
    path.write_bytes(content)


def zeros(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) // 2 + 1)
    path.write_bytes(content[:at] + bytes(len(content) - at))


def noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(5000)))


def another_kind(path: Path, rng: random.Random) -> None:
    heads = (b"PK\x03\x04", b"SQLite format 3\0", b"[" * 50_000, b'{"a":' * 50_000, b"\0" * 5000, b"a\n" * 1_000_000)
    path.write_bytes(rng.choice(heads) * 9 + rng.randbytes(99))


def sparse(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.choice((30 << 20, 60 << 30, 1 << 40)))


def empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def missing(path: Path, rng: random.Random) -> None:
    path.unlink()


def link(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice(("/dev/zero", "/dev/tty", "nowhere", path.name, "/proc/self/mem", "/etc/shadow")))


def dangling(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(rng.choice(("nowhere", path.name)))


def pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "means.npy").write_bytes(b"half")


NO_FILE: Final[tuple[Damage, ...]] = (pipe, link, dangling, folder, missing, sparse, empty)
DAMAGES: Final[tuple[Damage, ...]] = (*(mutated, cut, flipped, one_more_one_less, zeros, noise, another_kind), *NO_FILE)
