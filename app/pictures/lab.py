"""A picture of a lab's run: its card (`app.views.labs.card`) above a caption with machine, settings and command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from PySide6.QtWidgets import QWidget

from app.model.provenance import provenance_of
from app.pictures.caption import captioned
from app.pictures.texts import source_line
from app.views.labs.card import MARGIN, LabCard
from pipelines.labs import record
from profiler.plain import one_line
from profiler.session.reader import Session


def lab_picture(run: record.Record, session: Session) -> tuple[QWidget, Mapping[str, str]]:
    """The picture as a widget, and where its numbers come from."""
    card = LabCard()
    card.show_lab(run.lab, run.finding, run.chart)
    settings, command = " ".join(record.settings(run)), shlex.join(record.command(run))
    origin = {**provenance_of(session, {}), "settings": settings, "drawn by": command}
    origin = {key: one_line(value, 2000) for key, value in origin.items() if value}
    lines = source_line(origin), f"{settings} · {command}" if settings else command
    return captioned(card, lines, MARGIN), origin
