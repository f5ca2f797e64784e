"""Axes of a lab's chart: what they reach over, where a value lies, which ticks they have; its table twin. No Qt."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from app.charts.scale import steps
from pipelines.labs.chart import Axis, Bars, Chart, Gantt, Layer, Line, Mark, Note
from pipelines.labs.figures import PLAIN, figure, format_integer, format_number

HEADROOM = 1.08  # Length of a linear axis relative to its largest value
FOR_FIGURES = 0.06  # Share of the length of an axis that is left above the longest bar, for its figure
LOG_ROOM = 1.35  # A logarithmic axis of values reaches by this factor further at both ends
WHOLE = 1 << 21  # Powers of two below this one are written out
LONGEST = 9  # Most ticks of an axis


@dataclass(frozen=True)
class Reach:
    """Values from `low` to `high` over the length of an axis; with categories from −½ to their number less ½."""

    axis: Axis
    low: float
    high: float
    doubling: bool = False  # Whether its data are powers of two: then so are its ticks

    @property
    def log(self) -> bool:
        return self.axis.log and not self.axis.categories

    def place(self, value: float) -> float:
        """Where a value lies, 0…1 of the length; what is beyond the axis lies on its end."""
        if self.log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def holds(self, value: float) -> bool:
        slack = 1e-9 * (abs(self.high) + abs(self.low))
        return self.low - slack <= value <= self.high + slack

    def ticks(self, at_most: int = LONGEST) -> list[float]:
        """Values to label; the places of the categories where there are any."""
        if self.axis.categories:
            return [float(i) for i in range(len(self.axis.categories))]
        linear = partial(steps, self.low, self.high, binary=self.axis.unit == "B")
        return [value for value in (self._log_ticks if self.log else linear)(at_most) if self.holds(value)]

    def _log_ticks(self, at_most: int) -> list[float]:
        if self.doubling:
            powers = range(math.floor(math.log2(self.low)), math.ceil(math.log2(self.high)) + 1)
            step = max(1, math.ceil(len(powers) / at_most))
            first = math.ceil(math.log2(self.low) - 1e-9)
            return [2.0**p for p in powers if (p - first) % step == 0]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for parts in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            found = [part * 10.0**p for p in range(first, last + 1) for part in parts]
            found = [value for value in found if self.holds(value)]
            if len(found) <= at_most:
                return found
        step = math.ceil((last - first) / at_most)
        return [10.0**p for p in range(first, last + 1) if p % step == 0]

    def text(self, value: float) -> str:
        """A tick's label, with the prefix of a plain unit."""
        if self.axis.categories:
            place = round(value)
            return self.axis.categories[place] if 0 <= place < len(self.axis.categories) else ""
        if self.axis.unit in (*PLAIN, "B"):
            return figure(value, self.axis.unit)
        return format_integer(value) if self.doubling and 1 <= value < WHOLE else format_number(value)

    @property
    def title(self) -> str:
        unit = "" if self.axis.unit in (*PLAIN, "B") else self.axis.unit
        return f"{self.axis.title} ({unit})" if unit else self.axis.title


def reaches(chart: Chart) -> tuple[Reach, Reach]:
    return _reach(chart.x, chart.layers, "x"), _reach(chart.y, chart.layers, "y")


def _reach(axis: Axis, layers: tuple[Layer, ...], which: str) -> Reach:
    if axis.categories:
        return Reach(axis, -0.5, len(axis.categories) - 0.5)
    values = [v for layer in layers for v in _values(layer, which) if math.isfinite(v)]
    barred = which == "y" and any(isinstance(layer, Bars) for layer in layers)
    if barred and (stacked := [x.values for x in layers if isinstance(x, Bars) and x.stacked]):
        values += [0.0, *(sum(v or 0.0 for v in parts) for parts in zip(*stacked, strict=True))]
    if axis.log:
        values = [v for v in values if v > 0] or [1.0, 10.0]
        room = LOG_ROOM if which == "y" else 1.0
        low, high = min(values) / room, max(values) * room
        if barred:
            low /= 2  # the least bar has a length as well, and the longest one room for its figure
            high *= (high / low) ** FOR_FIGURES
        low = low if axis.low is None or axis.low <= 0 else axis.low
        high = high if axis.high is None else axis.high
        doubling = axis.unit == "B" or (which == "x" and _doubling(layers))
        return Reach(axis, low, max(high, 1.001 * low), doubling)
    low, high = min(values, default=0.0), max(values, default=1.0)
    from_zero = which == "y" and low > 0
    low = 0.0 if from_zero else low
    room = HEADROOM - 1 + (FOR_FIGURES if barred else 0.0)
    room = room * (high - low) if which == "y" else 0.0
    high, low = high + room, low - room if low < 0 else low
    low = low if axis.low is None else axis.low
    high = high if axis.high is None else axis.high
    return Reach(axis, low, high if high > low else low + 1.0)


def _doubling(layers: Iterable[Layer]) -> bool:
    places = [x for layer in layers if isinstance(layer, Line) for x in layer.x]
    return len(places) > 2 and all(x > 0 and math.log2(x).is_integer() for x in places)


def _values(layer: Layer, which: str) -> Iterator[float]:
    if isinstance(layer, Note):
        yield layer.x if which == "x" else layer.y
    elif isinstance(layer, Mark):
        if layer.on == which:
            yield layer.value
            if layer.until is not None:
                yield layer.until
    elif isinstance(layer, Gantt):
        if which == "x":
            yield from (end for b in layer.blocks for end in (b.begin, b.end))
    elif which == "x":
        yield from layer.x if isinstance(layer, Line) else ()
    elif isinstance(layer, Line) or not layer.stacked:
        for values in (layer.y if isinstance(layer, Line) else layer.values, layer.low, layer.high):
            yield from (v for v in values if v is not None)


HEADERS = ("panel", "series", "at", "value", "interval")

Row = tuple[str, str, str, str, str]


def rows_of(chart: Chart) -> list[Row]:
    found = []
    for number, panel in enumerate((chart, *chart.beside), start=1):
        x, y = reaches(panel)
        name = panel.title or (y.axis.title if chart.beside else "")
        for layer in panel.layers:
            for series, at, value, interval in values_of(layer, x, y):
                found.append((name or str(number), series, at, value, interval))
    return found


def values_of(layer: Layer, x: Reach, y: Reach) -> Iterator[tuple[str, str, str, str]]:
    """Series, place, value and interval of each value of a layer, in the order in which they are drawn."""

    def value(v: float) -> str:
        return figure(v, y.axis.unit)

    def interval(of: Bars | Line, i: int) -> str:
        ends = [each[i] for each in (of.low, of.high) if i < len(each)]
        return " … ".join(value(end) for end in ends if end is not None) if None not in ends else ""

    if isinstance(layer, Mark):
        on = y if layer.on == "y" else x
        until = "" if layer.until is None else f" … {figure(layer.until, on.axis.unit)}"
        yield layer.text, on.axis.title, f"{figure(layer.value, on.axis.unit)}{until}", ""
    elif isinstance(layer, Note):
        yield layer.text, x.text(layer.x), value(layer.y), ""
    elif isinstance(layer, Gantt):
        for block in layer.blocks:
            who = y.text(block.row) if y.axis.categories else str(block.row)
            stretch = figure(block.begin, x.axis.unit), figure(block.end, x.axis.unit)
            yield " ".join(filter(None, (block.kind, block.text))), who, " … ".join(stretch), ""
    elif isinstance(layer, Bars):
        for i, bar in enumerate(layer.values):
            if bar is not None:
                yield layer.name, x.text(i), value(bar), interval(layer, i)
    else:
        for i, (at, point) in enumerate(zip(layer.x, layer.y, strict=True)):
            if point is not None:
                yield layer.name, x.text(at), value(point), interval(layer, i)
