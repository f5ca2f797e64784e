"""Which colour, hatch and sign each name of a lab's chart has: the same in all panels, and never colour alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from app.charts.swatch import paint_swatch
from app.style.theme import Tokens
from pipelines.labs.chart import Bars, Chart, Gantt, Line, Mark, StackedBars, Steps

COLOURS = ("compute", "memory", "search", "transfer", "other_programs")
GREYS = ("frontend", "unexplained", "overhead")
"""Categories whose colours and hatches series take, in this order; greys where a panel has no colour left."""

SIGNS = 5
RADIUS = 3.4
SWATCH = 10.0
STRETCH = 20.0
"""Length of the key of a line."""


@dataclass(frozen=True)
class Look:
    """The category whose colour and hatch a series takes, and the number of its sign (0…4)."""

    category: str
    sign: int

    def color(self, tokens: Tokens) -> QColor:
        """Its colour."""
        return tokens.color(self.category)


def looks(chart: Chart) -> Mapping[str, Look]:
    """How each name in the panels of a chart looks: alike in all of them, and unlike all others of its panels.

    A colour that no panel has yet comes first, then one that this panel does not have.
    """
    found: dict[str, Look] = {}
    for panel in (chart, *chart.beside):
        names = list(named(panel))
        mine = [found[name] for name in names if name in found]
        for name in names:
            if name in found:
                continue
            known = {look.category for look in found.values()}
            here = {look.category for look in mine}
            wanted = [c for c in COLOURS if c not in known]
            wanted += [c for c in (*COLOURS, *GREYS) if c not in here]
            signs = [n for n in range(SIGNS) if n not in {look.sign for look in mine}]
            number = len(mine)
            again = (*COLOURS, *GREYS)[number % (len(COLOURS) + len(GREYS))]
            look = Look((wanted or [again])[0], (signs or [number % SIGNS])[0])
            mine.append(look)
            found[name] = look
    return found


def named(panel: Chart) -> Iterator[str]:
    """The names of a panel's series, each once, in order."""
    found: dict[str, None] = {}
    for layer in panel.layers:
        if isinstance(layer, StackedBars):
            found |= dict.fromkeys(name for name, _ in layer.parts)
        elif isinstance(layer, Gantt):
            found |= dict.fromkeys(block.kind for block in layer.blocks)
        elif isinstance(layer, Bars | Line | Steps):
            found[layer.name] = None
    yield from found


def paint_sign(painter: QPainter, at: QPointF, look: Look, tokens: Tokens) -> None:
    """A point of a line: disc, square, triangle, diamond or ring."""
    color, r = look.color(tokens), RADIUS
    painter.setPen(QPen(tokens.color("card"), 0.8))
    painter.setBrush(color)
    x, y = at.x(), at.y()
    if look.sign == 1:
        painter.drawRect(QRectF(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r))
    elif look.sign == 2:
        painter.drawPolygon(
            QPolygonF(
                [QPointF(x, y - 1.2 * r), QPointF(x + 1.1 * r, y + r), QPointF(x - 1.1 * r, y + r)]
            )
        )
    elif look.sign == 3:
        corners = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
        painter.drawPolygon(QPolygonF([QPointF(x + r * a, y + r * b) for a, b in corners]))
    elif look.sign == 4:
        painter.setPen(QPen(color, 1.6))
        painter.setBrush(tokens.color("card"))
        painter.drawEllipse(at, r, r)
    else:
        painter.drawEllipse(at, r, r)


def key_width(panel: Chart, name: str) -> float:
    """Pixels of what stands before a name of the legend."""
    lined = any(isinstance(x, Line | Steps) and x.name == name for x in panel.layers)
    return STRETCH if lined else SWATCH


def paint_key(
    painter: QPainter, at: QRectF, panel: Chart, name: str, look: Look, tokens: Tokens
) -> None:
    """What stands before a name of the legend: a swatch for bars, a stretch of line with its sign for lines."""
    line = next((x for x in panel.layers if isinstance(x, Line | Steps) and x.name == name), None)
    middle = at.center()
    if line is None:
        paint_swatch(
            painter,
            QRectF(at.left(), middle.y() - SWATCH / 2, SWATCH, SWATCH),
            tokens,
            look.category,
        )
        return
    dashed = isinstance(line, Line) and line.dashed
    if isinstance(line, Steps) or line.joined:
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(look.color(tokens), 2.0, style))
        painter.drawLine(QPointF(at.left(), middle.y()), QPointF(at.right(), middle.y()))
    if isinstance(line, Line) and not dashed:
        paint_sign(painter, middle, look, tokens)


def marks(panel: Chart) -> list[Mark]:
    """The levels and places of a panel."""
    return [layer for layer in panel.layers if isinstance(layer, Mark)]
