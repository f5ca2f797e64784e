"""PDF from shapes, through `QPdfWriter`: text as text in embedded fonts, which can be searched and copied."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QSize, QSizeF
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTransform,
)

from app.pictures.shapes import DOTS_PER_INCH, Item, Pixels, Shape, Text


def pdf(size: QSize, items: Iterable[Item], title: str, attachment: str) -> bytes:
    """Return the file of a page of `size` points; `attachment` is the JSON text attached as provenance.json."""
    drawn = QBuffer()
    drawn.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(drawn)
    writer.setCreator("asrscope")
    writer.setTitle(title)
    writer.setResolution(DOTS_PER_INCH)
    inches = QSizeF(size.width() / DOTS_PER_INCH, size.height() / DOTS_PER_INCH)
    page = QPageSize(inches, QPageSize.Unit.Inch, "", QPageSize.SizeMatchPolicy.ExactMatch)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    writer.addFileAttachment("provenance.json", QByteArray(attachment.encode()), "application/json")
    painter = QPainter()
    if not painter.begin(writer):
        raise RuntimeError("the PDF could not be begun")
    for item in items:
        _draw(painter, item)
    painter.end()
    return bytes(drawn.data().data())


def _draw(painter: QPainter, item: Item) -> None:
    if isinstance(item, Shape):
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, item.smooth)
        painter.setPen(item.pen)
        painter.setBrush(item.fill)
        painter.drawPath(item.path)
    elif isinstance(item, Pixels):
        painter.drawImage(item.area, item.image)
    else:
        _write(painter, item)


def _write(painter: QPainter, text: Text) -> None:
    painter.save()
    if text.clip is not None:
        painter.setClipPath(text.clip)
    painter.setTransform(QTransform(text.transform), True)
    painter.setFont(_copied(text.font, text.text))
    painter.setPen(text.colour)
    painter.drawText(text.at, text.text)
    painter.restore()


def _copied(font: QFont, text: str) -> QFont:
    """The font with the signs that copying finds, as wide as before: Qt gives digits of equal width no meaning, nor
    other forms of a dash between digits."""
    plain = QFont(font)
    plain.clearFeatures()
    plain.setFeature(QFont.Tag("calt"), 0)
    if text:
        more = QFontMetricsF(font).horizontalAdvance(text) - QFontMetricsF(plain).horizontalAdvance(
            text
        )
        plain.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, more / len(text))
    return plain
