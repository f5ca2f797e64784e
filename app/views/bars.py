"""The drawing of the breakdown: category rows with bars, the sum line, stage rows, a sentence."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.raster import blended
from app.charts.scale import milliseconds, percent, round_up
from app.charts.swatch import paint_swatch
from app.charts.themed import ThemedWidget
from app.model.figures import rtf_text
from app.style.plain_text import fitting, show_tip, unbroken, write
from app.style.theme import CATEGORY_TITLES, font
from app.views.bar_texts import before_text, reasons, sum_text, verdicts
from app.views.breakdown_model import BreakdownModel, StageLine
from app.views.part_bars import PART_ROW, STRIP, paint_rows, paint_strip, rows_of, told
from profiler.analysis.categories import PART_NAMES
from profiler.analysis.lod.series import CATEGORIES

ROW = 25
"""Height of a category's row in pixels."""

LEAST_ROW, SUM = 14, 29
"""Height of a category's row in a small picture, and of the line below the rows that says what they add up to."""

LEAST_CATEGORIES = len(CATEGORIES) * LEAST_ROW + SUM

STAGE_ROW = 25
"""Height of a stage's row, with the strip of its parts."""

NAMES = 112
"""Width of the column of category names."""

FIGURES = 104
"""Width of the column of figures at the right: ms and share."""

SENTENCES = 150
"""Height reserved below the stages for the text about one: about eight lines."""

ENOUGH = 8
"""Rows that a picture has before it has a text about one of them."""

NARROW = 300
"""Below this width the rows of stages have milliseconds only, with the unit in their heading."""

TIGHT = 240
"""Below this width the rows of categories have no share."""

GROUP_CATEGORY = {name: name for name in ("frontend", "search", "transfer", "overhead")}
"""Category whose colour a stage group takes; scoring is split by attribution and has none."""


class Bars(ThemedWidget):
    """Category rows, the sum line, stage rows and the sentence, painted in one go."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model: BreakdownModel | None = None
        self._stages: tuple[StageLine, ...] = ()
        self._groups: tuple[StageLine, ...] = ()
        self._chosen: str | None = None
        self._room: int | None = None
        self._row = ROW
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)

    def show_model(
        self,
        model: BreakdownModel | None,
        stages: tuple[StageLine, ...],
        groups: tuple[StageLine, ...] = (),
    ) -> None:
        """Show these figures, `groups` of stages before the stages; None shows nothing."""
        height = self.sizeHint().height()
        self._model, self._stages, self._groups = model, stages, groups
        if self.sizeHint().height() != height:
            self.updateGeometry()
        self.update()

    @property
    def stages(self) -> tuple[StageLine, ...]:
        """Stage lines shown."""
        return self._stages

    @property
    def rows(self) -> tuple[StageLine, ...]:
        """All rows below the sum: groups, then stages."""
        return (*self._groups, *self._stages)

    def choose(self, name: str | None) -> None:
        """Explain this stage at the bottom; None: the most expensive one."""
        if name != self._chosen:
            self._chosen = name
            self.updateGeometry()
            self.update()
            self.chosen.emit(name)

    def set_picture(self, height: int | None) -> None:
        """Hatch the bars and draw only what fits whole into a height; None: everything, to be scrolled."""
        self._room = height
        if height is None:
            self._row = ROW
        else:  # all of them and their sum: nobody would miss what is left out
            self._row = min(max((height - SUM) // len(CATEGORIES), LEAST_ROW), ROW)
        self.update()

    @property
    def choice(self) -> str | None:
        """The stage that somebody chose."""
        return self._chosen

    def _drawn(self) -> tuple[StageLine, ...]:
        """The rows that are drawn: in a picture the dearest that leave room for the text below, if those are many."""
        if self._room is None:
            return self.rows
        room = self._room - self._stage_top()
        beside = (room - self._told_height()) // STAGE_ROW
        enough = self._chosen is not None or beside >= min(ENOUGH, len(self.rows))
        return self.rows[: max(0, beside if enough else room // STAGE_ROW)]

    def explained(self) -> StageLine | None:
        """Return the stage explained at the bottom."""
        for line in self.rows:
            if line.name == self._chosen:
                return line
        return self._stages[0] if self._stages else None

    def sizeHint(self) -> QSize:
        """Return the size of all rows and the sentences below them."""
        parts = 0 if (line := self.explained()) is None else len(rows_of(line.parts)) * PART_ROW
        return QSize(330, self._stage_top() + len(self.rows) * STAGE_ROW + parts + SENTENCES)

    def minimumSizeHint(self) -> QSize:
        """Return the same height: the scroll area does the rest."""
        return QSize(120, self.sizeHint().height())

    def _before_height(self) -> int:
        """Height of the text about the values before the last change, in as many lines as it needs."""
        if self._model is None or not (text := unbroken(self.before_text(self._model))):
            return 0
        metrics, room = QFontMetricsF(font(1.0)), QRectF(0, 0, max(self.width(), 80), 1000)
        lines = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap.value, text)
        return math.ceil(lines.height()) + 4

    def _stage_top(self) -> int:
        return len(CATEGORIES) * self._row + 62 + self._before_height()

    def ends(self) -> list[int]:
        """Heights at which nothing of it is cut through: below each row of stages, below the text, and below all."""
        rows = [self._stage_top() + n * STAGE_ROW for n in range(len(self.rows) + 1)]
        return [*rows, rows[-1] + self._told_height(), self.sizeHint().height()]

    def stage_at(self, position: QPoint) -> StageLine | None:
        """Stage under a position, or None."""
        row = (position.y() - self._stage_top()) // STAGE_ROW
        return self.rows[row] if 0 <= row < len(self.rows) else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Click on a stage explains it; a second click returns to the most expensive one."""
        line = self.stage_at(event.position().toPoint())
        self.choose(None if line is None or line.name == self._chosen else line.name)

    def event(self, event: QEvent) -> bool:
        """Tool tip of a stage: its sentence, and its parts with their intervals."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            line = self.stage_at(event.pos())
            show_tip(event.globalPos(), self.tip(line) if line else "", self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw from the top down."""
        with QPainter(self) as painter:
            model = self._model
            if model is not None and model.frames:
                self._paint_categories(painter, model)
                self._paint_sum(painter, model)
                self._paint_stages(painter)
                self._paint_sentence(painter)
            elif model is not None:
                painter.setPen(self._tokens.color("muted"))
                painter.setFont(font(1.0))
                write(painter, self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("no frames yet"))

    def _paint_categories(self, painter: QPainter, model: BreakdownModel) -> None:
        tokens = self._tokens
        before = model.before_ms
        most = float(np.nanmax(model.ms))
        if before is not None:
            most = max(most, float(np.nanmax(before)))
        full = round_up(most)
        left, room = float(NAMES), max(20.0, self.width() - NAMES - self._figures(TIGHT))
        middle = Qt.AlignmentFlag.AlignVCenter
        for index, name in enumerate(CATEGORIES):
            row = QRectF(0, index * self._row, self.width(), self._row)
            painter.setFont(font(1.0))
            paint_swatch(painter, QRectF(0, row.center().y() - 5, 10, 10), tokens, name)
            painter.setPen(tokens.color("text"))
            title = row.adjusted(16, 0, 0, 0)
            write(painter, title, middle | Qt.AlignmentFlag.AlignLeft, CATEGORY_TITLES[name])
            value = float(model.ms[index])
            previous = None if before is None else float(before[index])
            if name in model.reasons and not previous:
                painter.setPen(tokens.color("muted"))
                text = row.adjusted(left, 0, 0, 0)
                said = reasons(model.reasons[name])
                reason = fitting(QFontMetricsF(painter.font()), text.width(), *said)
                write(painter, text, middle | Qt.AlignmentFlag.AlignLeft, reason)
                continue
            if previous is None:
                bar = QRectF(left, row.center().y() - 5.5, room * value / full, 11)
                self._paint_bar(painter, bar, name)
            else:
                tall = min(7.0, self._row / 3)
                above = QRectF(left, row.center().y() - 1.5 - tall, room * previous / full, tall)
                self._paint_bar(painter, above, name, pale=True)
                below = QRectF(left, row.center().y() - 0.5, room * value / full, tall + 2)
                self._paint_bar(painter, below, name)
            self._paint_figures(painter, row, value, model.share(value), TIGHT)

    def _paint_bar(self, painter: QPainter, bar: QRectF, name: str, pale: bool = False) -> None:
        tokens = self._tokens
        bar.setWidth(max(2.0, bar.width()))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        color = tokens.category[name]
        painter.setBrush(QColor(blended(color, tokens.card, 0.62 if pale else 0.0)))
        painter.drawRoundedRect(bar, 2, 2)
        if self._room is not None and not pale:
            painter.setBrush(tokens.hatch_brush(name))
            painter.drawRoundedRect(bar, 2, 2)
        painter.restore()

    def _paint_figures(
        self, painter: QPainter, row: QRectF, ms: float, share: float | None, least: int = NARROW
    ) -> None:
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.setFont(font(1.0))
        painter.setPen(self._tokens.color("text"))
        if self.width() < least:
            unit = "" if least == NARROW else " ms"  # stages: in their heading
            write(painter, row, right, milliseconds(ms) + unit)
            return
        write(painter, row.adjusted(0, 0, -44, 0), right, f"{milliseconds(ms)} ms")
        painter.setPen(self._tokens.color("muted"))
        write(painter, row, right, percent(share))

    def _figures(self, least: int = NARROW) -> int:
        return FIGURES if self.width() >= least else 44 if least == NARROW else 66

    def _paint_sum(self, painter: QPainter, model: BreakdownModel) -> None:
        y = len(CATEGORIES) * self._row + 4
        painter.setPen(QPen(self._tokens.color("border"), 1))
        painter.drawLine(0, y, self.width(), y)
        painter.setFont(font(1.0, strong=True))
        painter.setPen(self._tokens.color("text"))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        line = QRectF(0, y + 3, self.width(), 22)
        short = f"{milliseconds(model.sum_ms)} ms · RTF {rtf_text(model.rtf)}"
        write(painter, line, flags, short if self.width() < NARROW else self.sum_text(model))
        height = self._before_height()
        if height and (self._room is None or line.bottom() + height <= self._room):
            painter.setFont(font(1.0))
            painter.setPen(self._tokens.color("muted"))
            place = QRectF(0, line.bottom(), self.width(), height)
            wrap = Qt.TextFlag.TextWordWrap.value | Qt.AlignmentFlag.AlignTop.value
            write(painter, place, wrap, unbroken(self.before_text(model)))

    def _paint_stages(self, painter: QPainter) -> None:
        top = self._stage_top()
        if self._room is not None and not self._drawn():
            return
        tokens = self._tokens
        middle = Qt.AlignmentFlag.AlignVCenter
        left, verdict_left = middle | Qt.AlignmentFlag.AlignLeft, self.width() * 0.40
        painter.setFont(font(0.88, strong=True))
        painter.setPen(tokens.color("muted"))
        heading = QRectF(0, top - 24, self.width(), 22)
        write(painter, heading, left, self.tr("STAGES"))
        place = heading.adjusted(verdict_left, 0, 0, 0)
        narrow = self.width() < NARROW
        verdict = self.tr("VERDICT") if narrow else self.tr("VERDICT · EVIDENCE")
        write(painter, place, left, verdict)
        if narrow:
            write(painter, heading, middle | Qt.AlignmentFlag.AlignRight, self.tr("ms"))
        metrics = QFontMetricsF(font(1.0))
        explained = self.explained()
        for index, line in enumerate(self._drawn()):
            row = QRectF(0, top + index * STAGE_ROW, self.width(), STAGE_ROW)
            whole = index < len(self._groups)
            if self._chosen is not None and line is explained:
                painter.fillRect(row.adjusted(-4, 0, 4, 0), tokens.color("hover"))
            category = GROUP_CATEGORY.get(line.group)
            color = tokens.category[category] if category else tokens.accent
            bar = row.adjusted(0, 2, row.width() * ((line.share or 0.0) - 1), -2)
            painter.fillRect(bar, QColor(blended(color, tokens.card, 0.78)))
            painter.fillRect(QRectF(0, bar.top(), 2, bar.height()), QColor(color))
            strip = QRectF(7, row.bottom() - STRIP - 1, row.width() - 7, STRIP)
            paint_strip(painter, strip, tokens, line.parts)
            row.setBottom(strip.top())
            painter.setFont(font(1.0, strong=whole))
            painter.setPen(tokens.color("text"))
            name = self.tr("all {0}").format(line.name) if whole else line.name
            fits = verdict_left - 14
            if metrics.horizontalAdvance(name) > fits:
                # The colour shows the group; the text is the stage's own name.
                name = name.partition(".")[2] or name
            name = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, fits)
            inset = row.adjusted(7, 0, 0, 0)
            write(painter, inset, left, name)
            painter.setPen(tokens.color("muted"))
            room = self.width() - verdict_left - self._figures() - 4
            place = row.adjusted(verdict_left, 0, 0, 0)
            write(painter, place, left, fitting(metrics, room, *verdicts(line)))
            self._paint_figures(painter, row, line.ms, line.share)

    def _paint_sentence(self, painter: QPainter) -> None:
        line = self.explained()
        if line is None or not self.explanation(line):
            return
        top = self._stage_top() + len(self._drawn()) * STAGE_ROW + 10
        if self._room is not None and top - 10 + self._told_height() > self._room:
            return
        painter.setPen(QPen(self._tokens.color("border"), 1))
        painter.drawLine(0, top, self.width(), top)
        if rows := rows_of(line.parts):
            paint_rows(painter, top + 8, self.width(), self._tokens, line.parts)
            top += len(rows) * PART_ROW + 6
        painter.setFont(font(1.0))
        painter.setPen(self._tokens.color("text"))
        place = QRectF(0, top + 8, self.width(), max(20.0, self.height() - top - 8))
        wrap = Qt.TextFlag.TextWordWrap.value | Qt.AlignmentFlag.AlignTop.value
        write(painter, place, wrap, unbroken(self.explanation(line)))

    def _told_height(self) -> int:
        """Height of what is told of the stage explained."""
        if (line := self.explained()) is None:
            return 0
        area, wrap = QRectF(0, 0, self.width(), 1e4), Qt.TextFlag.TextWordWrap.value
        text = unbroken(self.explanation(line))
        lines = QFontMetricsF(font()).boundingRect(area, wrap, text)
        return 26 + len(rows_of(line.parts)) * PART_ROW + round(lines.height())

    def fits(self, height: int) -> bool:
        """Whether all that is drawn fits into a height."""
        return self._stage_top() + len(self.rows) * STAGE_ROW + self._told_height() <= height

    def explanation(self, line: StageLine) -> str:
        """The share of a stage in its group, and where its time went; of a group, its largest part and stage."""
        if line in self._groups:
            return self._of_group(line)
        texts = ("{0} of the time", "{0} of the operations", "{0} of the bytes")
        shares = zip(line.of_group, texts, strict=True)
        parts = [self.tr(text).format(percent(part)) for part, text in shares if part is not None]
        said = []
        if parts:
            text = self.tr("{0} is {1} of all {2} stages")
            said.append(text.format(line.name, ", ".join(parts), line.name.partition(".")[0]))
        if line.intensity is not None:
            roof = {
                None: "",
                True: self.tr(", below the roof of memory bandwidth"),
                False: self.tr(", below the roof of arithmetic"),
            }[line.memory_roof]
            said.append(self.tr("{0} operations per byte{1}").format(f"{line.intensity:.3g}", roof))
        return " ".join(filter(None, ["; ".join(said) + "." if said else "", line.sentence]))

    def _of_group(self, line: StageLine) -> str:
        largest = max(line.parts, key=lambda part: part.share)
        text = self.tr("All stages of {0} take {1} ms per frame; {2} is the largest part ({3}).")
        whole = text.format(
            line.name, milliseconds(line.ms), PART_NAMES[largest.name], percent(largest.share)
        )
        mine = [stage for stage in self._stages if stage.group == line.group]
        dearest = max(mine, key=lambda stage: stage.ms, default=None)
        return whole if dearest is None else f"{whole} {self.explanation(dearest)}"

    def tip(self, line: StageLine) -> str:
        """The explanation of a row and, below it, all its parts with their intervals."""
        parts = [told(part) for part in rows_of(line.parts)]
        return "\n".join(filter(None, [self.explanation(line), *parts]))

    sum_text = staticmethod(sum_text)
    before_text = staticmethod(before_text)
