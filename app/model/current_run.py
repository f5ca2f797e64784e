"""The run under way as the window sees it: shows its session, passes changes on to it, and reports its end."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.model.pipeline import Pipeline
from app.model.playhead import Playhead, Snapshot
from app.model.processes.run_control import RunControl, RunRequest
from app.model.recent import Memory
from app.model.setup_progress import SetUp
from pipelines import config as settings
from pipelines.config import Config
from profiler.clock import FRAME_S
from profiler.plain import clock
from profiler.session.facts import COMPILING

PROGRESS_MS: Final = 500  # Between two looks at how far a set-up has got
DECODING: Final = "decoding"  # What the worker reports when a set-up is over
SET_UP: Final = "set-up"  # Key of the seconds that the phases of the last set-up took
PROBLEM: Final = "error"  # Kind of the markers that say what went wrong in a run; about a setting: ``key=…``
LONG_S: Final = 10.0  # Seconds of a set-up from which on a recorded session is shown meanwhile


class SetUpProgress(QObject):
    """What the set-up of a run is doing, and how long it still takes: one bar for all of it."""

    changed = Signal(str, object)  # What is being done, and the share done
    time_left = Signal(object)  # Seconds, None where they are not known
    ended = Signal()

    def __init__(self, memory: Memory, parent: QObject) -> None:
        super().__init__(parent)
        self._memory = memory
        self.lead = ""  # What is to be said before it
        self._set_up: SetUp | None = None
        self._ticks = QTimer(self, interval=PROGRESS_MS)
        self._ticks.timeout.connect(self._show)

    @property
    def under_way(self) -> bool:
        return self._set_up is not None

    @property
    def left_s(self) -> float:
        return 0.0 if self._set_up is None else self._set_up.left_s(time.monotonic())

    def update(self, stage: str, fraction: float | None) -> None:
        """Show what the worker reports."""
        now = time.monotonic()
        if self._set_up is None:
            before = list[float]()
            with suppress(ValueError):
                before = [float(text) for text in self._memory.texts(SET_UP)]
            self._set_up = SetUp(now, before)
            self._ticks.start()
        self._set_up.update(stage, fraction, now)
        self._show()

    def _show(self) -> None:
        if self._set_up is None:
            return
        now = time.monotonic()
        left = self._set_up.left_to_show(now)
        parts = [f"{self.tr(name)} {seconds} s" for name, seconds in self._set_up.steps(now)]
        if left is not None:
            parts.append(self.tr("about {0} s left").format(left))
        self.changed.emit("\n".join(filter(None, (self.lead, " · ".join(parts)))), self._set_up.share(now))
        self.time_left.emit(left)

    def end(self, complete: bool) -> None:
        """Remember how long a `complete` set-up took."""
        self._ticks.stop()
        if self._set_up is not None and complete:
            took = self._set_up.durations(time.monotonic())
            self._memory.remember(SET_UP, [f"{seconds:.2f}" for seconds in took])
        self._set_up, self.lead = None, ""
        self.ended.emit()


class CurrentRun(QObject):
    """Joins settings, worker and playhead during a run; a recorded session may stand in until its first block."""

    changed = Signal()
    shown = Signal()
    ended = Signal()  # Finished, stopped, failed or dead; comes before the report of it
    finished = Signal()
    given_up = Signal()  # The run was cancelled before its first frame: there is no session of it
    remarked = Signal(str)
    failed = Signal(str, str)  # One sentence, and a report that may be empty
    died = Signal(str, str)  # The same of a run that can be restarted

    def __init__(
        self, pipeline: Pipeline, playhead: Playhead, memory: Memory, worker: Sequence[str], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._pipeline, self._playhead, self._memory = pipeline, playhead, memory
        self._config: Config = pipeline.next
        self._problems_shown = 0
        self._stand_in: Path | None = None
        self.set_up = SetUpProgress(memory, self)
        self.set_up.time_left.connect(pipeline.toggles.prepare)
        self.set_up.ended.connect(lambda: pipeline.toggles.prepare(0))
        self.control = control = RunControl(worker, self)
        control.state_changed.connect(lambda _: self.changed.emit())
        control.progress.connect(self._on_progress)
        control.running.connect(self._on_running)
        control.finished.connect(self._on_finished)
        control.failed.connect(self._on_failed)
        control.died.connect(self._on_died)
        control.refused.connect(lambda key, _: pipeline.not_taken(key))
        control.refused.connect(lambda _, message: self.failed.emit(message, ""))
        pipeline.live_change.connect(control.set)
        playhead.changed.connect(self._on_frames)
        playhead.ended.connect(lambda _: self.changed.emit())

    def start(self, worker: Sequence[str], config: Config, request: RunRequest, stand_in: Path | None = None) -> None:
        """Start a run; if its set-up will take long, `stand_in` is shown until it has a first block."""
        self._config = config
        self.control.start(request, worker)
        if stand_in is not None and self.set_up.left_s >= LONG_S:
            from app.model.provenance import provenance_of  # not before the window has been painted

            self._stand_in = stand_in
            if self._follow(str(stand_in)) and (session := self._playhead.session) is not None:
                origin = provenance_of(session)
                text = self.tr("Recorded on {0} on {1}; your machine is being measured, and your run takes over.")
                self.set_up.lead = text.format(origin["recorded"], origin["machine"])

    @property
    def is_shown(self) -> bool:
        session = self._playhead.session
        return session is not None and str(session.path) == self.control.session

    @property
    def stands_in(self) -> bool:
        """Whether the desk shows a recorded session in place of that of the run."""
        return self._stand_in is not None and self._playhead.path == self._stand_in

    def show(self) -> None:
        if self.control.session and not self.is_shown:
            self._follow(self.control.session)

    def mark(self) -> None:
        here = clock(self._playhead.n_frames * FRAME_S)
        self.control.mark(self.tr("mark at {0}").format(here))

    def _follow(self, path: str) -> bool:
        try:
            self._playhead.open(path)
        except (OSError, ValueError) as error:
            self.failed.emit(str(error), "")
            return False
        self.shown.emit()
        return True

    def _on_progress(self, stage: str, fraction: float | None) -> None:
        # The session exists before model and graph are ready: all of that is "getting ready".
        if stage == DECODING:
            if self.stands_in:
                self.show()
            if not self.is_shown:
                self.set_up.end(complete=True)
        decoding = self.is_shown and self._playhead.n_frames > 0
        if not decoding and (self.control.state != "running" or self.is_shown or self.stands_in):
            self.set_up.update(stage, fraction)

    def _on_frames(self, snapshot: Snapshot) -> None:
        """Say, once each, what went wrong without ending the run, and what a change waits for."""
        if not self.is_shown:
            return
        if self.set_up.under_way and self._playhead.n_frames > 0:
            self.set_up.end(complete=True)
        if not snapshot.live:
            return
        problems = [m for m in snapshot.session.markers if m.kind == PROBLEM or m.text.startswith(COMPILING)]
        for marker in problems[self._problems_shown :]:
            if marker.kind == PROBLEM:
                self._pipeline.not_taken(marker.text.partition("=")[0])
                self.failed.emit(marker.text, "")
            else:
                self.remarked.emit(self.tr("Decoding goes on: {0}.").format(marker.text))
        self._problems_shown = len(problems)

    def _on_running(self, path: str) -> None:
        self._problems_shown = 0
        self._pipeline.run_started(self._config)
        for key in (option.key for option in self._pipeline.options if option.live):
            wanted = settings.get(self._pipeline.next, key)
            if wanted != settings.get(self._config, key):  # somebody changed it while the run was being prepared
                self.control.set(key, wanted)
        if path and (self.stands_in or self._follow(path)):
            self._memory.add_session(Path(path))
        self.changed.emit()

    def _end(self) -> bool:
        """Whether a recorded session stood in for that of the run to its end."""
        stood_in, self._stand_in = self.stands_in, None
        self.set_up.end(complete=self._playhead.n_frames > 0 and not stood_in)
        if stood_in:
            self._playhead.close()
        self._pipeline.run_ended()
        self.ended.emit()
        self.changed.emit()
        return stood_in

    def _on_finished(self, path: str, state: str) -> None:
        stood_in = self._end()
        if self._playhead.live:
            self._playhead.tick()
        if stood_in or (state == "stopped" and path and self.is_shown and self._playhead.n_frames == 0):
            self._playhead.close()
            self._memory.forget_session(Path(path))
            with suppress(OSError):  # nothing was to be kept of it
                Path(path).unlink(missing_ok=True)
            self.given_up.emit()
        self.finished.emit()

    def _on_failed(self, message: str, session: str | None) -> None:
        was_shown = self.is_shown
        self._end()
        if was_shown and self._playhead.live:
            self._playhead.tick()
        self._remove_empty(session)
        self.failed.emit(message, self.control.report(message))

    def _remove_empty(self, path: str | None) -> bool:
        """Remove the session of a run that failed before its first frame; whether it was one."""
        from app.model.provenance import remove_if_empty  # not before the window has been painted

        is_shown = self.is_shown
        if path is None or (is_shown and self._playhead.n_frames) or not remove_if_empty(Path(path)):
            return False
        self._memory.forget_session(Path(path))
        if is_shown:
            self._playhead.close()
        return True

    def _on_died(self, reason: str, session: str | None) -> None:
        was_shown = self.is_shown
        self._end()
        text = self.tr("The worker stopped ({0}). The session up to then is saved: {2}")
        if session is None or self._remove_empty(session):
            text = self.tr("The worker stopped ({0}) before the run began.")
        elif was_shown:
            text = self.tr("The worker stopped ({0}) at {1}. The session up to then is saved: {2}")
            try:
                self._playhead.reopen()
            except (OSError, ValueError) as error:
                self.failed.emit(str(error), "")
        message = text.format(reason, clock(self._playhead.n_frames * FRAME_S), session)
        self.died.emit(message, self.control.report(message))
