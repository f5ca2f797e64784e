"""How far the axes of a roofline go, and where its names may stand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QTransform

from app.charts.still import LINE

PIECES = 12
"""Rectangles that stand for a text along a slope: fewer would keep names out of much that is free."""

SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65, 0.25, 0.75, 0.2, 0.8)
"""Of the slope's length, where the middle of its name may be; the first that is free is taken."""

FROM_EDGE = 0.15
"""Decades between the lower end of the axis of rates and a dot: one upon the edge has no room for its name."""


def decades(values: Sequence[float], below: float = 0.0) -> tuple[int, int]:
    """Powers of ten at both ends of an axis that has these values, and so many decades `below` them."""
    low, high = math.log10(min(values)), math.log10(max(values))
    return math.floor(low - below), math.ceil(high)


def turned(line: QLineF, share: float) -> QTransform:
    """To the point at a share of a line, with the line as the horizontal axis."""
    at = line.pointAt(share)
    return QTransform().translate(at.x(), at.y()).rotate(-line.angle())


def pieces(line: QLineF, share: float, wide: float) -> list[QRectF]:
    """Upright rectangles that a text above a line lies in, piece by piece; none where it would leave the line."""
    if line.length() * min(share, 1 - share) < wide / 2 + 4:
        return []
    each = wide / PIECES
    along = (QRectF(-wide / 2 + i * each, -LINE, each, LINE - 2) for i in range(PIECES))
    return [turned(line, share).mapRect(piece) for piece in along]


def crosses(line: QLineF, box: QRectF) -> bool:
    """Whether a line that goes to the right, and is not upright, passes through a box."""
    left, right = max(line.x1(), box.left()), min(line.x2(), box.right())
    if left >= right:
        return False
    slope = line.dy() / line.dx()
    ends = [line.y1() + slope * (x - line.x1()) for x in (left, right)]
    return min(ends) < box.bottom() and max(ends) > box.top()
