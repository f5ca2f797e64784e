"""Pictures of charts above a caption: those of a document (calibration, sweep), and the card of a lab's run."""

import os
import shlex
from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.layout import lay_out, named
from app.model.document import Document, Drawing
from app.model.provenance import caption, provenance_of
from app.pictures.texts import source_line
from app.pictures.writers import captioned, write_picture
from app.style.plain_text import Label
from app.views.labs.card import MARGIN, LabCard
from app.views.labs.panel import panel_of
from pipelines.labs import record
from profiler.plain import one_line
from profiler.session.reader import Session

AROUND: Final = 16


def drawings_picture(
    document: Document,
    origin: Mapping[str, str],
    out: str | os.PathLike[str],
    size: tuple[int, int],
    *,
    theme: str = "dark",
    scale: float = 2.0,
) -> None:
    """Write the charts of a document side by side; `origin`: where the numbers come from. PictureError, OutputError."""

    def make() -> tuple[QWidget, Mapping[str, str]]:
        cards = [_card(part) for part in document.parts if isinstance(part, Drawing)]
        row = QWidget()
        # The first chart has the most places along x.
        stretches = [(card, 4 if place else 6) for place, card in enumerate(cards)]
        lay_out(QHBoxLayout(row), *stretches, spacing=AROUND, margins=(AROUND, AROUND, AROUND, 8))
        return captioned(row, [caption(origin)], AROUND), origin

    write_picture(make, out, size, theme=theme, scale=scale)


def _card(drawing: Drawing) -> QWidget:
    card = named(QFrame(), card=True)
    drawn = panel_of(drawing) if drawing.chart.layers else Label(f"{drawing.title}: not measured")
    lay_out(QVBoxLayout(card), (drawn, 1), margins=(16, 14, 16, 14))
    return card


def lab_picture(run: record.Record, session: Session) -> tuple[QWidget, Mapping[str, str]]:
    card = LabCard()
    card.show_lab(run.lab, run.finding, run.chart)
    settings, command = " ".join(record.settings(run)), shlex.join(record.command(run))
    origin = {**provenance_of(session, {}), "settings": settings, "drawn by": command}
    origin = {key: one_line(value, 2000) for key, value in origin.items() if value}
    lines = source_line(origin), f"{settings} · {command}" if settings else command
    return captioned(card, lines, MARGIN), origin
