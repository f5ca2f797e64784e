"""Sessions that are well formed and meant badly: what a stranger may write into every field that the window shows.

Nodes of JSON, settings among them, are those of `_session_nodes`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from profiler.spans import SPAN
from tests.app.sample_session import write_sample
from tests.bench.campaign._session_nodes import OTHERS
from tests.bench.campaign.attack import Attack

SESSION: Final = "hostile.asrs"
FRAMES: Final = 512

Change = Callable[[sqlite3.Connection], None]

HUGE: Final = 2**32 - 1
LONG: Final = "name " * 20_000

MARKUP: Final = (
    "<img src='/dev/zero'>",
    "<img src='file:///dev/zero'><img src='\\\\\\\\host\\\\share\\\\x.png'>",
    "<a href='file:///etc/passwd'>a</a>",
    "<table>" + "<tr><td>" * 3000,
    "<b>bold</b> & <i>x</i> &amp; &lt;img&gt;",
    "<style>*{background:url(/dev/zero)}</style><body background='/dev/zero'>",
    "<?xml version='1.0'?><svg xmlns='x'><image href='/dev/zero'/></svg>",
)
ODD: Final = (
    "", " ", "\x1b]0;title\x07\x1b[2J", "a\nb\r\nc\u2028d\te", "\u202egnp.exe \u2066x\u2069", "&Save && all",
    "\u0300" * 3000, "\ufdfd" * 300, "{0}{1}%s%n{__class__}", "]]></title><script>1</script>", LONG,
)  # fmt: skip
NUMBERS: Final = (0, 1, -1, 255, 65_535, HUGE, 2**62, -(2**62))
REALS: Final = (-1.0, 0.0, 1e-300, 1e15, 1e300, -1e300, float("inf"))
META: Final = (
    *("preset", "created_wall", "recorder", "scoring", "machine", "versions", "argv", "session_id", "drift"),
    "asrscope_version",
)  # fmt: skip
"""Keys of the session's description, each of which gets every value of `OTHERS`."""


def attacks(rng: random.Random, count: int) -> Iterator[Attack]:
    """Each field with each kind of value once, then several together at random; `count` in all at most."""
    known = list(changes())
    for number in range(count):
        if number < len(known):
            name, change = known[number]
            chosen = [change]
        else:
            some = rng.sample(known, rng.randint(2, 6))
            name, chosen = " + ".join(n for n, _ in some), [c for _, c in some]
        picture = ("export", SESSION, "--png", "picture.png")
        make = functools.partial(spoil, chosen)
        yield Attack(f"window: {name}", make, (picture,), window=SESSION)


def spoil(chosen: Sequence[Change], folder: Path) -> None:
    """Write a session with these changes into `folder`."""
    path = folder / SESSION
    path.write_bytes(base())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for change in chosen:
            change(db)


@functools.cache
def base() -> bytes:
    """A sound session of `FRAMES` frames."""
    with tempfile.TemporaryDirectory() as name:
        return write_sample(Path(name) / SESSION, FRAMES, utterance_frames=256).read_bytes()


def changes() -> Iterator[tuple[str, Change]]:
    """Every change with its name."""
    for text in (*MARKUP, *ODD):
        yield f"every name is {text[:24]!r}", renamed(text)
    for key, (which, value) in itertools.product(META, OTHERS.items()):
        change = _sql("INSERT OR REPLACE INTO meta VALUES(?,?)", key, value)
        yield f"meta {key} is {which}", change
    for table, columns in (
        ("utterance", ("first_frame", "n_frames", "errors", "reference_words", "wall_ns")),
        ("marker", ("asked_frame", "applied_frame")),
        ("config", ("first_frame", "epoch")),
        ("lane", ("dropped",)),
    ):
        for column, value in itertools.product(columns, NUMBERS):
            yield f"{table}.{column} = {value}", _sql(f"UPDATE {table} SET {column}=?", value)
    for real in REALS:
        for column in ("median", "low", "high"):
            change = _sql(f"UPDATE calibration SET {column}=?", real)
            yield f"calibration.{column} = {real}", change
        yield f"audio_s = {real}", _sql("UPDATE utterance SET audio_s=?", real)
    for name, table in (
        *(("calibration", "calibration"), ("cost laws", "cost"), ("configuration", "config")),
        *(("markers", "marker"), ("utterances", "utterance"), ("wave forms", "peaks")),
    ):
        yield f"no {name}", _sql(f"DELETE FROM {table}")
    for place in ((0, 0), (HUGE, HUGE), (HUGE - 1, 1), (5, 0)):
        words = json.dumps([["word", *place]] * 30)
        yield f"words at {place}", _sql("UPDATE utterance SET words=?", words)
    for name, count in (("utterances", 10_000), ("markers", 20_000), ("stages", 10_000)):
        yield f"{count} {name}", functools.partial(_many, name, count)
    long = _sql("UPDATE utterance SET reference=?", "a " * 200_000)
    yield "a reference of 200 000 words", long
    for field in ("first_frame", "frames", "duration_ns", "start_ns", "epoch", "work0", "stage"):
        for value in (0, 1, 65_535, HUGE - 65_536, 2**42):
            yield f"spans: {field} = {value}", functools.partial(_spans, field, value)


def renamed(text: str) -> Change:
    """Put `text` wherever a session has a name."""
    return functools.partial(_rename, text)


def _sql(statement: str, *values: object) -> Change:
    return lambda db: _execute(db, statement, *values)


def _execute(db: sqlite3.Connection, statement: str, *values: object) -> None:
    with contextlib.suppress(sqlite3.IntegrityError):  # the file itself forbids this value
        db.execute(statement, values)


NAMED: Final = (
    *("utterance.name", "utterance.path", "utterance.reference", "utterance.hypothesis", "marker.text", "marker.key"),
    *("lane.name", "lane.kind", "stage.name", "sample_name.name", "calibration.name", "counter.name"),
)  # fmt: skip
"""Columns that hold names."""


def _rename(text: str, db: sqlite3.Connection) -> None:
    for table, column in (place.split(".") for place in NAMED):
        # Some names must differ from each other.
        for value in ("?", "? || rowid"):
            _execute(db, f"UPDATE OR IGNORE {table} SET {column}={value}", text)
    words = json.dumps([[text, 10 * n, 9] for n in range(20)])
    _execute(db, "UPDATE utterance SET words=?", words)
    facts: dict[str, object] = dict.fromkeys(("preset", "session_id", "asrscope_version"), text)
    facts |= {"argv": [text], "versions": {text: text}, "machine": {"cpu": text, "cores": text}}
    for key, value in facts.items():
        _execute(db, "INSERT OR REPLACE INTO meta VALUES(?,?)", key, json.dumps(value))


def _many(what: str, count: int, db: sqlite3.Connection) -> None:
    """Repeat the last utterance, marker or stage `count` times."""
    table = what.removesuffix("s")
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    (last,) = db.execute(f"SELECT max(id) FROM {table}").fetchone()
    rest = ", ".join(f"'{table} ' || n" if n_ == "name" else n_ for n_ in names if n_ != "id")
    others = ", ".join(n for n in names if n != "id")
    db.execute(
        f"WITH RECURSIVE more(n) AS (SELECT {last} + 1 UNION ALL SELECT n + 1 FROM more "
        f"WHERE n < {last + count}) INSERT INTO {table}(id, {others}) "
        f"SELECT more.n, {rest} FROM more, (SELECT {others} FROM {table} WHERE id = {last})"
    )


def _spans(field: str, value: int, db: sqlite3.Connection) -> None:
    """Set one field of every span."""
    info = np.iinfo(SPAN[field])
    for number, data in db.execute("SELECT id, data FROM block").fetchall():
        spans = np.frombuffer(data, SPAN).copy()
        spans[field] = min(max(value, info.min), info.max)
        db.execute("UPDATE block SET data=? WHERE id=?", (spans.tobytes(), number))
