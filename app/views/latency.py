"""Latency of a stream: for each word, at its time, how long after its end it was shown, and what it waited for.

A bar per word, at most as wide as the word is long: buffering, emission, queue, compute and other programs up to the
moment when it was shown first; for the last word before an endpoint also until it was final. A diamond is where a word
became stable later than it was shown.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from app.charts.items import Levels, PixelItem, Remark
from app.charts.legend import Legend, ReadoutLine, paint_spike
from app.charts.scale import Scale, robust_top
from app.charts.time_plot import TimePlot
from app.model import word_latency
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.model.word_latency import PARTS, WordLatency, milliseconds
from app.style.plain_text import Elided, write
from app.style.theme import font, text_width, theme
from app.views.chart import ChartView
from app.views.table_twin import Table
from app.views.words_model import MAX_LETTERS
from profiler.arrays import I64
from profiler.clock import FRAME_S
from profiler.plain import clock, one_line
from profiler.session.facts import setting
from profiler.session.model import Marker
from profiler.session.reader import Session

tr = partial(QCoreApplication.translate, "LatencyView")

COLORS = {  # Part → category whose colour and hatch it has, from the bottom of a bar to its top
    "buffering": "frontend",
    "emission": "search",
    "queue": "unexplained",
    "compute": "compute",
    "other_programs": "other_programs",
    "endpoint": "transfer",
}
WIDEST = 22.0  # Most pixels of a bar
LABEL = 16.0  # Pixels above the bars for the words
GAP = 5.0  # Least pixels between two words
WORDS = 0.92  # Size of their font
DIAMOND = 3.5  # Half of the width of the mark of a stable word in pixels


@dataclass(frozen=True)
class LatencyModel:
    """The words in view and those that the figures are of.

    `words`: of more than there are columns, the slowest of each. `scale`: milliseconds. `number`: words of the
    scope; `quantiles`: p50, p90, p99 of the time until its words were shown, seconds; None without words.
    """

    words: tuple[WordLatency, ...]
    scale: Scale
    number: int
    quantiles: dict[str, float] | None
    advice: str
    streamed: bool


def stack_of(word: WordLatency) -> dict[str, float]:
    """What its bar is made of, ms by part: a word shown before its chunk was full has waited less for it."""
    parts = dict(zip(PARTS, word.parts, strict=True))
    early = min(parts["emission"], 0.0)
    parts["emission"] -= early
    # The rest of what it was early comes off in the order in which it would have waited.
    for name in ("buffering", "queue", "compute", "other_programs"):
        less = min(parts[name], -early)
        parts[name] -= less
        early += less
    if word.rule is not None:
        parts["endpoint"] = word.final_s - max(word.shown_s, 0.0)
    return {name: 1e3 * parts[name] for name in COLORS if parts.get(name, 0.0) > 0}


class Bars(PixelItem):
    """The bars, the words above them as far as there is room, the slowest first."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__(plot, z=0.0)
        self._model: LatencyModel | None = None
        self.band = 0.0

    def set_model(self, model: LatencyModel | None, band: float) -> None:
        self._model, self.band = model, band
        self.update()

    def place(self, word: WordLatency) -> tuple[float, float]:
        """First and last pixel of its bar."""
        left, right = self.x_of(word.first_frame * FRAME_S), self.x_of(word.end_frame * FRAME_S)
        return max(left + 1, right - WIDEST) if right - left > 3 else right - 2, right

    def word_at(self, second: float) -> WordLatency | None:
        frame = second / FRAME_S
        words = () if self._model is None else self._model.words
        return next((word for word in words if word.first_frame <= frame < word.end_frame), None)

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        model = self._model
        if model is None:
            return
        data = area.adjusted(0, min(self.band + LABEL, area.height() - 1), 0, 0)
        tops = [self._paint_bar(painter, word, data, model.scale) for word in model.words]
        painter.setFont(font(WORDS))
        painter.setPen(theme().color("text"))
        for place, text in self._labels(model.words, tops, area.width()):
            write(painter, place, Qt.AlignmentFlag.AlignCenter, text)

    def _labels(self, words: Sequence[WordLatency], tops: Sequence[float], room: float) -> Iterator[tuple[QRectF, str]]:
        """The words above their bars, the highest first, where neither another word nor a higher bar is."""
        height, ends = self.boundingRect().height(), map(self.place, words)
        bars = [QRectF(left, top, right - left, height) for (left, right), top in zip(ends, tops, strict=True)]
        taken: list[tuple[float, float]] = []
        for number in sorted(range(len(tops)), key=lambda n: tops[n]):
            text = one_line(words[number].word, MAX_LETTERS)
            wide = text_width(text, WORDS) + 2
            x = min(max(bars[number].center().x() - wide / 2, 0.0), room - wide)
            place = QRectF(x, tops[number] - LABEL, wide, LABEL)
            if x < 0 or any(x < end + GAP and begin < x + wide + GAP for begin, end in taken):
                continue
            if not any(bar.intersects(place) for bar in bars):
                taken.append((x, x + wide))
                yield place, text

    def _paint_bar(self, painter: QPainter, word: WordLatency, data: QRectF, scale: Scale) -> float:
        """Draw a bar; return its upper end."""
        left, right = (round(x) for x in self.place(word))
        total, bottom = 0.0, data.bottom()

        def y_of(ms: float) -> float:
            return data.bottom() - float(scale.place(np.array(ms))) * data.height()

        for name, ms in stack_of(word).items():
            total += ms
            top = y_of(total)
            part = QRectF(left, top, right - left, bottom - top)
            painter.fillRect(part, theme().color(COLORS[name]))
            painter.fillRect(part, theme().hatch_brush(COLORS[name]))
            bottom = top
        if total <= 0:
            painter.setPen(QPen(theme().color("muted"), 1))
            painter.drawRect(QRectF(left + 0.5, bottom - 4.5, right - left - 1, 4))
            bottom -= 5
        if total > scale.top:
            paint_spike(painter, (left + right) / 2, bottom, theme().color("danger"))
        if word.stable_s > max(word.shown_s, 0.0) + 0.001:
            at = QPointF((left + right) / 2, max(y_of(1e3 * word.stable_s), data.top()))
            bottom = min(bottom, self._paint_stable(painter, at, bottom))
        return bottom

    def _paint_stable(self, painter: QPainter, at: QPointF, top: float) -> float:
        """Draw a diamond, joined to its bar; return its upper end."""
        painter.setPen(QPen(theme().color("muted"), 1))
        painter.drawLine(QPointF(at.x(), top), at)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(theme().color("text"), 1))
        painter.setBrush(theme().color("card"))
        corners = ((-DIAMOND, 0), (0, -DIAMOND), (DIAMOND, 0), (0, DIAMOND))
        painter.drawPolygon(QPolygonF([at + QPointF(*corner) for corner in corners]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        return at.y() - DIAMOND


class LatencyView(ChartView[LatencyModel]):
    """When each word of a stream was shown, and which part of the wait is the largest."""

    id = "latency"
    title = "Latency"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._grid = Levels(self.plot)
        self.bars, self.remark = Bars(self.plot), Remark(self.plot)
        names = {name: tr(word_latency.PART_TITLES.get(name, name)) for name in COLORS}
        self.legend = Legend({COLORS[name]: title for name, title in names.items()})
        self.legend.set_remark(tr("▭ shown before its end   ◇ stable"))
        self.advice = Elided()
        self.column.addWidget(self.legend)
        self.column.addWidget(self.advice)
        self.plot.clicked.connect(self._choose)
        self.setMinimumHeight(200)

    @classmethod
    def concerns(cls, session: Session) -> bool:
        return any(setting(one.tree, "stream.chunk_ms") for one in session.configs)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> LatencyModel:
        session = snapshot.session
        first, last = (second / FRAME_S for second in visible)
        scope = snapshot.desk.scope
        found = word_latency.streams(session)
        words = [word for one in found.values() for word in one.words if word.end_frame <= snapshot.end_frame]
        slowest: dict[int, WordLatency] = {}
        for word in words:
            if word.end_frame > first and word.first_frame < last:
                column = int((word.end_frame - first) / max(last - first, 1) * columns)
                slowest[column] = max(slowest.get(column, word), word, key=lambda one: one.shown_s)
        within = [word for word in words if scope.first <= word.first_frame and word.end_frame <= scope.last]
        highest = [max(sum(stack_of(word).values()), 1e3 * word.stable_s) for word in slowest.values()]
        return LatencyModel(
            words=tuple(slowest.values()),
            scale=Scale(0.0, robust_top(np.array(highest))),
            number=len(within),
            quantiles=word_latency.quantiles(word.shown_s for word in within),
            advice=word_latency.advice(session, within),
            streamed=bool(found),
        )

    def events(self, snapshot: Snapshot) -> tuple[tuple[Marker, ...], I64 | tuple[()]]:
        streamed = self._model is not None and self._model.streamed
        return super().events(snapshot) if streamed else ((), ())

    def show_model(self, model: LatencyModel | None) -> None:
        height = self.plot.plot_size[1]
        band = min(self.overlay.band, height - LABEL - 1.0)
        if model is not None and model.words:
            free = max(height - band - LABEL, 1.0)
            self.plot.set_height_range(0.0, height / free)
            self._grid.show_scale(model.scale, math.ceil(len(model.scale.ticks()) * LABEL / free))
        else:
            self.plot.set_ticks(())
            self._grid.show_levels(np.empty(0))
        self.bars.set_model(model, band)
        nothing = "" if model is None or model.quantiles is not None else self._nothing(model)
        self.remark.show_text(nothing, self.remark.boundingRect())

    def show_texts(self, model: LatencyModel) -> None:
        figures = " · ".join(f"{name} {milliseconds(s)}" for name, s in (model.quantiles or {}).items())
        note = self.tr("ms after its end until a word is shown: {0}").format(figures)
        advice = (model.advice, model.advice.partition(";")[0] + ".") if figures else ("",)
        self.set_note(note if figures else "", figures)
        self.advice.set_full(*advice)

    def clear(self) -> None:
        super().clear()
        self.advice.set_full("")

    def _nothing(self, model: LatencyModel) -> str:
        if model.streamed:
            return self.tr("No word of a stream in range yet.")
        return self.tr("This session was not decoded as a stream: set Chunk, under Streaming in the form.")

    def _choose(self, at: QPointF) -> None:
        word = self.bars.word_at(self.plot.second_at(at))
        if word is not None:
            self.axis.select(word.first_frame * FRAME_S, word.end_frame * FRAME_S)

    def readout(self, model: LatencyModel, second: float) -> Sequence[ReadoutLine]:
        word = self.bars.word_at(second)
        if word is None:
            return ()
        parts = dict(zip(PARTS, word.parts, strict=True))
        names = [(name, tr(word_latency.PART_TITLES.get(name, name))) for name in reversed(COLORS) if name in parts]
        return [
            ReadoutLine(one_line(word.word, MAX_LETTERS), tr("ms after its end"), strong=True),
            ReadoutLine(tr("first shown"), milliseconds(word.shown_s), strong=True),
            *(ReadoutLine(title, milliseconds(parts[name]), COLORS[name]) for name, title in names),
            ReadoutLine(tr("stable"), milliseconds(word.stable_s)),
            ReadoutLine(tr("final"), milliseconds(word.final_s)),
        ]

    def summary(self) -> str:
        model = self.model()
        if model is None or self.snapshot is None or model.quantiles is None:
            return self.tr("No word of a stream in range yet.") if model is None else self._nothing(model)
        figures = ", ".join(f"{name} {milliseconds(s)} ms" for name, s in model.quantiles.items())
        text = self.tr("{0} {1} words were shown this long after their end: {2}. {3}")
        return text.format(self.snapshot.desk.scope.extent, model.number, figures, model.advice)

    def table(self) -> Table:
        titles = ["word", "first shown", "stable", "final", *COLORS, "utterance", "at s", "at frame"]
        headers = [self.tr(word_latency.PART_TITLES.get(title, title)) for title in titles]
        rows: list[list[object]] = []
        found = {} if self.snapshot is None else word_latency.streams(self.snapshot.session)
        words = (word for one in found.values() for word in one.words)
        for word in sorted(words, key=lambda word: -word.shown_s):
            if self.snapshot is None or word.end_frame > self.snapshot.cursor_frame:
                continue
            parts = dict(zip(PARTS, word.parts, strict=True))
            if word.rule is not None:
                parts["endpoint"] = word.final_s - word.shown_s
            times = [milliseconds(value) for value in (word.shown_s, word.stable_s, word.final_s)]
            figures = [milliseconds(parts[name]) if name in parts else None for name in COLORS]
            at = clock(word.first_frame * FRAME_S, 2), word.first_frame
            name, utterance = (one_line(text, MAX_LETTERS) for text in (word.word, word.utterance))
            rows.append([name, *times, *figures, utterance, *at])
        return headers, rows
