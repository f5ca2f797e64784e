"""The table twin of a lab's chart: every value that is drawn, with its place, unit and interval. No Qt."""

from __future__ import annotations

from collections.abc import Iterator

from app.views.labs.ranges import Reach, reaches
from pipelines.labs.chart import Bars, Chart, Gantt, Layer, Mark, Note
from pipelines.labs.texts import figure

HEADERS = ("panel", "series", "at", "value", "interval")

Row = tuple[str, str, str, str, str]


def rows_of(chart: Chart) -> list[Row]:
    """A row for each value of all panels, in the order in which they are drawn."""
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

    def interval(low: tuple[float | None, ...], high: tuple[float | None, ...], i: int) -> str:
        ends = [each[i] if i < len(each) else None for each in (low, high)]
        if ends[0] is None or ends[1] is None:
            return ""
        return f"{value(ends[0])} … {value(ends[1])}"

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
                yield layer.name, x.text(i), value(bar), interval(layer.low, layer.high, i)
    else:
        for i, (at, point) in enumerate(zip(layer.x, layer.y, strict=True)):
            if point is not None:
                yield layer.name, x.text(at), value(point), interval(layer.low, layer.high, i)
