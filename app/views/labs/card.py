"""A lab as one picture: claim, verdict with its numbers, panels, the claim's numbers beside ours, what follows.

The page shows it and pictures are made of it. Its layout depends on its size alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.plain_text import describe, unbroken, write
from app.style.theme import font, theme
from app.views.labs.panel import Panel, described
from app.views.labs.series import looks
from pipelines.labs.chart import Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.texts import figure
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

WRAP = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)


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


@dataclass(frozen=True)
class _Text:
    """A wrapped text around the panels."""

    text: str
    face: QFont
    token: str
    box: QRectF


class LabCard(QWidget):
    """Draws a run of a lab; without a finding, what was measured or that nothing was."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lab: Lab[Parameters, Measured] | None = None
        self._finding: Finding | None = None
        self._chart: Chart | None = None
        self.panels: list[Panel] = []
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
        for panel in self.panels:
            panel.setParent(None)
            panel.deleteLater()
        self.panels = []
        if chart is not None:
            known = looks(chart)
            self.panels = [Panel(panel, known, self) for panel in (chart, *chart.beside)]
        self._arrange()
        for panel in self.panels:
            panel.show()
        describe(self, lab.claim, self.sentence())
        self.update()

    def sentence(self) -> str:
        """Claim, verdict and panels in words."""
        if self._lab is None:
            return ""
        parts = [self._lab.claim]
        if self._finding is not None:
            parts.append(f"{verdict_text(self._finding.verdict)}: {self._finding.why}")
        parts += [described(panel.chart) for panel in self.panels]
        return " ".join(parts)

    def sizeHint(self) -> QSize:
        """A picture's size."""
        return QSize(1120, 620)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay it out again."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """The panels beside each other where there is room, else in rows."""
        if self._lab is None or not self.panels:
            return
        _, _, room = self._layout(self._lab)
        places = panel_places(len(self.panels), room)
        for panel, place in zip(self.panels, places, strict=True):
            # The plots of a row begin at one height.
            row = (p for p, at in zip(self.panels, places, strict=True) if at.top() == place.top())
            panel.least_head = max(other.head(place.width()) for other in row)
            panel.setGeometry(place.toRect())
            panel.rebuild()

    def _layout(self, lab: Lab[Parameters, Measured]) -> tuple[list[_Text], QRectF, QRectF]:
        """Claim, why and what follows; the verdict's place; and the room for panels between them."""
        area = QRectF(self.rect()).adjusted(MARGIN, 16, -MARGIN, -12)
        claim = _text(lab.claim, font(1.45, strong=True), "text", area)
        if (finding := self._finding) is None:
            area.setTop(claim.box.bottom() + 10)
            return [claim], QRectF(), area
        wide = QFontMetricsF(_chip_font()).horizontalAdvance(_chip_text(finding.verdict)) + 22
        chip = QRectF(area.left(), claim.box.bottom() + 7, wide, 24)
        beside = area.adjusted(wide + 12, chip.top() + 3 - area.top(), 0, 0)
        why = _text(finding.why, font(1.0), "text", beside)
        lines = [said_text(lab, finding)] if lab.said else []
        if finding.verdict in lab.follows:
            lines.insert(0, lab.follows[finding.verdict])
        below: list[_Text] = []
        room = area.adjusted(0, max(why.box.bottom(), chip.bottom()) + 10 - area.top(), 0, 0)
        for number, line in reversed(list(enumerate(lines))):
            face, token = (font(1.0, strong=True), "text") if number == 0 else (font(0.92), "muted")
            high = _height(area.width(), line, face)
            room.setBottom(room.bottom() - high - 4)
            below.append(_text(line, face, token, QRectF(room.bottomLeft(), area.bottomRight())))
        return [claim, why, *below], chip, room.adjusted(0, 0, 0, -6)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what stands around the panels."""
        if self._lab is None:
            return
        texts, chip, room = self._layout(self._lab)
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme().color("card"))
            if self._finding is not None:
                _paint_chip(painter, chip, self._finding.verdict)
            elif not self.panels:
                painter.setFont(font(1.0))
                painter.setPen(theme().color("muted"))
                write(painter, room, Qt.AlignmentFlag.AlignCenter, self.nothing)
            for text in texts:
                painter.setFont(text.face)
                painter.setPen(theme().color(text.token))
                write(painter, text.box, WRAP, unbroken(text.text))


def _chip_font() -> QFont:
    return font(1.08, strong=True)


def _chip_text(verdict: Verdict) -> str:
    return f"{SIGNS[verdict]}  {verdict_text(verdict)}"


def _paint_chip(painter: QPainter, chip: QRectF, verdict: Verdict) -> None:
    """The verdict in its colour."""
    tint, ground = theme().color(TINTS[verdict]), theme().color(TINTS[verdict])
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(QPen(tint, 1.4))
    ground.setAlpha(38)
    painter.setBrush(ground)
    painter.drawRoundedRect(chip, 12, 12)
    painter.setFont(_chip_font())
    painter.setPen(tint)
    write(painter, chip, Qt.AlignmentFlag.AlignCenter, _chip_text(verdict))


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


def panel_places(count: int, area: QRectF) -> list[QRectF]:
    """A rectangle for each panel: in as many columns as leave the plots their best shape."""

    def room(across: int) -> tuple[float, float]:
        rows = math.ceil(count / across)
        wide = (area.width() - GAP * (across - 1)) / across
        return wide, (area.height() - GAP * (rows - 1)) / rows

    def fit(across: int) -> float:
        wide, high = room(across)
        return min(wide / SHAPE, high - AROUND)

    across = max(range(1, count + 1), key=fit)
    wide, high = room(across)
    return [
        QRectF(
            area.left() + (i % across) * (wide + GAP),
            area.top() + (i // across) * (high + GAP),
            wide,
            high,
        )
        for i in range(count)
    ]


def _text(text: str, face: QFont, token: str, area: QRectF) -> _Text:
    """A wrapped text at the top of `area`."""
    high = _height(area.width(), text, face)
    return _Text(text, face, token, QRectF(area.left(), area.top(), area.width(), high + 2))


def _height(wide: float, text: str, face: QFont) -> float:
    metrics = QFontMetricsF(face)
    return float(metrics.boundingRect(QRectF(0, 0, wide, 1e4), WRAP, unbroken(text)).height())
