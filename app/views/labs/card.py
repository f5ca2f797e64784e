"""A lab as one picture: claim, verdict with its numbers, panels, the claim's numbers beside ours, what follows.

The page shows it and pictures are made of it. Its layout depends on its size alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.plain_text import describe, unbroken, write
from app.style.theme import Tokens, font, theme
from app.views.labs.panel import Panel, described
from app.views.labs.series import looks
from pipelines.labs.chart import Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.texts import figure, without_code
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, Verdict

MARGIN: Final = 20.0
GAP: Final = 26.0
SHAPE: Final = 1.3
"""Width of a plot over its height, at best."""

AROUND: Final = 110.0
"""Pixels of a panel's height that title, legend and labels take."""

TINTS: Final[Mapping[Verdict, str]] = {
    HOLDS: "ok",
    PART: "warning",
    FAILS: "danger",
    UNDECIDED: "warning",
    IMPOSSIBLE: "muted",
}
SIGNS: Final[Mapping[Verdict, str]] = {
    HOLDS: "✓",
    PART: "◐",
    FAILS: "✗",
    UNDECIDED: "≈",
    IMPOSSIBLE: "–",
}
"""Beside the colour, which nobody has to see."""

WRAP = Qt.TextFlag.TextWordWrap


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("LabCard", text)


def verdict_text(verdict: Verdict) -> str:
    """A verdict in the language of the window."""
    texts: Mapping[Verdict, str] = {
        HOLDS: tr("holds here"),
        PART: tr("holds in part"),
        FAILS: tr("does not hold here"),
        UNDECIDED: tr("undecided"),
        IMPOSSIBLE: tr("cannot be tried here"),
    }
    return texts[verdict]


class LabCard(QWidget):
    """Draws a run of a lab; without a finding, what was measured or that nothing was."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lab: Lab[Parameters, Measured] | None = None
        self._finding: Finding | None = None
        self._chart: Chart | None = None
        self.nothing = tr("This run ended before everything was measured.")
        """What stands in place of the chart of a run that has neither figures nor verdict."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_lab(
        self,
        lab: Lab[Parameters, Measured],
        finding: Finding | None = None,
        chart: Chart | None = None,
    ) -> None:
        """Show this run."""
        self._lab, self._finding, self._chart = lab, finding, chart
        describe(self, lab.claim, self.sentence())
        self.update()

    def sentence(self) -> str:
        """Claim, verdict and panels in words."""
        if self._lab is None:
            return ""
        parts = [self._lab.claim]
        if self._finding is not None:
            parts.append(f"{verdict_text(self._finding.verdict)}: {self._finding.why}")
        if self._chart is not None:
            parts += [described(panel) for panel in (self._chart, *self._chart.beside)]
        return " ".join(parts)

    def sizeHint(self) -> QSize:
        """A picture's size."""
        return QSize(1120, 620)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        if self._lab is None:
            return
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme().color("card"))
            area = QRectF(self.rect()).adjusted(MARGIN, 16, -MARGIN, -12)
            top = self._head(painter, area, self._lab)
            bottom = self._foot(painter, area, self._lab)
            if self._chart is not None:
                panels = QRectF(area.left(), top + 10, area.width(), bottom - top - 16)
                paint_panels(painter, panels, self._chart, theme())
            elif self._finding is None:
                painter.setFont(font(1.0))
                painter.setPen(theme().color("muted"))
                write(painter, area, Qt.AlignmentFlag.AlignCenter, self.nothing)

    def _head(self, painter: QPainter, area: QRectF, lab: Lab[Parameters, Measured]) -> float:
        """Claim, verdict, numbers; returns where they end."""
        top = _text(painter, area, lab.claim, font(1.45, strong=True), "text")
        if self._finding is None:
            return top
        verdict, why = self._finding.verdict, self._finding.why
        face = font(1.08, strong=True)
        said = f"{SIGNS[verdict]}  {verdict_text(verdict)}"
        wide = QFontMetricsF(face).horizontalAdvance(said) + 22
        chip = QRectF(area.left(), top + 7, wide, 24)
        tint = theme().color(TINTS[verdict])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(tint, 1.4))
        ground = theme().color(TINTS[verdict])
        ground.setAlpha(38)
        painter.setBrush(ground)
        painter.drawRoundedRect(chip, 12, 12)
        painter.setFont(face)
        painter.setPen(tint)
        write(painter, chip, Qt.AlignmentFlag.AlignCenter, said)
        beside = area.adjusted(wide + 12, 0, 0, 0)
        beside.setTop(top + 10)
        return max(_text(painter, beside, why, font(1.0), "text"), chip.bottom())

    def _foot(self, painter: QPainter, area: QRectF, lab: Lab[Parameters, Measured]) -> float:
        """What follows and the claim's numbers, from the bottom up; returns where they begin."""
        lines = [said_text(lab, self._finding)] if self._finding is not None and lab.said else []
        if self._finding is not None and self._finding.verdict in lab.follows:
            lines.insert(0, lab.follows[self._finding.verdict])
        y = area.bottom()
        for place, line in reversed(list(enumerate(lines))):
            face, token = (font(1.0, strong=True), "text") if place == 0 else (font(0.92), "muted")
            high = _height(area.width(), line, face)
            y -= high + 4
            _text(painter, QRectF(area.left(), y, area.width(), high), line, face, token)
        return y


def said_text(lab: Lab[Parameters, Measured], finding: Finding | None) -> str:
    """The claim's numbers, each beside ours: pinned copy: claimed 6 GB/s, here 12 GB/s."""
    parts = []
    for said in lab.said:
        ours = None if finding is None else finding.figures.get(said.ours)
        here = (
            tr("here {0}").format(figure(ours, said.unit))
            if ours is not None
            else tr("not measured here")
        )
        claimed = tr("claimed {0}").format(figure(said.value, said.unit))
        parts.append(f"{said.what}: {claimed}, {here}")
    return "  ·  ".join(parts)


def paint_panels(painter: QPainter, area: QRectF, chart: Chart, tokens: Tokens) -> None:
    """All panels of a chart: beside each other where there is room, else in rows."""
    panels = (chart, *chart.beside)
    known = looks(chart)
    painters = [Panel(panel, known, tokens) for panel in panels]
    places = _places(panels, area)
    for panel, place in zip(painters, places, strict=True):
        # The plots of a row begin at one height.
        row = (p for p, other in zip(painters, places, strict=True) if other.top() == place.top())
        panel.paint(painter, place, max(other.head(place.width()) for other in row))


def _places(panels: Sequence[Chart], area: QRectF) -> list[QRectF]:
    """A rectangle for each panel: in as many columns as leave the plots their best shape."""

    def room(across: int) -> tuple[float, float]:
        rows = math.ceil(len(panels) / across)
        wide = (area.width() - GAP * (across - 1)) / across
        return wide, (area.height() - GAP * (rows - 1)) / rows

    def fit(across: int) -> float:
        wide, high = room(across)
        return min(wide / SHAPE, high - AROUND)

    across = max(range(1, len(panels) + 1), key=fit)
    wide, high = room(across)
    return [
        QRectF(
            area.left() + (i % across) * (wide + GAP),
            area.top() + (i // across) * (high + GAP),
            wide,
            high,
        )
        for i in range(len(panels))
    ]


def _text(painter: QPainter, area: QRectF, text: str, face: QFont, token: str) -> float:
    """Write a wrapped text at the top of `area`; returns where it ends."""
    painter.setFont(face)
    painter.setPen(theme().color(token))
    flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | WRAP
    high = _height(area.width(), text, face)
    box = QRectF(area.left(), area.top(), area.width(), high + 2)
    write(painter, box, flags, unbroken(without_code(text)))
    return box.bottom()


def _height(wide: float, text: str, face: QFont) -> float:
    metrics = QFontMetricsF(face)
    text = unbroken(without_code(text))
    return float(metrics.boundingRect(QRectF(0, 0, wide, 1e4), WRAP, text).height())
