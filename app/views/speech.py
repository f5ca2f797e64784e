"""Waveform envelope and words as a plot item.

The words are on the shared time axis as long as they are readable there. When zoomed out, the
utterance at the playhead is written out below the waveform, column by column, as scoring tools
align it. Errors differ in shape as well as in colour: a substitution is boxed and underlined, an
insertion is boxed with dashes and a plus, a deletion is struck out and leaves a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.model.alignment import Token
from app.style.plain_text import write
from app.style.theme import Tokens, font, theme
from app.views.plot import PixelItem, TimePlot, bars
from app.views.words_model import Spoken, WordsModel
from pipelines.audio.word_errors import DELETED, INSERTED, SAME, SUBSTITUTED

ROW = 21
"""Height of a row of words in pixels."""

LOST_SHARE = 0.06
"""Words stay on the time axis while at most this share of those in view have no room there
(a wrong word counts three times: it is what users look for)."""

MIN_WORD = 14
"""Pixels per word below which words are not placed on the time axis."""

GAP = 5
"""Pixels between two words."""

PUSH = 44
"""A word may be moved this far right of its time to stay clear of its left neighbour."""

MISSING = "∗∗∗"
"""Shown where a spoken word has no counterpart, as in the tables of scoring tools."""


@dataclass(frozen=True)
class _Placed:
    """A word on the time axis; `text` is None if there is no room."""

    token: Token
    text: str | None
    left: float
    width: float


class SpeechItem(PixelItem):
    """Envelope and the two rows of words."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.box, z=0.0)
        self._tokens = theme()
        self._model: WordsModel | None = None
        self._plain = font(1.0)
        self._strong = font(1.0, strong=True)
        self._plain_metrics = QFontMetricsF(self._plain)
        self._strong_metrics = QFontMetricsF(self._strong)
        self._rows_on_axis: list[tuple[bool, list[_Placed]]] = []
        self.on_axis = True

    def set_model(self, model: WordsModel | None) -> None:
        """Show another model; None shows nothing."""
        self._model = model
        self._lay_out()
        self.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self._tokens = tokens
        self.update()

    def rows(self) -> tuple[QRectF, QRectF, QRectF]:
        """The areas of the envelope, the spoken words and the recognised words."""
        area = self.boundingRect()
        heard = QRectF(0, area.height() - ROW, area.width(), ROW)
        said = heard.translated(0, -ROW)
        wave = QRectF(0, 2, area.width(), max(4.0, said.top() - 8))
        return wave, said, heard

    def _lay_out(self) -> None:
        """Find a place for every word in view; decide whether the time axis has room for them."""
        self._rows_on_axis = []
        model = self._model
        if model is None:
            return
        self.on_axis = False
        words = sum(len(spoken.heard) for spoken in model.spoken)
        if words * MIN_WORD > self.boundingRect().width():
            return
        lost = total = 0
        for spoken in model.spoken:
            for said, tokens in ((True, _spread(spoken.said or ())), (False, spoken.heard)):
                placed = self._places(tokens, said)
                total += len(placed)
                lost += sum(3 if p.token.kind != SAME else 1 for p in placed if p.text is None)
                self._rows_on_axis.append((said, placed))
        self.on_axis = lost <= LOST_SHARE * total

    def _places(self, tokens: tuple[Token, ...], said: bool) -> list[_Placed]:
        metrics = self._plain_metrics if said else self._strong_metrics
        width = self.boundingRect().width()
        end = -1e9
        placed = []
        for token in tokens:
            start = self.x_of(token.first_s)
            text = "+" + token.text if token.kind == INSERTED else token.text
            long = metrics.horizontalAdvance(text)
            pad = 3 if token.kind != SAME and not said else 0
            left = max(start, end + GAP + pad)
            if left > width or left + long < 0:
                continue
            if left - start > PUSH:
                placed.append(_Placed(token, None, start, 0.0))
                continue
            placed.append(_Placed(token, text, left, long))
            end = left + long + pad
        return placed

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw envelope, error ticks, words."""
        model = self._model
        if model is None:
            return
        wave, said, heard = self.rows()
        self._paint_wave(painter, model, wave)
        if self.on_axis:
            self._paint_on_axis(painter, model, said, heard)
        elif model.current is not None:
            spoken = model.spoken[model.current]
            self._paint_bracket(painter, spoken, wave)
            self._paint_written(painter, spoken, said, heard)
        self._paint_error_ticks(painter, model, wave)

    def _paint_wave(self, painter: QPainter, model: WordsModel, wave: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(model.high))
        if not len(there):
            return
        # Loudest sample of what is in view fills the row; quiet speech is still speech.
        loudest = max(float(np.abs(model.low[there]).max()), float(model.high[there].max()), 0.05)
        middle, half = wave.center().y(), wave.height() / 2 - 1
        x = (there + 0.5) / len(model.high) * wave.width()
        top = middle - np.maximum(model.high[there] / loudest, 0.0) * half - 0.5
        bottom = middle - np.minimum(model.low[there] / loudest, 0.0) * half + 0.5
        first = last = -1.0
        if model.current is not None and not self.on_axis:
            spoken = model.spoken[model.current]
            first, last = self.x_of(spoken.first_s), self.x_of(spoken.last_s)
        inside = (x >= first) & (x < last)
        for part, token in ((~inside, "waveform"), (inside, "muted")):
            painter.setPen(QPen(self._tokens.color(token), 1))
            # Two runs lie left and right of the current utterance: no stroke joins them.
            for run in np.split(np.flatnonzero(part), np.flatnonzero(np.diff(part) > 0) + 1):
                run = run[part[run]]
                if len(run):
                    painter.drawPolyline(bars(x[run], top[run], bottom[run]))

    def _paint_bracket(self, painter: QPainter, spoken: Spoken, wave: QRectF) -> None:
        """Show which stretch the written-out words belong to."""
        left = max(0.0, self.x_of(spoken.first_s))
        right = min(wave.width() - 1, self.x_of(spoken.last_s))
        y = wave.bottom() + 3
        painter.setPen(QPen(self._tokens.color("muted"), 1))
        painter.drawLine(QLineF(left, y, right, y))
        painter.drawLine(QLineF(left, y, left, y - 3))
        painter.drawLine(QLineF(right, y, right, y - 3))

    def _paint_error_ticks(self, painter: QPainter, model: WordsModel, wave: QRectF) -> None:
        """A short thick tick under the envelope for every word that went wrong."""
        left, right = self.xs_of(model.wrong_s[:, 0]), self.xs_of(model.wrong_s[:, 1])
        seen = (right >= 0) & (left <= wave.width())
        # Ticks that would share their pixels are drawn once.
        ends = np.unique(np.round(np.stack([left[seen], right[seen]], axis=1)), axis=0)
        painter.setPen(QPen(self._tokens.color("danger"), 2))
        y = wave.bottom() - 0.5
        painter.drawLines([QLineF(a, y, max(b - 1, a + 2), y) for a, b in ends.tolist()])

    def _paint_on_axis(
        self, painter: QPainter, model: WordsModel, said_row: QRectF, heard_row: QRectF
    ) -> None:
        for said, placed in self._rows_on_axis:
            row = said_row if said else heard_row
            for place in placed:
                if place.text is None:
                    # No room at all: a dot shows that there is a word.
                    painter.setPen(QPen(self._tokens.color("muted"), 2))
                    painter.drawPoint(round(place.left), round(row.bottom() - 4))
                    continue
                self._paint_word(
                    painter, place.text, place.token.kind, place.left, place.width, row, said
                )
        for spoken in model.spoken:
            if spoken.partial and spoken.heard:
                x = self.x_of(spoken.heard[-1].last_s) + 2 * GAP
                painter.setPen(self._tokens.color("muted"))
                write(painter, heard_row.adjusted(x, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, "…")

    def _paint_word(
        self,
        painter: QPainter,
        text: str,
        kind: str,
        left: float,
        width: float,
        row: QRectF,
        said: bool,
    ) -> None:
        tokens = self._tokens
        place = QRectF(left, row.top(), width + 1, row.height())
        wrong = kind != SAME
        if wrong and not said and text != MISSING:
            box = place.adjusted(-3, 1.5, 2, -1.5)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            dashed = kind == INSERTED
            edge = QPen(tokens.color("danger"), 1, Qt.PenStyle.DashLine)
            painter.setPen(edge if dashed else Qt.PenStyle.NoPen)
            painter.setBrush(tokens.color("danger_soft"))
            painter.drawRoundedRect(box, 3, 3)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setFont(self._plain if said else self._strong)
        loud = wrong and (not said or kind == DELETED)
        ink = "danger" if loud else "muted" if said or text == MISSING else "text"
        painter.setPen(tokens.color(ink))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        write(painter, place.adjusted(0, 0, 40, 0), flags | Qt.TextFlag.TextDontClip, text)
        if kind == DELETED and said:
            y = round(row.center().y() + 1) + 0.5
            painter.drawLine(QLineF(left - 1, y, left + width + 1, y))
        elif kind == SUBSTITUTED and not said:
            y = row.bottom() - 4.5
            painter.drawLine(QLineF(left, y, left + width, y))

    def _paint_written(
        self, painter: QPainter, spoken: Spoken, said: QRectF, heard: QRectF
    ) -> None:
        """One utterance as aligned columns, as much of it as fits around the playhead."""
        cells = written_columns(spoken)
        plain, strong = self._plain_metrics, self._strong_metrics
        if not cells:
            return

        def width_of(cell: int) -> float:
            above, below = cells[cell][:2]
            return max(plain.horizontalAdvance(above), strong.horizontalAdvance(below)) + 2 * GAP

        at = self._plot_cursor_index(spoken, cells)
        first, widths = _window(width_of, len(cells), at, said.width() - 24)
        last = first + len(widths)
        x = 0.0
        painter.setPen(self._tokens.color("muted"))
        if first > 0:
            write(painter, heard, Qt.AlignmentFlag.AlignVCenter, "…")
            x = 14.0
        for (above, below, kind, _), width in zip(cells[first:last], widths, strict=True):
            self._paint_word(painter, above, kind, x, plain.horizontalAdvance(above), said, True)
            self._paint_word(painter, below, kind, x, strong.horizontalAdvance(below), heard, False)
            x += width
        if last < len(cells) or spoken.partial:
            painter.setPen(self._tokens.color("muted"))
            rest = heard.adjusted(x, 0, 0, 0)
            write(painter, rest, Qt.AlignmentFlag.AlignVCenter, "…")

    def _plot_cursor_index(self, spoken: Spoken, cells: list[tuple[str, str, str, float]]) -> int:
        cursor = self.box.axis.cursor
        if spoken.partial or not spoken.first_s <= cursor <= spoken.last_s:
            return len(cells) - 1 if spoken.partial else 0
        return max((i for i, cell in enumerate(cells) if cell[3] < cursor), default=0)


def _spread(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Said words that share a guessed place, side by side within it."""
    result: list[Token] = []
    start = 0
    while start < len(tokens):
        end = start + 1
        place = (tokens[start].first_s, tokens[start].last_s)
        while end < len(tokens) and (tokens[end].first_s, tokens[end].last_s) == place:
            end += 1
        step = (place[1] - place[0]) / (end - start)
        for i in range(start, end):
            first = place[0] + (i - start) * step
            result.append(Token(tokens[i].text, tokens[i].kind, first, first + step))
        start = end
    return tuple(result)


def written_columns(spoken: Spoken) -> list[tuple[str, str, str, float]]:
    """Columns (said, heard, kind, second) of an utterance."""
    if spoken.columns is None:
        return [("", token.text, SAME, token.first_s) for token in spoken.heard]
    cells = []
    second = spoken.first_s
    for said, heard in spoken.columns:
        if heard is not None:
            second = heard.first_s
        kind = next(token.kind for token in (said, heard) if token is not None)
        above, below = (MISSING if token is None else token.text for token in (said, heard))
        cells.append((above, below, kind, second))
    return cells


def _window(
    width_of: Callable[[int], float], count: int, at: int, room: float
) -> tuple[int, list[float]]:
    """Index of the first of those of `count` cells around `at` that fit into `room` pixels, and their widths."""
    first = at
    widths = deque([width_of(at)])
    used = widths[0]
    before, after = at > 0, at + 1 < count
    while before or after:
        if before:
            width = width_of(first - 1)
            if before := used + width <= room:
                first, used = first - 1, used + width
                widths.appendleft(width)
        if after:
            width = width_of(first + len(widths))
            if after := used + width <= room:
                used += width
                widths.append(width)
        before, after = before and first > 0, after and first + len(widths) < count
    return first, list(widths)
