"""PDF from shapes, through `QPdfWriter`: text as text in embedded fonts, the same bytes for the same shapes.

Qt writes the time of writing into a PDF, and identifiers made from it; both are replaced by ones made from the content.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QSize, QSizeF
from PySide6.QtGui import QPageLayout, QPageSize, QPainter, QPdfWriter, QTransform

from app.pictures.pdf_objects import in_order
from app.pictures.shapes import DOTS_PER_INCH, Item, Pixels, Shape, Text

NO_DATE: Final = "19700101000000"
"""Where it is unknown when the figures were recorded."""

_PDF_DATE: Final = re.compile(rb"(/(?:Creation|Mod)Date \(D:)\d{14}(?:Z|[+-]\d\d'\d\d')")
_XMP_DATE: Final = re.compile(rb"(xmp:\w+Date=\")[\d-]{10}T[\d:]{8}(?:Z|[+-]\d\d:\d\d)")
_XMP_NAME: Final = re.compile(rb"DocumentID=\"uuid:([0-9a-f-]{36})\"")


def pdf(size: QSize, items: Iterable[Item], title: str, attachment: str, recorded: str) -> bytes:
    """Return the file of a page of `size` points.

    `attachment` is the JSON text attached as provenance.json, `recorded` the date of the figures.
    """
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
    return _settled(in_order(bytes(drawn.data().data())), recorded)


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
    painter.setFont(text.font)
    painter.setPen(text.colour)
    painter.drawText(text.at, text.text)
    painter.restore()


def _settled(file: bytes, recorded: str) -> bytes:
    """The file with the time of recording for that of writing, and identifiers made from its content.

    Each replacement is as long as what it replaces: the file's table holds the places of its parts.
    """
    moment = (re.sub(r"\D", "", recorded) + "00000000000000")[:14] if recorded else NO_DATE
    day, hour = f"{moment[:4]}-{moment[4:6]}-{moment[6:8]}", moment[8:14]
    written = f"{day}T{hour[:2]}:{hour[2:4]}:{hour[4:]}"
    file = _PDF_DATE.sub(lambda found: found[1] + moment.encode() + b"Z", file)
    file = _XMP_DATE.sub(lambda found: found[1] + written.encode() + b"+00:00", file)
    name = _XMP_NAME.search(file)
    if name is None:
        return file
    old = name[1]
    new = str(
        uuid.UUID(
            bytes=hashlib.sha256(file.replace(old, b"").replace(old.hex().encode(), b"")).digest()[
                :16
            ]
        )
    )
    return file.replace(old, new.encode()).replace(old.hex().encode(), new.encode().hex().encode())
