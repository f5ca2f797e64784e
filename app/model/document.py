"""What a verb reports, as data: sentences, tables and charts. No Qt.

A verb builds its document once, of its JSON object; the terminal (`app.cli._output`), Markdown (`app.export.markdown`)
and the window (`app.window.tasks.page`, which reads it from the command it runs) each have one renderer.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from pipelines.labs.chart import Chart

_NUMBER: Final = re.compile(r"[-+<(]?[\d.]+([ %…×].*)?\*?|–|")


class Section(msgspec.Struct, frozen=True, tag=True):
    """What follows belongs together: a tab of the window, a heading in Markdown."""

    title: str


class Notes(msgspec.Struct, frozen=True, tag=True):
    """What speaks against a result, or was left out of it."""

    sentences: Sequence[str]


class Table(msgspec.Struct, frozen=True, tag=True):
    """Rows of cells. `sentences`: columns of long texts, below the row in a terminal; `aside`: for the window alone."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    sentences: Sequence[int] = ()
    aside: bool = False

    @property
    def numbers(self) -> frozenset[int]:
        """The columns, but the first, that are aligned on the right: of numbers alone, or of nothing known."""
        columns = [[cell for cell in cells if isinstance(cell, str)] for cells in zip(*self.rows, strict=True)]
        return frozenset(place for place, cells in enumerate(columns) if place and all(map(_NUMBER.fullmatch, cells)))


class Drawing(msgspec.Struct, frozen=True, tag=True):
    """A chart, and its `text` in words; `looks`: category of colour, and number of the sign, of unusual series."""

    title: str
    chart: Chart
    text: str = ""
    looks: dict[str, tuple[str, int]] = {}


class RatioRow(NamedTuple):
    """A ratio B / A with its 95 % interval (None: unknown), verdict, and prediction; `text` in place of the verdict."""

    name: str
    ratio: float
    ends: tuple[float, float] | None
    verdict: str
    predicted: float | None = None
    text: str = ""


class Ratios(msgspec.Struct, frozen=True, tag=True):
    """Ratios with their intervals, as a chart. `text`: what it shows, in words."""

    title: str
    rows: Sequence[RatioRow]
    text: str = ""


Part = str | Section | Notes | Table | Drawing | Ratios


class Document(msgspec.Struct, frozen=True):
    """A report: what it is of, or its outcome, in one line, and what follows."""

    summary: str
    parts: Sequence[Part]


def shown_as_text(part: Part) -> bool:
    """Whether a terminal and Markdown show a part: no charts, nothing that is aside or empty."""
    if isinstance(part, Table):
        return bool(part.rows) and not part.aside
    return not isinstance(part, Drawing | Ratios) and not (isinstance(part, Notes) and not part.sentences)


def number(value: float | None, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


def interval(ends: Sequence[float] | None, form: str = ".3f") -> str:
    return "–" if ends is None else f"{ends[0]:{form}} – {ends[1]:{form}}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def joined(*parts: str | None) -> str:
    """Those of the parts that are known: a verdict and its evidence."""
    return " · ".join(filter(None, parts))
