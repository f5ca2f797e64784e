"""speedscope's own JSON: one evented profile per lane, opened and closed spans in order of time.

Follows https://www.speedscope.app/file-format-schema.json: `at` never falls, opens and closes balance. The decode lane
comes first, which is what speedscope shows; utterances with their words are a profile, and set-up is the last one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TextIO

import numpy as np

from profiler.arrays import Array
from profiler.export import Format, write_text
from profiler.export._spans import RECOGNISED, SETUP, in_order, recognised, timeline

if TYPE_CHECKING:
    from profiler.session.reader import Session

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write all spans of `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: _fill(session, file))


FORMAT: Final = Format(
    name="speedscope",
    option="speedscope",
    help="write spans for speedscope",
    title="Speedscope",
    kind="speedscope",
    suffix=".speedscope.json",
    mime="application/json",
    place=4,
    write=write,
)


def _fill(session: Session, file: TextIO) -> None:
    index = {number: i for i, number in enumerate(sorted(session.stages))}
    frames = [session.stages[number].name for number in index]
    words = recognised(session)
    # A word has one frame wherever it was said: speedscope adds up the time of each.
    of_words = {name: len(frames) + i for i, name in enumerate(dict.fromkeys(words.names))}
    frames += list(of_words)
    named = {i: of_words[name] for i, name in enumerate(words.names)}
    head = {
        "$schema": SCHEMA,
        "name": session.path.name,
        "exporter": f"asrscope@{session.meta.get('asrscope_version', '?')}",
        "shared": {"frames": [{"name": name} for name in frames]},
    }
    file.write(json.dumps(head)[:-1] + ',"profiles":[')
    shown, spans = timeline(session), session.spans
    setup = shown.before | shown.between
    begun = int(spans["start_ns"].min(where=setup, initial=shown.origin_ns))
    separator = ""
    for name, of, chosen, origin_ns, frame_of, field in (
        *(
            (session.lanes[lane].name, spans, some, shown.origin_ns, index, "stage")
            for lane, some in shown.lanes.items()
        ),
        (RECOGNISED, words.spans, np.ones(len(words.spans), bool), shown.origin_ns, named, "first_frame"),
        (SETUP, spans, setup, begun, index, "stage"),
    ):
        if not chosen.any():
            continue
        end = int((of["start_ns"] + of["duration_ns"])[chosen].max()) - origin_ns
        profile = {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": end}
        file.write(separator + json.dumps(profile)[:-1] + ',"events":[')
        lines = events(in_order(of, chosen), origin_ns, frame_of, field)
        file.write(next(lines))
        file.writelines("," + line for line in lines)
        file.write("]}")
        separator = ","
    file.write("]}\n")


def events(pieces: Iterable[Array], origin_ns: int, index: Mapping[int, int], field: str = "stage") -> Iterator[str]:
    """Give open and close events of nested spans in order of start; `index`: frame in the file by a span's `field`."""
    stack: list[tuple[int, int]] = []

    def close() -> str:
        at, frame = stack.pop()
        return f'{{"type":"C","frame":{frame},"at":{at}}}'

    for spans in pieces:
        columns = (spans[name].tolist() for name in ("start_ns", "duration_ns", field))
        for start, duration, which in zip(*columns, strict=True):
            start -= origin_ns
            while stack and stack[-1][0] <= start:
                yield close()
            yield f'{{"type":"O","frame":{index[which]},"at":{start}}}'
            stack.append((start + duration, index[which]))
    while stack:
        yield close()
