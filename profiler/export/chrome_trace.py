"""Chrome's trace-event JSON, as Perfetto, speedscope and Tracy's importer read it.

Complete events (ph X) with ts and dur in µs, one tid per lane so that they nest, counters (ph C) from the
samples, markers as instant events, names as metadata (ph M).
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any, Final, TextIO

from profiler.export import Format
from profiler.export._files import write_text
from profiler.export._nesting import PIECE, in_order

if TYPE_CHECKING:
    from profiler.session.model import Marker
    from profiler.session.reader import Session

PID: Final = 1
COUNTER_TID: Final = 0
FIRST_TID: Final = 1
US: Final = 1e-3

FORMAT: Final = Format(
    name="chrome",
    option="chrome-trace",
    help="write spans for Perfetto",
    title="Chrome trace",
    kind="Chrome trace",
    suffix=".trace.json",
    mime="application/json",
    place=2,
)


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write all spans, samples and markers of `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: _fill(session, file))


def _fill(session: Session, file: TextIO) -> None:
    about = {key: session.meta.get(key) for key in ("session_id", "preset", "asrscope_version")}
    file.write('{"displayTimeUnit":"ns","otherData":')
    file.write(json.dumps({**about, "exporter": "asrscope", **_totals(session)}))
    file.write(',"traceEvents":[\n')
    file.write(
        _line("M", "process_name", COUNTER_TID, args={"name": f"asrscope {session.path.name}"})
    )
    for lane in session.lanes.values():
        tid = FIRST_TID + lane.id
        file.write(",\n" + _line("M", "thread_name", tid, args={"name": lane.name}))
        file.write(",\n" + _line("M", "thread_sort_index", tid, args={"sort_index": lane.id}))
    origin = int(session.spans["start_ns"].min()) if len(session.spans) else 0
    for lane in session.lanes.values():
        _spans(session, lane.id, origin, file)
    for name in session.sample_names:
        _counters(session, name, origin, file)
    file.writelines(_instant(marker, origin) for marker in session.markers)
    file.write("\n]}\n")


def _totals(session: Session) -> dict[str, Any]:
    """What the whole adds up to, in the words of the report."""
    from profiler.analysis.breakdown import breakdown

    parts = breakdown(session)
    return {
        "audio_s": parts.audio_s,
        "wall_s": parts.wall_ns / 1e9,
        "setup_s": parts.setup_ns / 1e9,
        "idle_s": parts.idle_ns / 1e9,
        "rtf": parts.rtf,
        "categories": {f"{name}_s": ns / 1e9 for name, ns in parts.categories.items()},
        "recorder": parts.recorder.as_dict(),
    }


def _spans(session: Session, lane: int, origin: int, file: TextIO) -> None:
    tid = FIRST_TID + lane
    heads = {
        stage.id: (
            f'{{"ph":"X","pid":{PID},"tid":{tid},"name":{json.dumps(stage.name)},"cat":'
            f"{json.dumps(stage.group)}"
        )
        for stage in session.stages.values()
    }
    works = {
        stage.id: [f",{json.dumps(name)}:" for name in stage.work]
        for stage in session.stages.values()
    }
    for piece in in_order(session.spans, lane):
        lines = []
        for start, duration, stage, _, epoch, frames, first, *work in piece.tolist():
            counts = "".join(f"{key}{n}" for key, n in zip(works[stage], work, strict=False))
            lines.append(
                f',\n{heads[stage]},"ts":{(start - origin) * US:.3f},"dur":{duration * US:.3f},'
                f'"args":{{"frame":{first},"frames":{frames},"epoch":{epoch}{counts}}}}}'
            )
        file.write("".join(lines))


def _counters(session: Session, name: str, origin: int, file: TextIO) -> None:
    head = f',\n{{"ph":"C","name":{json.dumps(name)},"pid":{PID},"tid":{COUNTER_TID},"ts":'
    times, values = session.samples(name)
    for begin in range(0, len(times), PIECE):
        piece = slice(begin, begin + PIECE)
        pairs = zip(times[piece].tolist(), values[piece].tolist(), strict=True)
        # JSON knows no infinity and no NaN, and a viewer no counter without a number.
        file.writelines(
            f'{head}{(t - origin) * US:.3f},"args":{{"value":{value!r}}}}}'
            for t, value in pairs
            if math.isfinite(value)
        )


def _instant(marker: Marker, origin: int) -> str:
    return ",\n" + _line(
        "i", marker.text, COUNTER_TID, marker.t_ns - origin, s="p", cat=marker.kind
    )


def _line(phase: str, name: str, tid: int, t_ns: int | None = None, **more: Any) -> str:
    event: dict[str, Any] = {"ph": phase, "name": name, "pid": PID, "tid": tid}
    if t_ns is not None:
        event["ts"] = round(t_ns * US, 3)
    return json.dumps({**event, **more})
