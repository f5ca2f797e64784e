"""A picture of a lab's run: its card (`app.views.labs.card`) above a caption with machine, settings and command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.model.provenance import provenance_of
from app.pictures.sheet import CaptionLine
from app.pictures.told import source_line
from app.views.labs.card import MARGIN, LabCard
from pipelines.labs import record
from profiler.plain import one_line
from profiler.session.reader import Session

SIZE: Final = (1120, 620)


def sheet_of(run: record.Record, session: Session) -> tuple[QWidget, Mapping[str, str]]:
    """The picture as a widget, and where its numbers come from."""
    sheet = QWidget()
    sheet.setObjectName("desk")
    column = QVBoxLayout(sheet)
    column.setContentsMargins(0, 0, 0, 8)
    column.setSpacing(3)
    card = LabCard()
    card.show_lab(run.lab, run.finding, run.chart)
    column.addWidget(card, 1)
    settings, command = " ".join(record.settings(run)), shlex.join(record.command(run))
    origin = {**provenance_of(session, {}), "settings": settings, "drawn by": command}
    origin = {key: one_line(value, 2000) for key, value in origin.items() if value}
    for line in (source_line(origin), f"{settings} · {command}" if settings else command):
        below = CaptionLine(line)
        below.setContentsMargins(MARGIN, 0, MARGIN, 0)
        column.addWidget(below)
    return sheet, origin
