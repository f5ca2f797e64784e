"""Sessions of strangers: those made on purpose, and damage to sound ones that hold all that one may hold."""

import functools
import json
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from pipelines import config as settings
from pipelines.config import presets
from profiler.machine.describe import describe, versions
from profiler.session.files import own_files
from profiler.spans import SPAN
from tests.bench import _sessions
from tests.bench.campaign.attack import SESSION, Attack, Commands, Kind
from tests.bench.campaign.mutate import HUGE, MARKUP, ODD, mutated, row, spans_set
from tests.profiler.profiler_sessions import KEPT

FACTS: Final[dict[str, Any]] = {
    "asrscope_version": "0.1.0", "preset": "dnn", "argv": ["asrscope", "run", "--preset", "dnn"],
    "audio": ["/speech/one.flac", "/speech/two.flac"], "acoustic_models": ["a net of 5 layers"],
    "machine": describe(), "versions": versions(),
    "recorder": {
        "ns_per_put": 292.6, "ns_per_span": 497.1, "ns_per_lap": 381.4, "ns_per_counter_read": 900.0,
        "ns_per_counted_span": 2100.5, "counters": ["page_faults", "cycles"],
        "counters_absent": {"cache_misses": "not on this machine"},
    },
    "scoring": {"senones": 5126, "context": [10, 7]},
    "nets": {"base": {"context": [10, 7]}, "small": {"context": [7, 3]}},
    "drift": {"gemm": -0.02, "read 134217728": 0.1},
    "alternatives/1": {
        "nbest": [{"hypothesis": "word0 word1", "cost": 12.5}, {"hypothesis": "word0", "cost": 13}],
        "confidences": [0.9, 0.4, 1.0],
    },
}  # fmt: skip
"""What a run says in `meta`, every fact that a reader knows."""
ARMS: Final = {
    "arms": [{"name": "A", "epoch": 0, "set": {}}, {"name": "B", "epoch": 1, "set": {"block": 1}}],
    "repeat": 2,
    "warm_up": 1,
    "measured_from": 0,
}
Change = Callable[[Path], object]


def _edited(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, isolation_level=None))


@functools.cache
def full(interleaved: bool = False) -> bytes:
    """A sound, closed session in which every fact, setting and column is filled in."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / SESSION
        pipeline = _sessions.record(path, 24, utterance_frames=96)
        writer = pipeline.writer
        writer.calibration(_sessions.ROOF_TABLE.rows("end"))
        for stage, epoch, cost in [one for one in pipeline.recorder.costs if one[1] == 0]:
            pipeline.recorder.cost(stage, epoch + 1, cost)
        writer.marker_applied(writer.marker("option", "Net: small", 170, "dnn.net", "small"), 192, 1)
        writer.marker("user", "noise", 100)
        for key, value in {**FACTS, **({"ab": ARMS} if interleaved else {})}.items():
            writer.meta(key, value)
        writer.close()
        config = presets.load("dnn").config
        with _edited(path) as db:
            db.execute("DELETE FROM config")
            for epoch, tree in enumerate((config, settings.replace(config, "dnn.net", "small"))):
                values = (epoch, 192 * epoch, json.dumps(settings.to_dict(tree)))
                db.execute("INSERT INTO config(epoch, first_frame, applied_ns, tree) VALUES(?,?,1,?)", values)
            if interleaved:
                db.execute("UPDATE utterance SET name='one', path='/speech/one.flac', epochs=printf('[%d]', id % 2)")
        return path.read_bytes()


SLOW: Final = "instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || '1')"
"""Half a minute in one step of SQLite's, at the least."""
_SLOW: Final = SLOW.replace("'", "''")
_INDEX: Final = "sql='CREATE INDEX marker_by_revision ON {}' WHERE name='marker_by_revision'"
DEAD: Final = (
    "UPDATE meta SET value='\"recording\"' WHERE key='state'",
    "UPDATE meta SET value='{}' WHERE key='writer'",
)


def _sql(*statements: str, pipe: str = "", wal: bool = False) -> Change:
    """SQL in one transaction, and a pipe next to the session that nobody writes to. `wal`: the session is left as a
    recording that was killed does; opening it writes into it."""

    def change(path: Path) -> None:
        if pipe:
            os.mkfifo(path.with_name(pipe))
        with _edited(path) as db:
            for statement in ("PRAGMA writable_schema = ON", "BEGIN", *statements, "COMMIT"):
                db.execute(statement)
            if not wal:
                return
            for pragma in ("journal_mode = WAL", "user_version = 1"):
                db.execute(f"PRAGMA {pragma}")
            kept = {file: file.read_bytes() for file in (path, own_files(path).wal)}
        for file, content in kept.items():
            file.write_bytes(content)

    return change


def _generated_statistics(path: Path) -> None:
    """SQLite reads its planner's statistics with the schema, before any query: a generated column is computed."""
    table = f"CREATE TABLE sqlite_stat1(tbl,idx,stat AS ({_SLOW}))"
    _sql("ANALYZE")(path)
    _sql(f"UPDATE sqlite_schema SET sql='{table}' WHERE name='sqlite_stat1'")(path)


def _spans(name: str, value: int | None) -> Change:
    """Set a field of every span; None: of each to a number at random."""

    def change(path: Path) -> None:
        rng = random.Random(7)
        with _edited(path) as db:
            for number, data in db.execute("SELECT id, data FROM block").fetchall():
                for place in range(len(data) // SPAN.itemsize):
                    data = spans_set(data, name, rng.randrange(1 << 32) if value is None else value, place, 1)
                db.execute("UPDATE block SET data=? WHERE id=?", (data, number))

    return change


def _instead(make: Callable[[Path], object], suffix: str = "") -> Change:
    """Something else in the place of the session, or of the file at its side with that suffix."""

    def change(path: Path) -> None:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
        make(path.with_name(path.name + suffix))

    return change


NAMED: Final = (
    *("utterance.name", "utterance.path", "utterance.reference", "utterance.hypothesis", "marker.text", "marker.key"),
    *("lane.name", "lane.kind", "stage.name", "sample_name.name", "calibration.name", "counter.name"),
)  # fmt: skip


def renamed(text: str, path: Path) -> None:
    words = json.dumps([[text, 10 * n, 9] for n in range(20)])
    facts: dict[str, object] = dict.fromkeys(("preset", "session_id", "asrscope_version"), text)
    facts |= {"argv": [text], "versions": {text: text}, "machine": {"cpu": text, "cores": text}}
    with _edited(path) as db:
        for table, column in (place.split(".") for place in NAMED):
            for value in ("?", "? || rowid"):  # some names must differ from each other
                db.execute(f"UPDATE OR IGNORE {table} SET {column}={value}", (text,))
        db.execute("UPDATE utterance SET words=?", (words,))
        db.executemany(
            "INSERT OR REPLACE INTO meta VALUES(?,?)", [(key, json.dumps(value)) for key, value in facts.items()]
        )


def _many(table: str, count: int) -> Change:
    def change(path: Path) -> None:
        with _edited(path) as db:
            names = [about[1] for about in db.execute(f"PRAGMA table_info({table})") if about[1] != "id"]
            (last,) = db.execute(f"SELECT max(id) FROM {table}").fetchone()
            values = ", ".join(f"'{table} ' || n" if name == "name" else name for name in names)
            db.execute(
                f"WITH RECURSIVE more(n) AS (SELECT {last + 1} UNION ALL SELECT n + 1 FROM more WHERE n < "
                f"{last + count}) INSERT INTO {table}(id, {', '.join(names)}) SELECT more.n, {values} FROM more, "
                f"(SELECT {', '.join(names)} FROM {table} WHERE id = {last})"
            )

    return change


MASTER: Final[dict[str, Change]] = {
    name: _sql(*DEAD, f"UPDATE sqlite_schema SET {change}" if "=" in change[:12] else change, wal=True)
    for name, change in {
        "an index over an expression": f"tbl_name='meta', {_INDEX.format(f'meta(length(value) + {_SLOW})')}",
        "an index over another table": _INDEX.format("meta(value)"),
        "a default": "sql=replace(sql, 'value TEXT', 'value TEXT DEFAULT (hex(zeroblob(9)))') WHERE name='meta'",
        "a check": f"sql=replace(sql, 'value TEXT', 'value TEXT CHECK ({_SLOW} = 0)') WHERE name='meta'",
        "an index named as SQLite's own": "name='sqlite_autoindex_x_1', sql='CREATE INDEX sqlite_autoindex_x_1 ON "
        "marker(abs(revision))' WHERE name='marker_by_revision'",
        "no STRICT": "sql=replace(sql, ' STRICT', '')",
        "without rowid": "sql=replace(sql, 'STRICT', 'STRICT, WITHOUT ROWID') WHERE name='counter'",
        "everything twice": "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema",
        "another case": "sql=lower(sql)",
        "a comment": "sql=sql || ' -- ' || hex(zeroblob(100000))",
        "parentheses": _INDEX.format(f"marker({'(' * 800}1{')' * 800})"),
        "a huge schema": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<40000) INSERT INTO "
        "sqlite_schema SELECT 'table', 't'||i, 't'||i, 2, 'CREATE TABLE t'||i||'(a,b,c,d,e,f,g)' FROM r",
    }.items()
}
"""Changes of SQLite's own table of the schema, which no CREATE statement would make."""
PURPOSES: Final[dict[str, Change]] = {
    "a view for a table": _sql(
        "ALTER TABLE lane RENAME TO other",
        "CREATE VIEW lane AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT i AS id, "
        "'a' AS name, 'cpu' AS kind, 1 AS decode, 0 AS recorded, 0 AS dropped FROM r",
    ),
    "an index of many": _sql(*(f"CREATE INDEX i{i} ON meta(key)" for i in range(2000))),
    "a stage per span": _sql(
        "WITH RECURSIVE r(i) AS (SELECT max(id)+1 FROM stage UNION ALL SELECT i+1 FROM r WHERE i<65000) "
        "INSERT INTO stage SELECT i, 'stage ' || i, 'scoring', '[]' FROM r"
    ),
    "many lanes": _sql(
        "WITH RECURSIVE r(i) AS (SELECT 20 UNION ALL SELECT i+1 FROM r WHERE i<65000) "
        "INSERT INTO lane SELECT i, 'lane ' || i, 'cpu', 1, 0, 0 FROM r"
    ),
    "everything recorded by nobody": _sql(*DEAD),
    **{
        name: _sql(statement)
        for name, statement in {
            "frames beyond the sound": "UPDATE utterance SET n_frames = 4294967295",
            "utterances far away": "UPDATE utterance SET first_frame = 4294967295",
            "no audio": "UPDATE utterance SET audio_s = 0, n_frames = 0",
            "endless audio": "UPDATE utterance SET audio_s = 9e999",
            "negative times": "UPDATE utterance SET wall_ns = -1",
            "words far away": """UPDATE utterance SET words='[["word",4294967295,4294967295]]'""",
            "a reference of 200 000 words": "UPDATE utterance SET reference=replace(hex(zeroblob(100000)), '0', 'a ')",
            "markers out of the world": "UPDATE marker SET asked_frame=4294967295, t_ns=-9e18",
            "great laws": "UPDATE cost SET law = replace(law, '4.0', '9e23')",
            "no settings": "DELETE FROM config",
            "a name of 10 MB": "UPDATE stage SET name=hex(zeroblob(5000000))",
            "a preset of 10 MB": "UPDATE meta SET value='\"'||hex(zeroblob(5000000))||'\"' WHERE key='preset'",
        }.items()
    },
    **MASTER,
    "generated statistics": _generated_statistics,
    "all in frame 0": _spans("first_frame", 0),
    "all in the last frame": _spans("first_frame", HUGE),
    "first frames at random": _spans("first_frame", None),
    "spans of no time": _spans("duration_ns", 0),
    "work without end": _spans("work0", HUGE),
    "a net whose card is a pipe": _sql(
        "UPDATE config SET tree=replace(tree, '\"small\"', '\"trap.safetensors\"') WHERE epoch=1", pipe="trap.json"
    ),
    "settings that name pipes": _sql(
        "UPDATE config SET tree=json_set(tree, '$.graph.dictionary', 'pipe.dict', '$.dnn.net', '/dev/zero.onnx')",
        pipe="pipe.dict",
    ),
    "a pipe": _instead(os.mkfifo),
    "a device": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a -wal that is a pipe": _instead(os.mkfifo, "-wal"),
    "a -wal of nonsense": _instead(lambda path: path.write_bytes(b"\x37\x7f\x06\x82" * 999), "-wal"),
    "a terabyte": lambda path: os.truncate(path, 1 << 40),
    "two arms": lambda path: None,
    "a sound one": lambda path: None,
}
"""What is done to the full session, by name of the attack."""
SHOWN: Final[dict[str, Change]] = {
    **{
        f"many {table}s": _many(table, n) for table, n in (("utterance", 10_000), ("marker", 20_000), ("stage", 10_000))
    },
    **{f"every name is {text[:24]!r}": functools.partial(renamed, text) for text in (*MARKUP, *ODD)},
}
"""What is hard to show rather than to read."""


def spoiled(name: str, folder: Path) -> None:
    path = folder / SESSION
    path.write_bytes(full("two arms" in name))
    (PURPOSES | SHOWN)[name](path)


BASES: Final = {"small": (12, "closed"), "larger": (150, "stopped"), "living": (60, ""), "dead": (150, "")}
"""Blocks of a session, and the state in which it is closed, if it is."""


@functools.cache
def bases() -> dict[str, tuple[bytes, bytes]]:
    """Sound sessions by name, each with its -wal: closed, living and dead live ones, the kept and the full ones."""
    made = {f"full-{arms}": (full(arms == "two"), b"") for arms in ("one", "two")}
    made["v1"] = (KEPT / "v1.asrs").read_bytes(), b""
    for name, (blocks, ending) in BASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / SESSION
            pipeline = _sessions.record(path, blocks, utterance_frames=320)
            writer = pipeline.writer
            writer.marker_applied(writer.marker("option", "selection on", 90, "gmm.selection.enabled", True), 96, 1)
            writer.config(1, 96, {"threads": 2, "block": 16})
            writer.marker("user", "noise", 100)
            other = pipeline.recorder.lane("device", kind="device")
            for i in range(30):
                start = _sessions.SECOND + i * 1000
                other.put(2, start, start + 900, i, 1, 5)
            if name == "dead":
                writer.meta("writer", {"pid": 1, "started": 0.0, "host": os.uname().nodename, "boot": "x"})
            _sessions.taken(pipeline, other)
            time.sleep(0.1)
            wal = b"" if ending else own_files(path).wal.read_bytes()
            live = path.read_bytes()
            writer.close(ending or "closed")
            made[name] = path.read_bytes() if ending else live, wal
    return made


READ: Final = (
    ("show", SESSION),
    ("show", SESSION, "--json"),
    ("export", SESSION, "--csv", "a.csv", "--chrome-trace", "b.json", "--speedscope", "c.json", "--markdown", "d.md"),
    ("compare", SESSION, SESSION),
    ("compare", SESSION, "--json"),
    ("whatif", SESSION, "--scale", "scoring=0.5"),
)
PICTURE: Final = ("export", SESSION, "--png", "d.png", "--size", "1000x700")
RUN_AGAIN: Final = (("whatif", SESSION, "--set", "block=64"), ("confirm", SESSION, "score.exp"))


def _on_purpose(rng: random.Random) -> Iterator[Attack]:
    for name in (*PURPOSES, *SHOWN):
        commands = RUN_AGAIN if "settings that" in name else (*READ, PICTURE)
        yield Attack(f"sessions: {name}", functools.partial(spoiled, name), commands, window=SESSION)


def _files() -> list[str]:
    """The file of each sound session, and the -wal of those that have one."""
    return [f"{name}.asrs{side}" for name, base in bases().items() for side in ("", "-wal")[: 1 + bool(base[1])]]


def write(folder: Path, file: str) -> None:
    """A sound session and its -wal, where `file` is one of them."""
    path = folder / file.removesuffix("-wal")
    main, wal = bases()[path.stem]
    path.write_bytes(main)
    if wal:
        own_files(path).wal.write_bytes(wal)


def _named(commands: Commands, file: str) -> Commands:
    name = file.removesuffix("-wal")
    return tuple(tuple(name if word == SESSION else word for word in words) for words in commands)


SESSIONS: Final = Kind(_on_purpose, _files, write, functools.partial(_named, READ))
WINDOW: Final = Kind(
    files=_files,
    make=write,
    commands=functools.partial(_named, (PICTURE,)),
    damages=(mutated, row, row, row),
    window=lambda file: file.removesuffix("-wal"),
)
