"""A card of the gallery: thumbnail, claim, verdict, when it was last run."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.pixels import Stills, device_scale, is_pixels
from app.model.lab_runs import Past
from app.style.plain_text import AT_RIGHT, Button, describe, unbroken, write
from app.style.theme import font, theme
from app.views.labs.card import SIGNS, TINTS, verdict_text
from app.views.labs.layers import looks
from app.views.labs.panel import Panel
from pipelines.labs.declaration import Lab, Measured, Parameters

tr = partial(QCoreApplication.translate, "LabTile")

SMALLEST = 290  # Pixels of a card's width
PICTURE = 158.0
HEIGHT = 262
DRAWN_AT = 470.0  # Pixels of width at which a thumbnail is laid out before it is made small
WRAP = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)


class LabTile(Button):
    """One lab. Its picture is that of its last run, if there is one."""

    def __init__(self, name: str, lab: Lab[Parameters, Measured], choose: Callable[[], object]) -> None:
        super().__init__("", choose)
        self.lab = lab
        self.past: Past | None = None
        self._share: float | None = None
        self._running = False
        self._drawn = Stills()
        self.setProperty("choice", True)
        self.setObjectName(f"lab-{name}")
        self.setMinimumWidth(SMALLEST)
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        describe(self, lab.claim)
        self.show_past(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows are the gallery's: a button goes to the next one by itself, whatever the direction."""
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(SMALLEST, HEIGHT)

    def show_past(self, past: Past | None) -> None:
        self.past = past
        self._drawn.drop()
        describe(self, description=self.state_text())
        self.update()

    def show_running(self, running: bool, share: float | None = None) -> None:
        if (running, share) != (self._running, self._share):
            self._running, self._share = running, share
            describe(self, description=self.state_text())
            self.update()

    def state_text(self) -> str:
        """Verdict and age of the last run, or that there is none and what one needs."""
        if self._running:
            return tr("running")
        if self.past is not None and self.past.record.finding is not None:
            return f"{verdict_text(self.past.record.finding.verdict)} · {ago(self.past.when)}"
        parts = [tr("not tried yet")]
        if (seconds := getattr(self.lab.parameters, "seconds", None)) is not None:
            parts.append(tr("about {0} s").format(f"{seconds:g}"))
        return " · ".join([*parts, tr("needs a GPU")] if self.lab.wants_device else parts)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            picture = QRectF(1, 1, self.width() - 2, PICTURE)
            self._paint_picture(painter, picture)
            words = QRectF(14, PICTURE + 10, self.width() - 28, HEIGHT - PICTURE - 40)
            painter.setPen(theme().color("text"))
            face = font(1.0, strong=True)
            painter.setFont(face)
            write(painter, words, WRAP, _cut(self.lab.claim, QFontMetricsF(face), words))
            self._paint_state(painter, QRectF(14, HEIGHT - 30, self.width() - 28, 20))

    def _paint_picture(self, painter: QPainter, area: QRectF) -> None:
        tokens = theme()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tokens.color("card"))
        painter.drawRoundedRect(area, 6, 6)
        chart = self.past.record.chart if self.past is not None else None
        if chart is None:
            painter.setPen(tokens.color("muted"))
            painter.setFont(font(0.95))
            missing = tr("Enter or click to try it") if self.past is None else tr("no picture")
            write(painter, area, Qt.AlignmentFlag.AlignCenter, missing)
            return
        # A wide card gets a wide picture: made larger, it would have no height left.
        scale = min(1.0, area.width() / DRAWN_AT)

        def draw(within: QPainter) -> None:
            within.setClipRect(area)
            within.translate(area.topLeft() + QPointF(12, 10) * scale)
            within.scale(scale, scale)
            panel = Panel(chart, looks(chart))
            room = area.size() / scale - QSizeF(20, 16)
            panel.resize(room.toSize())
            QWidget.render(panel, within, QPoint())
            panel.deleteLater()

        kept = device_scale(painter) if is_pixels(painter) else 0.0
        painter.save()
        self._drawn.paint(painter, area, (self.past and self.past.path, tokens.name), draw, kept)
        painter.restore()

    def _paint_state(self, painter: QPainter, area: QRectF) -> None:
        def say(text: str, color: str, face: QFont, flags: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignVCenter) -> None:
            painter.setPen(theme().color(color))
            painter.setFont(face)
            write(painter, area, flags, text)

        finding = self.past.record.finding if self.past is not None else None
        if self._running:
            done = "" if self._share is None else f" {100 * self._share:.0f} %"
            say(f"{tr('running')}{done}", "accent", font(0.92))
            if self._share is not None:
                painter.setPen(QPen(theme().color("accent"), 3))
                painter.drawLine(4, self.height() - 3, int(4 + (self.width() - 8) * self._share), self.height() - 3)
        elif finding is None or self.past is None:
            say(self.state_text(), "muted", font(0.92))
        else:
            verdict = f"{SIGNS[finding.verdict]}  {verdict_text(finding.verdict)}"
            say(verdict, TINTS[finding.verdict], font(0.95, strong=True))
            say(ago(self.past.when), "muted", font(0.9), AT_RIGHT)


def ago(when: float, now: float | None = None) -> str:
    """How long ago a time is: just now, 5 min ago, 3 h ago, or its day."""
    passed = (time.time() if now is None else now) - when
    if passed < 60:
        return tr("just now")
    if passed < 3600:
        return tr("{0} min ago").format(int(passed / 60))
    if passed < 86_400:
        return tr("{0} h ago").format(int(passed / 3600))
    return datetime.fromtimestamp(when).strftime("%Y-%m-%d")


def _cut(text: str, metrics: QFontMetricsF, area: QRectF) -> str:
    """The words of a text that fit into `area`, with an ellipsis where some do not."""
    words = unbroken(text).split(" ")
    for count in range(len(words), 0, -1):
        shown = " ".join(words[:count]) + ("" if count == len(words) else " …")
        if metrics.boundingRect(QRectF(0, 0, area.width(), 1e4), WRAP, shown).height() <= area.height():
            return shown
    return ""
