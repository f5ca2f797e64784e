"""Pictures of a widget: PNG, SVG or PDF, with their provenance.

The provenance (session, configuration, machine, versions, command) is printed in a caption and embedded in the file:
PNG text chunks, SVG title and description, a JSON file inside the PDF. The same widget gives the same picture.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtWidgets import QWidget

from app.application import application, need_no_display
from app.model.provenance import caption
from app.pictures.layout import CAPTION, laid_out, paint, themed, whole_size
from app.pictures.pdf import pdf
from app.pictures.shapes import DOTS_PER_INCH, Item, recorded
from app.pictures.svg import svg
from app.pictures.wanted import PictureError
from app.style.theme import THEMES
from profiler.files.outputs import writing

SUFFIXES = (".png", ".svg", ".pdf")

MIN_SIDE, MAX_SIDE = 120, 16_384
"""Sides of a picture in points; beyond 16 384 pixels many programs refuse to open it."""

MAX_PIXELS = 120_000_000
"""Pixels of a PNG: 480 MB while it is drawn."""


def export(
    widget: QWidget,
    path: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    scale: float = 2.0,
    provenance: Mapping[str, str] | None = None,
    theme: str | None = None,
    sources: Iterable[str | os.PathLike[str]] = (),
    *,
    captioned: bool = True,
) -> None:
    """Write a picture of `widget`; the suffix of `path` decides the kind.

    Args:
        widget: what to draw; it need not be shown.
        path: .png, .svg or .pdf.
        size: width and height in points without the caption line; the widget's own if None.
        scale: pixels per point of a PNG.
        provenance: of the picture, in order of importance; empty for none.
        theme: "dark" or "light"; the one in use if None.
        sources: files that the picture is made from, which it must not overwrite.
        captioned: whether the provenance is printed below the widget.

    Raises:
        PictureError: unknown suffix, impossible size.
        OutputError: the file cannot be written.
    """
    target = Path(path)
    kind = kind_of(target)
    if theme is not None and theme not in THEMES:
        raise PictureError(f"a picture is {' or '.join(THEMES)}, not {theme!r}.")
    width, height = size if size is not None else (widget.width(), widget.height())
    check_size(target.name, kind, width, height, scale)
    with (
        writing(target, "the picture", sources) as draft,
        themed(theme),
        laid_out(widget, QSize(width, height)),
    ):
        # In memory: Qt cannot open a file whose name is not UTF-8.
        draft.write_bytes(drawn(widget, kind, scale, provenance or {}, captioned=captioned))


def kind_of(target: Path) -> str:
    """Which kind of file a name asks for: png, svg or pdf; PictureError otherwise."""
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise PictureError(
            f"{target}: the name of a picture ends in {known}, not in {target.suffix!r}."
        )
    return target.suffix.lower().removeprefix(".")


def drawn(
    widget: QWidget, kind: str, scale: float, origin: Mapping[str, str], *, captioned: bool = True
) -> bytes:
    """Return the file of a widget that is laid out, as png, svg or pdf."""
    below = origin if captioned else {}
    if kind == "png":
        return _png(widget, scale, origin, below)
    size = whole_size(widget, below)
    items: list[Item] = recorded(size, lambda painter: paint(painter, widget, below))
    title, about = caption(origin) or "asrscope", json.dumps(dict(origin))
    if kind == "svg":
        return svg(size, items, title, about)
    return pdf(size, items, title, about)


def drawing(
    make: Callable[[], QWidget],
    out: str | os.PathLike[str],
    size: tuple[int, int] | None,
    scale: float,
    provenance: Mapping[str, str],
    theme: str,
) -> None:
    """Write a picture of the widget that `make` returns, without a display; see `export`."""
    need_no_display()
    # Held by a name: otherwise Qt's application would be garbage-collected at once.
    qt = application()
    widget = make()
    try:
        export(widget, out, size, scale, provenance, theme)
    finally:
        widget.deleteLater()
        qt.processEvents()


def check_size(name: str, kind: str, width: int, height: int, scale: float) -> None:
    """PictureError for a size that no picture has; `name` begins the sentence."""
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise PictureError(
            f"{name}: a picture is {MIN_SIDE} to {MAX_SIDE} points wide and high, "
            f"not {width}×{height}."
        )
    if not (math.isfinite(scale) and 0.25 <= scale <= 8):
        raise PictureError(f"{name}: a picture's scale is 0.25 to 8, not {scale:g}.")
    pixels = width * scale * (height + CAPTION) * scale
    if kind == "png" and (pixels > MAX_PIXELS or max(width, height + CAPTION) * scale > MAX_SIDE):
        raise PictureError(
            f"{name}: {width}×{height} points at scale {scale:g} is more than a PNG of "
            f"{MAX_PIXELS // 10**6} million pixels, {MAX_SIDE} a side; choose a smaller size."
        )


def _png(
    widget: QWidget, scale: float, origin: Mapping[str, str], below: Mapping[str, str]
) -> bytes:
    size = whole_size(widget, below)
    pixels = QSize(round(size.width() * scale), round(size.height() * scale))
    image = QImage(pixels, QImage.Format.Format_RGB32)
    if image.isNull():
        raise PictureError(f"There is no memory for {pixels.width()}×{pixels.height()} pixels.")
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        paint(painter, widget, below)
    per_metre = round(DOTS_PER_INCH * scale / 0.0254)
    image.setDotsPerMeterX(per_metre)
    image.setDotsPerMeterY(per_metre)
    image.setText("Software", "asrscope")
    image.setText("asrscope", json.dumps(dict(origin)))
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    if not writer.write(image):
        raise PictureError(f"The picture cannot be written: {writer.errorString()}.")
    return bytes(buffer.data().data())
