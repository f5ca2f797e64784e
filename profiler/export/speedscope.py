"""speedscope's own JSON: one evented profile per lane, opened and closed spans in order of time.

Follows https://www.speedscope.app/file-format-schema.json: `at` never falls, opens and closes balance.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from profiler.arrays import Array
from profiler.export import Format
from profiler.export._files import write_text
from profiler.export._nesting import in_order

if TYPE_CHECKING:
    from profiler.session.reader import Session

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

FORMAT: Final = Format(
    name="speedscope",
    option="speedscope",
    help="write spans for speedscope",
    title="Speedscope",
    kind="speedscope",
    suffix=".speedscope.json",
    mime="application/json",
    place=3,
)


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write all spans of `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: _fill(session, file))


def _fill(session: Session, file: TextIO) -> None:
    frames = [{"name": session.stages[number].name} for number in sorted(session.stages)]
    index = {number: i for i, number in enumerate(sorted(session.stages))}
    head = {
        "$schema": SCHEMA,
        "name": session.path.name,
        "exporter": f"asrscope@{session.meta.get('asrscope_version', '?')}",
        "shared": {"frames": frames},
    }
    file.write(json.dumps(head)[:-1] + ',"profiles":[')
    origin = int(session.spans["start_ns"].min()) if len(session.spans) else 0
    separator = ""
    for lane in session.lanes.values():
        mine = session.spans["lane"] == lane.id
        if not mine.any():
            continue
        ends = session.spans["start_ns"] + session.spans["duration_ns"]
        end = int(ends.max(where=mine, initial=0)) - origin
        profile = {
            "type": "evented",
            "name": lane.name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
        }
        file.write(separator + json.dumps(profile)[:-1] + ',"events":[')
        comma, events = "", _Events(origin, index)
        for piece in in_order(session.spans, lane.id):
            file.write(comma + ",".join(events.of(piece)))
            comma = ","
        file.write("".join("," + event for event in events.rest()))
        file.write("]}")
        separator = ","
    file.write("]}\n")


class _Events:
    """Open and close events of one lane, whose spans come in order of start and nest."""

    def __init__(self, origin: int, index: dict[int, int]) -> None:
        self._origin = origin
        self._index = index
        self._open: list[tuple[int, int]] = []

    def of(self, spans: Array) -> Iterator[str]:
        """Give the events up to the beginning of the last of `spans`."""
        stack = self._open
        for start, duration, stage, *_ in spans.tolist():
            start -= self._origin
            while stack and stack[-1][0] <= start:
                yield self._close()
            yield f'{{"type":"O","frame":{self._index[stage]},"at":{start}}}'
            stack.append((start + duration, self._index[stage]))

    def rest(self) -> Iterator[str]:
        """Close what is still open."""
        while self._open:
            yield self._close()

    def _close(self) -> str:
        at, frame = self._open.pop()
        return f'{{"type":"C","frame":{frame},"at":{at}}}'
