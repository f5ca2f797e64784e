"""Waveform envelope and, under it, the recognised words at their time, as plot items.

Every word has a line as long as it lasts. Its text stands there too where there is room: never elsewhere, never over
another. Words take turns on two rows; wrong ones find their place first, since they are what users look for. The
sentence as a whole is written out below the chart (`app.views.sentence`). Errors differ in shape as well as in
colour: a substitution is boxed and underlined, an insertion boxed with dashes and a plus; where a reference word
was deleted, it stands struck out.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from app.style.plain_text import write
from app.style.theme import Tokens, font
from app.views.columns import column_grid
from app.views.painting import Stamps, Still, bars, blit, is_vector, raster_scale, stamp_scale
from app.views.plot import TimePlot
from app.views.plot_area import PixelItem
from app.views.strips import Strips, between, opaque, uprights
from app.views.word_places import Placed, WordPlaces
from app.views.words_model import WordsModel
from pipelines.audio.word_errors import DELETED, INSERTED, SAME, SUBSTITUTED
from profiler.arrays import F64, I64, U32, Bool
from profiler.frames import FRAME_S

ROW = 17
"""Height of a row of words in pixels."""

ROWS = 2
"""Rows of words; where there is little height, one."""

ROOM_FOR_ROWS = 78
"""Height of the plot from which there are `ROWS` rows."""

LEAST_PER_WORD = 7
"""Pixels per word below which no word is placed."""

MARKS = 5
"""Height of the lines that show how long each word lasts."""


BESIDE = 4
"""Pixels that the box of a word may reach beyond its text."""

WIDTHS_AHEAD = 8
"""Runs of pixels are kept of so many widths of a chart at most."""

KEPT = 1024
"""Texts whose pixels and widths are kept."""


class SpokenItem(PixelItem):
    """The words that have room, whole: they come into view and go out of it one by one, and do not scroll by parts."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.box, z=0.0)
        self._model: WordsModel | None = None
        self._strong = font(0.95, strong=True)
        wide = QFontMetricsF(self._strong).horizontalAdvance
        self._places = WordPlaces(lru_cache(KEPT)(wide))
        self._stamps = Stamps(KEPT)
        self._words = Still()
        self.placed: list[Placed] = []

    def set_model(self, model: WordsModel | None) -> None:
        """Show another model; None shows nothing, and nothing of the last one is kept."""
        self._model = model
        if model is None:
            self._places.forget()
            self._words.drop()
        self.lay_out()
        self.update()

    @property
    def rows(self) -> int:
        """Rows of words at this height."""
        return ROWS if self.boundingRect().height() >= ROOM_FOR_ROWS else 1

    def areas(self) -> tuple[QRectF, QRectF]:
        """The areas of the envelope and of the words."""
        area = self.boundingRect()
        height = self.rows * ROW if self.placed else 0.0
        words = QRectF(0, area.height() - height, area.width(), height)
        return QRectF(0, 2, area.width(), max(4.0, words.top() - MARKS - 3)), words

    def lay_out(self) -> None:
        """Find places for the range in view."""
        self.placed = []
        model = self._model
        if model is None:
            return
        first_s, last_s = self.box.visible
        seen = model.right_s, model.wrong_s
        words = sum(np.count_nonzero((s[:, 1] >= first_s) & (s[:, 0] <= last_s)) for s in seen)
        columns = self.box.columns
        if words * LEAST_PER_WORD > columns:
            # Zoomed out far: the few that would fit say nothing. The wrong ones have their marks.
            return
        first, frames = column_grid(first_s / FRAME_S, last_s / FRAME_S, columns)
        self.placed = self._places.place(
            model.spoken, 1.0 / (frames * FRAME_S), first, columns, self.rows
        )

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw the words."""
        if self._model is not None:
            self._paint_words(painter, self.areas()[1].top())

    def _paint_words(self, painter: QPainter, top: float) -> None:
        """All words in one picture, which moves as a whole until one comes into view or goes out of it."""
        wide, scale = round(self.boundingRect().width()), stamp_scale(painter)
        # Those at the ends of the chart stay inside a little longer than the others move.
        inner = [p for p in self.placed if 0 < p.left < wide - p.width]
        for place in self.placed:
            if not 0 < place.left < wide - place.width:
                self._paint_placed(painter, place, top + place.row * ROW, scale)
        if not inner:
            return
        begin = min(p.left for p in inner) - BESIDE
        end = max(p.left + p.width for p in inner) + BESIDE + 1
        looks = [(p.text, p.token.kind, p.left - begin, p.row) for p in inner]

        def draw(within: QPainter) -> None:
            scale = stamp_scale(within)
            for place in inner:
                self._paint_placed(within, place, top + place.row * ROW, scale)

        area = QRectF(begin, top, end - begin, self.rows * ROW)
        self._words.paint(painter, area, (self._tokens.name, looks), draw)

    def _paint_placed(self, painter: QPainter, place: Placed, top: float, scale: float) -> None:
        """A word where it stands; its pixels are the same wherever that is."""

        def draw(within: QPainter) -> None:
            row = QRectF(BESIDE, 0, place.width + 1, ROW)
            paint_word(within, self._tokens, place.text, place.token.kind, row, self._strong)

        area = QRectF(place.left - BESIDE, top, place.width + 1 + 2 * BESIDE, ROW)
        looks = (self._tokens.name, place.text, place.token.kind)
        self._stamps.paint(painter, area, looks, draw, scale)


class SpeechItem(PixelItem):
    """Envelope and the lines of the words, which scroll, and over them the words that have room."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot.canvas, z=0.0)
        self.words = SpokenItem(plot)
        self._model: WordsModel | None = None
        self._strips = Strips()
        self._right, self._wrong = Runs(), Runs()

    def set_model(self, model: WordsModel | None) -> None:
        """Show another model; None shows nothing, and nothing of the last one is kept."""
        self._model = model
        if model is None:
            self._right, self._wrong = Runs(), Runs()
        self.words.set_model(model)
        self.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        super().apply_theme(tokens)
        self.words.apply_theme(tokens)

    @property
    def placed(self) -> list[Placed]:
        """The words that have room, and where."""
        return self.words.placed

    def scroll(self) -> bool:
        """Lay the words out for a range that moved; whether the rest can be shown as it was drawn."""
        before = self.areas()
        self.words.lay_out()
        return self.areas() == before

    def areas(self) -> tuple[QRectF, QRectF]:
        """The areas of the envelope and of the words."""
        wave, words = self.words.areas()
        wave.setWidth(self.boundingRect().width())
        return wave, words

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw envelope and lines."""
        model = self._model
        if model is None:
            return
        wave, _ = self.areas()
        self._paint_wave(painter, model, wave)
        self._paint_lines(painter, model, wave.bottom() + MARKS - 1)

    def _paint_wave(self, painter: QPainter, model: WordsModel, wave: QRectF) -> None:
        there = np.flatnonzero(np.isfinite(model.high))
        if not len(there):
            return
        # Loudest sample of what is in view fills the row; quiet speech is still speech.
        loudest = max(float(np.abs(model.low[there]).max()), float(model.high[there].max()), 0.05)
        middle, half = wave.height() / 2, wave.height() / 2 - 1
        first = last = -1.0
        if model.current is not None:
            spoken = model.spoken[model.current]
            first, last = self.x_of(spoken.first_s), self.x_of(spoken.last_s)
        x = (np.arange(len(model.high)) + 0.5) / len(model.high) * wave.width()
        inside = (x >= first) & (x < last)

        def ends(low: F64, high: F64) -> tuple[F64, F64]:
            """Top and bottom of columns, in pixels of the row."""
            top = middle - np.maximum(high / loudest, 0.0) * half - 0.5
            return top, middle - np.minimum(low / loudest, 0.0) * half + 0.5

        if is_vector(painter):
            top, bottom = (y + wave.top() for y in ends(model.low[there], model.high[there]))
            self._paint_strokes(painter, x[there], top, bottom, inside[there])
            return
        scale = raster_scale(painter)
        height = max(1, round(wave.height() * scale))
        number, width = column_grid(model.first_s, model.last_s, len(model.high))
        inks = np.array([opaque(color) for color in (self._tokens.waveform, self._tokens.muted)])

        def draw(begin: int, end: int) -> U32:
            pixels = np.zeros((height, (end - begin) * scale), np.uint32)
            strokes = between(*ends(model.low[begin:end], model.high[begin:end]), scale)
            uprights(pixels, *strokes, inks[inside[begin:end].astype(np.int64)], scale)
            return pixels

        rows = np.stack([model.low, model.high, inside], axis=1)
        self._strips.update((self._tokens.name, width, loudest), number, rows, height, scale, draw)
        blit(painter, wave, self._strips)

    def _paint_strokes(
        self, painter: QPainter, x: F64, top: F64, bottom: F64, inside: Bool
    ) -> None:
        """The envelope as shapes; `inside`: in the current utterance."""
        for part, token in ((~inside, "waveform"), (inside, "muted")):
            painter.setPen(QPen(self._tokens.color(token), 1))
            # Two runs lie left and right of the current utterance: no stroke joins them.
            for run in np.split(np.flatnonzero(part), np.flatnonzero(np.diff(part) > 0) + 1):
                run = run[part[run]]
                if len(run):
                    painter.drawPolyline(bars(x[run], top[run], bottom[run]))

    def _paint_lines(self, painter: QPainter, model: WordsModel, y: float) -> None:
        """A line as long as each word lasts; a thick one where it went wrong."""
        width = round(self.boundingRect().width())
        first, frames = column_grid(model.first_s / FRAME_S, model.last_s / FRAME_S, max(1, width))
        scale = 1.0 / (frames * FRAME_S)
        for kept, seconds, token, thick in (
            (self._right, model.right_s, "muted", 1),
            (self._wrong, model.wrong_s, "danger", 3),
        ):
            runs = kept.within(seconds, scale, first, width)
            painter.setPen(QPen(self._tokens.color(token), thick))
            painter.drawLines([QLineF(a, y, b, y) for a, b in runs.tolist()])


class Runs:
    """Runs of pixels that intervals of seconds cover, kept while these and the scale are the same: a range that moves
    shows the same ones at another place.
    """

    def __init__(self) -> None:
        self._known: tuple[F64, float, I64] | None = None

    def within(self, seconds: F64, scale: float, first: int, width: int) -> I64:
        """Runs [runs, 2] within [0, width), as `covered` gives them.

        Args:
            seconds: intervals [intervals, 2], which nobody changes.
            scale: pixels per second.
            first: pixel of the time axis at the left of the chart.
            width: pixels of the chart.
        """
        if not len(seconds):
            return np.empty((0, 2), np.int64)
        known = self._known
        if known is None or known[0] is not seconds or known[1] != scale:
            ends = seconds * scale
            origin = math.floor(ends.min())
            room = math.ceil(ends.max()) - origin + 2
            if room > WIDTHS_AHEAD * width:
                # Zoomed in so far that most of it is not in view.
                return covered(ends - first, width)
            known = self._known = seconds, scale, covered(ends - origin, room) + origin
        runs = known[2] - first
        return np.clip(runs[(runs[:, 1] > 0) & (runs[:, 0] < width)], 0, width)


def covered(ends: F64, width: int) -> I64:
    """Runs of pixels [runs, 2] that intervals `ends` [intervals, 2] cover within [0, width), each a pixel at least.

    A pixel is left free after each interval that has three, so that neighbours are seen as two.
    """
    first = np.round(ends[:, 0]).astype(np.int64)
    last = np.maximum(np.round(ends[:, 1]).astype(np.int64) - 1, first + 1)
    seen = (last > 0) & (first < width)
    begun = np.bincount(np.maximum(first[seen], 0), minlength=width + 1)
    change = begun - np.bincount(np.minimum(last[seen], width), minlength=width + 1)
    on = np.concatenate([[0], np.cumsum(change[:-1]) > 0, [0]])
    edges = np.flatnonzero(np.diff(on))
    return edges.reshape(-1, 2)


def paint_word(
    painter: QPainter, tokens: Tokens, text: str, kind: str, place: QRectF, face: QFont
) -> None:
    """One word of a hypothesis or, where `kind` says that it was deleted, of the reference."""
    if kind in (SUBSTITUTED, INSERTED):
        box = place.adjusted(-2, 1.5, 1, -1.5)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        edge = QPen(tokens.color("danger"), 1, Qt.PenStyle.DashLine)
        painter.setPen(edge if kind == INSERTED else Qt.PenStyle.NoPen)
        painter.setBrush(tokens.color("danger_soft"))
        painter.drawRoundedRect(box, 3, 3)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setFont(face)
    painter.setPen(tokens.color("text" if kind == SAME else "danger"))
    flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
    write(painter, place.adjusted(0, 0, 40, 0), flags | Qt.TextFlag.TextDontClip, text)
    if kind == DELETED:
        y = round(place.center().y() + 1) + 0.5
        painter.drawLine(QLineF(place.left() - 1, y, place.right() + 1, y))
    elif kind == SUBSTITUTED:
        y = place.bottom() - 2.5
        painter.drawLine(QLineF(place.left(), y, place.right(), y))
