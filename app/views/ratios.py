"""Ratios with intervals on a logarithmic axis around 1; decided, undecided and no difference look different."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPen

from app.charts.still import LINE, StillPlot, small_metrics
from app.model.document import RatioRow
from app.style.plain_text import AT_LEFT
from app.style.theme import theme
from profiler.analysis.comparison.compare import A_FASTER, B_FASTER, EQUAL, NO_DIFFERENCE

ROW: Final = 20.0  # Pixels of a row
FIGURES: Final = 90.0  # Pixels right of the plot: the verdict
PREDICTED: Final = 14.0  # Height of the bar of what was predicted

TICKS: Final = (0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0, 20.0)
AIR: Final = 1.1
LEAST_REACH: Final = 1.25
MOST_REACH: Final = 20.0  # The axis reaches so far at least and at most from 1, on both sides; AIR beyond the rows


class Ratios(StillPlot):
    """A row for each ratio: a diamond if decided, a square for no difference, else a ring; a bar: the prediction."""

    def __init__(self, rows: Sequence[RatioRow]) -> None:
        super().__init__()
        self.rows = tuple(rows)
        self.setMinimumHeight(int(ROW * len(self.rows) + 2 * LINE + 8))

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the axis: a ratio beyond them lies at the nearer one."""
        each = [
            end
            for row in self.rows
            for end in (*(row.ends or (row.ratio,)), row.predicted)
            if end is not None and end > 0
        ]
        low, high = min(each, default=1.0) / AIR, max(each, default=1.0) * AIR
        low = max(min(low, 1 / LEAST_REACH), 1 / MOST_REACH)
        return low, min(max(high, LEAST_REACH), MOST_REACH)

    def build(self) -> None:
        metrics = small_metrics()
        left = max((metrics.horizontalAdvance(row.name) for row in self.rows), default=0.0) + 10
        area = QRectF(self.rect()).adjusted(left, 4, -FIGURES, -LINE - 6)
        if area.width() < 40 or not self.rows:
            return
        low, high = self.ends

        def x_of(ratio: float) -> float:
            place = math.log(max(ratio, low) / low) / math.log(high / low)
            return area.left() + min(place, 1.0) * area.width()

        apart, bottom = metrics.horizontalAdvance("1.25×") + 6, list[tuple[float, str]]()
        for tick in sorted(TICKS, key=lambda tick: abs(math.log(tick))):  # 1× first
            if low <= tick <= high and all(abs(x_of(tick) - other) >= apart for other, _ in bottom):
                bottom.append((x_of(tick), f"{tick:g}×"))
        height = area.height() / len(self.rows)
        middles = [area.top() + (at + 0.5) * height for at in range(len(self.rows))]
        names = [(y, row.name) for y, row in zip(middles, self.rows, strict=True)]
        self.canvas.frame(area, names, bottom, names=(True, False))
        band = QRectF(QPointF(x_of(EQUAL[0]), area.top()), QPointF(x_of(EQUAL[1]), area.bottom()))
        self.canvas.bars([band], theme().color("muted", 70))
        for y, row in zip(middles, self.rows, strict=True):
            self._row(row, y, x_of)
            box = QRectF(area.right() + 6, y - LINE / 2, FIGURES - 6, LINE)
            decided = row.verdict in (A_FASTER, B_FASTER)
            self.canvas.text(row.text or self.tr(row.verdict), box, AT_LEFT, "text" if decided else "muted")

    def _row(self, row: RatioRow, y: float, x_of: Callable[[float], float]) -> None:
        color = self._color(row.verdict)
        if row.predicted is not None:
            x = x_of(row.predicted)
            ends = [QPointF(x, y - PREDICTED / 2), QPointF(x, y + PREDICTED / 2)]
            self.canvas.curve(ends, QPen(theme().color("accent"), 3), pairs=True)
        if row.ends is not None:
            line = QLineF(x_of(row.ends[0]), y, x_of(row.ends[1]), y)
            self.canvas.intervals([line], QPen(color, 1), beam=7.0)
        sign = {NO_DIFFERENCE: "s", A_FASTER: "d", B_FASTER: "d"}.get(row.verdict, "o")
        fill = QColor(theme().card) if sign == "o" else color
        self.canvas.signs([QPointF(x_of(row.ratio), y)], [9.0], [color], [fill], sign, 1.5)

    @staticmethod
    def _color(verdict: str) -> QColor:
        return theme().color({B_FASTER: "ok", A_FASTER: "danger"}.get(verdict, "muted"))
