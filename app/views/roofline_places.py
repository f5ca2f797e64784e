"""How high a roofline is below other things, how far its axes go, and where its names may stand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QTransform

PIECES = 12
"""Rectangles that stand for a text along a slope: fewer would keep names out of much that is free."""

SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.35, 0.65, 0.25, 0.75, 0.2, 0.8)
"""Of the slope's length, where the middle of its name may be; the first that is free is taken."""

TEXT = 15.0
"""Height of a line of text."""

FROM_EDGE = 0.15
"""Decades between the lower end of the axis of rates and a dot: one upon the edge has no room for its name."""


def height_below(room: int, ends: Sequence[int], least: int, most: int) -> int:
    """Height of a roofline in the lower part of `room` pixels: where what is above it cannot be whole, its rows are.

    Args:
        room: pixels that both have.
        ends: heights at which nothing of what is above is cut through.
        least: of the roofline.
        most: of the roofline, however much room there is.
    """
    above = max((end for end in ends if end <= room - least), default=room - least)
    return max(least, min(room - above, most))


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
