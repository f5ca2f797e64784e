"""The session file: how fast it opens, and its length.

    asrscope bench session --json            a million spans: file, opening, first picture
    python -m tests.bench.session hour       an hour at real-time pace, block 16 and block 1

The peer of `bench session` is the same database with a row for each span.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psutil

from profiler.analysis.track import CostTrack
from profiler.process import children
from profiler.session.reader import Session
from tests.bench import _sessions
from tests.bench._rounds import MB, Progress, Side, command_line, interleave, paired, result, timed

SPANS: Final = 1_000_000
HOUR_S: Final = 3600


def resident() -> float:
    return float(psutil.Process().memory_info().rss) / MB


# -- a million spans ---------------------------------------------------------------------------------


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress) -> dict[str, Any]:
    """Write, open and show a million spans; the peer keeps a row for each span."""
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
        path, rows = Path(name) / "million.asrs", Path(name) / "rows.db"
        progress("recording a million spans", None)
        blocks = SPANS // (len(_sessions.LEAVES) + 1)
        _sessions.record(path, blocks, pace=False).writer.close()
        _as_rows(path, rows)
        pictures: list[dict[str, float]] = []

        def opened(_: object) -> float:
            seconds = _open(path)
            pictures.append(_first_picture(path))
            return seconds

        mine, theirs = Side("ours", opened), Side("rows", lambda _: _load_rows(rows))
        interleave([mine, theirs], [path], repeat, lambda share: progress("opening", share))
        with Session.open(path) as session:
            n_spans, n_frames = len(session.spans), _frames(session)
        figures = {
            "spans": n_spans,
            "frames": n_frames,
            "file, MB": path.stat().st_size / MB,
            "file of rows, MB": rows.stat().st_size / MB,
            "open, s": median(mine.seconds),
            "open rows, s": median(theirs.seconds),
            **{key: median(picture[key] for picture in pictures) for key in pictures[0]},
        }
    return result(
        "an SQLite table with a row per span",
        paired(theirs, mine),
        "time to load all spans, peer / ours, median of paired runs",
        figures,
        [],
    )


def _frames(session: Session) -> int:
    track = CostTrack()
    track.update(session)
    return int(track.n_frames)


def _open(path: Path) -> float:
    session, seconds = timed(lambda: Session.open(path))
    with session:
        assert len(session.spans)
    return seconds


def _as_rows(path: Path, rows: Path) -> None:
    with Session.open(path) as session, contextlib.closing(sqlite3.connect(rows)) as table:
        names = session.spans.dtype.names or ()
        table.execute(f"CREATE TABLE span({', '.join(names)})")
        marks = ",".join("?" * len(names))
        table.executemany(f"INSERT INTO span VALUES({marks})", session.spans.tolist())
        table.commit()


def _load_rows(rows: Path) -> float:
    with contextlib.closing(sqlite3.connect(rows)) as table:
        select = "SELECT * FROM span"
        spans, seconds = timed(lambda: np.array(table.execute(select).fetchall(), np.int64))
    assert len(spans)
    return seconds


def _first_picture(path: Path) -> dict[str, float]:
    """CPU seconds from the file's name to the first models of the views: parts and sum (no Qt, no pixels)."""
    from app.model.configurations import scope_of
    from app.model.desk_snapshot import desk_snapshot
    from app.views.cost_model import cost_model
    from app.views.words_model import words_model
    from app.views.work import work_model

    track, figures, begun = CostTrack(), {}, time.thread_time()
    with Session.open(path) as session:
        figures["open, CPU s"] = time.thread_time() - begun

        def shown() -> tuple[int, tuple[float, float], int]:
            return track.n_frames, (0.0, track.n_frames / 100), 1000

        steps: dict[str, Callable[[], object]] = {
            "cost per frame": lambda: track.update(session),
            "cost view": lambda: cost_model(session, track, *shown()),
            "work view": lambda: work_model(session, track, *shown()),
            "words view": lambda: words_model(session, track, *shown()),
            "breakdown view": lambda: desk_snapshot(session, track, scope_of(session, track.n_frames, None, None)),
        }
        for name, step in steps.items():
            begun = time.thread_time()
            step()
            figures[f"{name}, CPU s"] = time.thread_time() - begun
    spent = list(figures.values())
    return {**figures, "first picture (cost view), CPU s": sum(spent[:3]), "all views, CPU s": sum(spent)}


# -- an hour -----------------------------------------------------------------------------------------


def hour(block: int, seconds: int, utterance_s: int) -> dict[str, Any]:
    """Record `seconds` at real-time pace on a fake clock, a reader of another process following."""
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
        path = Path(name) / "hour.asrs"
        pipeline = _sessions.Pipeline(_sessions.Stepped, path, block)
        writer = pipeline.writer
        assert isinstance(writer, _sessions.Stepped)
        follower = subprocess.Popen(
            children.python("-m", "tests.bench.session", "follow", str(path)),
            stdout=subprocess.PIPE,
            text=True,
            env=children.environment(),
        )
        memory, sizes, flush_due, rounds = [], [], 0, []
        end = pipeline.start_ns + seconds * _sessions.SECOND
        while pipeline.clock() < end:
            pipeline.run_block(utterance_s * 100)
            while pipeline.clock() >= flush_due:
                now_s = (pipeline.clock() - pipeline.start_ns) / _sessions.SECOND
                rounds.append(timed(lambda: writer.step(now_s))[1])  # noqa: B023, called at once
                flush_due = max(flush_due, pipeline.clock()) + _sessions.FLUSH_NS
            if pipeline.frame % 6000 < block:
                memory.append(resident())
                sizes.append(path.stat().st_size / MB)
        recorded = pipeline.lane.recorded
        with_wal = sum(f.stat().st_size for f in Path(name).iterdir()) / MB
        _, closing = timed(writer.close)
        assert writer.failed is None, writer.failed
        assert follower.stdout is not None
        seen = json.loads(follower.communicate()[0].splitlines()[-1])
        tenth = max(len(memory) // 10, 1)
        return {
            "block": block,
            "audio_s": seconds,
            "utterance_s": utterance_s,
            "spans": recorded,
            "dropped": pipeline.lane.dropped,
            "before close, MB (with -wal)": round(with_wal, 1),
            "closed, MB": round(path.stat().st_size / MB, 1),
            "close, s": round(closing, 3),
            "round, median ms": round(median(rounds) * 1e3, 3),
            "round, worst ms": round(max(rounds) * 1e3, 1),
            "writer RSS after a tenth, MB": round(memory[tenth], 1),
            "writer RSS at the end, MB": round(memory[-1], 1),
            **seen,
        }


def follow(path: Path) -> dict[str, Any]:
    """Follow a live session as the window does; its memory and times."""
    session = Session.open(path)
    track = CostTrack()
    memory, refreshes = [], []
    while session.state == "recording":
        refreshes.append(timed(session.refresh)[1])
        track.update(session)
        memory.append((len(session.spans), resident()))
        time.sleep(1 / 30)
    first = next((i for i, (n, _) in enumerate(memory) if n > memory[-1][0] / 10), 0)
    spans = memory[-1][0] - memory[first][0]
    grown = memory[-1][1] - memory[first][1]
    return {
        "reader spans": len(session.spans),
        "reader RSS after a tenth, MB": round(memory[first][1], 1),
        "reader RSS at the end, MB": round(memory[-1][1], 1),
        "reader bytes per span": round(grown * MB / max(spans, 1), 1),
        "refresh, median ms": round(median(refreshes) * 1e3, 2),
        "refresh, worst ms": round(max(refreshes) * 1e3, 1),
    }


def main() -> int:
    """Run one part and print its figures as JSON."""
    parser = command_line("session", __doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("hour")
    part.add_argument("--block", type=int, nargs="+", default=[16, 1])
    part.add_argument("--seconds", type=int, default=HOUR_S)
    part.add_argument("--utterance", type=int, default=10, help="length of an utterance, s")
    parts.add_parser("follow").add_argument("path", type=Path)
    given = parser.parse_args()
    if given.part == "follow":
        print(json.dumps(follow(given.path)))
        return 0
    for block in given.block:
        print(json.dumps(hour(block, given.seconds, given.utterance)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
