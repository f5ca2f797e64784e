"""What the next run decodes, on which machine, and whether it is the demo. The settings are those of the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.model import audio_choice
from app.model.audio_choice import AudioChoice
from app.model.pipeline import Pipeline
from app.model.recent import Memory
from pipelines import config as settings
from pipelines.config import Value, presets

HOSTS: Final = "hosts"
"""Key of the names of other machines, the last one first."""
MOST_HOSTS: Final = 8

DEMO: Final = presets.DEMO
"""Preset of the demo: a workload on which the purpose of the program can be seen."""
COURSE_OF_DEMO: Final[Mapping[str, Value]] = {"pace": 1.0, "loop": True, "repeat_on_change": True}
"""For every preset that is tried: as fast as it can, it would be over before a switch could be flipped."""


@dataclass(frozen=True)
class Elsewhere:
    """Another machine, as ssh knows it, and which of its files to decode: none for the bundled voices."""

    host: str
    audio: tuple[str, ...] = ()
    transcripts: str | None = None

    @property
    def name(self) -> str:
        return PurePath(self.audio[0]).stem if self.audio else ""


class NextRun(QObject):
    """The audio that a person chose, or the demo's; `elsewhere`: another machine, with its own audio."""

    changed = Signal()

    def __init__(self, pipeline: Pipeline, memory: Memory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline, self._memory = pipeline, memory
        self.audio: AudioChoice | None = self._remembered() or audio_choice.bundled()
        self.elsewhere: Elsewhere | None = None
        self.is_demo = False
        self._leaves_demo = False

    def _remembered(self) -> AudioChoice | None:
        paths = self._memory.audio()
        try:
            return audio_choice.chosen(paths) if paths else None
        except ValueError:
            return None

    def choose(self, audio: AudioChoice) -> bool:
        """Decode ``audio`` from the next run on; returns whether loop and pace were the demo's and are set back."""
        self.audio = audio
        self._memory.remember("audio", [] if audio.bundled else list(audio.paths))
        now = self._pipeline.next
        like_demo = all(settings.get(now, key) == value for key, value in COURSE_OF_DEMO.items())
        self._leaves_demo = like_demo and not audio.bundled
        self.changed.emit()
        return like_demo and not audio.bundled

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

    def be_own(self, elsewhere: Elsewhere | None = None) -> None:
        """The settings as they are, here or on another machine."""
        if elsewhere is not None:
            hosts = [elsewhere.host, *(name for name in self.hosts() if name != elsewhere.host)]
            self._memory.remember(HOSTS, hosts[:MOST_HOSTS])
        self.is_demo, self.elsewhere = False, elsewhere

    def hosts(self) -> list[str]:
        return self._memory.texts(HOSTS)
