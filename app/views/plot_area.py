"""The area of a plot between gutter and time labels, what is drawn in it, and the part of that which scrolls.

While the cursor moves by itself, the charts are painted 30 times a second, but the file is read some times a second
only: in between they show the same columns of pixels at another place. So what scrolls is drawn a little wider than
the area, and its pixels are kept until there is something else to draw.
"""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QObject, QPointF, QRectF, Signal
from PySide6.QtGui import QPainter, QPixmap

from app.model.time_axis import TimeAxis
from app.style.theme import Tokens, theme
from app.views.columns import column_grid
from app.views.painting import device_scale, is_pixels
from profiler.arrays import F64

AHEAD = 32
"""Columns right of the range that are drawn along with it while it scrolls: those of the next 0.15 s and more."""


class PlotArea(QObject):
    """The part of a plot between gutter and time labels, with its items; it has no range itself.

    Args:
        axis: the range.
        rect: where it is in the widget.
        parent: the plot.

    Signals:
        resized: it is at another place.
        asked: it is to be painted again.
    """

    resized = Signal()
    asked = Signal()

    def __init__(self, axis: TimeAxis, rect: QRectF, parent: QObject) -> None:
        super().__init__(parent)
        self.axis = axis
        self.items: list[PixelItem] = []
        self._rect = rect
        self._aligned: tuple[tuple[tuple[float, float], float], tuple[int, float]] | None = None

    @property
    def rect(self) -> QRectF:
        """Where it is in the widget."""
        return QRectF(self._rect)

    def boundingRect(self) -> QRectF:
        """Return the area in its own pixels."""
        return QRectF(0, 0, self._rect.width(), self._rect.height())

    def place(self, rect: QRectF) -> None:
        """Move to another place in the widget."""
        if rect != self._rect:
            self._rect = rect
            self.resized.emit()

    @property
    def columns(self) -> int:
        """Columns of pixels, at least one."""
        return max(1, round(self._rect.width()))

    @property
    def grid(self) -> tuple[int, float]:
        """Number of the first column and seconds of one: the range in view, moved onto whole columns of pixels.

        So everything in the plot moves by the same whole pixels when the range moves.
        """
        # Asked for by every item, several times per painting.
        of = self.axis.visible, self._rect.width()
        if self._aligned is None or self._aligned[0] != of:
            self._aligned = of, column_grid(*self.axis.visible, self.columns)
        return self._aligned[1]

    @property
    def visible(self) -> tuple[float, float]:
        """First and last second drawn."""
        number, width = self.grid
        return number * width, (number + self.columns) * width

    def second_at(self, position: QPointF) -> float:
        """Second of audio under a position in the area's pixels."""
        first, last = self.visible
        return float(first + (last - first) * position.x() / max(1.0, self._rect.width()))

    def add(self, item: PixelItem) -> None:
        """Take an item in, by its `z`."""
        self.items.append(item)
        self.items.sort(key=lambda item: item.z)

    def update(self) -> None:
        """Paint the area again."""
        # While the window is torn down a signal may still find an item.
        if shiboken6.isValid(self):
            self.asked.emit()


class Canvas(PlotArea):
    """What of an area scrolls: as wide as that, and `ahead` columns more while the range moves by itself.

    Args:
        of: the area, whose items lie above these.
    """

    def __init__(self, of: PlotArea) -> None:
        super().__init__(of.axis, of.rect, of)
        self._of = of
        self._ahead = 0
        self._drawn = of.grid
        self._pixels: QPixmap | None = None
        self._key: object = None
        self.painted = 0
        """Times that its items were painted, for tests."""
        of.resized.connect(self._fit)
        self.asked.connect(of.asked)

    def begin(self, ahead: int) -> None:
        """Show the range in view from now on, and so many columns after it."""
        self._drawn = self._of.grid
        if ahead != self._ahead:
            self._ahead = ahead
            self._fit()

    def reaches(self) -> bool:
        """Whether the range in view is part of what is shown."""
        (number, width), (drawn, as_wide) = self._of.grid, self._drawn
        return width == as_wide and 0 <= number - drawn <= self._ahead

    @property
    def grid(self) -> tuple[int, float]:
        """Number of the first column shown and seconds of one."""
        return self._drawn

    def update(self) -> None:
        """Draw it afresh."""
        self._pixels = None
        super().update()

    def _fit(self) -> None:
        self._pixels = None
        self.place(self._of.rect.adjusted(0, 0, self._ahead, 0))

    def paint(self, painter: QPainter, tokens: Tokens) -> None:
        """Paint what of it is in the area, at whose upper left the painter is; on the card's colour."""
        before = self._of.grid[0] - self._drawn[0] if self.reaches() else 0
        scale = device_scale(painter)
        # On a scale between whole ones the pixels of each position are others.
        if not is_pixels(painter) or scale != round(scale):
            painter.save()
            painter.translate(-before, 0)
            self._paint_items(painter)
            painter.restore()
            return
        key = tokens.name, scale, self._rect.width(), self._rect.height()
        if self._pixels is None or key != self._key:
            size = self._rect.size().toSize() * scale
            self._pixels, self._key = QPixmap(size), key
            self._pixels.setDevicePixelRatio(scale)
            self._pixels.fill(tokens.color("card"))
            with QPainter(self._pixels) as within:
                self._paint_items(within)
        area = self._of.boundingRect()
        seen = QRectF(before * scale, 0, area.width() * scale, area.height() * scale)
        painter.drawPixmap(area, self._pixels, seen)

    def _paint_items(self, painter: QPainter) -> None:
        self.painted += 1
        for item in self.items:
            item.paint(painter)


class PixelItem(QObject):
    """Something drawn in the pixels of a plot's area (y down), not in data coordinates.

    Text stays upright and lines stay sharp; `x_of` maps seconds to pixels.
    """

    def __init__(self, box: PlotArea, z: float) -> None:
        super().__init__(box)
        self.box = box
        self.z = z
        self._tokens = theme()
        box.add(self)

    def boundingRect(self) -> QRectF:
        """Return the area in its own pixels."""
        return self.box.boundingRect()

    def update(self) -> None:
        """Paint it again."""
        self.box.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self._tokens = tokens
        self.update()

    def x_of(self, second: float) -> float:
        """Pixel of a second of audio."""
        first, last = self.box.visible
        return (second - first) / (last - first) * self.boundingRect().width()

    def xs_of(self, seconds: F64) -> F64:
        """Pixels of many seconds of audio."""
        first, last = self.box.visible
        return (seconds - first) * (self.boundingRect().width() / (last - first))

    def paint(self, painter: QPainter) -> None:
        """Hand over to `paint_pixels` with a clean painter."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.paint_pixels(painter, self.boundingRect())
        painter.restore()

    def paint_pixels(self, painter: QPainter, area: QRectF) -> None:
        """Draw into `area` (override)."""
        raise NotImplementedError
