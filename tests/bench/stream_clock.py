"""Latencies in a session against the clock of another process, and planted causes of latency.

    python -m tests.bench.stream_clock [--tries N]

A child decodes speech as a stream at real time and writes partial results into a pipe. This process notes when each
line arrives and compares it with the time in the session. Then the same with planted causes, which the session has to
name: a slow scorer with short chunks (compute), a recogniser that is slower than real time (a queue, from compute), and
a core that busy loops share with the child from the first partial result on (other programs, or a queue from them).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import assets
from app.model import word_latency
from profiler.session.reader import Session

SPEECH = ("01-slt-morning.flac", "08-kal16-short.flac")
CHUNK_MS = 160
SETTINGS = ("pace=1", f"stream.chunk_ms={CHUNK_MS}", "graph.vocabulary=1000")


SLOW: Final = ("model=continuous", "block=1")
SLOWER: Final = ("gmm.components=128", "search.beam=40", "search.max_active=100000")
PLANTED: Final = {
    "plain": ((), 0, {"buffering"}),
    "slow": ((*SLOW, "stream.chunk_ms=20"), 0, {"compute"}),
    "queues": ((*SLOW, *SLOWER), 0, {"queue from compute"}),
    "starved": ((), 8, {"other_programs", "queue from other_programs"}),
}
"""Cause → settings, busy loops, and what the session may name as the largest part."""


class Compared(NamedTuple):
    """Partial results of a run: how much later each arrived in the pipe than the session says, ms; and its sentence."""

    later_ms: list[float]
    sentence: str
    named: str


def run(folder: Path, files: list[Path], *settings: str, rivals: int = 0) -> Compared:
    """Decode `files` in a child and note when its partial results arrive; `rivals` busy loops share its core."""
    pipe, session = folder / "partials", folder / "run.asrs"
    pipe.unlink(missing_ok=True)
    session.unlink(missing_ok=True)
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "app.cli.main", "run", "--preset", "gmm-quick", "--audio", *map(str, files)]
    command += ["--out", str(session), "--partials", str(pipe)]
    for setting in (*SETTINGS, *settings):
        command += ["--set", setting]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    busy: list[subprocess.Popen[bytes]] = []
    seen: list[tuple[int, str, int]] = []
    with open(pipe, encoding="utf-8") as lines:
        for line in lines:
            now = time.perf_counter_ns()
            shown = json.loads(line)
            seen.append((now, shown["utterance"], shown["chunk"]))
            while len(busy) < rivals:
                busy.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
                for each in (child, busy[-1]):
                    os.sched_setaffinity(each.pid, {max(os.sched_getaffinity(0))})
    for one in busy:
        one.kill()
        one.wait()
    if child.wait():
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    with closing(Session.open(session)) as opened:
        about = {one.name: opened.meta[f"stream/{one.id}"] for one in opened.utterances}
        later = [(now - about[name]["origin_ns"] - about[name]["shown_ns"][chunk]) * 1e-6 for now, name, chunk in seen]
        tree = word_latency.as_dict(opened) or {}
    named = str(tree.get("attack"))
    if named == "queue":
        named = f"queue from {tree.get('queue_from')}"
    return Compared(later, str(tree.get("sentence")), named)


def main() -> None:
    """Print two lines for each run, and how often each cause was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1, metavar="N", help="of each cause")
    tries = parser.parse_args().tries
    files = [assets.path("speech", name) for name in SPEECH]
    right = dict.fromkeys(PLANTED, 0)
    with tempfile.TemporaryDirectory(prefix="asrscope-stream-") as folder:
        for cause in [*PLANTED] * tries:
            settings, rivals, expected = PLANTED[cause]
            made = run(Path(folder), files, *settings, rivals=rivals)
            size = np.abs(made.later_ms)
            most, median = size.max(), np.median(size)
            print(f"{cause}: {len(size)} partial results, at most {most:.2f} ms apart (median {median:.2f})")
            print(f"  {made.sentence}", flush=True)
            right[cause] += made.named in expected
    print(", ".join(f"{cause} named in {count} of {tries}" for cause, count in right.items()))


if __name__ == "__main__":
    main()
