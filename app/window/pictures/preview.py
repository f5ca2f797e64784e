"""The picture as it will be, shrunk to the room there is; above it what is under way, or why there is none.

Each pixel shown is the mean of those it stands for: a line of one pixel becomes faint and never disappears.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.style.plain_text import describe, write
from app.style.theme import font, theme

LEAST = QSize(420, 300)
FAINT = 0.35  # Opacity of a picture that no longer is what is wanted


class Preview(QWidget):
    """Shows an image with its aspect kept."""

    def __init__(self) -> None:
        super().__init__()
        self._image: QImage | None = None
        self._shrunk = QImage()
        self._text = ""
        self._old = False
        self.setMinimumSize(LEAST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        describe(self, self.tr("Preview of the picture"))

    @property
    def image(self) -> QImage | None:
        return self._image

    @property
    def text(self) -> str:
        return self._text

    def show_image(self, image: QImage) -> None:
        self._image, self._text, self._old = image, "", False
        self._shrunk = QImage()
        self.update()

    def say(self, text: str) -> None:
        self._text, self._old = text, True
        describe(self, description=text)
        self.update()

    def _of_size(self, image: QImage, size: QSize) -> QImage:
        """Return the image scaled to `size` points, in device pixels."""
        pixels = (size.toSizeF() * self.devicePixelRatioF()).toSize()
        if self._shrunk.size() != pixels:
            kept = Qt.AspectRatioMode.IgnoreAspectRatio
            self._shrunk = image.scaled(pixels, kept, Qt.TransformationMode.SmoothTransformation)
        return self._shrunk

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw picture and sentence."""
        with QPainter(self) as painter:
            area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            if self._image is not None and not self._image.isNull():
                size = self._image.size().scaled(area.size().toSize(), Qt.AspectRatioMode.KeepAspectRatio)
                place = QRectF(0, 0, size.width(), size.height())
                place.moveCenter(area.center())
                painter.setOpacity(FAINT if self._old else 1.0)
                painter.drawImage(place, self._of_size(self._image, size))
                painter.setOpacity(1.0)
                painter.setPen(theme().color("border"))
                painter.drawRect(place)
            if self._text:
                painter.setFont(font(1.05))
                painter.setPen(theme().color("text"))
                flags = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
                write(painter, area.adjusted(30, 0, -30, 0), flags, self._text, broken=True)
