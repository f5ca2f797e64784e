"""speedscope's own JSON: one evented profile per lane, opened and closed spans in order of time.

Follows https://www.speedscope.app/file-format-schema.json: `at` never falls, opens and closes balance. The decode lane
comes first, which is what speedscope shows; utterances with their words are a profile, and set-up is the last one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

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
    profiles = [
        *(
            (session.lanes[lane].name, spans, chosen, _Events(shown.origin_ns, index))
            for lane, chosen in shown.lanes.items()
        ),
        (RECOGNISED, words.spans, None, _Events(shown.origin_ns, named, "first_frame")),
        (SETUP, spans, setup, _Events(begun, index)),
    ]
    separator = ""
    for name, of, chosen, events in profiles:
        if len(of) if chosen is None else chosen.any():
            file.write(separator)
            _profile(name, of, chosen, events, file)
            separator = ","
    file.write("]}\n")


def _profile(name: str, spans: Array, chosen: Array | None, events: _Events, file: TextIO) -> None:
    ends = spans["start_ns"] + spans["duration_ns"]
    end = int((ends if chosen is None else ends[chosen]).max()) - events.origin_ns
    head = {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": end}
    file.write(json.dumps(head)[:-1] + ',"events":[')
    comma = ""
    for piece in in_order(spans, chosen):
        file.write(comma + ",".join(events.of(piece)))
        comma = ","
    file.write("".join("," + event for event in events.rest()))
    file.write("]}")


class _Events:
    """Open and close events of one lane, whose spans come in order of start and nest.

    `index`: the number of the frame in the file, by what spans have as `field`.
    """

    def __init__(self, origin_ns: int, index: dict[int, int], field: str = "stage") -> None:
        self.origin_ns = origin_ns
        self._index, self._field = index, field
        self._open: list[tuple[int, int]] = []

    def of(self, spans: Array) -> Iterator[str]:
        """Give the events up to the beginning of the last of `spans`."""
        stack = self._open
        columns = (spans[name].tolist() for name in ("start_ns", "duration_ns", self._field))
        for start, duration, which in zip(*columns, strict=True):
            start -= self.origin_ns
            while stack and stack[-1][0] <= start:
                yield self._close()
            yield f'{{"type":"O","frame":{self._index[which]},"at":{start}}}'
            stack.append((start + duration, self._index[which]))

    def rest(self) -> Iterator[str]:
        while self._open:
            yield self._close()

    def _close(self) -> str:
        at, frame = self._open.pop()
        return f'{{"type":"C","frame":{frame},"at":{at}}}'
