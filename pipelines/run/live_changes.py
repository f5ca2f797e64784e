"""Changes requested during a run: which act now, and which must be prepared first.

One thread prepares what a setting needs while decoding goes on; the change acts at the first block boundary afterwards.
Changes that need nothing do not wait. A later change that makes a preparation pointless cancels it.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from pipelines import config as settings
from pipelines.config import Config
from pipelines.run.control import Change
from pipelines.scoring import Scorer
from pipelines.scoring.strategy import Made, quietly
from profiler.session.facts import COMPILING

LAST_WAIT_S: Final = 10.0
"""For a cancelled preparation to notice; it holds no file and no lock worth waiting longer for."""


Waiting = Callable[[Callable[[], bool]], None]  # Does something that takes long, or raises Cancelled
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


@dataclass
class _Preparation:
    """One configuration made ready on a thread, for what `key` says it needs."""

    key: Hashable
    future: Future[Made]
    cancelled: threading.Event
    thread: threading.Thread

    def cancel(self, wait: bool = False) -> None:
        self.cancelled.set()
        if wait:
            self.thread.join(LAST_WAIT_S)


def _prepare(scorer: Scorer, config: Config, key: Hashable, compiling: Waiting | None) -> _Preparation:
    cancelled, future = threading.Event(), Future[Made]()

    def make() -> None:
        try:
            if compiling is not None:
                compiling(cancelled.is_set)
            future.set_result(scorer.make_ready(config, quietly, cancelled.is_set))
        except BaseException as error:  # whatever it is, the thread that decodes reports it
            future.set_exception(error)

    thread = threading.Thread(target=make, name="preparing")
    thread.start()
    return _Preparation(key, future, cancelled, thread)


class LiveChanges:
    """The requested changes that do not act yet."""

    def __init__(self, compiler: Compiler = lambda _: None) -> None:
        self._compiler = compiler
        self._waiting: list[PendingChange] = []
        self._preparation: _Preparation | None = None
        self._messages: list[tuple[str, str]] = []

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
        preparation = self._preparation
        if preparation is None or preparation.key != key:
            # One at a time: what an earlier wish needed is no longer wanted.
            self.cancel()
            compiling = self._compiler(wanted)
            if compiling is not None:
                texts = ", ".join(one.change.text for one in self._waiting)
                self._messages.append(("note", f"{COMPILING} {texts}"))
            self._preparation = _prepare(scorer, wanted, key, compiling)
        elif preparation.future.done():
            self._preparation = None
            error = preparation.future.exception()
            if error is None:
                return self._take(wanted, preparation.future.result(), list(self._waiting))
            # Whatever it is, the run goes on without the newest; what was being made before it is made again.
            needing = [o for o in self._waiting if scorer.needs(_with(config, [o])) is not None]
            lost = (needing or self._waiting)[-1]
            what = f"{lost.change.key}={lost.change.value}"
            self._messages.append(("error", f"{what} could not be made ready: {error}"))
            self._waiting = [one for one in self._waiting if one is not lost]
        now: list[PendingChange] = []
        for one in self._waiting:
            with_one = _with(config, [*now, one])
            try:
                settings.check(with_one)
            except settings.ConfigError:  # only together with a change that is still being made ready
                continue
            if scorer.needs(with_one) is None:
                now.append(one)
        return self._take(_with(config, now), None, now)

    def wanted(self, config: Config) -> Config:
        return _with(config, self._waiting)

    def take_messages(self) -> list[tuple[str, str]]:
        """Since the last call: `note` and what was begun that takes long, `error` and what was given up."""
        taken, self._messages = self._messages, []
        return taken

    def cancel(self, wait: bool = False) -> None:
        """Stop preparing; requested changes that do not act yet never will, unless requested again."""
        if self._preparation is not None:
            self._preparation.cancel(wait)
            self._preparation = None

    def _take(self, config: Config, prepared: Made, changes: list[PendingChange]) -> Due | None:
        self._waiting = [one for one in self._waiting if one not in changes]
        return Due(config, prepared, changes) if changes else None


def _with(config: Config, changes: list[PendingChange]) -> Config:
    for one in changes:
        config = settings.replace(config, one.change.key, one.change.value)
    return config
