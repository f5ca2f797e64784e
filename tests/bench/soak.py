"""Does anything grow? The looping demo in a window and a stream at the same time, for an hour.

    asrscope bench soak --json
    asrscope bench soak --minutes 15

Both run at the same time, the window offscreen. Every SAMPLE_S seconds resident memory, open files and threads of the
window, of its worker and of the stream are read from outside. Growth is the slope of a least-squares line after a
quarter of the time (at most SETTLE_S), when caches are full; memory should grow by at most MOST_MB a minute, files and
threads not at all.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from profiler.errors import BadInput
from profiler.process import children

MINUTES: Final = 60
SAMPLE_S: Final = 10.0
SETTLE_S: Final = 300.0
READY_S: Final = 1200.0
"""For set-up: kernels may have to be compiled first."""
END_S: Final = 60.0
MOST_MB: Final = 1.0
MB: Final = 1e6

STREAM: Final = ("--preset", "gmm-quick", "--set", "stream.chunk_ms=160", "--set", "pace=1", "--set", "loop=true")
QUANTITIES: Final = ("memory_mb", "files", "threads")


def run(
    paths: Sequence[str], transcripts: str | None, repeat: int, progress: Callable[..., None], minutes: int = MINUTES
) -> dict[str, Any]:
    """Run both for `minutes` and watch; the other arguments are those of all benches and unused."""
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name:
        with _running(Path(name)) as processes:
            samples = _watch(processes, 60.0 * minutes, progress)
            ended = [name for name, process in processes.items() if not process.is_running()]
        recorded = {file.name: file.stat().st_size for file in Path(name).rglob("*.asrs")}
    rows = [_row(name, values) for name, values in samples.items()]
    grown = {row["process"]: row for row in rows}
    worst = max(row["memory_mb_per_minute"] for row in rows)
    return {
        "peer": "none",
        "ratio": None,
        "ratio_meaning": "no peer: what grows while the demo loops in a window, and a stream beside it",
        "ratio_min": None,
        "ratio_max": None,
        "figures": {
            "minutes": minutes,
            "memory_mb_per_minute": worst,
            **{f"{name}_mb_per_minute": row["memory_mb_per_minute"] for name, row in grown.items()},
            "files_more": max(row["files_more"] for row in rows),
            "threads_more": max(row["threads_more"] for row in rows),
            "sessions_mb": round(sum(recorded.values()) / MB, 1),
        },
        "agreement": {
            "ran to the end": not ended,
            "ended before": ", ".join(ended) or "none",
            "memory grows by at most": f"{MOST_MB:g} MB a minute: {worst <= MOST_MB}",
        },
        "rows": rows,
    }


def _row(name: str, values: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    """Slopes after the settling; of files and threads the difference of the line's ends, in whole ones."""
    table = np.array(values)
    minutes = (table[:, 0] - table[0, 0]) / 60
    late = table[minutes >= min(SETTLE_S / 60, minutes[-1] / 4)]
    at = late[:, 0] / 60
    slopes = np.polyfit(at - at[0], late[:, 1:], 1)[0] if len(late) > 1 else np.zeros(len(QUANTITIES))
    span = at[-1] - at[0]
    return {
        "process": name,
        "samples": len(table),
        "memory_mb_first": round(float(late[0, 1]), 1),
        "memory_mb_last": round(float(late[-1, 1]), 1),
        "memory_mb_per_minute": round(float(slopes[0]), 3),
        "files": int(late[-1, 2]),
        "files_more": round(float(slopes[1] * span)),
        "threads": int(late[-1, 3]),
        "threads_more": round(float(slopes[2] * span)),
    }


@contextmanager
def _running(folder: Path) -> Iterator[dict[str, psutil.Process]]:
    """The window with its demo, its worker and the stream, each by name, as soon as all of them are there."""
    environment = children.environment(
        {
            "QT_QPA_PLATFORM": "offscreen",
            "ASRSCOPE_SESSIONS": str(folder / "sessions"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
    )
    commands = (
        children.python("-m", "tests.bench._desk_window", "soak"),
        children.python("-m", "app.cli.main", "run", *STREAM, "--out", str(folder / "stream.asrs")),
    )
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"{number}.txt" for number in range(len(commands))]
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as said:
                started.append(subprocess.Popen(command, stdout=said, stderr=said, env=environment))
        window, stream = (psutil.Process(child.pid) for child in started)
        end = time.monotonic() + READY_S
        while not ((worker := _worker(window)) and "decoding" in logs[1].read_text(errors="replace")):
            for child, log in zip(started, logs, strict=True):
                if child.poll() is not None:
                    said = children.last_words(log.read_text(errors="replace"), child.returncode)
                    raise BadInput(f"What is to be watched has ended: {said}.")
                if time.monotonic() > end:
                    raise BadInput(f"What is to be watched was not ready after {READY_S:.0f} s.")
            time.sleep(1.0)
        yield {"window": window, "worker": worker, "stream": stream}
    finally:
        for child in started:
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)
        for child in started:
            try:
                child.wait(END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _worker(window: psutil.Process) -> psutil.Process | None:
    """The worker of a window, once its session is being recorded."""
    with suppress(psutil.Error):
        for child in window.children():
            if any("pipelines.worker" in word for word in child.cmdline()):
                return child
    return None


def _watch(
    processes: dict[str, psutil.Process], seconds: float, progress: Callable[..., None]
) -> dict[str, list[tuple[float, ...]]]:
    """Time, memory in MB, files and threads of each process, every SAMPLE_S."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in processes}
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < seconds:
        for name, process in processes.items():
            with suppress(psutil.Error):
                memory = process.memory_info().rss / MB
                found[name].append((at, memory, process.num_fds(), process.num_threads()))
        latest = ", ".join(f"{name} {values[-1][1]:.0f} MB" for name, values in found.items() if values)
        progress(f"soaking: {latest}", at / seconds)
        time.sleep(min(SAMPLE_S, seconds - at))
    return found
