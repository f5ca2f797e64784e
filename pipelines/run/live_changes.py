"""Changes requested during a run: which act now, and which must be prepared first.

One thread prepares what a setting needs (a codebook, shortlists, a table; kernels, which another process compiles)
while decoding goes on; the change acts at the first block boundary afterwards. Changes that need nothing do not wait. A
later change that makes a preparation pointless cancels it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run.control import Change
from pipelines.scoring import Scorer
from pipelines.scoring.strategy import Made
from profiler.errors import Cancelled
from profiler.session.facts import COMPILING

LAST_WAIT_S: Final = 10.0
"""For a cancelled preparation to notice; it holds no file and no lock worth waiting longer for."""


Waiting = Callable[[Callable[[], bool]], None]
"""Does something that takes long, or raises Cancelled."""
Compiler = Callable[[Config], Waiting | None]
"""Returns what compiles the kernels that settings need, in another process; None where all are."""


@dataclass
class PendingChange:
    """A change, and the marker that stands for it in the session."""

    change: Change
    marker: int


@dataclass
class Due:
    """A change at a block boundary: the new configuration, what was made for it, and its requests."""

    config: Config
    prepared: Made
    changes: list[PendingChange]


class _Thread:
    """Makes one configuration ready."""

    def __init__(self, scorer: Scorer, config: Config, key: Hashable, compiling: Waiting | None) -> None:
        self.key, self._compiling = key, compiling
        self.prepared: Made = None
        self.error: Exception | None = None
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(scorer, config), name="preparing")
        self._thread.start()

    def _run(self, scorer: Scorer, config: Config) -> None:
        try:
            if self._compiling is not None:
                self._compiling(self._cancelled.is_set)
            self.prepared = scorer.make_ready(config, lambda *_: None, self._cancelled.is_set)
        except Cancelled:
            pass
        except Exception as error:  # whatever it is, the run goes on and says so
            self.error = error

    @property
    def is_finished(self) -> bool:
        return not self._thread.is_alive()

    def cancel(self, wait: bool = False) -> None:
        self._cancelled.set()
        if wait:
            self._thread.join(LAST_WAIT_S)


class LiveChanges:
    """The requested changes that do not act yet."""

    def __init__(self, compiler: Compiler = lambda _: None) -> None:
        self._compiler = compiler
        self._notes: list[str] = []
        self._waiting: list[PendingChange] = []
        self._thread: _Thread | None = None
        self._failures: list[str] = []

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def due(self, config: Config, new: list[PendingChange], scorer: Scorer) -> Due | None:
        """Return what acts from this block on, after the settings `config` and the `new` requests."""
        self._waiting += new
        wanted = self.wanted(config)
        key = scorer.needs(wanted)
        if key is None:
            self.cancel()
            return self._take(wanted, None, list(self._waiting))
        thread = self._thread
        if thread is None or thread.key != key:
            # One at a time: what an earlier wish needed is no longer wanted.
            if thread is not None:
                thread.cancel()
            compiling = self._compiler(wanted)
            if compiling is not None:
                texts = ", ".join(one.change.text for one in self._waiting)
                self._notes.append(f"{COMPILING} {texts}")
            self._thread = _Thread(scorer, wanted, key, compiling)
        elif thread.is_finished:
            self._thread = None
            if thread.error is None:
                return self._take(wanted, thread.prepared, list(self._waiting))
            self._give_up(config, thread.error, scorer)
        now: list[PendingChange] = []
        for one in self._waiting:
            if _acts_at_once(_with(config, [*now, one]), scorer):
                now.append(one)
        return self._take(_with(config, now), None, now)

    def wanted(self, config: Config) -> Config:
        """`config` with every change that waits."""
        return _with(config, self._waiting)

    def take_failures(self) -> list[str]:
        """A sentence for each change that could not be made ready and was given up since the last call."""
        taken, self._failures = self._failures, []
        return taken

    def take_notes(self) -> list[str]:
        """What was begun since the last call and takes long, a line each."""
        taken, self._notes = self._notes, []
        return taken

    def cancel(self, wait: bool = False) -> None:
        """Stop preparing; requested changes that do not act yet never will, unless requested again."""
        if self._thread is not None:
            self._thread.cancel(wait)
            self._thread = None

    def _take(self, config: Config, prepared: Made, changes: list[PendingChange]) -> Due | None:
        self._waiting = [one for one in self._waiting if one not in changes]
        return Due(config, prepared, changes) if changes else None

    def _give_up(self, config: Config, error: Exception, scorer: Scorer) -> None:
        needing = [o for o in self._waiting if scorer.needs(_with(config, [o])) is not None]
        # The newest: what was being made before it is made again without it.
        lost = (needing or self._waiting)[-1]
        what = f"{lost.change.key}={lost.change.value}"
        self._failures.append(f"{what} could not be made ready: {error}")
        self._waiting = [one for one in self._waiting if one is not lost]


def _acts_at_once(config: Config, scorer: Scorer) -> bool:
    try:
        settings.check(config)
    except settings.ConfigError:  # only together with a change that is still being made ready
        return False
    return scorer.needs(config) is None


def _with(config: Config, changes: list[PendingChange]) -> Config:
    for one in changes:
        config = settings.replace(config, one.change.key, one.change.value)
    return config
