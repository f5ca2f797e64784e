"""Files in and out: what is opened, dropped on the window or to be written, and what is done to those of a session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFile, QObject
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.model import audio_choice
from app.model.audio_choice import TRANSCRIPTS_SUFFIXES
from app.model.bookmarks import sidecar
from app.model.recent import EXPORT_FOLDER, SESSION_SUFFIX, STUDY
from app.style.plain_text import TextQuestion, add_entry, ask_text
from app.window.actions.model import holds_model
from pipelines.audio import formats
from profiler.files.inputs import regular
from profiler.files.outputs import writing
from profiler.files.paths import sessions_dir
from profiler.plain import printable

if TYPE_CHECKING:
    from app.model.processes.command import Command
    from app.window.main_window import MainWindow

PATIENCE_MS = 10_000  # How long the end of the window waits for a file that is being written


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
        return self.take_audio(self.pick_audio())

    def ask_folder(self) -> bool:
        return self.take_audio(self.pick_folder())

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
        return bool(paths) and self._notices.attempt(lambda: self._w.take_audio(audio_choice.chosen(paths)))

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
        else:
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


class SessionFiles(QObject):
    """Changes and writes sessions for the main window `w`. Every failure is one sentence in a notice."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(w)
        self._w, self._playhead, self._notices, self._memory = w, w.playhead, w.notices, w.memory
        self._writing: list[Command] = []

    def delete(self, session: Path) -> None:
        """Move a session to the bin, from which it can be taken back."""
        if self._playhead.path == session:
            self._playhead.close()
        for path in filter(Path.exists, (session, sidecar(session))):
            if not QFile.moveToTrash(str(path)):
                self._notices.error(self.tr("{0} cannot be moved to the bin.").format(path))
                return
        self._memory.forget_session(session)
        self._w.show_welcome()

    def ask_delete(self) -> None:
        if (path := self._playhead.path) is not None:
            answers = {self.tr("Move to the bin"): partial(self.delete, path), self.tr("Keep"): None}
            self._notices.ask(self.tr("Move {0} to the bin?").format(path.name), answers)

    def ask_name(self, session: Path | None = None) -> TextQuestion | None:
        """Ask for another name of a session, the one shown if None."""
        session = session or self._playhead.path
        if session is None:
            return None
        title, label = self.tr("Rename the session"), self.tr("Name of {0}").format(session.name)
        return ask_text(self._w, title, label, session.stem, partial(self.rename, session))

    def rename(self, session: Path, name: str) -> None:
        """Give a session that nobody records into another name in its folder; its bookmarks get it too."""
        from profiler.session.files import own_files, owner_alive  # not before the window has been painted

        name = name.strip().removesuffix(SESSION_SUFFIX)
        file_name = "".join(c for c in printable(name) if c not in "/\\:\0")
        target = session.with_name(f"{file_name}{SESSION_SUFFIX}")
        before, after = ((*own_files(path), sidecar(path)) for path in (session, target))
        taken = next((path for path in after if os.path.lexists(path)), None)
        if name in ("", session.stem):
            return
        if target.stem != name:
            self._notices.error(self.tr("A name of a file has no slashes and no control characters; choose another."))
        elif owner_alive(session):
            self._notices.error(self.tr("{0} is still being recorded; stop the run first.").format(session.name))
        elif taken is not None:
            self._notices.error(self.tr("{0} exists already; choose another name.").format(taken.name))
        else:
            self._move([(old, new) for old, new in zip(before, after, strict=True) if os.path.lexists(old)])

    def _move(self, names: Sequence[tuple[Path, Path]]) -> None:
        """Rename a session, which is the first, and its other files: all or none of them."""
        (session, target), moved = names[0], list[tuple[Path, Path]]()
        try:
            for old, new in names:
                old.rename(new)
                moved.append((old, new))
        except OSError as error:
            for old, new in moved:
                new.rename(old)
            text = self.tr("{0} cannot be renamed: {1}.")
            self._notices.error(text.format(session.name, error.strerror or error))
            return
        self._memory.rename_session(session, target)
        if self._playhead.path == session:
            self._playhead.rename(target)
        self._w.welcome.show_recent(self._memory.sessions())

    def save_copy(self) -> None:
        source = self._playhead.path
        if source is None or self._playhead.live:
            return
        kinds = self.tr("Sessions (*{0})").format(SESSION_SUFFIX)
        name = f"{source.stem}-copy{SESSION_SUFFIX}"
        target = self._w.files.ask_target(self.tr("Save a copy of the session"), name, kinds)
        if target is not None:
            self.copy_to(source, target)

    def copy_to(self, source: Path, target: Path) -> None:
        from profiler.session.files import own_files  # not before the window has been painted

        target = target if target.suffix else target.with_suffix(SESSION_SUFFIX)

        def copy() -> None:
            with writing(target, self.tr("the copy"), own_files(source)) as draft:
                shutil.copyfile(source, draft)
            if sidecar(source).exists():
                with writing(sidecar(target), self.tr("the copy of the bookmarks"), own_files(source)) as draft:
                    shutil.copyfile(sidecar(source), draft)

        if self._notices.attempt(copy):
            self._notices.written(target)

    def export(self, session: Path, option: str, target: Path, command: Sequence[str] | None = None) -> None:
        """Have `asrscope export` write data of a session: spans as text take seconds. Say what came of it."""
        from app.model.processes.command import Command  # not before it is asked for
        from profiler.process import children

        words = command or children.python("-m", "app.cli.main", "export")
        export = Command((*words, str(session.absolute()), f"--{option}={target.absolute()}"), self)
        banner = self._notices.progress(self.tr("Writing {0} …").format(target.name))

        def ended(_printed: bytes, why: str) -> None:
            self._writing.remove(export)
            export.deleteLater()
            self._notices.remove(banner)
            if why:
                self._notices.error(why)
            else:
                self._notices.written(target)

        export.ended.connect(ended)
        self._writing.append(export)
        export.start()

    def finish(self) -> None:
        for export in self._writing:
            export.finish(PATIENCE_MS)
        self._writing.clear()
