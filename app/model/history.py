"""Back and forward through the selections, scopes, visible ranges and chosen stages of a session, as in a browser.

What changes in quick succession, or while a mouse button is held, is one step: a drag, a zoom by some notches.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication

from app.model.pace import single_shot
from app.model.playhead import Playhead
from app.model.time_axis import Place

LONGEST = 50  # Steps that are remembered

SETTLE_MS = 400  # A place is remembered once nothing has changed for so long


class History(QObject):
    """Remembers the places of the axis; forgets them when another session is opened."""

    changed = Signal()  # Whether there is something before or after may be different now

    def __init__(self, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._playhead, self._axis = playhead, playhead.axis
        self._places: list[Place] = [self._axis.place]
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
        """Why there is no way back, or None."""
        if self._at or self._settled.isActive():
            return None
        return self.tr("No other selection, range or stage was shown before.")

    def forward_unavailable_reason(self) -> str | None:
        """Why there is no way forward, or None."""
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
