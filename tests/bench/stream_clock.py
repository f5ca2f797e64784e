"""Latencies in a session against the clock of another process, and planted causes of latency.

    python -m tests.bench.stream_clock

A child decodes speech as a stream at real time and writes partial results into a pipe. This process notes when each
line arrives and compares it with the time in the session. Then the same with a planted cause: a slow scorer, and a core
that busy loops share with the child from the first partial result on.
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
from typing import NamedTuple

import numpy as np

import assets
from app.model import word_latency
from profiler.session.reader import Session

SPEECH = ("01-slt-morning.flac", "08-kal16-short.flac")
CHUNK_MS = 160
SETTINGS = ("pace=1", f"stream.chunk_ms={CHUNK_MS}", "graph.vocabulary=1000")


class Compared(NamedTuple):
    """Partial results of a run: how much later each arrived in the pipe than the session says, ms; and its sentence."""

    later_ms: list[float]
    sentence: str
    attack: str | None


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
    return Compared(later, str(tree.get("sentence")), str(tree.get("attack")))


def main() -> None:
    """Print two lines for each run."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    files = [assets.path("speech", name) for name in SPEECH]
    with tempfile.TemporaryDirectory(prefix="asrscope-stream-") as name:
        folder = Path(name)

        def tell(what: str, made: Compared) -> None:
            size = np.abs(made.later_ms)
            print(
                f"{what}: {len(size)} partial results, at most {size.max():.2f} ms apart (median {np.median(size):.2f})"
            )
            print(f"  {made.sentence}")

        tell("plain", run(folder, files))
        tell("slow", run(folder, files, "model=continuous", "block=1", "stream.chunk_ms=20"))
        tell("starved", run(folder, files, rivals=8))


if __name__ == "__main__":
    main()
