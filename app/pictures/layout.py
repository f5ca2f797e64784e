"""A widget laid out and painted for a picture, with the caption line under it.

Everything goes through `QWidget.render`, so a picture shows what the window shows. A sheet (`app.pictures.sheet`)
has a caption of its own; any other widget gets one line below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QApplication, QWidget

from app.model.provenance import caption
from app.pictures.wanted import PictureError
from app.style.plain_text import write
from app.style.theme import font, set_theme, theme
from app.views.view import View

CAPTION = 26
"""Height of the caption line in points."""


@contextmanager
def themed(name: str | None) -> Iterator[None]:
    """Use the theme `name`, or the current one, within the context."""
    before = theme().name
    if name is None or name == before:
        # Also creates style sheet and fonts if no window has set a theme.
        if not QApplication.instance().styleSheet():  # type: ignore[union-attr]
            set_theme(before)
        yield
        return
    set_theme(name)
    try:
        yield
    finally:
        set_theme(before)


@contextmanager
def laid_out(widget: QWidget, size: QSize) -> Iterator[None]:
    """Lay `widget` out at `size`, without anything that makes sense only on a screen."""
    was_size, was_visible = widget.size(), widget.isVisible()
    views = [widget] if isinstance(widget, View) else widget.findChildren(View)
    hidden = [part for view in views for part in view.header_controls if not part.isHidden()]
    for part in hidden:
        part.hide()
    if not was_visible:
        widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        widget.show()
    if size != was_size:
        widget.resize(size)
    settle()
    for view in views:
        view.settle()
        view.set_picture(True)
    try:
        if widget.size() != size:
            least = widget.size()
            raise PictureError(
                f"a picture of this needs at least {least.width()}×{least.height()} points, "
                f"not {size.width()}×{size.height()}."
            )
        yield
    finally:
        for view in views:
            view.set_picture(False)
        for part in hidden:
            part.show()
        if size != was_size:
            widget.resize(was_size)
        if not was_visible:
            widget.hide()
            widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
        settle()


def settle() -> None:
    """Process pending layouts and redraws."""
    for _ in range(3):
        QApplication.sendPostedEvents()
        QApplication.processEvents()


def paint(painter: QPainter, widget: QWidget, origin: Mapping[str, str]) -> None:
    """Background, widget, caption, in points."""
    whole = QRect(QPoint(0, 0), whole_size(widget, origin))
    painter.fillRect(whole, theme().color("surface"))
    widget.render(painter, QPoint(0, 0))
    if not origin:
        return
    face = font(0.88)
    painter.setFont(face)
    painter.setPen(theme().color("muted"))
    line = QRectF(14, widget.height(), widget.width() - 28, CAPTION)
    text = QFontMetricsF(face).elidedText(
        caption(origin), Qt.TextElideMode.ElideRight, line.width()
    )
    write(painter, line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def whole_size(widget: QWidget, origin: Mapping[str, str]) -> QSize:
    """Size of the picture in points: the widget and, with a provenance, the caption."""
    return widget.size() + QSize(0, CAPTION if origin else 0)
