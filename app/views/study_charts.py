"""The charts of a sweep in which a click chooses a trial: its front, and its parallel coordinates (A. Inselberg, 1985).

The latter have an upright axis for each setting that was varied and for each objective, and a line for each trial; the
front lies over the dominated trials, the trial that is chosen over both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPen

from app.charts.scale import steps
from app.charts.still import LINE, Spot, StillPlot, small_metrics
from app.model.study import OBJECTIVES, TIME, Study, Trial
from app.model.study_texts import LOOKS, front_chart, places
from app.style.theme import theme
from app.views.labs.layers import AROUND_POINT, Look
from app.views.labs.panel import Panel
from pipelines.config import Value, value_text

KNOWN: Final = {name: Look(*look) for name, look in LOOKS.items()}
RING: Final = 16.0  # Pixels across the ring around the trial that is chosen


class StudyFront(Panel):
    """The chart of a sweep, in which a click chooses a trial."""

    opened = Signal(str)  # Number of the trial, as text, that was clicked twice

    def __init__(self, study: Study) -> None:
        self._study = study
        self._chosen: int | None = None
        self._tips: Mapping[int, str] = {}
        super().__init__(front_chart(study), KNOWN)

    def show_study(self, study: Study, chosen: int | None, tips: Mapping[int, str]) -> None:
        self._study, self._chosen, self._tips = study, chosen, tips
        self.show_chart(front_chart(study), KNOWN)

    def build(self) -> None:
        super().build()
        at, ratios = places(self._study)
        for number, x in at.items():
            point = self.place.point(x, ratios[number])
            self.canvas.spots.append(Spot(AROUND_POINT.translated(point), self._tips.get(number, ""), str(number)))
            if number == self._chosen:
                none = QColor(Qt.GlobalColor.transparent)
                self.canvas.signs([point], [RING], [theme().color("text")], [none], edge=2.0)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        spot = self.spot_at(event.position())
        if spot is not None and spot.name:
            self.opened.emit(spot.name)


ASIDE: Final = 56.0  # Pixels left of the first axis and right of the last: half of a title
TICK: Final = 26.0  # Pixels between two labels of an axis, at least
MOST_VALUES: Final = 8  # An axis has no more labels; one of more settings has ticks in place of a label for each

PARTS: Final = 6
MANY: Final = 500  # The mouse hits a line at the ends of this many parts between two axes; with many lines, at the axes

PALE: Final = 170
PALER: Final = 60  # Alpha of the lines of dominated trials; of many


@dataclass(frozen=True)
class Column:
    """An axis: what stands below it, its labels by place (0…1 from the bottom), and the place of each trial on it."""

    title: str
    labels: Sequence[tuple[float, str]]
    places: Mapping[int, float]


def columns(study: Study, tallest: int = MOST_VALUES) -> list[Column]:
    """An axis for each setting, then for each objective that trials have; `tallest`: most labels of one."""
    found = []
    for key in study.keys:
        chosen = {trial.id: trial.settings[key] for trial in study.trials if key in trial.settings}
        found.append(_column(key.rpartition(".")[2], chosen, tallest))
    for name in dict.fromkeys((*study.objectives, TIME, "wer")):
        figures = {trial.id: study.figure(trial, name) for trial in study.trials}
        known = {number: figure for number, figure in figures.items() if figure is not None}
        unit = OBJECTIVES[name].unit
        if known:
            title = f"{study.title(name)} ({unit})" if unit else study.title(name)
            found.append(_numbers(title, known, tallest, each=False))
    return found


def _column(title: str, chosen: Mapping[int, Value], tallest: int) -> Column:
    numbers = {n: float(v) for n, v in chosen.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    if len(numbers) == len(chosen):
        return _numbers(title, numbers, tallest, each=True)
    names = list(dict.fromkeys(map(value_text, chosen.values())))
    at = {name: (place + 0.5) / len(names) for place, name in enumerate(names)}
    labels = [(at[name], name) for name in names[:: -(-len(names) // max(tallest, 1))]]
    return Column(title, labels, {number: at[value_text(value)] for number, value in chosen.items()})


def _numbers(title: str, values: Mapping[int, float], tallest: int, each: bool) -> Column:
    """An axis of numbers; `each`: with a label for each value, if these are few."""
    low, high = min(values.values()), max(values.values())

    def place(value: float) -> float:
        return (value - low) / (high - low) if high > low else 0.5

    distinct = sorted(set(values.values()))
    apart = min((b - a for a, b in pairwise(map(place, distinct))), default=1.0)
    if not (each and apart * tallest >= 1.0 and len(distinct) <= MOST_VALUES):
        inner = [v for v in steps(low, high, max(tallest - 1, 2)) if low <= v <= high] if high > low else []
        distinct = inner if len(inner) > 1 else sorted({low, high})
    labels = [(place(value), f"{value:.4g}") for value in distinct]
    return Column(title, labels, {number: place(value) for number, value in values.items()})


class ParallelCoordinates(StillPlot):
    """A line for each trial; a click on one chooses it."""

    def __init__(self, study: Study) -> None:
        super().__init__()
        self.show_study(study, None, {})

    def show_study(self, study: Study, chosen: int | None, tips: Mapping[int, str]) -> None:
        self._study, self._chosen, self._tips = study, chosen, tips
        self.rebuild()

    def build(self) -> None:
        area = QRectF(self.rect()).adjusted(ASIDE, LINE, -ASIDE, -LINE - 10)
        shown = columns(self._study, min(int(area.height() / TICK) + 1, MOST_VALUES))
        if len(shown) < 2 or area.width() < 40 or area.height() < 20:
            return
        self.canvas.frame(area, [], [])
        apart = area.width() / (len(shown) - 1)
        lefts = [area.left() + number * apart for number in range(len(shown))]
        pen = QPen(theme().color("muted"), 1)
        for column, x in zip(shown, lefts, strict=True):
            self.canvas.curve([QPointF(x, area.top()), QPointF(x, area.bottom())], pen, pairs=True)
            title = small_metrics().elidedText(column.title, Qt.TextElideMode.ElideRight, apart - 4)
            self.canvas.text(title, QRectF(x - apart / 2, area.bottom() + 8, apart, LINE), token="text")
        trials = [trial for trial in self._study.trials if all(trial.id in column.places for column in shown)]
        axes = [*zip(shown, lefts, strict=True)]
        lines = {
            trial.id: [QPointF(x, area.bottom() - axis.places[trial.id] * area.height()) for axis, x in axes]
            for trial in trials
        }
        self._lines(trials, lines)
        for column, x in zip(shown, lefts, strict=True):
            for place, text in column.labels:
                y = area.bottom() - place * area.height()
                wide = min(small_metrics().horizontalAdvance(text), apart - 12) + 4
                shorter = small_metrics().elidedText(text, Qt.TextElideMode.ElideMiddle, wide)
                self.canvas.text(shorter, QRectF(x + 4, y - LINE / 2, wide, LINE), ground=255)

    def _lines(self, trials: Sequence[Trial], lines: Mapping[int, Sequence[QPointF]]) -> None:
        """The dominated trials, pale, many of them as one item; then the front, and the trial that is chosen."""
        tokens = theme()
        dominated = [lines[trial.id] for trial in trials if trial.id not in self._study.points]
        pale = tokens.color("unexplained", PALE if len(dominated) <= MANY else PALER)
        if len(dominated) <= MANY:
            for line in dominated:
                self.canvas.curve(line, QPen(pale, 1))
        else:
            ends = [end for line in dominated for ends in pairwise(line) for end in ends]
            self.canvas.curve(ends, QPen(pale, 1), pairs=True)
        for number in (trial.id for trial in trials if trial.id in self._study.points):
            self.canvas.curve(lines[number], QPen(tokens.color("compute"), 1.8))
        if self._chosen is not None and self._chosen in lines:
            self.canvas.curve(lines[self._chosen], QPen(tokens.color("text"), 2.4))
        parts = PARTS if len(lines) <= MANY else 1
        for number in sorted(lines, key=lambda number: number in self._study.points):
            for a, b in pairwise(lines[number]):
                for at in (QLineF(a, b).pointAt(part / parts) for part in range(parts + 1)):
                    self.canvas.spots.append(Spot(AROUND_POINT.translated(at), self._tips.get(number, ""), str(number)))
