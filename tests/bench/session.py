"""The session file: how fast it opens, its length, and its losses at a kill.

    asrscope bench session --json            a million spans: file, opening, first picture
    python -m tests.bench.session hour       an hour at real-time pace, block 16 and block 1
    python -m tests.bench.session kills --kills 60

The peer of `bench session` is the same database with a row for each span.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psutil

from profiler.analysis.track import CostTrack
from profiler.process import children
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
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
    """Seconds from the file's name to the first models of the views: parts and sum (no Qt, no pixels)."""
    from app.model.desk_snapshot import desk_snapshot
    from app.model.scope import scope_of
    from app.views.cost_model import cost_model
    from app.views.words_model import words_model
    from app.views.work_model import work_model

    times, cpu = [time.perf_counter()], [time.thread_time()]

    def lap() -> None:
        times.append(time.perf_counter())
        cpu.append(time.thread_time())

    session = Session.open(path)
    lap()
    track = CostTrack()
    track.update(session)
    lap()
    frames, visible = track.n_frames, (0.0, track.n_frames / 100)
    cost_model(session, track, frames, visible, 1000)
    lap()
    work_model(session, track, frames, visible, 1000)
    lap()
    words_model(session, track, frames, visible, 1000)
    lap()
    desk_snapshot(session, track, scope_of(session, frames, None, None))
    lap()
    session.close()
    names = ("open", "cost per frame", "cost view", "work view", "words view", "breakdown view")
    figures: dict[str, float] = {}
    for kind, readings in (("s", times), ("CPU s", cpu)):
        parts = np.diff(readings).tolist()
        figures |= {f"{name}, {kind}": part for name, part in zip(names, parts, strict=True)}
        figures[f"first picture (cost view), {kind}"] = sum(parts[:3])
        figures[f"all views, {kind}"] = sum(parts)
    return figures


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


# -- kills -------------------------------------------------------------------------------------------


def record_until_killed(path: Path, note: Path, busy: bool, close_after_s: float) -> None:
    """Record a span every half millisecond and note each one's time where it outlives this process."""
    import mmap

    from profiler.clock import now_ns
    from profiler.spans import Recorder

    note.write_bytes(bytes(16))
    file = note.open("r+b")
    last = np.frombuffer(mmap.mmap(file.fileno(), 16), np.int64)
    recorder = Recorder()
    writer = SessionWriter(path, recorder, {"preset": "kills"})
    stage, lane = recorder.stage("s", "search"), recorder.lane("decode", decode=True)
    utterance = writer.utterance("u", "u", 0, 10**4, 100.0, None, np.zeros((10**4, 2), np.int8))
    print("recording", flush=True)
    begin, i, words = now_ns(), 0, [("word", 3, 5)] * 40
    while now_ns() - begin < close_after_s * 1e9:
        start = now_ns()
        lane.put(stage, start, start, work0=i)
        last[0], last[1] = start, i + 1
        i += 1
        if i % 200 == 0:
            writer.utterance_partial(utterance, "words", words)
            writer.sample(start, dict.fromkeys(_sessions.SAMPLES, 1.0))
        while now_ns() - start < 500_000:
            # A busy interpreter hands its lock over only every 5 ms.
            if not busy:
                time.sleep(0.0004)
    writer.close()
    print("closed", flush=True)
    time.sleep(60)


def kills(number: int, seed: int) -> dict[str, Any]:
    """Kill recordings at random times, some while closing, some under a reader; count the losses."""
    rng = random.Random(seed)
    ages, counts, closing, followed_ones, states = [], [], 0, 0, []
    for turn in range(number):
        with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
            path, note = Path(name) / "s.asrs", Path(name) / "note"
            at_close = turn % 3 == 2
            ends = rng.uniform(0.2, 1.0) if at_close else 60.0
            child = subprocess.Popen(
                [*children.python("-m", "tests.bench.session", "record"), *map(str, (path, note, turn % 2, ends))],
                stdout=subprocess.PIPE,
                text=True,
                env=children.environment(),
            )
            assert child.stdout is not None
            child.stdout.readline()
            reader = Session.open(path) if turn % 4 == 1 else None
            killed_at = time.monotonic() + (ends + rng.uniform(-0.01, 0.06) if at_close else rng.uniform(0.05, 2.0))
            while (left := killed_at - time.monotonic()) > 0:
                if reader is not None:
                    reader.refresh()
                time.sleep(min(left, 1 / 30))
            child.send_signal(signal.SIGKILL)
            rest = child.communicate()[0]
            last, put = np.frombuffer(note.read_bytes(), np.int64).tolist()
            with Session.open(path) as session:
                kept = session.spans
                assert kept["work0"].tolist() == list(range(len(kept)))
                ages.append((last - int(kept["start_ns"][-1])) / 1e6 if len(kept) else 0.0)
                counts.append(put - len(kept))
                states.append(session.state)
            with contextlib.closing(sqlite3.connect(path)) as database:
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            if reader is not None:
                followed_ones += 1
                end = time.monotonic() + 10
                while reader.state == "recording" and time.monotonic() < end:
                    reader.refresh()
                    time.sleep(0.03)
                assert reader.state in ("crashed", "closed"), reader.state
                assert len(reader.spans) == len(kept)
                reader.close()
            closing += at_close and "closed" not in rest
    return {
        "kills": number,
        "while closing (or about to)": closing,
        "under a reader": followed_ones,
        "states": {state: states.count(state) for state in sorted(set(states))},
        "lost, worst ms": round(max(ages), 1),
        "lost, median ms": round(median(ages), 1),
        "lost, worst spans": max(counts),
    }


def main() -> int:
    """Run one part and print its figures as JSON."""
    parser = command_line("session", __doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("hour")
    part.add_argument("--block", type=int, nargs="+", default=[16, 1])
    part.add_argument("--seconds", type=int, default=HOUR_S)
    part.add_argument("--utterance", type=int, default=10, help="length of an utterance, s")
    part = parts.add_parser("kills")
    part.add_argument("--kills", type=int, default=60)
    part.add_argument("--seed", type=int, default=1)
    parts.add_parser("follow").add_argument("path", type=Path)
    part = parts.add_parser("record")
    part.add_argument("path", type=Path)
    part.add_argument("note", type=Path)
    part.add_argument("busy", type=int)
    part.add_argument("seconds", type=float)
    given = parser.parse_args()
    if given.part == "record":
        record_until_killed(given.path, given.note, bool(given.busy), given.seconds)
        return 0
    figures = {
        "hour": lambda: (hour(block, given.seconds, given.utterance) for block in given.block),
        "kills": lambda: [kills(given.kills, given.seed)],
        "follow": lambda: [follow(given.path)],
    }
    for one in figures[given.part]():
        print(json.dumps(one), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
