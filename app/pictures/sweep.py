"""A picture of a sweep: the trials by time and another objective, and the front with the intervals of its points."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.model.provenance import caption
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.views.labs.panel import Panel
from app.views.labs.series import Look
from pipelines.config import value_text
from pipelines.labs.chart import Axis, Chart, Layer, Line, Mark, Note

if TYPE_CHECKING:
    from app.model.report import Tree

SIZE: Final = (960, 600)
MARGIN: Final = 16
NOTE: Final = 0.09
"""Share of the range of x that a note of settings is wide; where points are closer, they have the trial's number."""

ROOM: Final = 0.06
"""Share of the range of x that is free on each side."""

TRIED, FRONT = "tried", "front"
LOOKS: Final = {TRIED: Look("unexplained", 4), FRONT: Look("compute", 0)}
OTHERS: Final = {
    "wer": ("wer", 100.0, Axis("word error rate", "%")),
    "memory": ("memory_bytes", 1e-6, Axis("peak memory", "MB")),
    "latency": ("latency_s", 1e3, Axis("latency", "ms")),
}
"""Objective → its key in a trial, the factor to its unit, and its axis."""


def front_chart(tree: Tree) -> Chart:
    """The chart of a sweep (JSON object of `asrscope sweep`): x is the first objective other than time."""
    other = next((name for name in tree["objectives"] if name in OTHERS), None)
    key, factor, x = OTHERS[other] if other else ("id", 1.0, Axis("trial"))
    confirmed = {point["trial"]: point for point in tree["front"]}
    done = sorted((row for row in tree["trials"] if row["rtf_ratio"] is not None), key=lambda row: row[key])
    on_front = [row for row in done if row["id"] in confirmed]
    places = tuple(factor * row[key] for row in on_front)
    ratios, low, high = [], [], []
    for row in on_front:
        point = confirmed[row["id"]]
        ratio = row["rtf_ratio"] if point["rtf_ratio"] is None else point["rtf_ratio"]
        ends = point["rtf_ratio_ci95"] or (ratio, ratio)
        ratios.append(ratio)
        low.append(ends[0])
        high.append(ends[1])
    rest = [row for row in done if row["id"] not in confirmed]
    layers: list[Layer] = [Mark("reference", 1.0)]
    if rest:
        at = tuple(factor * row[key] for row in rest)
        layers.append(Line(TRIED, at, tuple(row["rtf_ratio"] for row in rest), joined=False))
    if on_front:
        layers.append(Line(FRONT, places, tuple(ratios), steps=True))
        layers.append(Line(FRONT, places, tuple(ratios), tuple(low), tuple(high), joined=False))
    span = factor * (done[-1][key] - done[0][key]) if done else 0.0
    apart = min((b - a for a, b in itertools.pairwise(places)), default=span or 1.0)
    for row, place, end in zip(on_front, places, low, strict=True):
        layers.append(Note(_settings(row["settings"]) if apart > NOTE * span else f"#{row['id']}", place, end))
    if done:  # no point at the edge
        room = ROOM * span or 1.0
        x = replace(x, low=factor * done[0][key] - room, high=factor * done[-1][key] + room)
    return Chart(x, Axis("time / reference, 95 % intervals"), tuple(layers), "Time of the settings tried")


def _settings(chosen: Mapping[str, bool | int | float | str]) -> str:
    """Settings in short: the last part of each name."""
    return "\n".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in chosen.items())


def sweep_picture(tree: Tree, out: str | os.PathLike[str], *, theme: str = "dark", scale: float = 2.0) -> None:
    """Write the picture of a sweep (JSON object of `asrscope sweep`), without a display.

    Raises PictureError for an unknown suffix or theme, OutputError for a place that cannot be written.
    """
    hosts = sorted({row["host"] for row in tree["trials"] if row["host"]})
    origin = {"file": tree["study"], "on": ", ".join(hosts)} if hosts else {"file": tree["study"]}

    def make() -> tuple[QWidget, Mapping[str, str]]:
        card = QFrame()
        card.setProperty("card", True)
        inside = QVBoxLayout(card)
        inside.setContentsMargins(16, 14, 16, 14)
        inside.addWidget(Panel(front_chart(tree), LOOKS))
        return captioned(card, [caption(origin)], MARGIN), origin

    write_picture(make, out, SIZE, theme=theme, scale=scale)
