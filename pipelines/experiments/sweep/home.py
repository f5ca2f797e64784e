"""Trials on this machine, one after the other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from pipelines.experiments.sweep import trial
from profiler.errors import Cancelled
from profiler.process import children

POLL_S: Final = 0.1
PATIENCE_S: Final = 30.0
"""Seconds that a run has to close its session."""


class Engine(Protocol):
    """Where trials run. `slots`: how many at once."""

    slots: int

    def submit(self, folder: Path) -> None:
        """Start the plan of `folder`."""

    def resume(self, folder: Path) -> bool:
        """Wait for a plan that an earlier process has submitted; False where it does not run any more."""

    def wait(self, cancelled: Callable[[], bool]) -> Path:
        """The folder of the next plan that has ended, with a result or without. Raises Cancelled."""

    def close(self) -> None:
        """End what ends with this process."""


class Home:
    """One trial at a time, in a child that ends with this process."""

    slots = 1

    def __init__(self) -> None:
        self._folder = Path()
        self._child: subprocess.Popen[bytes] | None = None

    def submit(self, folder: Path) -> None:
        """Start the plan of `folder`."""
        self._folder = folder
        self._child = subprocess.Popen(
            children.python("-m", trial.__name__, str(folder)),
            env=children.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def resume(self, folder: Path) -> bool:
        return False

    def wait(self, cancelled: Callable[[], bool]) -> Path:
        """Wait for the trial that runs. Raises Cancelled, once it has ended."""
        assert self._child is not None
        while True:
            try:
                self._child.wait(POLL_S)
            except subprocess.TimeoutExpired:
                if not cancelled():
                    continue
                self.close()
                raise Cancelled from None
            self.close()
            return self._folder

    def close(self) -> None:
        """Ask the trial to end; end it if it does not."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
