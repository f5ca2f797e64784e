"""Pictures of a widget: PNG, SVG or PDF, with their provenance.

The provenance (session, configuration, machine, versions, command) is printed in a caption below the picture
and embedded in the file: PNG text chunks, SVG title and description, a JSON file inside the PDF.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QPoint, QRect, QSize, QSizeF
from PySide6.QtGui import QImage, QImageWriter, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from app.application import application, need_no_display
from app.pictures.layout import CAPTION, PictureError, laid_out, paint, themed, whole_size
from app.pictures.provenance import caption
from app.style.theme import THEMES
from profiler.files.outputs import writing

SUFFIXES = (".png", ".svg", ".pdf")

MIN_SIDE, MAX_SIDE = 120, 16_384
"""Sides of a picture in points; beyond 16 384 pixels many programs refuse to open it."""

MAX_PIXELS = 120_000_000
"""Pixels of a PNG: 480 MB while it is drawn."""

DOTS_PER_INCH = 96
"""Points of a widget per inch."""


def export(
    widget: QWidget,
    path: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    scale: float = 2.0,
    provenance: Mapping[str, str] | None = None,
    theme: str | None = None,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write a picture of `widget`; the suffix of `path` decides the kind.

    Args:
        widget: what to draw; it need not be shown.
        path: .png, .svg or .pdf.
        size: width and height in points without the caption line; the widget's own if None.
        scale: pixels per point of a PNG.
        provenance: of the picture, in order of importance; empty for no caption.
        theme: "dark" or "light"; the one in use if None.
        sources: files that the picture is made from, which it must not overwrite.

    Raises:
        PictureError: unknown suffix, impossible size.
        OutputError: the file cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise PictureError(
            f"{target}: the name of a picture ends in {known}, not in {target.suffix!r}."
        )
    if theme is not None and theme not in THEMES:
        raise PictureError(f"a picture is {' or '.join(THEMES)}, not {theme!r}.")
    width, height = size if size is not None else (widget.width(), widget.height())
    _check_size(target, width, height, scale)
    origin = dict(provenance or {})
    draw = {".png": _draw_png, ".svg": _draw_svg, ".pdf": _draw_pdf}[target.suffix.lower()]
    with (
        writing(target, "the picture", sources) as draft,
        themed(theme),
        laid_out(widget, QSize(width, height)),
    ):
        # In memory: Qt cannot open a file whose name is not UTF-8.
        drawn = QBuffer()
        drawn.open(QIODevice.OpenModeFlag.WriteOnly)
        draw(widget, drawn, scale, origin)
        draft.write_bytes(drawn.data().data())


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


def _check_size(target: Path, width: int, height: int, scale: float) -> None:
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise PictureError(
            f"{target}: a picture is {MIN_SIDE} to {MAX_SIDE} points wide and high, "
            f"not {width}×{height}."
        )
    if not (math.isfinite(scale) and 0.25 <= scale <= 8):
        raise PictureError(f"{target}: a picture's scale is 0.25 to 8, not {scale:g}.")
    pixels = width * scale * (height + CAPTION) * scale
    if target.suffix.lower() == ".png" and (
        pixels > MAX_PIXELS or max(width, height + CAPTION) * scale > MAX_SIDE
    ):
        raise PictureError(
            f"{target}: {width}×{height} points at scale {scale:g} is more than a PNG of "
            f"{MAX_PIXELS // 10**6} million pixels, {MAX_SIDE} a side; choose a smaller size."
        )


def _draw_png(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = whole_size(widget, origin)
    pixels = QSize(round(size.width() * scale), round(size.height() * scale))
    image = QImage(pixels, QImage.Format.Format_RGB32)
    if image.isNull():
        raise PictureError(f"There is no memory for {pixels.width()}×{pixels.height()} pixels.")
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        paint(painter, widget, origin)
    per_metre = round(DOTS_PER_INCH * scale / 0.0254)
    image.setDotsPerMeterX(per_metre)
    image.setDotsPerMeterY(per_metre)
    image.setText("Software", "asrscope")
    image.setText("asrscope", json.dumps(dict(origin)))
    writer = QImageWriter(out, QByteArray(b"png"))
    if not writer.write(image):
        raise PictureError(f"The picture cannot be written: {writer.errorString()}.")


def _draw_svg(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = whole_size(widget, origin)
    generator = QSvgGenerator()
    generator.setOutputDevice(out)
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(0, 0), size))
    generator.setResolution(DOTS_PER_INCH)
    generator.setTitle("asrscope")
    generator.setDescription(json.dumps(dict(origin)))
    painter = QPainter()
    if not painter.begin(generator):
        raise PictureError("The SVG could not be begun.")
    paint(painter, widget, origin)
    painter.end()


def _draw_pdf(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = whole_size(widget, origin)
    writer = QPdfWriter(out)
    writer.setCreator("asrscope")
    writer.setTitle(caption(origin) or "asrscope")
    writer.setResolution(DOTS_PER_INCH)
    inches = QSizeF(size.width() / DOTS_PER_INCH, size.height() / DOTS_PER_INCH)
    page = QPageSize(inches, QPageSize.Unit.Inch, "", QPageSize.SizeMatchPolicy.ExactMatch)
    layout = QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF())
    writer.setPageLayout(layout)
    writer.addFileAttachment(
        "provenance.json", QByteArray(json.dumps(dict(origin)).encode()), "application/json"
    )
    painter = QPainter()
    if not painter.begin(writer):
        raise PictureError("The PDF could not be begun.")
    paint(painter, widget, origin)
    painter.end()
