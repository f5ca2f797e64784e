"""Where the names in a roofline may stand: rectangles along a slope, and how far one is from a point."""

from __future__ import annotations

import math

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QTransform

PIECES = 6
"""Rectangles that stand for a text along a slope: one would keep names out of much that is free."""

SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Of the slope's length, where the middle of its name may be; the first that is free is taken."""

TEXT = 15.0
"""Height of a line of text."""


def turned(line: QLineF, share: float) -> QTransform:
    """To the point at a share of a line, with the line as the horizontal axis."""
    at = line.pointAt(share)
    return QTransform().translate(at.x(), at.y()).rotate(-line.angle())


def pieces(line: QLineF, share: float, wide: float) -> list[QRectF]:
    """Upright rectangles that a text above a line lies in, piece by piece; none where it would leave the line."""
    if line.length() * min(share, 1 - share) < wide / 2 + 4:
        return []
    each = wide / PIECES
    along = (QRectF(-wide / 2 + i * each, -TEXT, each, TEXT - 2) for i in range(PIECES))
    return [turned(line, share).mapRect(piece) for piece in along]


def crosses(line: QLineF, box: QRectF) -> bool:
    """Whether a line that goes to the right, and is not upright, passes through a box."""
    left, right = max(line.x1(), box.left()), min(line.x2(), box.right())
    if left >= right:
        return False
    slope = line.dy() / line.dx()
    ends = [line.y1() + slope * (x - line.x1()) for x in (left, right)]
    return min(ends) < box.bottom() and max(ends) > box.top()


def distance(box: QRectF, point: QPointF) -> float:
    """Pixels from a point to the nearest one of a box; 0 within."""
    across = max(box.left() - point.x(), 0.0, point.x() - box.right())
    down = max(box.top() - point.y(), 0.0, point.y() - box.bottom())
    return math.hypot(across, down)
