"""The folder of an acoustic model: chosen in a dialog or dropped on the window, for the next run; the form names it.

What stands in it is read by a process of its own, so that a large or broken model does not hold up the window.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from app.model.processes.command import Command
from pipelines import config as settings
from profiler.plain import one_line
from profiler.process import children

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

FILES: Final = ("final.mdl", "am/final.mdl", "mdef")  # In the folder of a model: Kaldi, Vosk, CMUSphinx
LONGEST: Final = 400  # Characters of a sentence that is shown
MOST: Final = 4  # Sentences that the form shows; the report of a run has them all


def holds_model(folder: Path) -> bool:
    """Whether the folder is one of an acoustic model, by the names of its files."""
    try:
        return any((folder / name).is_file() for name in FILES)
    except OSError:  # a name that is too long, for one
        return False


class ModelFolder(QObject):
    """Takes a folder for the next run and says what stands in it, and what it lacks."""

    def __init__(self, w: MainWindow) -> None:
        super().__init__(w)
        self._w, self._pipeline, self._notices = w, w.pipeline, w.notices
        self._reading: Command | None = None
        self._about = ("", "")  # A folder, and sentences about what stands in it

    def ask(self) -> None:
        known = str(settings.get(self._pipeline.next, settings.FOLDER)) or str(Path.home())
        title = self.tr("Choose the folder of an acoustic model: Kaldi, Vosk or CMUSphinx")
        folder = QFileDialog.getExistingDirectory(self._w, title, known)
        if folder:
            self.take(Path(folder))

    def take(self, folder: Path) -> None:
        """Use the model in `folder` in the next run, if there may be one."""
        if not holds_model(folder):
            names = ", ".join(FILES)
            self._notices.error(self.tr("{0} holds no acoustic model: none of {1} is there.").format(folder, names))
            return
        if self._pipeline.recorded is not None:
            self._pipeline.edit()
        if not self._pipeline.set(settings.FOLDER, str(folder)):
            return
        self.end()
        self._reading = Command(children.python("-m", "pipelines.models", str(folder)), self)
        self._reading.ended.connect(self._say)
        self._reading.start()
        self._w.show_desk()

    def about(self) -> str:
        """What is known of the folder in the settings shown; empty without one."""
        folder = str(self._pipeline.value(settings.FOLDER))
        read, said = self._about
        return said if folder == read and said else Path(folder).name

    def end(self) -> None:
        if self._reading is not None:
            self._reading.kill()
            self._reading.deleteLater()
            self._reading = None

    def _say(self, printed: bytes, why: str) -> None:
        if why:
            self._notices.error(why)
            return
        lines = [one_line(line, LONGEST) for line in printed.decode("utf-8", "replace").splitlines()]
        self._about = str(settings.get(self._pipeline.next, settings.FOLDER)), "\n".join(lines[:MOST])
        self._w.updates.show_latency()
        self._notices.next_run(
            self.tr("The next run uses {0}.").format(lines[0]), self._w.runs, self._w.when.can_start()
        )
