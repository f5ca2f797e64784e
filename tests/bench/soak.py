"""Does anything grow? The looping demo in a window and a stream at the same time, for an hour.

    asrscope bench soak --json
    asrscope bench soak --minutes 15

The window is offscreen. Every SAMPLE_S seconds resident memory, open files and threads of the window, of its worker and
of the stream are read from outside. Growth is the slope of a least-squares line after a quarter of the time (at most
SETTLE_S), when caches are full; memory should grow by at most MOST_MB a minute, files and threads not at all.
"""

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from profiler.errors import BadInput
from profiler.process import children
from tests.bench._rounds import MB, Progress, Tree, without_peer

SAMPLE_S: Final = 10.0
SETTLE_S: Final = 300.0
READY_S: Final = 1200.0  # for set-up: kernels may have to be compiled first
END_S: Final = 60.0
MOST_MB: Final = 1.0
STREAM: Final = ("--preset", "gmm-quick", "--set", "stream.chunk_ms=160", "--set", "pace=1", "--set", "loop=true")


def run(paths: Sequence[str], transcripts: str | None, repeat: int, progress: Progress, minutes: int = 60) -> Tree:
    """Run both for `minutes` and watch; the other arguments are those of all benches and unused."""
    samples: dict[str, list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as name, _running(Path(name)) as processes:
        begin = time.monotonic()
        while (at := time.monotonic() - begin) < 60.0 * minutes:
            for each, one in processes.items():
                with suppress(psutil.Error):
                    row = (at / 60, one.memory_info().rss / MB, one.num_fds(), one.num_threads())
                    samples.setdefault(each, []).append(row)
            latest = ", ".join(f"{each} {values[-1][1]:.0f} MB" for each, values in samples.items())
            progress(f"soaking: {latest}", at / 60.0 / minutes)
            time.sleep(min(SAMPLE_S, 60.0 * minutes - at))
        ended = [each for each, one in processes.items() if not one.is_running()]
    rows = [_row(each, np.array(values)) for each, values in samples.items()]
    worst = max(row["memory_mb_per_minute"] for row in rows)
    figures = {"minutes": minutes, "memory_mb_per_minute": worst}
    figures |= {f"{row['process']}_mb_per_minute": row["memory_mb_per_minute"] for row in rows}
    figures |= {key: max(row[key] for row in rows) for key in ("files_more", "threads_more")}
    agreement = {
        "ran to the end": not ended,
        "ended before": ", ".join(ended) or "none",
        "memory grows by at most": f"{MOST_MB:g} MB a minute: {worst <= MOST_MB}",
    }
    meaning = ": what grows while the demo loops in a window, and a stream beside it"
    return without_peer(meaning, figures, agreement, rows, "none")


def _row(name: str, table: np.ndarray) -> Tree:
    """Slopes after the settling; of files and threads the difference of the line's ends, in whole ones."""
    minutes = table[:, 0] - table[0, 0]
    late = table[minutes >= min(SETTLE_S / 60, minutes[-1] / 4)]
    slopes = np.polyfit(late[:, 0] - late[0, 0], late[:, 1:], 1)[0] if len(late) > 1 else np.zeros(3)
    span = late[-1, 0] - late[0, 0]
    return {
        "process": name,
        "samples": len(table),
        "memory_mb_per_minute": round(float(slopes[0]), 3),
        "memory_mb_last": round(float(late[-1, 1]), 1),
        "files_more": round(float(slopes[1] * span)),
        "threads_more": round(float(slopes[2] * span)),
    }


@contextmanager
def _running(folder: Path) -> Iterator[dict[str, psutil.Process]]:
    """The window with its demo, its worker and the stream, each by name, as soon as all of them are there."""
    own = {"ASRSCOPE_SESSIONS": str(folder / "sessions"), "XDG_CONFIG_HOME": str(folder / "config")}
    environment = children.environment({"QT_QPA_PLATFORM": "offscreen", **own})
    commands = (
        children.python("-m", "tests.bench._desk_window", "soak"),
        children.python("-m", "app.cli.main", "run", *STREAM, "--out", str(folder / "stream.asrs")),
    )
    logs, started = [folder / f"{number}.txt" for number in range(len(commands))], []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as said:
                started.append(subprocess.Popen(command, stdout=said, stderr=said, env=environment))
        window, stream = (psutil.Process(child.pid) for child in started)
        end = time.monotonic() + READY_S
        while not ((worker := _worker(window)) and "decoding" in logs[1].read_text(errors="replace")):
            for child, log in zip(started, logs, strict=True):
                if child.poll() is not None or time.monotonic() > end:
                    said = children.last_words(log.read_text(errors="replace"), child.returncode or 0)
                    raise BadInput(f"What is to be watched has ended, or was not ready after {READY_S:.0f} s: {said}.")
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
    with suppress(psutil.Error, StopIteration):
        return next(one for one in window.children() if any("pipelines.worker" in w for w in one.cmdline()))
    return None
