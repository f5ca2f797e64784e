"""The trials of a sweep by time and another objective: the front with its intervals, and the trial that is chosen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent

from app.model.study import OBJECTIVES, TIME, Study, Trial
from app.style.theme import theme
from app.views.labs.layers import ON_POINT
from app.views.labs.panel import Panel
from app.views.labs.series import Look
from pipelines.config import Value, value_text
from pipelines.labs.chart import Axis, Chart, Layer, Line, Mark, Note

NOTE: Final = 0.09
"""Share of the range of x that a note of settings is wide; where points are closer, they have the trial's number."""

ROOM: Final = 0.06
"""Share of the range of x that is free on each side."""

TRIED, FRONT = "tried", "front"
LOOKS: Final = {TRIED: Look("unexplained", 4), FRONT: Look("compute", 0)}

RING: Final = 16.0
"""Pixels across the ring around the trial that is chosen."""


def other_objective(study: Study) -> str | None:
    """The first objective other than time; None without one."""
    return next((name for name in study.objectives if name != TIME), None)


def front_chart(study: Study) -> Chart:
    """The chart of a sweep: x is the first objective other than time, or else the number of the trial."""
    other = other_objective(study)
    x = Axis("trial") if other is None else Axis(study.title(other), OBJECTIVES[other].unit)
    at, ratios = places(study)
    done = sorted((study.by_id[number] for number in at), key=lambda trial: at[trial.id])
    on_front = [trial for trial in done if trial.id in study.points]
    rest = [trial for trial in done if trial.id not in study.points]
    layers: list[Layer] = [Mark("reference", 1.0)]
    if rest:
        layers.append(_line(TRIED, rest, at, ratios))
    if on_front:
        ends = [study.ends(trial) or (ratios[trial.id], ratios[trial.id]) for trial in on_front]
        low, high = zip(*ends, strict=True)
        if len(study.objectives) <= 2:  # of three it is no line
            layers.append(replace(_line(FRONT, on_front, at, ratios), joined=True, steps=True))
        layers.append(replace(_line(FRONT, on_front, at, ratios), low=low, high=high))
        span = at[done[-1].id] - at[done[0].id]
        gaps = (at[b.id] - at[a.id] for a, b in itertools.pairwise(on_front))
        apart = min(gaps, default=span or 1.0)
        for trial, end in zip(on_front, low, strict=True):
            text = _short(trial.settings) if apart > NOTE * span else f"#{trial.id}"
            layers.append(Note(text, at[trial.id], end))
    if done:  # no point at the edge
        low_end, high_end = at[done[0].id], at[done[-1].id]
        room = ROOM * (high_end - low_end) or 1.0
        x = replace(x, low=low_end - room, high=high_end + room)
    return Chart(x, Axis("time / reference, 95 % intervals"), tuple(layers), "Time of the settings tried")


def places(study: Study) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """x and the ratio to the reference of each trial that has both, by its number."""
    other = other_objective(study)
    at, ratios = dict[int, float](), dict[int, float]()
    for trial in study.trials:
        x = float(trial.id) if other is None else study.figure(trial, other)
        ratio = study.figure(trial, TIME)
        if x is not None and ratio is not None:
            at[trial.id], ratios[trial.id] = x, ratio
    return at, ratios


def _line(name: str, trials: list[Trial], at: Mapping[int, float], ratios: Mapping[int, float]) -> Line:
    return Line(name, tuple(at[one.id] for one in trials), tuple(ratios[one.id] for one in trials), joined=False)


def _short(chosen: Mapping[str, Value]) -> str:
    return "\n".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in chosen.items())


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
        super().__init__(front_chart(study), LOOKS)

    def show_study(self, study: Study, chosen: int | None, tips: Mapping[int, str]) -> None:
        """Show these trials, that which is `chosen` with a ring; `tips` by number."""
        self._study, self._chosen, self._tips = study, chosen, tips
        self.show_chart(front_chart(study), LOOKS)

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
