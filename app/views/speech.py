"""Waveform envelope and, under it, the recognised words at their time, as plot items.

Every word has a line as long as it lasts. Its text stands there too where there is room: never elsewhere, never over
another. Words take turns on two rows; wrong ones find their place first, since they are what users look for. Errors
differ in shape as well as in colour: a substitution is boxed and underlined, an insertion boxed with dashes and a plus;
where a reference word was deleted, it stands struck out.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QImage, QPainter, QPen

from app.charts.items import PixelItem, RasterItem, bars
from app.charts.pixels import Stills, still_scale
from app.charts.raster import between, opaque, uprights
from app.charts.time_plot import TimePlot
from app.model.alignment import Token
from app.model.spectrum import ABSENT_DB, BANDS, TOP_HZ, loudest_of
from app.style.theme import blended, font, text_width, theme
from app.views.word_places import Placed, WordPlaces, paint_word
from app.views.words_model import WordsModel
from profiler.analysis.lod.columns import column_grid
from profiler.arrays import F64, U32, Array
from profiler.clock import FRAME_S

RANGE_DB = 60  # What is so much quieter than the loudest in view has no ink
SHADES = 64


class Spectrogram(RasterItem):
    """Columns of levels, the low frequencies at the bottom."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot)
        self._levels: Array = np.empty((0, BANDS), np.int8)
        self._loudest = ABSENT_DB
        self.area = QRectF()  # Where it is, in pixels from the top of the plot; empty where it is not shown

    def show_levels(self, levels: Array, seconds: tuple[float, float], area: QRectF, height: float) -> None:
        """Show levels [columns, BANDS] in dB over these seconds, in an area of a plot of this height, in pixels."""
        self._levels, self.area = levels, area
        self._loudest = int(levels.max(initial=ABSENT_DB))
        self.show_columns(*seconds, height - area.bottom(), height - area.top(), levels)

    def look(self) -> object:
        return self._loudest

    def frequency_at(self, y: float) -> float | None:
        """The frequency (Hz) at a height of the plot in pixels from its top; None outside."""
        inside = self.area.top() <= y <= self.area.bottom() and not self.area.isEmpty()
        return TOP_HZ * (self.area.bottom() - y) / self.area.height() if inside else None

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        levels = loudest_of(self._levels[at].T, np.arange(height) * BANDS // height)[::-1]
        share = (levels.astype(np.float32) - (self._loudest - RANGE_DB)) / RANGE_DB
        shades = (np.clip(share, 0.0, 1.0) * (SHADES - 1)).astype(np.int64)
        card, ink = theme().card, theme().text
        inks = np.array([opaque(blended(card, ink, at / (SHADES - 1))) for at in range(SHADES)], np.uint32)
        return np.ascontiguousarray(np.where(levels == ABSENT_DB, np.uint32(0), inks[shades]))

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        """A picture within the drawing: it has no shapes."""
        pixels = self.draw_pixels(max(1, round(place.height())), 1, slice(0, len(self._levels)))
        rows, across = pixels.shape
        image = QImage(pixels.data, across, rows, 4 * across, QImage.Format.Format_ARGB32_Premultiplied)
        painter.drawImage(place, image.copy())


ROW = 17  # Height of a row of words in pixels
ROWS = 2  # Rows of words; where there is little height, one
ROOM_FOR_ROWS = 78  # Height of the plot from which there are `ROWS` rows
LEAST_PER_WORD = 7  # Pixels per word below which no word is placed
MARKS = 5  # Height of the lines that show how long each word lasts
THICK = 3  # Pixels of the line of a word that went wrong
LOUD_STEPS = 4  # Steps of the wave's scale by which it doubles
NO_SOUND = 2.0  # In place of a sample where there is none: samples are −1…1


class SpokenItem(PixelItem):
    """The words that have room, whole: they come into view and go out of it one by one, and do not scroll by parts."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=2.0)
        self._model: WordsModel | None = None
        self._strong = font(0.95, strong=True)
        self._places = WordPlaces(partial(text_width, scale=0.95, strong=True))
        self._stills = Stills()
        self.placed: list[Placed] = []

    def set_model(self, model: WordsModel | None) -> None:
        """Show another model; None shows nothing, and nothing of the last one is kept."""
        self._model = model
        if model is None:
            self._places.forget()
        self.lay_out()

    def shown_of(self) -> tuple[int, int]:
        """How many of the words that lie wholly in view have their texts, and of how many."""
        if self._model is None:
            return 0, 0
        first, last = self.plot.visible
        words = (self._model.right_s, self._model.wrong_s)
        of = sum(int(np.count_nonzero((s[:, 0] >= first) & (s[:, 1] <= last))) for s in words)
        return sum(one.token.first_s >= first and one.token.last_s <= last for one in self.placed), of

    def word_at(self, at: QPointF) -> Token | None:
        """Return the word whose text is at a position of the plot; the text may be drawn a little off its time."""
        row = int((at.y() - self.areas()[1].top()) // ROW)
        here = (one for one in self.placed if one.row == row and one.left <= at.x() < one.left + one.width)
        return next((one.token for one in here), None)

    @property
    def rows(self) -> int:
        return ROWS if self.boundingRect().height() >= ROOM_FOR_ROWS else 1

    def areas(self) -> tuple[QRectF, QRectF]:
        area = self.boundingRect()
        height = self.rows * ROW if self.placed else 0.0
        words = QRectF(0, area.height() - height, area.width(), height)
        return QRectF(0, 2, area.width(), max(4.0, words.top() - MARKS - 3)), words

    def lay_out(self) -> None:
        self.placed, model = [], self._model
        if model is None:
            return
        (first_s, last_s), columns = self.plot.visible, self.plot.columns
        seen = model.right_s, model.wrong_s
        words = sum(np.count_nonzero((s[:, 1] >= first_s) & (s[:, 0] <= last_s)) for s in seen)
        # Zoomed out far, the few that would fit say nothing. The wrong ones have their marks.
        if words * LEAST_PER_WORD <= columns:
            first, frames = column_grid(first_s / FRAME_S, last_s / FRAME_S, columns)
            self.placed = self._places.place(model.spoken, 1.0 / (frames * FRAME_S), first, columns, self.rows)

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        top = self.areas()[1].top()
        scale = still_scale(painter)
        for place in self.placed:
            area = QRectF(place.left, top + place.row * ROW, place.width + 1, ROW)
            text, kind = place.text, place.token.kind
            draw = partial(paint_word, text=text, kind=kind, place=area, face=self._strong)
            # A box reaches further than the text.
            self._stills.paint(painter, area.adjusted(-3, 0, 3, 0), (text, kind), draw, scale)


class Wave(RasterItem):
    """The envelope of the sound: lowest and highest sample per column, louder where the current utterance is."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot)
        self._low = self._high = np.empty(0)
        self._inside = np.empty(0, bool)

    def show_model(self, model: WordsModel | None, row: QRectF, height: float) -> None:
        there = np.empty(0) if model is None else np.flatnonzero(np.isfinite(model.high))
        if model is None or not len(there):
            self.show_nothing()
            return
        # The loudest sample in view nearly fills the row, and quiet speech is still speech. In steps: what is in view
        # changes all the time, and of another scale every column would be another.
        loudest = max(float(np.abs(model.low[there]).max()), float(model.high[there].max()), 0.05)
        loudest = min(2.0 ** (math.ceil(LOUD_STEPS * math.log2(loudest)) / LOUD_STEPS), 1.0)
        self._low, self._high = model.low / loudest, model.high / loudest
        columns = len(model.high)
        self._inside = np.zeros(columns, bool)
        if (now := model.now) is not None:
            middles = model.first_s + (np.arange(columns) + 0.5) * (model.last_s - model.first_s) / columns
            self._inside = (middles >= now.first_s) & (middles < now.last_s)
        values = np.nan_to_num(np.stack([self._low, self._high, self._inside], axis=1), nan=NO_SOUND)
        self.show_columns(model.first_s, model.last_s, height - row.bottom(), height - row.top(), values)

    def _ends(self, height: float) -> tuple[F64, F64]:
        middle, half = height / 2, height / 2 - 1
        top = middle - np.maximum(self._high, 0.0) * half - 0.5
        return top, middle - np.minimum(self._low, 0.0) * half + 0.5

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        inks = np.array([opaque(color) for color in (theme().waveform, theme().muted)])
        top, bottom = (ends[at] for ends in self._ends(height / scale))
        pixels = np.zeros((height, len(top)), np.uint32)
        uprights(pixels, *between(top, bottom, scale), inks[self._inside[at].astype(np.int64)])
        return pixels

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        top, bottom = (place.top() + y for y in self._ends(place.height()))
        x = place.left() + (np.arange(len(top)) + 0.5) / len(top) * place.width()
        for part, token in ((~self._inside, "waveform"), (self._inside, "muted")):
            painter.setPen(QPen(theme().color(token), 1))
            there = part & np.isfinite(top)
            # Two runs lie left and right of the current utterance: no stroke joins them.
            for run in np.split(np.arange(len(top)), np.flatnonzero(np.diff(there)) + 1):
                if there[run[0]]:
                    painter.drawPolyline(bars(x[run], top[run], bottom[run]))


class Marks(RasterItem):
    """A line as long as each word lasts; a thick one where it went wrong."""

    def show_model(self, model: WordsModel | None, top: float, height: float) -> None:
        """Show the words of a model from `top` on in a plot of this height, in pixels; None shows nothing."""
        if model is None:
            self.show_nothing()
            return
        columns = len(model.high)
        first, width = column_grid(model.first_s, model.last_s, columns)
        on = [covered(words / width - first, columns) for words in (model.right_s, model.wrong_s)]
        self.show_columns(model.first_s, model.last_s, height - top - THICK, height - top, np.stack(on, axis=1))

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        pixels = np.zeros((height, at.stop - at.start), np.uint32)
        right, wrong = self._values[at].T > 0
        pixels[scale : 2 * scale, right] = opaque(theme().muted)
        pixels[:, wrong] = opaque(theme().danger)
        return pixels

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        y, across = place.center().y(), place.width() / len(self._values)
        for on, token, thick in zip(self._values.T, ("muted", "danger"), (1, THICK), strict=True):
            painter.setPen(QPen(theme().color(token), thick))
            ends = place.left() + across * np.flatnonzero(np.diff(on, prepend=0.0, append=0.0))
            painter.drawLines([QLineF(a, y, b, y) for a, b in ends.reshape(-1, 2).tolist()])


def covered(ends: F64, width: int) -> F64:
    """1 for each of `width` pixels that intervals `ends` [intervals, 2] cover; the last of three is left free."""
    first = np.round(ends[:, 0]).astype(np.int64)
    last = np.maximum(np.round(ends[:, 1]).astype(np.int64) - 1, first + 1)
    seen = (last > 0) & (first < width)
    begun = np.bincount(np.maximum(first[seen], 0), minlength=width + 1)
    change = begun - np.bincount(np.minimum(last[seen], width), minlength=width + 1)
    return (np.cumsum(change[:-1]) > 0).astype(np.float64)
