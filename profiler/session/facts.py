"""What a session says of itself in JSON (the rows of `meta`), read as what a recording writes there.

Whoever shows, compares or predicts relies on the types here and on nothing else. A fact of another kind is left
out, as if the recording had not said it; facts unknown here are handed on as any JSON (`rows.json`).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypedDict

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, lt=1 << 32)]
Label = Annotated[str, Meta(max_length=200)]
Name = Annotated[str, Meta(max_length=1 << 14)]
Note = Annotated[str, Meta(max_length=1 << 16)]
Argument = Annotated[str, Meta(max_length=1 << 17)]  # Systems take no longer one
Nanoseconds = Annotated[float, Meta(ge=0, le=1e12)]
Size = Annotated[int, Meta(ge=0, lt=1 << 60)]  # Bytes
WallTime = Annotated[float, Meta(ge=0, lt=1e11)]  # Seconds since 1970, before the year 5138: what a calendar can show
Reach = Annotated[list[Annotated[int, Meta(ge=0, lt=1 << 16)]], Meta(min_length=2, max_length=2)]
"""Frames before and after the one scored that its scores depend on."""


class Scoring(TypedDict, total=False):
    """The senones scored, frames per output and context; without a context, a net needs the whole utterance."""

    senones: Annotated[int, Meta(ge=1, lt=1 << 31)]
    frames_per_output: Annotated[int, Meta(ge=1, le=1000)]
    context: Reach


class Net(TypedDict, total=False):
    """What a net of the run needs to be known by: its context."""

    context: Reach


class Operator(TypedDict):
    """Operators of one kind in a block of a net: `calls` in a call of the net, their ns and operations there."""

    block: Label
    kind: Label
    calls: Count
    ns: Nanoseconds
    gflop: Annotated[float, Meta(ge=0, le=1e12)]


class RecorderFacts(TypedDict, total=False):
    """The instrument's own cost in ns, and which counters were read."""

    ns_per_put: Nanoseconds | None
    ns_per_span: Nanoseconds | None
    ns_per_lap: Nanoseconds | None
    ns_per_counted_span: Nanoseconds | None
    ns_per_counter_read: Nanoseconds | None
    perturbation: Annotated[float, Meta(ge=0, le=1e9)] | None
    counters: list[Label]
    counters_absent: dict[Label, Name]


class Side(TypedDict, total=False):
    """An arm of an A/B run."""

    name: Label
    epoch: Count
    set: dict[Label, bool | int | float | Name]


class Interleaved(TypedDict, total=False):
    """Two configurations in turns; `ended`: where the rest ran straight on; `again`: frames of uncounted repeats."""

    arms: list[Side]
    repeat: Count
    warm_up: Count
    measured_from: Count | None
    ended: Count | None
    again: list[Count]


class Hypothesis(TypedDict, total=False):
    """One of the likeliest word sequences; `cost` in nat."""

    hypothesis: str
    cost: float | None


class Alternatives(TypedDict, total=False):
    """What else an utterance may have been, and how sure its words are."""

    nbest: list[Hypothesis]
    confidences: list[float | None]


StreamTime = Annotated[int, Meta(ge=-(1 << 53), lt=1 << 53)]  # Nanoseconds since an utterance began
StreamWord = tuple[Annotated[str, Meta(max_length=1 << 14)], Count, Count]


class StreamFacts(TypedDict):
    """When an utterance arrived in chunks, and what was shown when: `docs/session-format.md`."""

    chunk_ms: Annotated[int, Meta(ge=1, le=1 << 20)]
    lookahead_frames: Annotated[int, Meta(ge=0, lt=1 << 16)]
    waited: bool
    origin_ns: Annotated[int, Meta(ge=0, lt=1 << 62)]
    audio_ns: list[StreamTime]
    arrived_ns: list[StreamTime]
    started_ns: list[StreamTime]
    shown_ns: list[StreamTime]
    other_ns: list[StreamTime]
    changes: list[tuple[Count, Count, list[StreamWord]]]
    segments: list[tuple[Count, Count, Count]]


class Events(TypedDict, total=False):
    """Timed events that were recorded on devices, what one cost the host, and what the ends of blocks did."""

    events: Count
    ns_per_event: Nanoseconds
    recording_ns: Nanoseconds


class MemoryUse(TypedDict, total=False):
    """Bytes that each component reserves, and resident ones by what is mapped."""

    reserved: dict[Label, Size]
    mappings: dict[Label, Size]


class IdlePower(TypedDict, total=False):
    """Power of the processor packages before the run, W, and how busy the processors were; the source or the reason."""

    text: Name
    watts: Annotated[float, Meta(ge=0, le=1e6)]
    busy_percent: Annotated[float, Meta(ge=0, le=1e6)]


class Owner(TypedDict, total=False):
    """The process that records."""

    pid: int
    started: float
    host: Name
    boot: Name


FACTS: Final[dict[str, Any]] = {
    "session_id": Label,
    "asrscope_version": Label,
    "created_wall": WallTime,
    "preset": Name,
    "argv": list[Argument],
    "audio": list[Name],
    "acoustic_models": list[Name],
    "notes": list[Note],
    "problem": Note,
    "machine": dict[str, Any],
    "devices": dict[Name, dict[Label, Name]],
    "device_events": Events,
    "versions": dict[Label, Name],
    "writer": Owner,
    "recorder": RecorderFacts,
    "scoring": Scoring,
    "nets": dict[Name, Net],
    "operators": list[Operator],
    "drift": dict[Label, float | None],
    "ab": Interleaved,
    "memory": MemoryUse,
    "energy": IdlePower,
}
"""The facts by key."""

ALTERNATIVES: Final = "alternatives"
STREAM: Final = "stream"
OF_UTTERANCE: Final = {ALTERNATIVES: Alternatives, STREAM: StreamFacts}
"""The facts of one utterance, by what comes before `/NUMBER`."""


COMPILING: Final = "compiling kernels in another process for"
"""How the note of a run begins whose change waits for that."""


def sound(key: str, value: object) -> bool:
    """Whether `value` is what a recording writes under `key`; null stands for nothing said."""
    head, slash, _ = key.partition("/")
    kind = OF_UTTERANCE.get(head) if slash else FACTS.get(key)
    if kind is None or value is None:
        return True
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def setting(tree: Mapping[str, Any], key: str) -> bool | int | float | str | None:
    """The setting `key` ("dnn.net") of a configuration as run; None without. Checking it is the recogniser's."""
    node: object = tree
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node if isinstance(node, bool | int | float | str) else None


def flatten(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a nested mapping as dotted keys and values; an empty inner mapping is a leaf too."""
    left = [(prefix, iter(tree.items()))]
    while left:
        prefix, items = left[-1]
        for name, value in items:
            if isinstance(value, Mapping) and value:
                left.append((f"{prefix}{name}.", iter(value.items())))
                break
            yield f"{prefix}{name}", value
        else:
            left.pop()
