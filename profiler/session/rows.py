"""From rows of a file nobody vouches for to checked records.

SQLite columns hold any type in a hostile file, so every value is looked at once; `Damaged` says in a few
words what is wrong with it.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import numpy as np

from profiler.session import schema
from profiler.session.model import ConfigEpoch, CounterTotal, LaneInfo, Marker, StageInfo, Utterance
from profiler.spans import GROUPS, WORK_COUNTS, Cost

MARKER: Final = "revision, id, kind, text, t_ns, asked_frame, applied_frame, epoch, key, value"
UTTERANCE: Final = (
    "revision, id, name, path, first_frame, n_frames, audio_s, reference, hypothesis, words, wall_ns, "
    "epochs, errors, reference_words, done"
)
CALIBRATION: Final = schema.CALIBRATION

MAX_DURATION_NS: Final = 1 << 43
"""2.4 hours; no single span is so long, and sums of such spans still fit 64 bits."""

MAX_START_NS: Final = 1 << 62

MAX_JSON: Final = 1 << 24
"""Characters; the words of three days. Decoded, JSON may weigh 20 times as much."""

_PAIRS: Final = 2


class Damaged(ValueError):
    """A value in the file that no writer has put there."""


def check_tables(db: sqlite3.Connection) -> None:
    """Refuse a database whose schema holds anything but the known tables and indexes."""
    found = set()
    for kind, name, statement in db.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind == "index" and (
            name in schema.INDEXES or str(name).startswith("sqlite_autoindex_")
        ):
            continue
        known = schema.TABLES.get(name) if kind == "table" else None
        if known is None or statement != known:
            raise Damaged(
                f"it holds a {kind!s:.10} {name!s:.40} that no session has; it may have been tampered "
                "with"
            )
        found.add(name)
    missing = sorted(set(schema.TABLES) - found)
    if missing:
        raise Damaged(f"the table {missing[0]} is missing")


def integer(value: object, what: str) -> int:
    """Return `value` if it is an integer that SQLite can hold."""
    if not isinstance(value, int):
        raise Damaged(f"{what} holds {value!r:.40} where a whole number belongs")
    return value


def count(value: object, what: str) -> int:
    """Return `value` if it is a frame, count or id: 0 … 2^32-1."""
    if not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise Damaged(f"{what} holds {value!r:.40} where a count belongs")
    return value


def real(value: object, what: str) -> float:
    """Return `value` if it is a number."""
    if not isinstance(value, int | float):
        raise Damaged(f"{what} holds {value!r:.40} where a number belongs")
    return float(value)


def text(value: object, what: str) -> str:
    """Return `value` if it is text."""
    if not isinstance(value, str):
        raise Damaged(f"{what} holds {value!r:.40} where text belongs")
    return value


def texts(rows: Iterable[tuple[object, object]], what: str) -> dict[str, str]:
    """Return rows of two texts as a table."""
    return {text(key, what): text(value, what) for key, value in rows}


def json(value: object, what: str) -> Any:
    """Decode JSON text."""
    if len(text(value, what)) > MAX_JSON:
        raise Damaged(f"{what} holds more than {MAX_JSON >> 20} MB of JSON")
    try:
        return msgspec.json.decode(text(value, what))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{what} is not JSON ({error})") from None


def state(value: object) -> str:
    """Return the session's state, one of schema.STATES."""
    if value not in schema.STATES:
        raise Damaged(f"its state is {value!r:.40}")
    return str(value)


def _optional_count(value: object, what: str) -> int | None:
    return None if value is None else count(value, what)


def _optional_text(value: object, what: str) -> str | None:
    return None if value is None else text(value, what)


def stage(row: tuple[Any, ...]) -> StageInfo:
    """Check a row of `stage`."""
    number, name, group, work = row
    names = json(work, "stage")
    if group not in GROUPS or not isinstance(names, list) or len(names) > WORK_COUNTS:
        raise Damaged(f"stage {name!r:.40} is of no known kind")
    return StageInfo(
        count(number, "stage"),
        text(name, "stage"),
        group,
        tuple(text(item, "stage") for item in names),
    )


def lane(row: tuple[Any, ...]) -> LaneInfo:
    """Check a row of `lane`."""
    number, name, kind, decode, recorded, dropped = row
    return LaneInfo(
        count(number, "lane"),
        text(name, "lane"),
        text(kind, "lane"),
        bool(decode),
        integer(recorded, "lane"),
        integer(dropped, "lane"),
    )


def config(row: tuple[Any, ...]) -> ConfigEpoch:
    """Check a row of `config`."""
    epoch, first_frame, applied_ns, tree = row
    decoded = json(tree, "config")
    if not isinstance(decoded, dict):
        raise Damaged("config holds no table of options")
    return ConfigEpoch(
        count(epoch, "config"),
        count(first_frame, "config"),
        decoded,
        integer(applied_ns, "config"),
    )


def cost(row: tuple[Any, ...]) -> tuple[tuple[int, int], Cost]:
    """Check a row of `cost`: ((stage, epoch), law)."""
    number, epoch, law = row
    try:
        return (count(number, "cost"), count(epoch, "cost")), Cost.from_dict(json(law, "cost"))
    except Damaged:
        raise
    except ValueError as error:
        raise Damaged(str(error)) from None


def calibration(row: tuple[Any, ...]) -> dict[str, Any]:
    """Check a row of `calibration`."""
    phase, kind, name, dtype, threads, size, median, low, high, unit = row
    return {
        "phase": text(phase, "calibration"),
        "kind": text(kind, "calibration"),
        "name": text(name, "calibration"),
        "dtype": text(dtype, "calibration"),
        "threads": count(threads, "calibration"),
        "bytes": integer(size, "calibration"),
        "median": real(median, "calibration"),
        "low": real(low, "calibration"),
        "high": real(high, "calibration"),
        "unit": text(unit, "calibration"),
    }


def counter(row: tuple[Any, ...]) -> tuple[int, CounterTotal]:
    """Check a row of `counter`: (revision, total)."""
    lane, stage, epoch, name, value, source, revision = row
    if integer(value, "counter") < 0:
        raise Damaged("counter holds a total below 0")
    return integer(revision, "counter"), CounterTotal(
        count(lane, "counter"),
        count(stage, "counter"),
        count(epoch, "counter"),
        text(name, "counter"),
        value,
        text(source, "counter"),
    )


def check_spans(records: np.ndarray, lane_id: int, highest_stage: int) -> None:
    """Refuse spans that belong to no stage or another lane, or whose times no clock gave."""
    if not len(records):
        return
    start, duration = records["start_ns"], records["duration_ns"]
    if (
        int(records["stage"].max()) > highest_stage
        or int(records["lane"].min()) != lane_id
        or int(records["lane"].max()) != lane_id
        or int(duration.min()) < 0
        or int(duration.max()) >= MAX_DURATION_NS
        or int(start.min()) < 0
        or int(start.max()) >= MAX_START_NS
    ):
        raise Damaged(f"lane {lane_id} holds a span with impossible values")


def marker(row: tuple[Any, ...]) -> tuple[int, Marker]:
    """Check a row of `marker` (columns MARKER): (revision, marker)."""
    revision, number, kind, words, t_ns, asked, applied, epoch, key, value = row
    return integer(revision, "marker"), Marker(
        integer(number, "marker"),
        text(kind, "marker"),
        text(words, "marker"),
        integer(t_ns, "marker"),
        count(asked, "marker"),
        _optional_count(applied, "marker"),
        _optional_count(epoch, "marker"),
        _optional_text(key, "marker"),
        None if value is None else json(value, "marker"),
    )


def peaks(row: tuple[Any, ...] | None) -> np.ndarray:
    """Check a row of `peaks`: int8 [n, 2], empty where there is none."""
    if row is None:
        return np.empty((0, 2), np.int8)
    (data,) = row
    if not isinstance(data, bytes) or len(data) % _PAIRS:
        raise Damaged("the wave form of an utterance has an impossible length")
    return np.frombuffer(data, np.int8).reshape(-1, 2)


def utterance(row: tuple[Any, ...], wave: np.ndarray) -> tuple[int, Utterance]:
    """Check a row of `utterance` (columns UTTERANCE): (revision, utterance)."""
    (
        revision,
        number,
        name,
        path,
        first_frame,
        n_frames,
        audio_s,
        reference,
        hypothesis,
        words,
        wall_ns,
        epochs,
        errors,
        reference_words,
        done,
    ) = row
    what = "utterance"
    timed = json(words, what)
    under = json(epochs, what)
    if not isinstance(timed, list) or not isinstance(under, list):
        raise Damaged("an utterance has no list of words")
    checked = []
    for item in timed:
        if not isinstance(item, list) or len(item) != 3:
            raise Damaged(f"an utterance has the word {item!r:.40}")
        checked.append((text(item[0], what), count(item[1], what), count(item[2], what)))
    return integer(revision, what), Utterance(
        integer(number, what),
        text(name, what),
        text(path, what),
        count(first_frame, what),
        count(n_frames, what),
        real(audio_s, what),
        _optional_text(reference, what),
        _optional_text(hypothesis, what),
        tuple(checked),
        None if wall_ns is None else integer(wall_ns, what),
        tuple(count(epoch, what) for epoch in under),
        _optional_count(errors, what),
        _optional_count(reference_words, what),
        bool(done),
        wave,
    )
