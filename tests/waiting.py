"""Waiting for another process or thread, however busy the machine is."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from profiler.analysis.breakdown import breakdown
from profiler.session.reader import Session

PATIENCE_S = 600.0
"""How long a test waits for an event: a process may have to compile kernels first, while other programs use both cores.

What has not come by then never comes.
"""
PATIENCE_MS = int(1000 * PATIENCE_S)


def wait_until(done: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Poll `done` until it is true; AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def wait_for_frames(path: Path, frames: int = 1) -> None:
    """Wait until the session that is being recorded at `path` has `frames` frames."""
    opened: list[Session] = []

    def made() -> bool:
        # A file that is just being made is no session yet.
        with suppress(OSError):
            opened.append(Session.open(path))
        return bool(opened)

    wait_until(made)
    with closing(opened[0]) as session:

        def recorded() -> bool:
            session.refresh()
            return len(session.spans) > 0 and breakdown(session).last_frame >= frames

        wait_until(recorded)
