"""The Lab page: gallery and page of one lab, over the runs of labs (`app.model.lab_runs`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.model.lab_runs import LABS, LabRuns, Past, last_of, sessions
from app.window.lab.detail import LabDetail
from app.window.lab.gallery import Gallery
from pipelines import labs


class LabPage(QStackedWidget):
    """Shows all labs or one. `busy`: whether a run that is no lab's is under way."""

    open_session = Signal(str)
    changed = Signal()
    """A lab has begun or ended."""

    def __init__(self, busy: Callable[[], bool], command: Sequence[str] = LABS, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known = labs.every()
        self.runs = LabRuns(busy, command, self)
        self.gallery = Gallery(self._known)
        self.detail: LabDetail | None = None
        self._past: dict[str, Past | None] = {}
        self._files: dict[str, list[Path]] = {}
        self._to_read: list[str] = []
        self._reading = QTimer(self)
        self._reading.setInterval(0)
        self._reading.timeout.connect(self._read_next)
        self.addWidget(self.gallery)
        self.gallery.chosen.connect(self.show_lab)
        self.runs.changed.connect(self._on_changed)
        self.runs.progress.connect(self._on_progress)
        self.runs.ended.connect(self._on_ended)
        self.runs.failed.connect(self._on_failed)

    # -- what is shown --------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Look for runs that came since, one lab at a time."""
        super().showEvent(event)
        files = sessions()
        self._to_read = [n for n in self._known if files.get(n) != self._files.get(n)]
        self._files = files
        if self._to_read:
            self._reading.start()
        self._on_changed()

    def _read_next(self) -> None:
        if not self._to_read:
            self._reading.stop()
            return
        self._read(self._to_read.pop(0))

    def _read(self, name: str) -> None:
        past = self._past[name] = last_of(self._files.get(name, ()), name)
        self.gallery.show_past(name, past)
        if self.detail is not None and self.detail.name == name:
            self.detail.show_past(past)

    def show_lab(self, name: str) -> None:
        """Show one lab."""
        if self.detail is None or self.detail.name != name:
            if self.detail is not None:
                self.removeWidget(self.detail)
                self.detail.deleteLater()
            self.detail = detail = LabDetail(name, self._known[name], self.runs.unavailable_reason)
            detail.back.connect(self.show_gallery)
            detail.run_asked.connect(self.runs.start)
            detail.stop_asked.connect(self.runs.stop)
            detail.open_session.connect(self.open_session)
            detail.show_past(self._past.get(name))
            self.addWidget(detail)
        self._on_changed()
        self.setCurrentWidget(self.detail)
        self.detail.run.setFocus(Qt.FocusReason.TabFocusReason)

    def show_gallery(self) -> None:
        """Show all labs; the one that was looked at has the focus."""
        self.setCurrentWidget(self.gallery)
        if self.detail is not None:
            tile = self.gallery.tiles[self.detail.name]
            tile.setFocus(Qt.FocusReason.TabFocusReason)
            self.gallery.ensureWidgetVisible(tile)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc goes back to the gallery."""
        if event.key() == Qt.Key.Key_Escape and self.currentWidget() is not self.gallery:
            self.show_gallery()
            event.accept()
            return
        super().keyPressEvent(event)

    # -- runs -----------------------------------------------------------------------------------

    def _on_changed(self) -> None:
        self._on_progress("", None)
        self.changed.emit()

    def _on_progress(self, what: str, share: float | None) -> None:
        running = self.runs.running
        self.gallery.show_running(running, share)
        if self.detail is not None:
            self.detail.show_state(running, share, what)

    def _on_ended(self, name: str) -> None:
        self._files = sessions()
        self._read(name)

    def _on_failed(self, sentence: str) -> None:
        if self.detail is not None:
            self.detail.show_problem(sentence)

    def shutdown(self) -> None:
        """End what is under way because the window closes."""
        self._reading.stop()
        self.runs.control.shutdown()
