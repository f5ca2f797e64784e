"""A lab as one picture, on the page and in files: claim, verdict, panels, claimed and measured numbers, conclusion."""

import math
from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.layout import NONE, REST, Part, lay_out, styled
from app.style.plain_text import Wrapped, describe, unbroken, write
from app.style.theme import font, theme
from app.views.labs.layers import looks
from app.views.labs.panel import Panel, described
from pipelines.labs.chart import Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import figure, without_code
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, Verdict

MARGIN: Final = 20
GAP: Final = 26.0
SHAPE: Final = 1.3  # Width of a plot over its height, at best
AROUND: Final = 110.0  # Pixels of a panel's height that title, legend and labels take

TINTS: Final[Mapping[Verdict, str]] = {
    HOLDS: "ok",
    PART: "warning",
    FAILS: "danger",
    UNDECIDED: "warning",
    IMPOSSIBLE: "muted",
}
SIGNS: Final[Mapping[Verdict, str]] = {HOLDS: "✓", PART: "◐", FAILS: "✗", UNDECIDED: "≈", IMPOSSIBLE: "–"}


def tr(text: str) -> str:
    return QCoreApplication.translate("LabCard", text)


TEXTS: Final[Mapping[Verdict, str]] = {
    HOLDS: "holds here",
    PART: "holds in part",
    FAILS: "does not hold here",
    UNDECIDED: "undecided",
    IMPOSSIBLE: "cannot be tried here",
}


def verdict_text(verdict: Verdict) -> str:
    return tr(TEXTS[verdict])


class _Chip(QWidget):
    """A verdict in its colour."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self._verdict = verdict
        self._said = f"{SIGNS[verdict]}  {verdict_text(verdict)}"
        self.setFont(font(1.08, strong=True))
        self.setFixedSize(round(QFontMetricsF(self.font()).horizontalAdvance(self._said)) + 24, 26)

    def paintEvent(self, event: QPaintEvent) -> None:
        tint, ground = (theme().color(TINTS[self._verdict], alpha) for alpha in (255, 38))
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(tint, 1.4))
            painter.setBrush(ground)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 12, 12)
            painter.setFont(font(1.08, strong=True))
            write(painter, self.rect(), Qt.AlignmentFlag.AlignCenter, self._said)


class Panels(QWidget):
    """The panels of a chart: in one row where there is room, else in several."""

    def __init__(self, chart: Chart) -> None:
        super().__init__()
        known = looks(chart)
        self.each = [Panel(panel, known, self) for panel in (chart, *chart.beside)]
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        places = panel_places(len(self.each), QRectF(self.rect()))
        for panel, place in zip(self.each, places, strict=True):
            # The plots of a row begin at one height.
            row = (p for p, at in zip(self.each, places, strict=True) if at.top() == place.top())
            panel.least_head = max(other.head(place.width()) for other in row)
            panel.setGeometry(place.toRect())
            panel.rebuild()


class LabCard(QWidget):
    """Shows a run of a lab; without a finding, what was measured or that nothing was."""

    def __init__(self) -> None:
        super().__init__()
        self._nothing = styled(Wrapped(tr("This run ended before everything was measured.")), muted=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = lay_out(QVBoxLayout(self), margins=NONE)

    def show_lab(
        self, lab: Lab[Parameters, Measured], finding: Finding | None = None, chart: Chart | None = None
    ) -> None:
        self._nothing.setParent(None)
        if (before := self._column.takeAt(0)) is not None and (shown := before.widget()) is not None:
            shown.hide()
            shown.deleteLater()
        above: list[Part] = [_text(lab.claim, 1.45, strong=True)]
        below: list[Part] = []
        if finding is not None:
            row = lay_out(QHBoxLayout(), spacing=12)
            row.addWidget(_Chip(finding.verdict), 0, Qt.AlignmentFlag.AlignTop)
            row.addWidget(_text(finding.why), 1)
            above.append(row)
            if follows := lab.follows_from(finding.verdict):
                below.append(_text(follows, strong=True))
            if lab.published:
                below.append(_text(said_text(lab, finding), 0.92, muted=True))
        body: Part = REST if chart is None else (Panels(chart), 1)
        if chart is None and finding is None:
            body = self._nothing, 1
        inside = QWidget()
        lay_out(QVBoxLayout(inside), *above, body, *below, margins=(MARGIN, 16, MARGIN, 12))
        self._nothing.setVisible(self._nothing.parent() is not None)
        self._column.addWidget(inside)
        found = "" if finding is None else f"{verdict_text(finding.verdict)}: {finding.why} "
        panels = () if chart is None else (chart, *chart.beside)
        describe(self, lab.claim, f"{lab.claim} {found}{' '.join(map(described, panels))}")

    def show_nothing(self, text: str) -> None:
        self._nothing.setText(text)

    def sizeHint(self) -> QSize:
        return QSize(1120, 620)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme().color("card"))


def _text(text: str, size: float = 1.0, *, strong: bool = False, muted: bool = False) -> Wrapped:
    return styled(Wrapped(unbroken(without_code(text))), size, strong=strong, muted=muted)


def said_text(lab: Lab[Parameters, Measured], finding: Finding | None) -> str:
    """Return each claimed number with the measured one: pinned copy: claimed 6 GB/s, here 12 GB/s."""
    parts = []
    for said in lab.published:
        ours = None if finding is None else finding.figures.get(said.ours)
        here = tr("here {0}").format(figure(ours, said.unit)) if ours is not None else tr("not measured here")
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
        QRectF(area.left() + (i % across) * (wide + GAP), area.top() + (i // across) * (high + GAP), wide, high)
        for i in range(count)
    ]
