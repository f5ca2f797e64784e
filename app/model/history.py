"""Back and forward through what was looked at in a session, as in a browser; undo and redo of settings.

What changes of selection, scope, visible range and stage in quick succession, or while a mouse button is held, is one
step: a drag, a zoom by some notches. During a run, to undo a live change is a change like any other.
"""

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication

from app.model.pace import single_shot
from app.model.pipeline import Pipeline
from app.model.playhead import Playhead
from app.model.runs import Runs
from app.model.time_axis import AxisState
from pipelines.config import Value

LONGEST = 50  # Steps that are remembered
SETTLE_MS = 400  # A place is remembered once nothing has changed for so long


class History(QObject):
    """Remembers the places of the axis; forgets them when another session is opened."""

    changed = Signal()  # Whether there is something before or after may be different now

    def __init__(self, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._playhead, self._axis = playhead, playhead.axis
        self._places: list[AxisState] = [self._axis.place]
        self._at = 0
        self._going = False
        self._settled = single_shot(self, SETTLE_MS, self._settle)
        axis = self._axis
        chosen = axis.selection_changed, axis.scope_changed, axis.stage_changed
        for signal in (axis.visible_changed, axis.following_changed, *chosen):
            signal.connect(self._moved)
        playhead.opened.connect(self._forget)
        playhead.closed.connect(self._forget)

    def back_unavailable_reason(self) -> str | None:
        why = self.tr("No other selection, range or stage was shown before.")
        return None if self._at or self._settled.isActive() else why

    def forward_unavailable_reason(self) -> str | None:
        if self._at + 1 < len(self._places) and not self._settled.isActive():
            return None
        return self.tr("This is the newest selection, range and stage.")

    def back(self) -> None:
        self._go(-1)

    def forward(self) -> None:
        self._go(1)

    def _go(self, step: int) -> None:
        if self._settled.isActive():
            self._remember()
        if not 0 <= self._at + step < len(self._places):
            return
        self._at += step
        self._going = True
        self._axis.go_to(self._places[self._at])
        self._going = False
        self._places[self._at] = self._axis.place  # a run that went on may not show the same again
        self.changed.emit()

    def _moved(self, *_: object) -> None:
        if self._going or self._playhead.session is None or self._axis.place == self._places[self._at]:
            return
        first = not self._settled.isActive()
        self._settled.start()
        if first:
            self.changed.emit()

    def _settle(self) -> None:
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._settled.start()
        else:
            self._remember()

    def _remember(self) -> None:
        self._settled.stop()
        place = self._axis.place
        if place != self._places[self._at]:
            self._places[self._at + 1 :] = [place]
            self._places = self._places[-LONGEST:]
            self._at = len(self._places) - 1
        self.changed.emit()

    def _forget(self, *_: object) -> None:
        self._settled.stop()
        self._places, self._at = [self._axis.place], 0
        self.changed.emit()


_Change = tuple[str, Value, Value]  # Key, value before and value after


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
        why = self.tr("No setting was changed since the run began or the settings were loaded.")
        return self._pipeline.locked or (None if self._done else why)

    def redo_unavailable_reason(self) -> str | None:
        return self._pipeline.locked or (None if self._undone else self.tr("No change of a setting was undone."))

    def undo(self) -> None:
        self._change_back(self._done, self._undone)

    def redo(self) -> None:
        self._change_back(self._undone, self._done)

    def _change_back(self, changes: list[_Change], reverse: list[_Change]) -> None:
        """Take the last change back; what is refused, with a sentence, is forgotten."""
        if changes:
            key, before, after = changes.pop()
            if self._pipeline.set(key, before, by_hand=False):
                reverse.append((key, after, before))
            self._known = self._pipeline.next
            self.changed.emit()

    def _note(self, key: str, before: Value, after: Value) -> None:
        self._done.append((key, before, after))
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
