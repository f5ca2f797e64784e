"""From rows of a file nobody vouches for to checked records.

SQLite columns hold any type in a hostile file, so every value is looked at once; `Damaged` says in a few
words what is wrong with it.
"""

import math
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.files.inputs import check_tree
from profiler.session.errors import Damaged, plain
from profiler.session.format import schema
from profiler.session.model import ConfigEpoch, CounterTotal, LaneInfo, Marker, StageInfo, Utterance
from profiler.spans import GROUPS, WORK_COUNTS, Cost

MARKER: Final = "revision, id, kind, text, t_ns, asked_frame, applied_frame, epoch, key, value"
UTTERANCE: Final = (
    "revision, id, name, path, first_frame, n_frames, audio_s, reference, hypothesis, words, wall_ns, "
    "epochs, errors, reference_words, done, complete, notes, part"
)
CALIBRATION: Final = schema.CALIBRATION

MAX_DURATION_NS: Final = 1 << 43  # 2.4 hours; no single span is so long, and sums of such spans still fit 64 bits

MAX_START_NS: Final = 1 << 62

MAX_JSON: Final = 1 << 24  # Characters; the words of three days. Decoded, JSON may weigh 20 times as much.
LONGEST_NAME: Final = 1 << 14  # Of names and paths: the longest path, each byte written as \xff
MAX_IDS: Final = 1 << 16  # Spans name stage, lane and epoch in 16 bits

MAX_STAGES: Final = 512
MAX_LANES: Final = 64  # A run has some 40 stages on one to three lanes; views keep arrays for each
MAX_SAMPLED: Final = 1 << 12  # Sampled quantities; a run has some 50
LONGEST_AUDIO_S: Final = 1e8  # Three years; the frames of an utterance are counted in 32 bits

Frame = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Words = tuple[tuple[str, Frame, Frame], ...]
Epochs = tuple[Annotated[int, msgspec.Meta(ge=0, lt=MAX_IDS)], ...]
Part = dict[str, int | float | str | None]
Notes = tuple[Annotated[str, msgspec.Meta(max_length=schema.LONGEST_MARK)], ...]


def integer(value: object, what: str) -> int:
    """Return `value` if it is an integer that SQLite can hold."""
    if not isinstance(value, int):
        raise Damaged(f"{what} holds {value!r:.40} where a whole number belongs")
    return value


def count(value: object, what: str, below: int = 1 << 32, kind: str = "a count") -> int:
    """Return `value` if it is a frame, count or id."""
    if not isinstance(value, int) or not 0 <= value < below:
        raise Damaged(f"{what} holds {value!r:.40} where {kind} belongs")
    return value


def number_of(value: object, what: str, most: int = MAX_IDS) -> int:
    """Return `value` if it is the number of a stage, lane or epoch: 0 … `most` − 1."""
    return count(value, what, most, f"a number below {most}")


def amount(value: object, what: str) -> int:
    """Return `value` if it is a time or a count of many."""
    return count(value, what, MAX_START_NS)


def real(value: object, what: str) -> float:
    """Return `value` if it is a finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise Damaged(f"{what} holds {value!r:.40} where a number belongs")
    return float(value)


def _seconds(value: object, what: str) -> float:
    seconds = real(value, what)
    if not 0 <= seconds < LONGEST_AUDIO_S:
        raise Damaged(f"an {what} lasts {seconds:g} s")
    return seconds


def text(value: object, what: str, longest: int = LONGEST_NAME) -> str:
    """Return `value` if it is text of at most `longest` characters."""
    if not isinstance(value, str):
        raise Damaged(f"{what} holds {value!r:.40} where text belongs")
    if len(value) > longest:
        raise Damaged(f"{what} holds a text of {len(value):,} characters; {longest:,} are the most")
    return value


def _flag(value: object, what: str) -> bool:
    return bool(value)


def texts(rows: Iterable[tuple[object, object]], what: str) -> dict[str, str]:
    return {text(key, what): text(value, what, MAX_JSON) for key, value in rows}


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Decoder of a kind of JSON text: made once, since looking the type up takes longer than most texts."""
    return msgspec.json.Decoder(kind)


def json(value: object, what: str, kind: Any = Any) -> Any:
    """Decode JSON text of a kind; what may be of any kind is no deeper and holds no larger integers than is sane."""
    try:
        decoded = _decoder(kind).decode(text(value, what, MAX_JSON))
        if kind is Any:
            check_tree(decoded, what)
    except msgspec.ValidationError as error:
        raise Damaged(f"{what} holds JSON of another kind ({plain(str(error))})") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{what} is not JSON ({plain(str(error))})") from None
    except BadInput as error:
        raise Damaged(str(error).rstrip(".")) from None
    return decoded


def state(value: object) -> str:
    """Return the session's state, one of schema.STATES."""
    if value not in schema.STATES:
        raise Damaged(f"its state is {value!r:.40}")
    return str(value)


Check = Callable[[object, str], Any]  # Returns a column's value as its record has it, or raises `Damaged`


def _optional(check: Check) -> Check:
    return lambda value, what: None if value is None else check(value, what)


def _checked(what: str, row: tuple[Any, ...], *checks: Check) -> list[Any]:
    """Return the values of a row of `what`, each as its check returns it."""
    return [check(value, what) for check, value in zip(checks, row, strict=True)]


_long_text: Final = partial(text, longest=MAX_JSON)

# Each of these checks the columns of a row of the table after which it is named.


def clock(row: tuple[Any, ...]) -> list[int]:
    return _checked("clock", row, integer, amount, amount)


def sample_name(row: tuple[Any, ...]) -> list[Any]:
    return _checked("sample_name", row, partial(number_of, most=MAX_SAMPLED), text)


def stage(row: tuple[Any, ...]) -> StageInfo:
    number, name, group, work = row
    names = json(work, "stage", tuple[str, ...])
    if group not in GROUPS or len(names) > WORK_COUNTS:
        raise Damaged(f"stage {name!r:.40} is of no known kind")
    return StageInfo(number_of(number, "stage", MAX_STAGES), text(name, "stage"), group, names)


def lane(row: tuple[Any, ...]) -> LaneInfo:
    return LaneInfo(*_checked("lane", row, number_of, text, text, _flag, amount, amount))


def _check_settings(tree: object) -> None:
    """Refuse a configuration that is anything but tables of tables of single values."""
    if not isinstance(tree, dict):
        raise Damaged("config holds no table of options")
    for key, value in tree.items():
        text(key, "config")
        if isinstance(value, dict):
            _check_settings(value)
        elif isinstance(value, str):
            text(value, f"config {key:.40}")
        elif not isinstance(value, bool | int | float):
            raise Damaged(f"config {plain(key):.40} is {plain(repr(value)):.40} and no single value")


def config(row: tuple[Any, ...]) -> ConfigEpoch:
    epoch, first, applied, tree = _checked("config", row, number_of, count, integer, json)
    _check_settings(tree)
    return ConfigEpoch(epoch, first, tree, applied)


def cost(row: tuple[Any, ...]) -> tuple[tuple[int, int], Cost]:
    """((stage, epoch), law)."""
    number, epoch, law = _checked("cost", row, number_of, number_of, json)
    try:
        return (number, epoch), Cost.from_dict(law)
    except ValueError as error:
        raise Damaged(str(error)) from None


def calibration(row: tuple[Any, ...]) -> dict[str, Any]:
    checks = text, text, text, text, count, integer, real, real, real, text
    return dict(zip(CALIBRATION, _checked("calibration", row, *checks), strict=True))


def counter(row: tuple[Any, ...]) -> tuple[int, CounterTotal]:
    """(revision, total)."""
    checks = number_of, number_of, number_of, text, amount, text, integer
    *total, revision = _checked("counter", row, *checks)
    return revision, CounterTotal(*total)


def check_spans(records: Array, lane_id: int, highest_stage: int) -> None:
    """Refuse spans that belong to no stage or another lane, or whose times no clock gave."""
    if not len(records):
        return
    for name, least, most in (
        ("stage", 0, highest_stage),
        ("lane", lane_id, lane_id),
        ("duration_ns", 0, MAX_DURATION_NS - 1),
        ("start_ns", 0, MAX_START_NS - 1),
    ):
        if int(records[name].min()) < least or int(records[name].max()) > most:
            raise Damaged(f"lane {lane_id} holds a span with impossible values")


def marker(row: tuple[Any, ...]) -> tuple[int, Marker]:
    """(revision, marker) of the columns MARKER."""
    revision, *fields = _checked(
        "marker",
        row,
        *(integer, integer, text, partial(text, longest=schema.LONGEST_MARK), integer, count),
        *(_optional(count), _optional(count), _optional(_long_text), _optional(json)),
    )
    return revision, Marker(*fields)


def peaks(data: object) -> Array:
    """Check the data of a row of `peaks`: int8 [n, 2], empty where there is none."""
    if data is None:
        return np.empty((0, 2), np.int8)
    if not isinstance(data, bytes) or len(data) % 2:
        raise Damaged("the wave form of an utterance has an impossible length")
    return np.frombuffer(data, np.int8).reshape(-1, 2)


def utterance(row: tuple[Any, ...], wave: Array) -> tuple[int, Utterance]:
    """(revision, utterance) of the columns UTTERANCE."""
    revision, *fields = _checked(
        "utterance",
        row,
        *(integer, integer, text, text, count, count, _seconds),
        *(_optional(_long_text), _optional(_long_text), partial(json, kind=Words)),
        *(_optional(amount), partial(json, kind=Epochs), _optional(count), _optional(count)),
        *(_flag, _optional(_flag), partial(json, kind=Notes), partial(json, kind=Part)),
    )
    fields.insert(-3, wave)
    return revision, Utterance(*fields)
