"""A picture of the charts of a document: of a calibration or a sweep, a card each above where the numbers come from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.layout import lay_out
from app.model.document import Document, Drawing
from app.model.provenance import caption
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.style.plain_text import Label
from app.views.labs.panel import panel_of

MARGIN: Final = 16


def drawings_picture(
    document: Document,
    origin: Mapping[str, str],
    out: str | os.PathLike[str],
    size: tuple[int, int],
    *,
    theme: str = "dark",
    scale: float = 2.0,
) -> None:
    """Write the charts of a document side by side, without a display; `origin`: where the numbers come from.

    Raises PictureError for an unknown suffix or theme, OutputError for a place that cannot be written.
    """

    def make() -> tuple[QWidget, Mapping[str, str]]:
        cards = [_card(part) for part in document.parts if isinstance(part, Drawing)]
        row = QWidget()
        # The first chart has the most places along x.
        stretches = [(card, 4 if place else 6) for place, card in enumerate(cards)]
        lay_out(QHBoxLayout(row), *stretches, spacing=MARGIN, margins=(MARGIN, MARGIN, MARGIN, 8))
        return captioned(row, [caption(origin)], MARGIN), origin

    write_picture(make, out, size, theme=theme, scale=scale)


def _card(drawing: Drawing) -> QWidget:
    card = QFrame()
    card.setProperty("card", True)
    drawn = panel_of(drawing) if drawing.chart.layers else Label(f"{drawing.title}: not measured")
    lay_out(QVBoxLayout(card), (drawn, 1), margins=(16, 14, 16, 14))
    return card
