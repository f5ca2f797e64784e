"""The trials of a sweep by time and another objective: the front with its intervals, and the trial that is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent

from app.model.study import Study
from app.model.study_texts import LOOKS, front_chart, places
from app.style.theme import theme
from app.views.labs.layers import ON_POINT, Look
from app.views.labs.panel import Panel

KNOWN: Final = {name: Look(*look) for name, look in LOOKS.items()}
RING: Final = 16.0
"""Pixels across the ring around the trial that is chosen."""


class StudyFront(Panel):
    """The chart of a sweep, in which a click chooses a trial.

    Signals:
        opened: number of the trial, as text, that was clicked twice.
    """

    opened = Signal(str)

    def __init__(self, study: Study) -> None:
        self._study = study
        self._chosen: int | None = None
        self._tips: Mapping[int, str] = {}
        super().__init__(front_chart(study), KNOWN)

    def show_study(self, study: Study, chosen: int | None, tips: Mapping[int, str]) -> None:
        """Show these trials, that which is `chosen` with a ring; `tips` by number."""
        self._study, self._chosen, self._tips = study, chosen, tips
        self.show_chart(front_chart(study), KNOWN)

    def build(self) -> None:
        """The chart, the ring, and what the mouse hits."""
        super().build()
        around = QRectF(-ON_POINT, -ON_POINT, 2 * ON_POINT, 2 * ON_POINT)
        at, ratios = places(self._study)
        for number, x in at.items():
            point = self.place.point(x, ratios[number])
            self.spot(around.translated(point), self._tips.get(number, ""), str(number))
            if number == self._chosen:
                self._ring(point)

    def _ring(self, point: QPointF) -> None:
        none = QColor(Qt.GlobalColor.transparent)
        self.spots([point], [RING], [theme().color("text")], [none], edge=2.0)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        spot = self.spot_at(event.position())
        if spot is not None and spot.name:
            self.opened.emit(spot.name)
