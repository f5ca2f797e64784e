"""A histogram of the time of single frames with its percentiles, or those of two sides over each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPen

from app.charts.scale import count, steps
from app.charts.still import LINE, StillPlot, small_metrics
from app.model.statistics import QUANTILES, Statistics
from app.style.theme import theme
from profiler.plain import milliseconds

LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 2 * LINE + 6, 2 * LINE + 6
"""Pixels around the histogram: counts, texts of the percentiles, ms and their title."""


class Histogram(StillPlot):
    """Frames over their time, and lines at the percentiles; of two sides, A is filled and B is a line."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Statistics | None = None
        self._other: Statistics | None = None
        self.of_steps = False
        """Whether what is counted are the steps of a lab."""
        self.setMinimumHeight(120)

    def show_statistics(self, shown: Statistics | None, other: Statistics | None = None) -> None:
        """Show another distribution; with `other`, which has the same edges, that of A and that of B."""
        self._shown, self._other = shown, other
        self.rebuild()

    def build(self) -> None:
        """Draw axes, bars and percentiles."""
        shown, other = self._shown, self._other
        area = QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        if shown is None or area.width() < 20 or area.height() < 20:
            return
        most = max(1, *(int(one.counts.max()) for one in (shown, other) if one is not None))
        least, end = float(shown.edges[0]), float(shown.edges[-1])

        def x_of(value: float) -> float:
            return area.left() + (min(value, end) - least) / (end - least) * area.width()

        def y_of(value: float) -> float:
            return area.bottom() - value / most * area.height()

        left = [(y_of(v), count(v)) for v in steps(0, most, 4) if v == int(v)]
        wanted = max(3, int(area.width() / 45))
        bottom = [(x_of(v), f"{v:.6g}") for v in steps(least, end, wanted)]
        self.frame(area, left, bottom)
        bars = [
            QRectF(QPointF(x_of(low), y_of(number)), QPointF(max(x_of(low) + 1.0, x_of(high) - 1.0), area.bottom()))
            for (low, high), number in zip(pairwise(shown.edges.tolist()), shown.counts.tolist(), strict=True)
            if number
        ]
        self.bars(bars, theme().color("accent" if other is None else "waveform"))
        if other is None:
            self._lines(shown, area, x_of, {title: f"{title} " for title in QUANTILES}, "text")
        else:
            edges, counts = other.edges.tolist(), other.counts.tolist()
            outline = [QPointF(x_of(edge), y_of(n)) for edge, n in zip(edges, [*counts, 0], strict=True)]
            self.curve([QPointF(x_of(least), area.bottom()), *outline], QPen(theme().color("accent"), 2), steps=True)
            self._lines(shown, area, x_of, {"p50": self.tr("A p50 ")}, "text")
            self._lines(other, area, x_of, {"p50": self.tr("B p50 ")}, "accent")
        title = QRectF(area.left(), self.height() - LINE, area.width(), LINE)
        unit = self.tr("ms of a step") if self.of_steps else self.tr("ms of a frame")
        self.text(unit if other is None else self.tr("ms of a frame; A filled, B as a line"), title)
        self.text(
            self.tr("steps") if self.of_steps else self.tr("frames"),
            QRectF(0, area.top() - LINE - 2, LEFT - 4, LINE),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
        )

    def _lines(
        self, shown: Statistics, area: QRectF, x_of: Callable[[float], float], titles: dict[str, str], token: str
    ) -> None:
        """Lines at the percentiles that have titles, with texts that give way to each other."""
        metrics = small_metrics()
        for name, value in zip(QUANTILES, shown.quantiles, strict=True):
            if name not in titles:
                continue
            x = round(x_of(value)) + 0.5
            pen = QPen(theme().color(token), 1, Qt.PenStyle.DashLine)
            self.curve([QPointF(x, area.top()), QPointF(x, area.bottom())], pen, pairs=True)
            text = f"{titles[name]}{milliseconds(value)}"
            wide = metrics.horizontalAdvance(text) + 6
            x = min(max(x, area.left() + wide / 2), self.width() - wide / 2)
            rows = (QRectF(x - wide / 2, area.top() - (n + 1) * LINE - 2, wide, LINE) for n in (0, 1))
            if (box := self.free(rows)) is not None:
                self.text(text, box, token=token)
