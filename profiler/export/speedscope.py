"""speedscope's own JSON: one evented profile per lane, opened and closed spans in order of time.

Follows https://www.speedscope.app/file-format-schema.json: `at` never falls, opens and closes balance.
"""

import json
import os
from collections.abc import Iterator
from typing import Final, TextIO

import numpy as np

from profiler.export._files import write_text
from profiler.export._nesting import in_order, pieces
from profiler.session.reader import Session

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write all spans of `session` to `path`; OSError with one sentence."""
    write_text(path, lambda file: _fill(session, file))


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
        spans = session.spans[session.spans["lane"] == lane.id]
        if not len(spans):
            continue
        end = int((spans["start_ns"] + spans["duration_ns"]).max()) - origin
        profile = {
            "type": "evented",
            "name": lane.name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
        }
        file.write(separator + json.dumps(profile)[:-1] + ',"events":[')
        comma = ""
        for event in _events(in_order(spans), origin, index):
            file.write(comma + event)
            comma = ","
        file.write("]}")
        separator = ","
    file.write("]}\n")


def _events(spans: np.ndarray, origin: int, index: dict[int, int]) -> Iterator[str]:
    """Give open and close events; `spans` is in order of start and nests."""
    stack: list[tuple[int, int]] = []
    for piece in pieces(spans):
        for start, duration, stage, *_ in piece.tolist():
            start -= origin
            while stack and stack[-1][0] <= start:
                at, frame = stack.pop()
                yield f'{{"type":"C","frame":{frame},"at":{at}}}'
            yield f'{{"type":"O","frame":{index[stage]},"at":{start}}}'
            stack.append((start + duration, index[stage]))
    while stack:
        at, frame = stack.pop()
        yield f'{{"type":"C","frame":{frame},"at":{at}}}'
