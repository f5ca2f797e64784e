"""Sessions that are well formed and meant badly: what a stranger may write into every field that the window shows."""

from __future__ import annotations

import functools
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from profiler.spans import SPAN
from tests.app.sample_session import write_sample
from tests.bench.campaign.attack import Attack

SESSION: Final = "hostile.asrs"
FRAMES: Final = 512

Statement = tuple[str, Sequence[Any]]
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
    "",
    " ",
    "\x1b]0;title\x07\x1b[2J",
    "a\nb\r\nc\u2028d\te",
    "\u202egnp.exe \u2066x\u2069",
    "&Save && all",
    "\u0300" * 3000,
    "\ufdfd" * 300,
    "{0}{1}%s%n{__class__}",
    "]]></title><script>1</script>",
    LONG,
)
NUMBERS: Final = (0, 1, -1, 255, 65_535, HUGE, 2**62, -(2**62))
REALS: Final = (-1.0, 0.0, 1e-300, 1e15, 1e300, -1e300, float("inf"))

META: Final[dict[str, Sequence[object]]] = {
    "preset": ("<img src='/dev/zero'>", LONG, 3, ["a"], {"a": 1}, None, True),
    "created_wall": (0, -1e300, 1e300, 1e18, "yesterday", [], None, True),
    "recorder": (
        "x",
        [],
        5,
        {"ns_per_span": "x"},
        {"ns_per_span": 1e300},
        {"perturbation": [1]},
        None,
    ),
    "scoring": ("x", [], {"senones": 2**62}, {"context": [0, 10**18]}, {"context": ["a", "b"]}),
    "machine": (
        "x",
        [],
        {"cpu": {"model": 5}, "cores": {"logical": []}},
        {"cpu": LONG, "cores": -1},
    ),
    "versions": ("x", [], {"a\nb": {"c": []}}, {LONG: LONG}),
    "argv": ("x", [LONG] * 3, [[], {}, None], 5),
    "session_id": (5, "", "../../x", LONG),
    "drift": ("x", [], {"a": "b"}, {"a": 1e300}, {"a": None}, {"gemm": []}),
    "asrscope_version": (5, [], LONG),
}
"""Keys of the session's description, and what no run of ours writes there."""

TREES: Final = (
    {},
    {"dnn": "x", "search": 5, "device": ["cpu"]},
    {"dnn": {"net": "/dev/zero"}, "model": "dnn"},
    {"device": "<img src='/dev/zero'>", "threads": -1},
    {"block": 10**18, "frames": {"skip": 10**18}},
)


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
        pictures = tuple(("export", SESSION, f"--{kind}", f"picture.{kind}") for kind in ("png",))
        yield Attack(f"window: {name}", functools.partial(spoil, chosen), pictures, window=SESSION)


def spoil(chosen: Sequence[Change], folder: Path) -> None:
    """Write a session with these changes into `folder`."""
    path = folder / SESSION
    path.write_bytes(base())
    db = sqlite3.connect(path, isolation_level=None)
    try:
        for change in chosen:
            change(db)
    finally:
        db.close()


@functools.cache
def base() -> bytes:
    """A sound session of `FRAMES` frames."""
    with tempfile.TemporaryDirectory() as name:
        return write_sample(Path(name) / SESSION, FRAMES, utterance_frames=256).read_bytes()


def changes() -> Iterator[tuple[str, Change]]:
    """Every change with its name."""
    for text in (*MARKUP, *ODD):
        yield f"every name is {text[:24]!r}", renamed(text)
    for key, values in META.items():
        for value in values:
            yield (
                f"meta {key} = {json.dumps(value)[:24]}",
                _sql("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, json.dumps(value))),
            )
    for tree in TREES:
        text = json.dumps(tree)
        yield f"configuration {text[:40]}", _sql("UPDATE config SET tree=?", (text,))
    for table, columns in (
        ("utterance", ("first_frame", "n_frames", "errors", "reference_words", "wall_ns")),
        ("marker", ("asked_frame", "applied_frame")),
        ("config", ("first_frame", "epoch")),
        ("lane", ("dropped",)),
    ):
        for column in columns:
            for value in NUMBERS:
                yield (
                    f"{table}.{column} = {value}",
                    _sql(f"UPDATE {table} SET {column}=?", (value,)),
                )
    for column in ("median", "low", "high"):
        for real in REALS:
            yield (
                f"calibration.{column} = {real}",
                _sql(f"UPDATE calibration SET {column}=?", (real,)),
            )
    for real in REALS:
        yield f"audio_s = {real}", _sql("UPDATE utterance SET audio_s=?", (real,))
    yield "no calibration", _sql("DELETE FROM calibration", ())
    yield "no cost laws", _sql("DELETE FROM cost", ())
    yield "no configuration", _sql("DELETE FROM config", ())
    yield "no markers", _sql("DELETE FROM marker", ())
    yield "no utterances", _sql("DELETE FROM utterance", ())
    yield "no wave forms", _sql("DELETE FROM peaks", ())
    for place in ((0, 0), (HUGE, HUGE), (HUGE - 1, 1), (5, 0)):
        words = json.dumps([["word", *place]] * 30)
        yield f"words at {place}", _sql("UPDATE utterance SET words=?", (words,))
    for name, count in (("utterances", 10_000), ("markers", 20_000), ("stages", 10_000)):
        yield f"{count} {name}", functools.partial(_many, name, count)
    yield (
        "a reference of 200 000 words",
        _sql("UPDATE utterance SET reference=?", ("a " * 200_000,)),
    )
    for field in ("first_frame", "frames", "duration_ns", "start_ns", "epoch", "work0", "stage"):
        for value in (0, 1, 65_535, HUGE - 65_536, 2**42):
            yield f"spans: {field} = {value}", functools.partial(_spans, field, value)


def renamed(text: str) -> Change:
    """Put `text` wherever a session has a name."""
    return functools.partial(_rename, text)


def _sql(statement: str, values: Sequence[Any]) -> Change:
    return lambda db: _execute(db, statement, values)


def _execute(db: sqlite3.Connection, statement: str, values: Sequence[Any]) -> None:
    try:
        db.execute(statement, values)
    except sqlite3.IntegrityError:
        return  # the file itself forbids this value


def _rename(text: str, db: sqlite3.Connection) -> None:
    for table, column in (
        ("utterance", "name"),
        ("utterance", "path"),
        ("utterance", "reference"),
        ("utterance", "hypothesis"),
        ("marker", "text"),
        ("marker", "key"),
        ("lane", "name"),
        ("lane", "kind"),
        ("stage", "name"),
        ("sample_name", "name"),
        ("calibration", "name"),
        ("counter", "name"),
    ):
        # Some names must differ from each other.
        for statement in (
            f"UPDATE OR IGNORE {table} SET {column}=?",
            f"UPDATE OR IGNORE {table} SET {column}=? || rowid",
        ):
            _execute(db, statement, (text,))
    words = json.dumps([[text, 10 * n, 9] for n in range(20)])
    _execute(db, "UPDATE utterance SET words=?", (words,))
    for key in ("preset", "session_id", "asrscope_version"):
        _execute(db, "INSERT OR REPLACE INTO meta VALUES(?,?)", (key, json.dumps(text)))
    for key, value in (
        ("argv", [text]),
        ("versions", {text: text}),
        ("machine", {"cpu": text, "cores": text}),
    ):
        _execute(db, "INSERT OR REPLACE INTO meta VALUES(?,?)", (key, json.dumps(value)))


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
