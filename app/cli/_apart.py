"""A lab in a process of its own, for `asrscope lab --all`: what one does to the process, or how it dies, is no other's.

The child is `asrscope lab NAME --json`; its progress is passed on, and a request to stop as well.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from profiler.plain import one_line
from profiler.process import children

POLL_S = 0.1
PATIENCE_S = 60.0
"""How long a lab that was asked to stop may take to close its session."""


@dataclass
class Ended:
    """What came of it: its row of the JSON, if it gave one; its exit status; its last words."""

    row: dict[str, object] | None
    status: int
    said: str = ""


@dataclass
class _Told:
    """The lines of standard error, the last of which are kept."""

    progress: Callable[[str], object]
    lines: list[str] = field(default_factory=list)

    def follow(self, stream: IO[str]) -> None:
        for line in stream:
            if line.strip():
                self.lines = [*self.lines[-30:], line]
                self.progress(one_line(line.strip()))


def run(
    words: Sequence[str], progress: Callable[[str], object], stopping: Callable[[], bool]
) -> Ended:
    """Run `asrscope lab` with these words and --json; ends the child when `stopping`."""
    child = subprocess.Popen(
        children.python("-m", "app.cli.main", "lab", *words, "--json"),
        env=children.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # Ctrl+C reaches us alone, who pass it on: the second one would end it at once
    )
    assert child.stdout is not None
    assert child.stderr is not None
    told = _Told(progress)
    follower = threading.Thread(target=told.follow, args=(child.stderr,))
    follower.start()
    out: list[str] = []
    reader = threading.Thread(target=lambda: out.append(child.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    try:
        _wait(child, stopping)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        follower.join()
        reader.join()
        child.stdout.close()
        child.stderr.close()
    return Ended(_row("".join(out)), child.returncode, _said(told, child.returncode))


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


def _said(told: _Told, status: int) -> str:
    """The sentence with which it ended, without the name of the program before it."""
    last = one_line(told.lines[-1].strip(), 600) if told.lines else ""
    if last.startswith("asrscope: "):
        return last.removeprefix("asrscope: ")
    return "" if status == 0 else f"{children.last_words(''.join(told.lines), status)}."
