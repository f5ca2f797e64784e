"""Words on the screen: where their texts stand on the time axis, how one is painted, and the sentence at the playhead.

Texts stand at their time, on some rows, never over another. Places are whole pixels counted from the start of the
session, not from the left of the chart: a range that moves leaves them where they are. So each utterance is laid out
once; only the one under way is laid out again.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.time_plot import GUTTER, MARGIN
from app.model.alignment import Token
from app.style.plain_text import AT_LEFT, AT_RIGHT, write
from app.style.theme import font, text_width, theme
from app.views.words_model import Spoken
from pipelines.audio.word_errors import DELETED, INSERTED, SAME, SUBSTITUTED

GAP = 6  # Pixels between two words of a row
ASIDE = 10  # Largest distance of a word from its time, pixels
REMEMBERED = 256  # Utterances whose places are kept: more than are ever in view with words
NOWHERE = -(1 << 40)  # Where a row ends on which nothing stands


class Placed(NamedTuple):
    """A word on the time axis: its text from pixel `left` on, `width` pixels, on a row (0: the upper one)."""

    token: Token
    text: str
    left: int
    width: int
    row: int


def tokens_of(spoken: Spoken) -> tuple[Token, ...]:
    lost = [token for token in spoken.said or () if token.kind == DELETED]
    return tuple(sorted([*spoken.heard, *lost], key=lambda token: token.first_s))


class WordPlaces:
    """Lays out utterance after utterance, remembering those that are as they were; `wide`: pixels of a text."""

    def __init__(self, wide: Callable[[str], float]) -> None:
        self._wide = wide
        self._laid_out = lru_cache(REMEMBERED)(self._lay_out)
        self.forget = self._laid_out.cache_clear

    def place(self, spoken: Iterable[Spoken], pixels_per_s: float, first: int, width: int, rows: int) -> list[Placed]:
        """Words of utterances that are whole in view, from pixel `first` on in a chart of `width` pixels and `rows`."""
        found: list[Placed] = []
        ends = [NOWHERE] * rows
        for one in spoken:
            # Only what reaches into it matters of the utterance before.
            start = math.floor(one.first_s * pixels_per_s) - ASIDE - GAP
            placed = self._laid_out(one, pixels_per_s, tuple(end if end > start else NOWHERE for end in ends))
            ends = [max((p.left + p.width for p in placed if p.row == row), default=ends[row]) for row in range(rows)]
            found += placed
        # Made anew rather than replaced, which takes four times as long.
        seen = [
            Placed(token, text, left - first, wide, row)
            for token, text, left, wide, row in found
            if -wide < left - first < width
        ]
        return _within(seen, width, rows)

    def _lay_out(self, spoken: Spoken, pixels_per_s: float, ends: tuple[int, ...]) -> tuple[Placed, ...]:
        """Find room for as many words as possible, the wrong ones first: they are what users look for."""
        tokens = tokens_of(spoken)
        order = sorted(range(len(tokens)), key=lambda i: (tokens[i].kind == SAME, i))
        taken: list[list[tuple[int, int]]] = [[(NOWHERE, end)] for end in ends]
        found: dict[int, Placed] = {}
        for index in order:
            token = tokens[index]
            text = "+" + token.text if token.kind == INSERTED else token.text
            start, long = round(token.first_s * pixels_per_s), math.ceil(self._wide(text))
            rooms = [(_room(row, start, long), number) for number, row in enumerate(taken)]
            there = [(left, number) for left, number in rooms if left is not None]
            if there:
                left, number = min(there, key=lambda place: abs(place[0] - start))
                taken[number].append((left, left + long))
                found[index] = Placed(token, text, left, long, number)
        return tuple(found[index] for index in sorted(found))


def _room(taken: list[tuple[int, int]], start: int, long: int) -> int | None:
    """Where a text fits less than `ASIDE` pixels from `start`, the nearest place first; None where nowhere."""
    near = [(begin, end) for begin, end in taken if end + GAP > start - ASIDE and begin - GAP < start + long + ASIDE]
    places = [start, *(end + GAP for _, end in near), *(begin - GAP - long for begin, _ in near)]
    for left in sorted(places, key=lambda x: abs(x - start)):
        if abs(left - start) >= ASIDE:
            return None
        if all(left >= end + GAP or left + long + GAP <= begin for begin, end in near):
            return left
    return None


def _within(placed: list[Placed], width: int, rows: int) -> list[Placed]:
    """Leave out what the ends of the chart would cut off; what nearly fits moves inside where it has room."""
    found = []
    for row in range(rows):
        here = sorted((one for one in placed if one.row == row), key=lambda one: one.left)
        for number, one in enumerate(here):
            after = here[number + 1].left - GAP if number + 1 < len(here) else width
            before = here[number - 1].left + here[number - 1].width + GAP if number else 0
            left = min(max(one.left, 0), width - one.width)
            moved = abs(left - one.left)
            if left == one.left or (moved < ASIDE and max(before, 0) <= left and left + one.width <= min(after, width)):
                found.append(one if not moved else one._replace(left=left))
    return sorted(found, key=lambda one: one.token.first_s)


def paint_word(painter: QPainter, text: str, kind: str, place: QRectF, face: QFont) -> None:
    """One word of a hypothesis or, where `kind` says that it was deleted, of the reference."""
    tokens = theme()
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
    write(painter, place.adjusted(0, 0, 40, 0), AT_LEFT | Qt.TextFlag.TextDontClip, text)
    if kind == DELETED:
        y = round(place.center().y() + 1) + 0.5
        painter.drawLine(QLineF(place.left() - 1, y, place.right() + 1, y))
    elif kind == SUBSTITUTED:
        y = place.bottom() - 2.5
        painter.drawLine(QLineF(place.left(), y, place.right(), y))


ROW = 19  # Height of a row in pixels
AROUND = 4  # Pixels left and right of a word
MISSING = "∗∗∗"  # Shown where a word has no counterpart, as in the tables of scoring tools
LATER = 0.45  # Opacity of words after the playhead


class Sentence(QWidget):
    """Two rows: what was said and what was recognised."""

    def __init__(self) -> None:
        super().__init__()
        self._spoken: Spoken | None = None
        self._cursor_s = 0.0
        self._looks: tuple[object, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * ROW + 2)

    def show_spoken(self, spoken: Spoken | None, cursor_s: float = 0.0) -> None:
        self._spoken, self._cursor_s = spoken, cursor_s
        # Painting it takes as long as the chart.
        looks: tuple[object, ...] = ()
        if spoken is not None:
            cells = written_columns(spoken)
            later = sum(cell[3] >= cursor_s for cell in cells)
            inside = spoken.first_s <= cursor_s <= spoken.last_s
            looks = cells, later, inside, spoken.partial, spoken.columns is None
        if looks != self._looks:
            self._looks = looks
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        spoken = self._spoken
        if spoken is None:
            return
        room = self.width() - GUTTER - MARGIN
        with QPainter(self) as painter:
            painter.setFont(font(0.85))
            painter.setPen(theme().color("muted"))
            # Nothing is said of a reference that there is not.
            reference = "" if spoken.columns is None else self.tr("reference")
            for row, name in enumerate((reference, self.tr("hypothesis"))):
                area = QRectF(0, 2 + row * ROW, GUTTER - 4, ROW)
                write(painter, area, AT_RIGHT, name)
            self._paint_words(painter, spoken, float(room))

    def _paint_words(self, painter: QPainter, spoken: Spoken, room: float) -> None:
        cells = written_columns(spoken)
        if not cells:
            return

        def width_of(cell: int) -> float:
            above, below = cells[cell][:2]
            return max(text_width(above, 0.95), text_width(below, 0.95, strong=True)) + 2 * AROUND

        dots = text_width("…", 0.95, strong=True) + 2 * AROUND
        first, end = _window(width_of, len(cells), self._current_cell(spoken, cells), room - 2 * dots)
        x = float(GUTTER)
        if first > 0:
            self._paint_dots(painter, x)
            x += dots
        for cell in range(first, end):
            above, below, kind, second = cells[cell]
            painter.setOpacity(1.0 if second < self._cursor_s else LATER)
            for row, text in enumerate((above, below)):
                wide = text_width(text, 0.95, strong=row == 1)
                place = QRectF(round(x + AROUND / 2), 2 + row * ROW, wide, ROW)
                self._paint_word(painter, text, kind, place, row)
            x += width_of(cell)
        painter.setOpacity(1.0)
        if end < len(cells) or spoken.partial:
            self._paint_dots(painter, x)

    def _paint_word(self, painter: QPainter, text: str, kind: str, place: QRectF, row: int) -> None:
        """The reference is quiet but for what was lost of it; the hypothesis shows its errors."""
        face = font(0.95, strong=row == 1)
        if text != MISSING and (row == 1 or kind == DELETED):
            paint_word(painter, text, kind, place, face)
            return
        painter.setFont(face)
        painter.setPen(theme().color("muted"))
        write(painter, place.adjusted(0, 0, 40, 0), AT_LEFT | Qt.TextFlag.TextDontClip, text)

    def _paint_dots(self, painter: QPainter, x: float) -> None:
        painter.setFont(font(0.95, strong=True))
        painter.setPen(theme().color("muted"))
        write(painter, QRectF(x, 2 + ROW, 20, ROW), Qt.AlignmentFlag.AlignVCenter, "…")

    def _current_cell(self, spoken: Spoken, cells: list[tuple[str, str, str, float]]) -> int:
        if spoken.partial:
            return len(cells) - 1
        if not spoken.first_s <= self._cursor_s <= spoken.last_s:
            return 0
        return max((i for i, cell in enumerate(cells) if cell[3] < self._cursor_s), default=0)


def written_columns(spoken: Spoken) -> list[tuple[str, str, str, float]]:
    """The columns (reference word, hypothesis word, kind, second) of an utterance."""
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


def _window(width_of: Callable[[int], float], count: int, at: int, room: float) -> tuple[int, int]:
    """The first of those of `count` cells around `at` that fit into `room` pixels, and the one after the last."""
    first, end, used = at, at + 1, width_of(at)
    sides = deque([-1, 1])
    while sides:
        side = sides.popleft()
        cell = first - 1 if side < 0 else end
        if 0 <= cell < count and used + width_of(cell) <= room:
            used += width_of(cell)
            first, end = min(first, cell), max(end, cell + 1)
            sides.append(side)
    return first, end
