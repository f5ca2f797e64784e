"""Undo and redo of settings that a person changed. During a run, to undo a live change is a change like any other."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from app.model.pipeline import Pipeline
from app.model.runs import Runs
from pipelines.config import Value


class _Change(NamedTuple):
    key: str
    before: Value
    after: Value


class Undo(QObject):
    """Changes since the last run began, or since other settings were loaded."""

    changed = Signal()

    def __init__(self, pipeline: Pipeline, runs: Runs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline = pipeline
        self._done: list[_Change] = []
        self._undone: list[_Change] = []
        self._known = pipeline.next
        pipeline.edited.connect(self._note)
        pipeline.replaced.connect(self._replaced)
        runs.begun.connect(self._forget)

    def undo_unavailable_reason(self) -> str | None:
        """Why no change can be undone, or None."""
        if self._pipeline.locked or self._done:
            return self._pipeline.locked
        return self.tr("No setting was changed since the run began or the settings were loaded.")

    def redo_unavailable_reason(self) -> str | None:
        """Why no change can be redone, or None."""
        if self._pipeline.locked or self._undone:
            return self._pipeline.locked
        return self.tr("No change of a setting was undone.")

    def undo(self) -> None:
        if self._done:
            change = self._done.pop()
            self._set(change.key, change.before, change, self._undone)

    def redo(self) -> None:
        if self._undone:
            change = self._undone.pop()
            self._set(change.key, change.after, change, self._done)

    def _set(self, key: str, value: Value, change: _Change, then: list[_Change]) -> None:
        """Set a value; what is refused, with a sentence, is forgotten."""
        if self._pipeline.set(key, value, by_hand=False):
            then.append(change)
        self._known = self._pipeline.next
        self.changed.emit()

    def _note(self, key: str, before: Value, after: Value) -> None:
        self._done.append(_Change(key, before, after))
        self._undone.clear()
        self._known = self._pipeline.next
        self.changed.emit()

    def _replaced(self) -> None:
        if self._pipeline.next != self._known:
            self._forget()

    def _forget(self) -> None:
        self._done.clear()
        self._undone.clear()
        self._known = self._pipeline.next
        self.changed.emit()
