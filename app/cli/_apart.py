"""A lab in a process of its own, for `asrscope lab --all`: what one does to the process, or how it dies, is no other's.

The child is `asrscope lab NAME --json`; its progress is passed on, and a request to stop as well.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from profiler.plain import one_line
from profiler.process import children

POLL_S = 0.1
LINES_KEPT = 31
"""Of standard error: the last one, or those of a stack, say why it ended."""
PATIENCE_S = 60.0
"""Seconds that a stopping lab may take to close its session."""


@dataclass
class Ended:
    """What came of it: its row of the JSON, if it gave one; its exit status; its last words."""

    row: dict[str, object] | None
    status: int
    said: str = ""


def run(words: Sequence[str], progress: Callable[[str], object], stopping: Callable[[], bool]) -> Ended:
    """Run `asrscope lab` with these words and --json; ends the child when `stopping`."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        child = subprocess.Popen(
            children.python("-m", "app.cli.main", "lab", *words, "--json"),
            env=children.environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl+C reaches us alone, who pass it on: the second one would end it at once
        )
        assert child.stderr is not None
        last: deque[str] = deque(maxlen=LINES_KEPT)
        follower = threading.Thread(target=_follow, args=(child.stderr, last, progress))
        follower.start()
        try:
            _wait(child, stopping)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            follower.join()
            child.stderr.close()
        printed.seek(0)
        return Ended(_row(printed.read()), child.returncode, _last_sentence(list(last), child.returncode))


def _follow(stream: IO[str], last: deque[str], progress: Callable[[str], object]) -> None:
    """Pass on the lines of standard error, and keep the last of them."""
    for line in stream:
        if line.strip():
            last.append(line)
            progress(one_line(line.strip()))


def _wait(child: subprocess.Popen[str], stopping: Callable[[], bool]) -> None:
    asked = False
    while True:
        try:
            child.wait(PATIENCE_S if asked else POLL_S)
            return
        except subprocess.TimeoutExpired:
            if asked:
                return
            if stopping():
                asked = True
                child.terminate()


def _row(text: str) -> dict[str, object] | None:
    try:
        rows = json.loads(text)["labs"]
        return dict(rows[0]) if rows else None
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _last_sentence(lines: Sequence[str], status: int) -> str:
    """The last sentence of the command, without the name of the program."""
    last = one_line(lines[-1].strip(), 600) if lines else ""
    if last.startswith("asrscope: "):
        return last.removeprefix("asrscope: ")
    return "" if status == 0 else f"{children.last_words(''.join(lines), status)}."
