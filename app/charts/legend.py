"""What names the layers of a plot: the key below a stack, in stacking order, and the box next to the mouse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.charts.time_plot import GUTTER, MARGIN
from app.style.plain_text import AT_LEFT, AT_RIGHT, write
from app.style.theme import CATEGORY_TITLES, font, theme
from profiler.analysis.categories import CATEGORIES, THROTTLED


def paint_swatch(painter: QPainter, rect: QRectF, category: str) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme().color(category))
    painter.drawRoundedRect(rect, 2.5, 2.5)
    painter.setBrush(theme().hatch_brush(category))
    painter.drawRoundedRect(rect, 2.5, 2.5)
    painter.restore()


def paint_spike(painter: QPainter, x: float, y: float, color: QColor) -> None:
    """A small triangle whose tip says: it goes on upwards from here."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawPolygon(QPolygonF([QPointF(x, y), QPointF(x - 4, y + 6), QPointF(x + 4, y + 6)]))
    painter.restore()


LINE = 20  # Height of a line in pixels
MIN_GAP = 6  # Minimum pixels between two names


class Legend(QWidget):
    """One line: the layers in stacking order, and a note on the right."""

    def __init__(self, titles: Mapping[str, str] | None = None, gutter: int = GUTTER) -> None:
        """`titles` by the categories whose colours layers have (None: their own); `gutter`: pixels left of it."""
        super().__init__()
        plain = {name: CATEGORY_TITLES[name] for name in CATEGORIES if name != THROTTLED}
        self._plain: Mapping[str, str] = plain if titles is None else titles
        self._titles, self._gutter = self._plain, gutter
        self.remark = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, LINE * len(self._laid_out()[1]))

    def set_titles(self, titles: Mapping[str, str]) -> None:
        """Show longer titles of the layers, such as with their figures, where two lines have room for them."""
        if titles != self._titles:
            self._titles = titles
            self.updateGeometry()
            self.update()

    def set_remark(self, text: str) -> None:
        if text != self.remark:
            self.remark = text
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.sizeHint().height() != self.height():
            self.updateGeometry()

    def _laid_out(self) -> tuple[int, list[list[tuple[str, str, float]]]]:
        """Pixels left of the names, and the names (category, title, width) by line."""
        metrics, room = QFontMetricsF(font(0.95)), self.width() - MARGIN

        def measured(titles: Mapping[str, str]) -> list[tuple[str, str, float]]:
            return [(name, title, metrics.horizontalAdvance(title) + 15) for name, title in titles.items()]

        names = measured(self._titles)
        longer = self._titles is not self._plain
        if longer and sum(width + MIN_GAP for *_, width in names) > 1.8 * (self.width() - self._gutter):
            names = measured({name: self._plain.get(name, title) for name, title in self._titles.items()})
        whole = sum(width + MIN_GAP for *_, width in names) - MIN_GAP
        left = 0 if room - self._gutter < whole <= room else self._gutter
        lines: list[list[tuple[str, str, float]]] = [[]]
        used = 0.0
        for each in names:
            if lines[-1] and used + each[2] > room - left:
                lines.append([])
                used = 0.0
            lines[-1].append(each)
            used += each[2] + MIN_GAP
        return left, lines

    def paintEvent(self, event: QPaintEvent) -> None:
        left, lines = self._laid_out()
        with QPainter(self) as painter:
            painter.setFont(font(0.95))
            remark = QFontMetricsF(painter.font()).horizontalAdvance(self.remark) + 16 if self.remark else 0.0
            names = max(sum(width for *_, width in line) for line in lines)
            most = max(1, *(len(line) for line in lines))
            # The gaps between the names shrink before the note is dropped.
            room = self.width() - left - MARGIN
            shows_remark = names + MIN_GAP * most + remark <= room
            free = room - names - (remark if shows_remark else 0.0)
            gap = max(float(MIN_GAP), min(18.0, free / most))
            for row, line in enumerate(lines):
                x, top = float(left), row * LINE
                for name, title, width in line:
                    paint_swatch(painter, QRectF(x, top + LINE / 2 - 5, 10, 10), name)
                    painter.setPen(theme().color("muted"))
                    write(painter, QRectF(x + 15, top, width, LINE), AT_LEFT, title)
                    x += width + gap
            if shows_remark:
                place = QRectF(x, (len(lines) - 1) * LINE, self.width() - MARGIN - x, LINE)
                write(painter, place, AT_RIGHT, self.remark)


BESIDE = 12  # Pixels between the mouse and the box


@dataclass(frozen=True)
class ReadoutLine:
    """One line of the read-out: a swatch (category key) or none, a name, a value."""

    name: str
    value: str
    category: str | None = None
    strong: bool = False


class Readout(QWidget):
    """A child of the window, so that no plot is too small for it; transparent to the mouse."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._lines: Sequence[ReadoutLine] = ()
        self._metrics = QFontMetricsF(font(0.92, strong=True))

    def show_lines(self, lines: Sequence[ReadoutLine], at: QPoint) -> None:
        self._lines = lines
        names = max(self._metrics.horizontalAdvance(line.name) for line in lines)
        values = max(self._metrics.horizontalAdvance(line.value) for line in lines)
        self.resize(round(names + values + 48), round(len(lines) * self._height() + 13))
        x = at.x() + BESIDE
        if x + self.width() > self._window.width():
            x = max(0, at.x() - BESIDE - self.width())
        self.move(x, max(0, min(at.y(), self._window.height() - self.height())))
        self.raise_()
        self.show()
        self.update()

    def _height(self) -> float:
        return self._metrics.height() + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            tokens = theme()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            painter.setPen(QPen(tokens.color("border"), 1))
            painter.setBrush(tokens.color("field"))
            box = QRectF(self.rect())
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
            height = self._height()
            for number, line in enumerate(self._lines):
                row = QRectF(10, 6 + number * height, box.width() - 20, height)
                if line.category is not None:
                    side = height * 0.55
                    swatch = QRectF(row.left(), row.top() + (height - side) / 2, side, side)
                    paint_swatch(painter, swatch, line.category)
                painter.setFont(font(0.92, strong=line.strong))
                painter.setPen(tokens.color("text"))
                write(painter, row.adjusted(16, 0, 0, 0), AT_LEFT, line.name)
                write(painter, row, AT_RIGHT, line.value)
