"""The ladder as a picture: scoring time of each rung as a bar, its word errors beside it.

Bars on a logarithmic scale, in three sections: the mixtures for reference, the ladder, and nets made from the plain
one. Beside each bar the word error rate as a dot, with the 95 % interval of its difference from the plain net drawn
around it; hollow where the words are those of another rung that makes the same scores.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from app.model.provenance import caption, measured_on
from app.pictures.caption import captioned
from app.pictures.writers import write_picture
from app.style.theme import font, theme
from tests.bench._drawn_text import draw_text
from tests.bench._ladder_text import PLAIN, PROPER

Row = Mapping[str, Any]

WIDTH: Final = 1200
ROW: Final = 25
SECTION: Final = 42
"""Height of a section's heading with the room above it."""
HEAD, FOOT = 52, 52
MARGIN: Final = 22
CAPTION: Final = 26
FIGURES: Final = 108
"""Room right of the longest bar for its time and gain."""
COLUMN: Final = 62
"""Width of a column of figures: real-time factor, weights."""
ERRORS: Final = 262
"""Width of the column of word errors, the figures at its right end among it."""
FAR: Final = 0.08
"""Word errors so far above those of the plain net leave the scale, so that the others can be told apart."""
SHORTER: Final = {"gmm": "Tied mixtures", PLAIN: "Plain net"}
"""Titles of presets that belong to no section."""


@dataclass(frozen=True)
class Section:
    """A heading, the category whose colour its bars take, its rows."""

    title: str
    category: str
    rows: Sequence[Row]


def sections(rows: Sequence[Row]) -> list[Section]:
    """`rows` parted as they are drawn."""
    proper = [row for row in rows if row["preset"].startswith(PROPER)]
    known = {row["preset"] for row in proper}
    plain = next((i for i, row in enumerate(rows) if row["preset"] == PLAIN), len(rows))
    before = [row for row in rows[:plain] if row["preset"] not in known]
    return [
        section
        for section in (
            Section("For reference", "unexplained", before),
            Section("The ladder: one setting after the other, the same net", "compute", proper),
            Section("The plain net in batches, and nets made from it", "search", rows[plain:]),
        )
        if section.rows
    ]


class LadderPicture(QWidget):
    """Draws the JSON object of `asrscope bench ladder`."""

    def __init__(self, tree: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tree = tree
        self._sections = sections(tree["rows"])
        timed = [row for row in tree["rows"] if not row["missing"]]
        times = [row["ms"] for row in timed] or [1.0]
        self._ms = min(times) / 1.6, max(times)
        ends = [end for row in timed for end in _interval(row, tree["rows"])]
        plain = [row["wer"] for row in timed if row["preset"] == PLAIN and row["wer"] is not None]
        most = max(plain, default=1.0) + FAR
        self._wer = min(ends, default=0.0), max((end for end in ends if end <= most), default=1.0)
        lines = sum(len(section.rows) for section in self._sections)
        self.resize(WIDTH, 2 * MARGIN + HEAD + FOOT + ROW * lines + SECTION * len(self._sections))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw head, sections, axes."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        card = QRectF(self.rect()).adjusted(10, 10, -10, -4)
        painter.setPen(QPen(theme().color("border"), 1))
        painter.setBrush(theme().color("card"))
        painter.drawRoundedRect(card, 8, 8)
        area = card.adjusted(18, 16, -18, -14)
        names = [_title(row) for section in self._sections for row in section.rows]
        wide = max(QFontMetricsF(font()).horizontalAdvance(name) for name in names) + 22
        top = area.top() + HEAD
        self._bars = QRectF(area.left() + wide, top, 0, area.bottom() - FOOT - top)
        self._columns = area.right() - ERRORS - 2 * COLUMN
        self._bars.setRight(self._columns - FIGURES)
        self._dots = QRectF(area.right() - ERRORS + 40, top, ERRORS - 104, self._bars.height())
        self._paint_head(painter, area)
        self._paint_axes(painter)
        y = top
        for section in self._sections:
            heading = QRectF(area.left(), y + SECTION - ROW - 1, area.width(), ROW)
            draw_text(
                painter,
                heading,
                section.title,
                scale=0.92,
                strong=True,
                align="middle",
                behind="card",
            )
            y += SECTION
            for row in section.rows:
                line = QRectF(area.left(), y, area.width(), ROW)
                draw_text(painter, line, _title(row), align="middle")
                if row["missing"]:
                    self._paint_missing(painter, line, row)
                else:
                    self._paint_bar(painter, line, row, section.category)
                    self._paint_columns(
                        painter, line.top(), f"{row['rtf']:.3f}", f"{row['weights_mb']:.1f}"
                    )
                    self._paint_errors(painter, line, row, section.category)
                y += ROW
        self._paint_foot(painter, area)
        painter.end()

    def _paint_head(self, painter: QPainter, area: QRectF) -> None:
        draw_text(painter, area, "Scoring time of one frame", scale=1.15, strong=True)
        note = (
            "ms per frame of 10 ms, one thread, logarithmic · median of "
            f"{self._tree['rounds']} rounds in turns · × against the first rung"
        )
        draw_text(painter, area.translated(0, 24), note, token="muted", scale=0.92)
        self._paint_columns(painter, area.top() + 18, "RTF", "MB", token="muted")
        right = QRectF(self._dots.left(), area.top(), ERRORS, area.height())
        draw_text(painter, right, "Word error rate", scale=1.15, strong=True)
        words = f"{self._tree['agreement']['words']:,} words".replace(",", "\u202f")
        draw_text(painter, right.translated(0, 24), words, token="muted", scale=0.92)

    def _paint_columns(
        self, painter: QPainter, top: float, rtf: str, weights: str, token: str = "text"
    ) -> None:
        for i, text in enumerate((rtf, weights)):
            place = QRectF(self._columns + i * COLUMN, top, COLUMN, ROW)
            draw_text(painter, place, text, token=token, align="right", scale=0.95, behind="card")

    def _paint_foot(self, painter: QPainter, area: QRectF) -> None:
        note = (
            "RTF: whole run over audio time · MB: weights as the kernels hold them · word errors: line, 95 % interval "
            "of the difference from the plain net (dashed); hollow, same scores as another rung and its words; "
            "arrow, off the scale"
        )
        line = QRectF(area.left(), area.bottom() - 16, area.width(), 16)
        draw_text(painter, line, note, token="muted", scale=0.88, align="middle")

    # ---- scales -----------------------------------------------------------------------------------

    def _time_at(self, ms: float) -> float:
        low, high = self._ms
        return self._bars.left() + self._bars.width() * math.log(ms / low) / math.log(high / low)

    def _wer_at(self, rate: float) -> float:
        low, high = self._wer
        return self._dots.left() + self._dots.width() * (rate - low) / (high - low or 1.0)

    def _paint_axes(self, painter: QPainter) -> None:
        low, high = self._ms
        label = QRectF(0, self._bars.bottom() + 6, 60, 16)
        for power in range(-5, 4):
            for step in (1, 2, 5):
                ms = step * 10.0**power
                if low <= ms <= high * 1.001:
                    self._rule(painter, self._time_at(ms), f"{ms:g}", label)
        low, high = self._wer
        step = next((s for s in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if high - low <= 5 * s), 0.5)
        for k in range(math.ceil(low / step), math.floor(high / step) + 1):
            text = f"{100 * k * step:.3g} %"
            self._rule(painter, self._wer_at(k * step), text, label)
        plain = next((row for row in self._tree["rows"] if row["preset"] == PLAIN), None)
        if plain and not plain["missing"] and plain["wer"] is not None:
            x = self._wer_at(plain["wer"])
            painter.setPen(QPen(theme().color("search"), 1.2, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, self._dots.top()), QPointF(x, self._dots.bottom()))

    def _rule(self, painter: QPainter, x: float, text: str, label: QRectF) -> None:
        painter.setPen(QPen(theme().color("grid"), 1))
        painter.drawLine(QPointF(x, self._bars.top()), QPointF(x, self._bars.bottom()))
        place = label.translated(x - label.width() / 2, 0)
        draw_text(painter, place, text, token="muted", scale=0.88, align="centre")

    # ---- a row ------------------------------------------------------------------------------------

    def _paint_bar(self, painter: QPainter, line: QRectF, row: Row, category: str) -> None:
        end = self._time_at(row["ms"])
        bar = QRectF(self._bars.left(), line.top() + 4, end - self._bars.left(), ROW - 8)
        painter.setPen(Qt.PenStyle.NoPen)
        for brush in (QBrush(theme().color(category)), theme().hatch_brush(category)):
            painter.setBrush(brush)
            painter.drawRoundedRect(bar, 2, 2)
        figure = QRectF(end + 7, line.top(), FIGURES, ROW)
        text = f"{row['ms']:.{3 if row['ms'] < 0.1 else 2}f}"
        draw_text(painter, figure, text, align="middle", strong=True, scale=0.95, behind="card")
        shift = QFontMetricsF(font(0.95 * 1.1, strong=True)).horizontalAdvance(text) + 8
        if row["times_first"] is not None:
            gain = f"× {row['times_first']:.1f}"
            place = figure.translated(shift, 0)
            draw_text(
                painter, place, gain, token="muted", align="middle", scale=0.92, behind="card"
            )

    def _paint_errors(self, painter: QPainter, line: QRectF, row: Row, category: str) -> None:
        if row["wer"] is None:
            return
        y, x = line.center().y(), self._wer_at(row["wer"])
        colour = theme().color(category)
        right = self._dots.right() + 6
        low, high = (min(self._wer_at(e), right) for e in _interval(row, self._tree["rows"]))
        painter.setPen(QPen(colour, 1.6))
        if high - low > 1:
            painter.drawLine(QPointF(low, y), QPointF(high, y))
        painter.setBrush(theme().color("card") if "same_as" in row else colour)
        if x <= right:
            painter.drawEllipse(QPointF(x, y), 4.2, 4.2)
        else:
            arrow = [
                QPointF(right - 2, y - 4.5),
                QPointF(right + 5, y),
                QPointF(right - 2, y + 4.5),
            ]
            painter.drawPolygon(QPolygonF(arrow))
        place = QRectF(line.right() - 60, line.top(), 60, ROW)
        draw_text(painter, place, f"{100 * row['wer']:.1f} %", align="right", scale=0.95)

    def _paint_missing(self, painter: QPainter, line: QRectF, row: Row) -> None:
        place = QRectF(self._bars.left(), line.top(), self._dots.left() - self._bars.left(), ROW)
        text = QFontMetricsF(font(0.92)).elidedText(
            f"Not here. {row['missing']}", Qt.TextElideMode.ElideRight, place.width()
        )
        draw_text(painter, place, text, token="muted", align="middle", scale=0.92, behind="card")


def ladder_picture(
    tree: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    theme: str = "light",
    scale: float = 2.0,
) -> None:
    """Write the picture of a ladder (JSON object of `asrscope bench ladder`), without a display.

    Raises PictureError for an unknown suffix or theme, or a place that cannot be written.
    """
    origin = measured_on(tree["machine"], tree["measured_at"])

    def make() -> tuple[QWidget, Mapping[str, str]]:
        ladder = LadderPicture(tree)
        size = ladder.size() + QSize(0, CAPTION)
        whole = captioned(ladder, [caption(origin)], MARGIN)
        whole.resize(size)
        return whole, origin

    write_picture(make, out, scale=scale, theme=theme)


def _title(row: Row) -> str:
    """A preset's title less the word that its section says."""
    if row["preset"] in SHORTER:
        return SHORTER[row["preset"]]
    kind, _, rest = row["title"].partition(" · ")
    if not rest:
        return str(row["title"])
    number, rest = kind.removeprefix("Ladder "), rest[0].upper() + rest[1:]
    return f"{number}  {rest}" if number.isdigit() else rest


def _interval(row: Row, rows: Sequence[Row]) -> tuple[float, ...]:
    """Ends of what is drawn of a row's word errors; empty where there are none."""
    if row["missing"] or row["wer"] is None:
        return ()
    plain = next((other for other in rows if other["preset"] == PLAIN), None)
    ends = row["wer_change_ci95"]
    if not ends or plain is None or plain["missing"]:
        return row["wer"], row["wer"]
    return plain["wer"] + ends[0], plain["wer"] + ends[1]
