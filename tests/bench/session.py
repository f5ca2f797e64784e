"""The session file: its length and its cost for an hour at real-time pace on a fake clock, block 16 and block 1.

    python -m tests.bench.session hour

The real writer has its rounds and checkpoints at the times of a real hour; a reader of another process follows.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from profiler.analysis.track import CostTrack
from profiler.process import children
from profiler.session.reader import Session
from tests.bench import _sessions
from tests.bench._rounds import MB, command_line, timed


def resident() -> float:
    return float(psutil.Process().memory_info().rss) / MB


def hour(block: int, seconds: int, utterance_s: int) -> dict[str, Any]:
    """Record `seconds` at real-time pace on a fake clock, a reader of another process following."""
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
        path = Path(name) / "hour.asrs"
        pipeline = _sessions.Pipeline(_sessions.Stepped, path, block)
        writer = pipeline.writer
        assert isinstance(writer, _sessions.Stepped)
        command = children.python("-m", "tests.bench.session", "follow", str(path))
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=children.environment())
        assert follower.stdout is not None
        follower.stdout.readline()
        memory, flush_due, rounds = [], 0, []
        while pipeline.clock() < pipeline.start_ns + seconds * _sessions.SECOND:
            pipeline.run_block(utterance_s * 100)
            while pipeline.clock() >= flush_due:
                now_s = (pipeline.clock() - pipeline.start_ns) / _sessions.SECOND
                rounds.append(timed(lambda: writer.step(now_s))[1])  # noqa: B023, called at once
                flush_due = max(flush_due, pipeline.clock()) + _sessions.FLUSH_NS
            if pipeline.frame % 6000 < block or not memory:
                memory.append(resident())
        recorded = pipeline.lane.recorded
        with_wal = sum(f.stat().st_size for f in Path(name).iterdir()) / MB
        _, closing = timed(writer.close)
        assert writer.failed is None, writer.failed
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
            "writer RSS after a tenth, MB": round(memory[len(memory) // 10], 1),
            "writer RSS at the end, MB": round(memory[-1], 1),
            **json.loads(follower.communicate()[0].splitlines()[-1]),
        }


def follow(path: Path) -> dict[str, Any]:
    """Follow a live session as the window does; its memory and times."""
    session = Session.open(path)
    print("following", flush=True)
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


if __name__ == "__main__":
    parser = command_line("session", __doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("hour")
    part.add_argument("--block", type=int, nargs="+", default=[16, 1])
    part.add_argument("--seconds", type=int, default=3600)
    part.add_argument("--utterance", type=int, default=10, help="length of an utterance, s")
    parts.add_parser("follow").add_argument("path", type=Path)
    given = parser.parse_args()
    if given.part == "follow":
        print(json.dumps(follow(given.path)))
    for block in given.block if given.part == "hour" else ():
        print(json.dumps(hour(block, given.seconds, given.utterance)), flush=True)
