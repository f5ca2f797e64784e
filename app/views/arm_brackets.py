"""Brackets below the cost that name the arms of an A/B and its turns, and say what a decision still needs."""

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.time_plot import GUTTER, TimePlot
from app.model.configurations import Turn
from app.style.plain_text import AT_LEFT, describe, fitting, write
from app.style.theme import font, theme
from profiler.clock import FRAME_S

HEIGHT = 20  # Pixels of the strip
TICK = 4  # Pixels of the ends of a bracket


class ArmBrackets(QWidget):
    """A strip as wide as a plot and on its time axis; hidden where there is no A/B."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__()
        self._plot = plot
        self.turns: tuple[Turn, ...] = ()
        self._needs = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    def sizeHint(self) -> QSize:
        return QSize(200, HEIGHT)

    def show_turns(self, turns: Sequence[Turn], needs: str) -> None:
        self.turns, self._needs = tuple(turns), needs
        if bool(turns) == self.isHidden():
            self.setVisible(bool(turns))
        if turns:
            last = turns[-1]
            describe(self, self.tr("A/B: arm {0}, turn {1}. {2}").format(last.text, last.number, needs))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        first, last = self._plot.visible
        wide = self._plot.columns
        with QPainter(self) as painter:
            painter.setFont(font(0.85))
            metrics = QFontMetricsF(painter.font())
            painter.setClipRect(QRectF(GUTTER, 0, wide, HEIGHT))
            end = 0.0
            for turn in self.turns:
                left, right = (
                    GUTTER + (frame * FRAME_S - first) / (last - first) * wide for frame in (turn.first, turn.last)
                )
                if right < GUTTER or left > GUTTER + wide:
                    continue
                color = theme().color("accent" if turn.arm == "B" else "muted")
                painter.setPen(QPen(color, 1.4))
                left, right = max(left, GUTTER) + 1, min(right, GUTTER + wide) - 1
                painter.drawLine(QLineF(left, TICK, right, TICK))
                for x in (left, right):
                    painter.drawLine(QLineF(x, 0, x, TICK))
                text = fitting(metrics, right - left, turn.text, turn.arm, "")
                write(
                    painter, QRectF(left, TICK + 1, right - left, HEIGHT - TICK - 1), Qt.AlignmentFlag.AlignCenter, text
                )
                end = right
            if self._needs:
                painter.setPen(theme().color("muted"))
                place = QRectF(end + 8, 0, GUTTER + wide - end - 8, HEIGHT)
                write(painter, place, AT_LEFT, fitting(metrics, place.width(), self._needs, ""))
