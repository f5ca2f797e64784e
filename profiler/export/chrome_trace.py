"""Chrome's trace-event JSON, as Perfetto, speedscope and Tracy's importer read it.

Complete events (ph X) with ts and dur in µs, one tid per lane, counters (C) from the samples, markers as instant events
(i), names as metadata (M); utterances and words, and set-up, have a tid each. Set-up before the first block is no
event: `otherData` has its stages under `setup`.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any, Final, TextIO

import numpy as np

from profiler.export import Format, write_text
from profiler.export._spans import PIECE, RECOGNISED, SETUP, in_order, recognised, timeline

if TYPE_CHECKING:
    from profiler.arrays import Array
    from profiler.session.reader import Session

PID: Final = 1
COUNTER_TID: Final = 0
FIRST_TID: Final = 1
US: Final = 1e-3


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write all spans, samples and markers of `session` to `path`; OutputError with one sentence."""
    write_text(session, path, lambda file: _fill(session, file))


FORMAT: Final = Format(
    name="chrome",
    option="chrome-trace",
    help="write spans for Perfetto, from the first block on",
    title="Chrome trace",
    kind="Chrome trace",
    suffix=".trace.json",
    mime="application/json",
    place=3,
    write=write,
)


def _fill(session: Session, file: TextIO) -> None:
    about = {key: session.meta.get(key) for key in ("session_id", "preset", "asrscope_version")}
    shown = timeline(session)
    before = session.spans[shown.before]
    setup_s = {
        session.stages[stage].name: float(before["duration_ns"][before["stage"] == stage].sum()) / 1e9
        for stage in np.unique(before["stage"]).tolist()
    }
    about |= {"exporter": "asrscope", **_totals(session), "setup": {"before_s": setup_s, "spans": len(before)}}
    file.write('{"displayTimeUnit":"ns","otherData":')
    file.write(json.dumps(about))
    file.write(',"traceEvents":[\n')
    file.write(_line("M", "process_name", COUNTER_TID, args={"name": f"asrscope {session.path.name}"}))
    origin, after = shown.origin_ns, FIRST_TID + max(session.lanes, default=-1) + 1
    lanes = {FIRST_TID + lane: session.lanes[lane].name for lane in shown.lanes}
    for place, (tid, name) in enumerate({after: RECOGNISED, **lanes, after + 1: SETUP}.items()):
        file.write(",\n" + _line("M", "thread_name", tid, args={"name": name}))
        file.write(",\n" + _line("M", "thread_sort_index", tid, args={"sort_index": place}))
    said = recognised(session)
    for piece in in_order(said.spans):
        for start, duration, place in zip(piece["start_ns"], piece["duration_ns"], piece["first_frame"], strict=True):
            more = {"dur": round(int(duration) * US, 3), "cat": "said", "args": said.details[place]}
            file.write(",\n" + _line("X", said.names[place], after, int(start) - origin, **more))
    for lane, chosen in shown.lanes.items():
        _spans(session, FIRST_TID + lane, chosen, origin, file)
    _spans(session, after + 1, shown.between, origin, file)
    for name in session.sample_names:
        _counters(session, name, origin, file)
    for marker in session.markers:
        at = max(marker.t_ns - origin, 0)
        file.write(",\n" + _line("i", marker.text, COUNTER_TID, at, s="p", cat=marker.kind))
    file.write("\n]}\n")


def _totals(session: Session) -> dict[str, Any]:
    """What the whole adds up to, in the words of the report."""
    from profiler.analysis.breakdown import breakdown
    from profiler.analysis.own_cost import recorder_cost
    from profiler.analysis.track import CostTrack

    track = CostTrack()
    track.update(session)
    parts = breakdown(session, track=track)
    return {
        "audio_s": parts.audio_s,
        "wall_s": parts.wall_ns / 1e9,
        "setup_s": parts.setup_ns / 1e9,
        "idle_s": parts.idle_ns / 1e9,
        "rtf": parts.rtf,
        "categories": {f"{name}_s": ns / 1e9 for name, ns in parts.categories.items()},
        "recorder": recorder_cost(session, track).as_dict(),
    }


def _spans(session: Session, tid: int, chosen: Array, origin: int, file: TextIO) -> None:
    heads = {
        stage.id: (
            f'{{"ph":"X","pid":{PID},"tid":{tid},"name":{json.dumps(stage.name)},"cat":{json.dumps(stage.group)}'
        )
        for stage in session.stages.values()
    }
    works = {stage.id: [f",{json.dumps(name)}:" for name in stage.work] for stage in session.stages.values()}
    for piece in in_order(session.spans, chosen):
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
        # JSON knows no infinity and no NaN, and a viewer no counter without a number or before all spans.
        file.writelines(
            f'{head}{(t - origin) * US:.3f},"args":{{"value":{value!r}}}}}'
            for t, value in pairs
            if math.isfinite(value) and t >= origin
        )


def _line(phase: str, name: str, tid: int, t_ns: int | None = None, **more: Any) -> str:
    event: dict[str, Any] = {"ph": phase, "name": name, "pid": PID, "tid": tid}
    if t_ns is not None:
        event["ts"] = round(t_ns * US, 3)
    return json.dumps({**event, **more})
