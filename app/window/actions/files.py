"""What is opened: sessions, studies, audio, what is dropped on the window; and where a file is to be written."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.model import audio_choice
from app.model.audio_choice import TRANSCRIPTS_SUFFIXES
from app.model.recent import EXPORT_FOLDER, SESSION_SUFFIX, STUDY
from app.style.plain_text import add_entry
from app.window.actions.model import holds_model
from pipelines.audio import formats
from profiler.files.inputs import regular
from profiler.files.paths import sessions_dir

if TYPE_CHECKING:
    from app.window.main_window import MainWindow


class Files(QObject):
    """Dialogs of the main window `w` and their effects. Every failure is one sentence in a notice."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(w)
        self._w, self._playhead, self._notices, self._memory = w, w.playhead, w.notices, w.memory

    def open_session(self, path: str | Path) -> bool:
        if os.path.isdir(path):
            return self.open_study(Path(path))
        if not self._notices.attempt(partial(self._playhead.open, path)):
            return False
        if self._playhead.path is not None:
            self._memory.add_session(self._playhead.path)
        self._w.show_desk()
        return True

    def open_study(self, folder: Path) -> bool:
        from app.model.study import read  # not before it is asked for

        readable = self._notices.attempt(partial(read, folder))
        if readable:
            self._w.bench.begin("study", folder.absolute())
        return readable

    def ask_study(self) -> None:
        last = self._memory.text(STUDY)
        start = str(Path(last).parent) if last and os.path.isdir(last) else _sessions_folder()
        title = self.tr("Choose the folder of a study, which a sweep has made")
        folder = QFileDialog.getExistingDirectory(self._w, title, start)
        if folder:
            self.open_study(Path(folder))

    def offer(self, button: QWidget) -> None:
        """Ask below a button what is to be decoded: files, a folder or the bundled voices."""
        menu = QMenu(self._w)
        add_entry(menu, self.tr("Audio files…"), self.ask_audio)
        add_entry(menu, self.tr("A folder…"), self.ask_folder)
        menu.addActions([self._w.actions_[f"file.{name}"] for name in ("record", "bundled", "playlist")])
        menu.popup(button.mapToGlobal(button.rect().bottomLeft()))
        menu.aboutToHide.connect(menu.deleteLater)

    def ask_session(self) -> None:
        kinds = self.tr("Sessions (*{0});;All files (*)").format(SESSION_SUFFIX)
        path, _ = QFileDialog.getOpenFileName(self._w, self.tr("Open a session"), _sessions_folder(), kinds)
        if path:
            self.open_session(path)

    def ask_audio(self) -> bool:
        paths = self.pick_audio()
        return bool(paths) and self.take_audio(paths)

    def ask_folder(self) -> bool:
        paths = self.pick_folder()
        return bool(paths) and self.take_audio(paths)

    def pick_audio(self) -> list[Path]:
        read = [*sorted(formats.SUFFIXES | formats.RAW), *TRANSCRIPTS_SUFFIXES]
        patterns = " ".join(f"*{suffix}" for suffix in read)
        kinds = self.tr("Audio and transcripts ({0});;All files (*)").format(patterns)
        title = self.tr("Choose audio to decode")
        paths, _ = QFileDialog.getOpenFileNames(self._w, title, self._audio_folder(), kinds)
        return [Path(path) for path in paths]

    def pick_folder(self) -> list[Path]:
        title = self.tr("Choose a folder of audio files")
        folder = QFileDialog.getExistingDirectory(self._w, title, self._audio_folder())
        return [Path(folder)] if folder else []

    def _audio_folder(self) -> str:
        audio = self._memory.audio()
        return str(Path(audio[0]).parent) if audio else str(Path.home())

    def take_audio(self, paths: list[Path]) -> bool:
        return self._notices.attempt(lambda: self._w.take_audio(audio_choice.chosen(paths)))

    def drop(self, paths: list[Path]) -> None:
        """Handle what was dropped on the window: a session or study is shown, audio or a model is for the next run."""
        from app.model.study import REPORT  # not before something is dropped

        alone = paths[0] if len(paths) == 1 else None
        sessions = [path for path in paths if path.suffix.lower() == SESSION_SUFFIX]
        if alone is not None and holds_model(alone):
            self._w.model_folder.take(alone)
        elif alone is not None and regular(alone / REPORT):
            self.open_study(alone)
        elif sessions:
            if self.open_session(sessions[0]) and len(paths) > 1:
                self._notices.info(self.tr("Only the first session was opened."))
        elif paths:
            self.take_audio(paths)

    def ask_target(self, title: str, name: str, kinds: str) -> Path | None:
        """Ask for a file to write, called `name` in the folder used last; a suffix is added if none was given."""
        start = str(self._memory.export_folder() / name)
        path, kind = QFileDialog.getSaveFileName(self._w, title, start, kinds)
        if not path:
            return None
        target = Path(path)
        self._memory.remember(EXPORT_FOLDER, str(target.absolute().parent))
        if target.suffix:
            return target
        pattern = kind.rpartition("*")[2].rstrip(") ")
        return target.with_name(target.name + (pattern or Path(name).suffix))


def _sessions_folder() -> str:
    try:
        return str(sessions_dir())
    except OSError:
        return str(Path.home())
