"""A run's life as the window sees it: started, followed, changed, stopped, and what went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app import crash_report
from app.model import audio_choice
from app.model.assignments import modified
from app.model.audio_choice import AudioChoice
from app.model.pipeline import Pipeline
from app.model.playhead import Playhead
from app.model.processes import leaving
from app.model.processes.run_control import ON_HOST, WORKER, RunControl, RunRequest
from app.model.recent import Memory
from app.model.setup_progress import USUAL_S, SetUp
from pipelines import config as settings
from pipelines.config import Config, Value, presets
from profiler.files.paths import new_session_path
from profiler.frames import FRAME_S
from profiler.plain import clock
from profiler.session.facts import COMPILING

if TYPE_CHECKING:
    from app.model.playhead import Snapshot

PROGRESS_MS = 500  # Between two looks at how far a set-up has got
SET_UP = "set-up"  # Key of the seconds that the phases of the last set-up took
HOSTS = "hosts"  # Key of the names of other machines, the last one first
MOST_HOSTS = 8
DEMO = presets.DEMO  # Preset of the demo: a workload on which the purpose of the program can be seen

COURSE_OF_DEMO: Mapping[str, Value] = {"pace": 1.0, "loop": True, "repeat_on_change": True}
"""For every preset that is tried: as fast as it can, it would be over before a switch could be flipped."""

PROBLEM = "error"
"""Kind of the markers that say what went wrong while a run went on; one about a setting begins with ``key=``."""


def number(text: str) -> float:
    """A number that was remembered as text; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


@dataclass(frozen=True)
class Elsewhere:
    """Another machine, as ssh knows it, and which of its files to decode: none for the bundled voices."""

    host: str
    audio: tuple[str, ...] = ()
    transcripts: str | None = None


class Runs(QObject):
    """Joins settings, worker and playhead; the window calls its methods and shows what it signals."""

    changed = Signal()
    shown = Signal()
    begun = Signal()
    given_up = Signal()  # The run was cancelled before its first frame: there is no session of it
    remarked = Signal(str)
    failed = Signal(str, str)  # One sentence, and a report that may be empty
    died = Signal(str, str)  # The same of a run that can be restarted
    set_up_changed = Signal(str, object)  # What the set-up is doing, and the share done or None
    set_up_ended = Signal()
    asked = Signal(str, object)  # A question, and what each answer does
    question_dropped = Signal()

    def __init__(
        self,
        pipeline: Pipeline,
        playhead: Playhead,
        memory: Memory,
        worker: Sequence[str] = WORKER,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._pipeline, self._playhead, self._memory = pipeline, playhead, memory
        self._set_up: SetUp | None = None
        self._ticks = QTimer(self)
        self._ticks.setInterval(PROGRESS_MS)
        self._ticks.timeout.connect(self._show_progress)
        self._problems_shown = 0
        self._config: Config = pipeline.next
        self._worker = tuple(worker)
        self._elsewhere: Elsewhere | None = None
        self._last_audio: AudioChoice | None = None
        self._is_demo = False
        self._leaves_demo = False
        self._after: Callable[[], None] | None = None
        self.other_run: Callable[[], str | None] = lambda: None
        """Why no run may begin although none is under way: a lab is, which it would disturb."""
        self.audio: AudioChoice | None = self._remembered() or audio_choice.bundled()
        self.control = RunControl(worker, self)
        control = self.control
        control.state_changed.connect(lambda _: self.changed.emit())
        control.progress.connect(self._on_progress)
        control.running.connect(self._on_running)
        control.finished.connect(self._on_finished)
        control.failed.connect(self._on_failed)
        control.died.connect(self._on_died)
        control.refused.connect(self._on_refused)
        pipeline.live_change.connect(control.set)
        playhead.changed.connect(self._on_frames)
        playhead.ended.connect(lambda _: self.changed.emit())

    def _remembered(self) -> AudioChoice | None:
        paths = self._memory.audio()
        try:
            return audio_choice.chosen(paths) if paths else None
        except ValueError:
            return None

    # -- asked by a person -----------------------------------------------------------------

    def choose(self, audio: AudioChoice) -> bool:
        """Decode ``audio`` from the next run on; returns whether loop and pace were the demo's and are set back."""
        self.audio = audio
        self._memory.remember("audio", [] if audio.bundled else list(audio.paths))
        now = self._pipeline.next
        like_demo = all(settings.get(now, key) == value for key, value in COURSE_OF_DEMO.items())
        self._leaves_demo = like_demo and not audio.bundled
        self._leave_demo()
        self.changed.emit()
        return like_demo and not audio.bundled

    def _leave_demo(self) -> None:
        """Set loop and pace back; while the demo goes on, at its end."""
        if self._leaves_demo and not self.control.busy:
            self._leaves_demo = False
            if self._pipeline.locked:
                self._pipeline.edit()
            for key in COURSE_OF_DEMO:
                self._pipeline.set(key, settings.option(key).default, by_hand=False)

    def unavailable_reason(self) -> str | None:
        return self.other_run() or leaving.unavailable_reason()

    @property
    def audio_waits(self) -> bool:
        return self.control.busy and self.audio != self._last_audio

    def start(self) -> None:
        self._is_demo = False
        self._elsewhere = None
        self._start()

    def start_on(self, elsewhere: Elsewhere) -> None:
        """Run the settings as they are on another machine."""
        hosts = [elsewhere.host, *(name for name in self.hosts() if name != elsewhere.host)]
        self._memory.remember(HOSTS, hosts[:MOST_HOSTS])
        self._is_demo = False
        self._elsewhere = elsewhere
        self._start()

    def hosts(self) -> list[str]:
        return self._memory.texts(HOSTS)

    def _start(self) -> None:
        there = self._elsewhere
        if (self.audio is None and there is None) or self.control.busy or self._blocked():
            return
        self._config = self._pipeline.next
        name = self._pipeline.preset.name
        try:
            changed = modified(self._config, self._pipeline.preset.config)
            out = new_session_path(f"{name}-modified" if changed else name)
        except OSError as error:
            text = self.tr("Sessions cannot be written: {0}.")
            self.failed.emit(text.format(error.strerror or error), "")
            return
        self._last_audio = self.audio
        self.begun.emit()
        self.control.use(self._worker if there is None else (*ON_HOST, there.host))
        audio = there or self.audio
        assert audio is not None
        self.control.start(
            RunRequest(
                config=settings.to_dict(self._config),
                preset=name,
                audio=audio.audio if isinstance(audio, Elsewhere) else audio.paths,
                transcripts=audio.transcripts,
                out=str(out),
            )
        )

    def _blocked(self) -> bool:
        """Whether something else measures; says so."""
        why = self.unavailable_reason()
        if why is not None:
            self.remarked.emit(why)
        return why is not None

    def demo(self, preset: str = DEMO) -> None:
        """Run the bundled voices round and round at a pace that can be watched."""
        bundled = audio_choice.bundled()
        if bundled is None or self.control.busy or self._blocked():
            return
        self._leaves_demo = False
        self._pipeline.edit()
        self._pipeline.choose(preset)
        self.choose(bundled)
        for key, value in COURSE_OF_DEMO.items():
            self._pipeline.set(key, value, by_hand=False)
        self._is_demo = True
        self._elsewhere = None
        self._start()

    def choose_preset(self, name: str) -> None:
        """Take a preset; during a run, ask what is to become of the run."""
        if self.control.busy:
            again = partial(self.demo, name) if self._is_demo else partial(self._start_preset, name)
            self._ask(name, again)
        else:
            self._pipeline.choose(name)

    def demo_preset(self, name: str) -> None:
        """Run the demo with a preset; during a run, ask first."""
        if self.control.busy:
            self._ask(name, partial(self.demo, name))
        else:
            self.demo(name)

    def _start_preset(self, name: str) -> None:
        self._pipeline.choose(name)
        self.start()

    def _ask(self, name: str, start: Callable[[], None]) -> None:
        """Ask whether a preset begins now, in place of the run under way, or waits for the next one."""
        title = self.tr(presets.load(name).title)
        text = self.tr("Stop this run and start “{0}”, or use it for the next run?")
        answers = {
            self.tr("Finish this run and start"): partial(self._finish_then, start),
            self.tr("For the next run"): partial(self._pipeline.choose, name),
            self.tr("Cancel"): None,
        }
        self.asked.emit(text.format(title), answers)

    def _finish_then(self, start: Callable[[], None]) -> None:
        if not self.control.busy:
            start()
            return
        self._after = start
        self.stop()

    def restart(self) -> None:
        if self._last_audio is not None:
            self.audio = self._last_audio
        self._start()

    def stop(self) -> None:
        self.control.stop()

    def mark(self) -> None:
        here = clock(self._playhead.n_frames * FRAME_S)
        self.control.mark(self.tr("mark at {0}").format(here))

    def show_running(self) -> None:
        if self.control.session and not self.showing_run:
            self._follow(self.control.session)

    @property
    def showing_run(self) -> bool:
        session = self._playhead.session
        return session is not None and str(session.path) == self.control.session

    # -- what the worker reports -----------------------------------------------------------

    def _on_progress(self, stage: str, fraction: float | None) -> None:
        # The session exists before model and graph are ready: all of that is "getting ready".
        decoding = self.showing_run and self._playhead.n_frames > 0
        if decoding or (self.control.state == "running" and not self.showing_run):
            return
        now = time.monotonic()
        if self._set_up is None:
            before = [number(text) for text in self._memory.texts(SET_UP)]
            self._set_up = SetUp(now, before or USUAL_S)
            self._ticks.start()
        self._set_up.update(stage, fraction, now)
        self._show_progress()

    def _show_progress(self) -> None:
        """One bar for all of the set-up, and how long it still takes."""
        if self._set_up is None:
            return
        now = time.monotonic()
        text, left = self.tr(self._set_up.text), self._set_up.left_to_show(now)
        if left is not None:
            text = self.tr("{0} · about {1} s left").format(text, left)
        self.set_up_changed.emit(text, self._set_up.share(now))

    def _end_progress(self) -> None:
        self._ticks.stop()
        if self._set_up is not None and self._playhead.n_frames > 0:
            took = self._set_up.durations(time.monotonic())
            self._memory.remember(SET_UP, [f"{seconds:.2f}" for seconds in took])
        self._set_up = None
        self.set_up_ended.emit()

    def _follow(self, path: str) -> bool:
        try:
            self._playhead.open(path)
        except (OSError, ValueError) as error:
            self.failed.emit(str(error), "")
            return False
        self.shown.emit()
        return True

    def _on_frames(self, snapshot: Snapshot) -> None:
        if not self.showing_run:
            return
        if self._set_up is not None and self._playhead.n_frames > 0:
            self._end_progress()
        if snapshot.live:
            self._tell_problems(snapshot)

    def _tell_problems(self, snapshot: Snapshot) -> None:
        """Say what went wrong in the run without ending it, each once; a change given up waits for the next run.

        And what a change waits for.
        """
        problems = [m for m in snapshot.session.markers if m.kind == PROBLEM or m.text.startswith(COMPILING)]
        for marker in problems[self._problems_shown :]:
            if marker.kind != PROBLEM:
                self.remarked.emit(self.tr("Decoding goes on: {0}.").format(marker.text))
                continue
            key = marker.text.partition("=")[0]
            if any(option.key == key for option in self._pipeline.options):
                self._pipeline.not_taken(key)
            self.failed.emit(marker.text, "")
        self._problems_shown = len(problems)

    def _on_running(self, path: str) -> None:
        self._problems_shown = 0
        self._pipeline.run_started(self._config)
        for key, value in self._changed_since(self._config):
            self.control.set(key, value)
        if path and self._follow(path) and self._playhead.path is not None:
            self._memory.add_session(self._playhead.path)
        self.changed.emit()

    def _changed_since(self, config: Config) -> list[tuple[str, Value]]:
        """Live settings that a person changed while the run was being prepared."""
        wanted = self._pipeline.next
        return [
            (option.key, settings.get(wanted, option.key))
            for option in self._pipeline.options
            if option.live and settings.get(config, option.key) != settings.get(wanted, option.key)
        ]

    def _over(self) -> None:
        self._end_progress()
        self.question_dropped.emit()
        self._pipeline.run_ended()
        self._leave_demo()
        self.changed.emit()

    def _on_finished(self, path: str, state: str) -> None:
        self._over()
        if self._playhead.live:
            self._playhead.tick()
        if state == "stopped" and path and self.showing_run and self._playhead.n_frames == 0:
            self._playhead.close()
            self._memory.forget_session(Path(path))
            with suppress(OSError):  # nothing was to be kept of it
                Path(path).unlink(missing_ok=True)
            self.given_up.emit()
        after, self._after = self._after, None
        if after is not None:
            after()

    def _on_failed(self, message: str, session: str | None) -> None:
        was_shown = self.showing_run
        self._after = None
        self._over()
        if was_shown and self._playhead.live:
            self._playhead.tick()
        self._remove_empty(session)
        self.failed.emit(message, self._report(message))

    def _remove_empty(self, path: str | None) -> bool:
        """Remove the session of a run that failed before its first frame; whether it was one."""
        from app.model.session_facts import remove_if_empty  # not before the window has been painted

        there = self.showing_run
        if path is None or (there and self._playhead.n_frames) or not remove_if_empty(Path(path)):
            return False
        self._memory.forget_session(Path(path))
        if there:
            self._playhead.close()
            self.given_up.emit()
        return True

    def _on_refused(self, key: str, message: str) -> None:
        self._pipeline.not_taken(key)
        self.failed.emit(message, "")

    def _on_died(self, reason: str, session: str | None) -> None:
        was_shown = self.showing_run
        self._after = None
        self._over()
        if session is None or self._remove_empty(session):
            message = self.tr("The worker stopped ({0}) before the run began.").format(reason)
        else:
            if was_shown:
                try:
                    self._playhead.reopen()
                except (OSError, ValueError) as error:
                    self.failed.emit(str(error), "")
            at = clock(self._playhead.n_frames * FRAME_S)
            text = self.tr("The worker stopped ({0}) at {1}. The session up to then is saved: {2}")
            if not was_shown:
                text = self.tr("The worker stopped ({0}). The session up to then is saved: {2}")
            message = text.format(reason, at, session)
        self.died.emit(message, self._report(message))

    def _report(self, message: str) -> str:
        return crash_report.compose(message, self.control.session, self.control.report)
