"""The ladder as a picture: a bar for each rung's scoring time, real-time factor, weights and word errors.

The interval of a word error rate is that of its difference from the plain net, whose rate is a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.model.provenance import caption, measured_on
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.views.labs.panel import Panel
from app.views.labs.series import Look
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from tests.bench._ladder_text import PLAIN

Row = Mapping[str, Any]

WIDTH: Final = 1200
ROW: Final = 27
AROUND: Final = 150
"""Height of all that is above and below the bars."""
MARGIN: Final = 16
SHORTER: Final = {"gmm": "Tied mixtures", PLAIN: "Plain net"}
"""Titles of presets that belong to no group."""
RUNGS: Final = "rungs"
LOOKS: Final = {RUNGS: Look("compute", 0)}


def charts(tree: Mapping[str, Any]) -> list[Chart]:
    """Scoring time, real-time factor, weights and word errors of the JSON object of `asrscope bench ladder`."""
    rows = tree["rows"]
    known = (row["wer"] for row in rows if row["preset"] == PLAIN and not row["missing"])
    words = f"word errors of {tree['agreement']['words']} words"
    return [
        _chart(rows, Axis("scoring time per frame", "ms", log=True), lambda row: row["ms"], _title),
        _chart(rows, Axis("real-time factor"), lambda row: row["rtf"]),
        _chart(rows, Axis("weights", "MB"), lambda row: row["weights_mb"]),
        _chart(rows, Axis(words, "%"), _percent_wrong, plain=next(known, None)),
    ]


def _chart(
    rows: Sequence[Row],
    axis: Axis,
    value: Callable[[Row], float | None],
    name: Callable[[Row], str] | None = None,
    plain: float | None = None,
) -> Chart:
    """A bar for each row, called `name` or by its value; with `plain`, intervals and its line."""
    values = [None if row["missing"] else value(row) for row in rows]
    names = map(name, rows) if name else ("–" if one is None else f"{one:.3g}" for one in values)
    ends = []
    for row, one in zip(rows, values, strict=True):
        change = None if one is None or plain is None else row["wer_change_ci95"]
        ends.append([100 * (plain + end) for end in change] if change else (one, one))
    bars = Bars(RUNGS, tuple(values), *map(tuple, zip(*ends, strict=True)))
    marks = [] if plain is None else [Mark("plain net", 100 * plain)]
    return Chart(Axis("rung", categories=tuple(names)), axis, (bars, *marks), axis.title)


def _percent_wrong(row: Row) -> float | None:
    return None if row["wer"] is None else 100 * row["wer"]


def _title(row: Row) -> str:
    """A preset's title without the name of its group, and its gain on the first rung."""
    kind, _, rest = row["title"].partition(" · ")
    number = kind.removeprefix("Ladder ")
    short = SHORTER.get(row["preset"], f"{number}  {rest}" if number.isdigit() else rest or kind)
    if row["missing"]:
        return f"{short}: not here"
    return short if row["times_first"] is None else f"{short}  × {row['times_first']:.1f}"


class LadderPicture(QFrame):
    """Draws the JSON object of `asrscope bench ladder`."""

    def __init__(self, tree: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        inside = QHBoxLayout(self)
        inside.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        panels = [Panel(chart, LOOKS) for chart in charts(tree)]
        for panel, share in zip(panels, (8, 3, 3, 5), strict=True):
            panel.least_head = max(other.head(WIDTH / 4) for other in panels)
            inside.addWidget(panel, share)


def ladder_picture(
    tree: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    theme: str = "light",
    scale: float = 2.0,
) -> None:
    """Write the picture of a ladder (JSON object of `asrscope bench ladder`), without a display.

    Raises PictureError for an unknown suffix or theme, or a place that cannot be written.
    """
    origin = measured_on(tree["machine"], tree["measured_at"])

    def make() -> tuple[QWidget, Mapping[str, str]]:
        return captioned(LadderPicture(tree), [caption(origin)], MARGIN), origin

    size = WIDTH, AROUND + ROW * len(tree["rows"])
    write_picture(make, out, size, theme=theme, scale=scale)
