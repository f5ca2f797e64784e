"""Text in a hand-painted picture: placed by an alignment word, in a colour of the theme."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from app.style.plain_text import write
from app.style.theme import font, theme

_FLAGS = {
    "left": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop,
    "middle": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    "right": Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
    "centre": Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop,
}


def draw_text(
    painter: QPainter,
    area: QRectF,
    text: str,
    *,
    token: str = "text",
    scale: float = 1.0,
    strong: bool = False,
    align: str = "left",
    behind: str | None = None,
) -> None:
    """Write `text` into `area`: `align` is left or centre (at the top), middle or right (in the middle of the height).

    `token`: its colour. `behind`: a background colour that hides lines behind the text.
    """
    flags = _FLAGS[align]
    painter.setFont(font(scale * (1.1 if strong else 1.0), strong=strong))
    if behind is not None:
        ground = theme().color(behind)
        ground.setAlpha(215)
        painter.fillRect(painter.boundingRect(area, flags, text).adjusted(-2, 0, 2, 0), ground)
    painter.setPen(theme().color(token))
    write(painter, area, flags, text)
