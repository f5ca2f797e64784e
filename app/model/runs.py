"""Starting runs: what the next one decodes, and where, and whether it is the demo; the settings are the pipeline's."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, Signal

import assets
from app.model import audio_choice
from app.model.audio_choice import AudioChoice
from app.model.current_run import CurrentRun
from app.model.pipeline import Pipeline, modified
from app.model.playhead import Playhead
from app.model.processes import leaving
from app.model.processes.run_control import ON_HOST, RunRequest
from app.model.recent import Memory
from pipelines import config as settings
from pipelines.config import Value, presets
from profiler.files.paths import new_session_path

HOSTS: Final = "hosts"  # Key of the names of other machines, the last one first
MOST_HOSTS: Final = 8
DEMO: Final = presets.DEMO  # Preset of the demo: a workload on which the purpose of the program can be seen
COURSE_OF_DEMO: Final[Mapping[str, Value]] = {"pace": 1.0, "loop": True, "repeat_on_change": True}  # It lasts


class Elsewhere(NamedTuple):
    """Another machine, as ssh knows it, and which of its files to decode: none for its bundled voices."""

    host: str
    audio: AudioChoice = AudioChoice((), None, bundled=True)


class NextRun(QObject):
    """The audio that a person chose, or the demo's; `elsewhere`: another machine, with its own audio."""

    changed = Signal()

    def __init__(self, pipeline: Pipeline, memory: Memory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline, self._memory = pipeline, memory
        self.audio: AudioChoice | None = audio_choice.bundled()
        if paths := memory.audio():
            with suppress(ValueError):
                self.audio = audio_choice.chosen(paths)
        self.elsewhere: Elsewhere | None = None
        self.is_demo = False
        self._leaves_demo = False

    def choose(self, audio: AudioChoice) -> bool:
        """Decode ``audio`` from the next run on; returns whether loop and pace were the demo's and are set back."""
        self.audio = audio
        self._memory.remember("audio", [] if audio.bundled else list(audio.paths))
        config = self._pipeline.next
        like_demo = all(settings.get(config, key) == value for key, value in COURSE_OF_DEMO.items())
        leaves_demo = self._leaves_demo = like_demo and not audio.bundled
        self.changed.emit()
        return leaves_demo

    def leave_demo(self) -> None:
        """Set loop and pace back where audio was chosen in place of the demo's; not while a run is under way."""
        if self._leaves_demo:
            self._leaves_demo = False
            if self._pipeline.locked:
                self._pipeline.edit()
            for key in COURSE_OF_DEMO:
                self._pipeline.set(key, settings.option(key).default, by_hand=False)

    def be_demo(self, preset: str, bundled: AudioChoice) -> None:
        """The bundled voices round and round, at a pace that can be watched."""
        self._leaves_demo = False
        self._pipeline.edit()
        self._pipeline.choose(preset)
        self.choose(bundled)
        for key, value in COURSE_OF_DEMO.items():
            self._pipeline.set(key, value, by_hand=False)
        self.is_demo, self.elsewhere = True, None

    def be_own(self, elsewhere: Elsewhere | None) -> None:
        """The settings as they are, here or on another machine."""
        if elsewhere is not None:
            hosts = [elsewhere.host, *(name for name in self.hosts() if name != elsewhere.host)]
            self._memory.remember(HOSTS, hosts[:MOST_HOSTS])
        self.is_demo, self.elsewhere = False, elsewhere

    def hosts(self) -> list[str]:
        return self._memory.texts(HOSTS)


RECORDED_DEMO: Final = assets.path("samples") / "demo.asrs"  # Shown while the demo is set up


class Runs(QObject):
    """Starts and stops; `next`: what is decoded next, `current`: the run under way."""

    changed = Signal()
    begun = Signal()
    asked = Signal(str, object)  # A question, and what each answer does
    question_dropped = Signal()

    def __init__(
        self, pipeline: Pipeline, playhead: Playhead, memory: Memory, worker: Sequence[str], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._pipeline, self._worker = pipeline, tuple(worker)
        self._last_audio: AudioChoice | None = None
        self._after: Callable[[], None] | None = None  # What begins when the run under way is over
        self.other_run: Callable[[], str | None] = lambda: None  # Why none may begin: a lab is under way
        self.next = NextRun(pipeline, memory, self)
        self.current = current = CurrentRun(pipeline, playhead, memory, worker, self)
        self.control = current.control
        current.changed.connect(self.changed)
        current.ended.connect(self.question_dropped)
        current.ended.connect(self.next.leave_demo)
        current.finished.connect(self._on_finished)
        for fault in (current.control.failed, current.control.died):
            fault.connect(self._forget_after)
        self.next.changed.connect(self._on_chosen)

    def unavailable_reason(self) -> str | None:
        return self.other_run() or leaving.unavailable_reason()

    @property
    def audio_waits(self) -> bool:
        return self.control.busy and self.next.audio != self._last_audio

    def start(self, *, elsewhere: Elsewhere | None = None) -> None:
        self.next.be_own(elsewhere)
        self._start()

    def demo(self, preset: str = DEMO) -> None:
        bundled = audio_choice.bundled()
        if bundled is not None and self._may_start():
            self.next.be_demo(preset, bundled)
            self._start()

    def restart(self) -> None:
        if self._last_audio is not None:
            self.next.audio = self._last_audio
        self._start()

    def stop(self) -> None:
        self.control.stop()

    def _may_start(self) -> bool:
        """Whether nothing else runs; says what else measures."""
        if self.control.busy:
            return False
        why = self.unavailable_reason()
        if why is not None:
            self.current.remarked.emit(why)
        return why is None

    def _start(self) -> None:
        elsewhere = self.next.elsewhere
        audio = self.next.audio if elsewhere is None else elsewhere.audio
        if audio is None or not self._may_start():
            return
        config, name = self._pipeline.next, self._pipeline.preset.name
        try:
            # Of one's own audio the name says more than that of the preset, which is seen beside it.
            changed = modified(config, self._pipeline.preset.config)
            out = new_session_path(audio.name or (f"{name}-modified" if changed else name))
        except OSError as error:
            text = self.tr("Sessions cannot be written: {0}.")
            self.current.failed.emit(text.format(error.strerror or error), "")
            return
        self._last_audio = self.next.audio
        self.begun.emit()
        self.current.start(
            self._worker if elsewhere is None else (*ON_HOST, elsewhere.host),
            config,
            RunRequest(
                config=settings.to_dict(config),
                preset=name,
                audio=audio.paths,
                transcripts=audio.transcripts,
                chosen=not audio.found,
                out=str(out),
            ),
            RECORDED_DEMO if self.next.is_demo and name == DEMO else None,
        )

    def choose_preset(self, name: str, *, demo: bool = False) -> None:
        """Take a preset, or run the demo with it; during a run, ask whether it begins now or waits for the next one."""
        busy = self.control.busy
        demo = demo or (busy and self.next.is_demo)

        def take() -> None:
            if demo:
                self.demo(name)
                return
            self._pipeline.choose(name)
            if busy:
                self.start()

        if not busy:
            take()
            return
        text = self.tr("Stop this run and start “{0}”, or use it for the next run?")
        answers = {
            self.tr("Finish this run and start"): partial(self.finish_then, take),
            self.tr("For the next run"): partial(self._pipeline.choose, name),
            self.tr("Cancel"): None,
        }
        self.asked.emit(text.format(self.tr(presets.load(name).title)), answers)

    def finish_then(self, start: Callable[[], None]) -> None:
        if not self.control.busy:
            start()
            return
        self._after = start
        self.stop()

    def _forget_after(self, *_: object) -> None:
        self._after = None

    def _on_chosen(self) -> None:
        if not self.control.busy:
            self.next.leave_demo()
        self.changed.emit()

    def _on_finished(self) -> None:
        after, self._after = self._after, None
        if after is not None:
            after()
