"""A picture of a sweep: the trials by time and another objective, and the front with the intervals of its points."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.model.provenance import caption
from app.model.study import Study
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.views.labs.panel import Panel
from app.views.study_front import LOOKS, front_chart

SIZE: Final = (960, 600)
MARGIN: Final = 16


def sweep_picture(study: Study, out: str | os.PathLike[str], *, theme: str = "dark", scale: float = 2.0) -> None:
    """Write the picture of a sweep, without a display.

    Raises PictureError for an unknown suffix or theme, OutputError for a place that cannot be written.
    """
    hosts = sorted({trial.host for trial in study.trials if trial.host})
    origin = {"file": study.study, "on": ", ".join(hosts)} if hosts else {"file": study.study}

    def make() -> tuple[QWidget, Mapping[str, str]]:
        card = QFrame()
        card.setProperty("card", True)
        inside = QVBoxLayout(card)
        inside.setContentsMargins(16, 14, 16, 14)
        inside.addWidget(Panel(front_chart(study), LOOKS))
        return captioned(card, [caption(origin)], MARGIN), origin

    write_picture(make, out, SIZE, theme=theme, scale=scale)
