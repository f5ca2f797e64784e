"""A widget laid out and painted for a picture, in a theme of its own.

It is painted as the window paints it, so a picture shows what the window shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QRegion
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.pictures.request import PictureError
from app.style.plain_text import Wrapped, unbroken
from app.style.theme import font, set_theme, theme
from app.views.view import View

_ORIGIN: Final = QPoint(0, 0)


@contextmanager
def themed(name: str) -> Iterator[None]:
    """Use the theme `name` within the context."""
    before = theme().name
    # Without a style sheet no window has set a theme yet.
    if name != before or not QApplication.instance().styleSheet():  # type: ignore[union-attr]
        set_theme(name)
    try:
        yield
    finally:
        if name != before:
            set_theme(before)


def lay_out(widget: QWidget, size: QSize) -> None:
    """Lay `widget` out at `size` without showing it, and without anything that makes sense only on a screen.

    Raises PictureError if it needs more room.
    """
    views = [widget] if isinstance(widget, View) else widget.findChildren(View)
    for part in (part for view in views for part in view.header_controls):
        part.hide()
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    widget.show()
    widget.resize(size)
    settle()
    for view in views:
        view.settle()
        view.set_picture(True)
    if widget.size() != size:
        least = widget.size()
        raise PictureError(
            f"a picture of this needs at least {least.width()}×{least.height()} points, "
            f"not {size.width()}×{size.height()}."
        )


def settle() -> None:
    for _ in range(3):
        QApplication.sendPostedEvents()
        QApplication.processEvents()


def paint(painter: QPainter, widget: QWidget) -> None:
    """Paint a widget that is laid out, on the colour of the window's background."""
    painter.fillRect(widget.rect(), theme().color("surface"))
    for part, at, seen in parts(widget):
        painter.save()
        painter.setClipRect(seen)
        paint_part(painter, part, at)
        painter.restore()


def parts(widget: QWidget, at: QPoint = _ORIGIN) -> Iterator[tuple[QWidget, QPoint, QRect]]:
    """A widget and those in it, from back to front: where each is on the page, and what is seen of it there.

    Each is painted and clipped by itself. `QWidget.render` of the whole clips by means that Qt's writers of SVG and PDF
    ignore: a text that is scrolled away would lie over what is below its view.
    """
    if not widget.isVisible():
        return
    seen: QRect = widget.visibleRegion().boundingRect()
    if not seen.isEmpty():
        yield widget, at, seen.translated(at)
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isWindow():
            yield from parts(child, at + child.pos())


def paint_part(painter: QPainter, part: QWidget, at: QPoint) -> None:
    part.render(painter, at, QRegion(), QWidget.RenderFlag(0))


class CaptionLine(Wrapped):
    """A line of the caption, wrapped where it is too long: in a name, too, as a picture has no wider place for it."""

    def __init__(self, text: str) -> None:
        super().__init__(unbroken(text))
        self.setObjectName("muted")
        self.setFont(font(0.86))
        self.setContentsMargins(4, 0, 4, 0)


def captioned(widget: QWidget, lines: Sequence[str], margin: int) -> QWidget:
    """A widget above the lines of a caption, which are `margin` from the sides."""
    sheet = QWidget()
    sheet.setObjectName("desk")
    column = QVBoxLayout(sheet)
    column.setContentsMargins(0, 0, 0, 8)
    column.setSpacing(3)
    column.addWidget(widget, 1)
    for line in lines:
        below = CaptionLine(line)
        below.setContentsMargins(margin, 0, margin, 0)
        column.addWidget(below)
    return sheet
