"""What a lab has to draw, in layers. It never draws: `app` does, with the program's own charts and themes."""

from __future__ import annotations

from typing import Literal

import msgspec


class Axis(msgspec.Struct, frozen=True):
    """One axis: what, in which unit, on which scale.

    `categories`: the names of places 0, 1, … for bars and rows. `unit` as a person writes it ("GB/s", "ns", "B");
    ticks get its prefixes where it is a plain one. `low`, `high`: the range, where the data should not decide.
    """

    title: str
    unit: str = ""
    log: bool = False
    categories: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


Values = tuple[float | None, ...]  # None: unavailable, left out of the drawing


class Bars(msgspec.Struct, frozen=True, tag=True):
    """One series of bars over the categories of x. `low`, `high`: the intervals.

    Several series stand side by side; those that are `stacked` stand on each other, the first at the ground.
    """

    name: str
    values: Values
    low: Values = ()
    high: Values = ()
    stacked: bool = False


class Line(msgspec.Struct, frozen=True, tag=True):
    """Points in order of x, joined unless `joined` is false. `low`, `high`: the intervals; `dashed`: modelled.

    `steps`: it jumps at each x and holds until the next, as distributions and histograms do.
    """

    name: str
    x: tuple[float, ...]
    y: Values
    low: Values = ()
    high: Values = ()
    dashed: bool = False
    joined: bool = True
    steps: bool = False


class Block(msgspec.Struct, frozen=True):
    """A stretch of one row of a Gantt chart, from `begin` to `end` on x; `kind` gives its colour, `text` is in it."""

    row: int
    begin: float
    end: float
    kind: str
    text: str = ""


class Gantt(msgspec.Struct, frozen=True, tag=True):
    """Work over time: rows are the categories of y, from the top."""

    blocks: tuple[Block, ...]


class Mark(msgspec.Struct, frozen=True, tag=True):
    """A level (`on` y), a place (`on` x) or a band `until` another, that data is held against."""

    text: str
    value: float
    on: Literal["x", "y"] = "y"
    until: float | None = None


class Note(msgspec.Struct, frozen=True, tag=True):
    """A text next to the place that it describes."""

    text: str
    x: float
    y: float


Layer = Bars | Line | Gantt | Mark | Note


class Chart(msgspec.Struct, frozen=True):
    """What to draw. The same name has the same colour in all panels.

    `title` and `subtitle` of the whole picture are the claim and the verdict's sentence, added by the renderer;
    each further panel may have a title of its own.
    """

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    title: str = ""
    beside: tuple[Chart, ...] = ()
