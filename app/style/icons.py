"""The few icons of the window, drawn as paths so that they follow theme and scale."""

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPainterPath, QPixmap, QTransform
from PySide6.QtWidgets import QAbstractButton

from app.style.theme import Tokens, theme, theme_changed

_SIZE = 64  # Pixels of the drawing; Qt scales it down to the size of a button


def _triangle(x0: float, x1: float) -> QPainterPath:
    path = QPainterPath(QPointF(x0, 10))
    path.lineTo(x1, 32)
    path.lineTo(x0, 54)
    path.closeSubpath()
    return path


def _shape(name: str) -> QPainterPath:
    path = QPainterPath()
    if name == "play":
        return _triangle(16, 54)
    if name == "pause":
        path.addRoundedRect(QRectF(14, 10, 13, 44), 3, 3)
        path.addRoundedRect(QRectF(37, 10, 13, 44), 3, 3)
    elif name == "stop":
        path.addRoundedRect(QRectF(12, 12, 40, 40), 4, 4)
    elif name == "next":
        path = _triangle(12, 44)
        path.addRoundedRect(QRectF(46, 10, 8, 44), 2, 2)
    elif name == "previous":
        path.addRoundedRect(QRectF(10, 10, 8, 44), 2, 2)
        path.addPath(_triangle(52, 20))
    elif name == "close":
        bar = QPainterPath()
        bar.addRoundedRect(QRectF(8, 28, 48, 8), 4, 4)
        for degrees in (45, 135):
            turned = QTransform().translate(32, 32).rotate(degrees).translate(-32, -32)
            path.addPath(turned.map(bar))
        path.setFillRule(Qt.FillRule.WindingFill)
    elif name == "float":
        path.addRoundedRect(QRectF(22, 8, 34, 34), 5, 5)
        path.addRoundedRect(QRectF(28, 14, 22, 22), 2, 2)
        corner = QPainterPath(QPointF(8, 22))
        for x, y in ((16, 22), (16, 48), (42, 48), (42, 56), (8, 56)):
            corner.lineTo(x, y)
        corner.closeSubpath()
        path.addPath(corner)
    else:
        raise ValueError(f"there is no icon called {name!r}")
    return path


class ButtonIcon(QObject):
    """The icon of a button in the colours of the theme; `ink` and `dimmed`: their tokens, enabled and disabled."""

    def __init__(self, button: QAbstractButton, name: str, ink: str = "text", dimmed: str = "muted") -> None:
        super().__init__(button)
        self._button, self._name, self._inks = button, name, (ink, dimmed)
        theme_changed.connect(self._apply_theme)
        self._apply_theme(theme())

    def show_shape(self, name: str) -> None:
        if name != self._name:
            self._name = name
            self._apply_theme(theme())

    def _apply_theme(self, tokens: Tokens) -> None:
        result, shape = QIcon(), _shape(self._name)
        modes = (QIcon.Mode.Normal, QIcon.Mode.Disabled)
        for mode, ink in zip(modes, self._inks, strict=True):
            pixmap = QPixmap(_SIZE, _SIZE)
            pixmap.fill(Qt.GlobalColor.transparent)
            with QPainter(pixmap) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.fillPath(shape, tokens.color(ink))
            result.addPixmap(pixmap, mode)
        self._button.setIcon(result)
