"""Pictures as files: a widget laid out and painted as the window paints it, written by Qt as PNG, SVG or PDF.

The provenance (session, configuration, machine, versions, command) is embedded in the file: PNG text chunks, SVG title
and description, a JSON file inside the PDF. What is printed of it is a caption in the widget.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QSize, QSizeF, Qt
from PySide6.QtGui import QImage, QImageWriter, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app import layout
from app.application import application, in_sentences, need_no_display
from app.layout import named, styled
from app.model.provenance import caption
from app.pictures.request import KINDS, THEMES, PictureError
from app.pictures.svg import DOTS_PER_INCH, paint_part, parts, svg
from app.style.plain_text import Wrapped, unbroken
from app.style.theme import set_theme, theme
from app.views.view import View
from profiler.files.outputs import writing


@contextmanager
def themed(name: str) -> Iterator[None]:
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
    """Lay `widget` out without showing it or what makes sense only on a screen; PictureError if it needs more room."""
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


class CaptionLine(Wrapped):
    """A line of the caption, wrapped where it is too long: in a name, too, as a picture has no wider place for it."""

    def __init__(self, text: str, margin: int = 4) -> None:
        super().__init__(unbroken(text))
        styled(self, 0.86, muted=True).setContentsMargins(margin, 0, margin, 0)


def captioned(widget: QWidget, lines: Sequence[str], margin: int) -> QWidget:
    """A widget above the lines of a caption, which are `margin` from the sides."""
    sheet = named(QWidget(), "desk")
    below = (CaptionLine(line, margin) for line in lines)
    layout.lay_out(QVBoxLayout(sheet), (widget, 1), *below, spacing=3, margins=(0, 0, 0, 8))
    return sheet


SUFFIXES = tuple(f".{kind}" for kind in KINDS)

MIN_SIDE, MAX_SIDE = 120, 16_384  # Sides of a picture in points; beyond 16 384 pixels many programs refuse to open it

MAX_PIXELS = 120_000_000  # Pixels of a PNG: 480 MB while it is drawn

Make = Callable[[], tuple[QWidget, Mapping[str, str]]]  # Makes a widget, and says where its numbers come from


def write_picture(
    make: Make,
    out: str | os.PathLike[str],
    size: tuple[int, int] | None = None,
    *,
    scale: float = 2.0,
    theme: str = "dark",
) -> None:
    """Write a `picture` without a display; the suffix of `out` decides it. OutputError if it cannot be written."""
    target = Path(out)
    kind = kind_of(target)
    with writing(target, "the picture") as draft:
        # In memory: Qt cannot open a file whose name is not UTF-8.
        draft.write_bytes(picture(make, kind, size, scale=scale, theme=theme, name=target.name))


def picture(
    make: Make, kind: str, size: tuple[int, int] | None, *, scale: float, theme: str, name: str = "the picture"
) -> bytes:
    """Return a picture of the widget that `make` makes in the theme, as the file of a kind (png, svg or pdf).

    `size`: in points; the widget's own if None. `scale`: pixels per point of a PNG. `name` begins sentences about the
    size. Raises PictureError for an unknown theme or an impossible size.
    """
    if theme not in THEMES:
        raise PictureError(f"a picture is {' or '.join(THEMES)}, not {theme!r}.")
    need_no_display()
    # Held by a name: otherwise Qt's application would be garbage-collected at once.
    qt = application()
    with in_sentences(), themed(theme):
        widget, origin = make()
        try:
            room = widget.size() if size is None else QSize(*size)
            check_size(name, kind, room.width(), room.height(), scale)
            lay_out(widget, room)
            return _file(widget, kind, scale, origin)
        finally:
            widget.deleteLater()
            qt.processEvents()


def kind_of(target: Path) -> str:
    """Which kind of file a name asks for: png, svg or pdf; PictureError otherwise."""
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise PictureError(f"{target}: the name of a picture ends in {known}, not in {target.suffix!r}.")
    return target.suffix.lower().removeprefix(".")


def check_size(name: str, kind: str, width: int, height: int, scale: float) -> None:
    """PictureError for a size that no picture has; `name` begins the sentence."""
    if not (MIN_SIDE <= width <= MAX_SIDE and MIN_SIDE <= height <= MAX_SIDE):
        raise PictureError(f"{name}: a picture is {MIN_SIDE} to {MAX_SIDE} points wide and high, not {width}×{height}.")
    if not (math.isfinite(scale) and 0.25 <= scale <= 8):
        raise PictureError(f"{name}: a picture's scale is 0.25 to 8, not {scale:g}.")
    pixels = width * scale * height * scale
    if kind == "png" and (pixels > MAX_PIXELS or max(width, height) * scale > MAX_SIDE):
        raise PictureError(
            f"{name}: {width}×{height} points at scale {scale:g} is more than a PNG of "
            f"{MAX_PIXELS // 10**6} million pixels, {MAX_SIDE} a side; choose a smaller size."
        )


def _file(widget: QWidget, kind: str, scale: float, origin: Mapping[str, str]) -> bytes:
    title, about = caption(origin) or "asrscope", json.dumps(dict(origin))
    if kind == "png":
        return _png(widget, scale, about)
    return svg(widget, title, about) if kind == "svg" else _pdf(widget, title, about)


def _png(widget: QWidget, scale: float, about: str) -> bytes:
    pixels = QSize(round(widget.width() * scale), round(widget.height() * scale))
    image = QImage(pixels, QImage.Format.Format_RGB32)
    if image.isNull():
        raise PictureError(f"There is no memory for {pixels.width()}×{pixels.height()} pixels.")
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        paint(painter, widget)
    per_metre = round(DOTS_PER_INCH * scale / 0.0254)
    image.setDotsPerMeterX(per_metre)
    image.setDotsPerMeterY(per_metre)
    image.setText("Software", "asrscope")
    image.setText("asrscope", about)
    return png_file(image)


def png_file(image: QImage) -> bytes:
    """The PNG of an image; PictureError where Qt cannot make it."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    if not writer.write(image):
        raise PictureError(f"The picture cannot be written: {writer.errorString()}.")
    return bytes(buffer.data().data())


def _pdf(widget: QWidget, title: str, about: str) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setCreator("asrscope")
    writer.setTitle(title)
    writer.setResolution(DOTS_PER_INCH)
    inches = QSizeF(widget.width() / DOTS_PER_INCH, widget.height() / DOTS_PER_INCH)
    page = QPageSize(inches, QPageSize.Unit.Inch, "", QPageSize.SizeMatchPolicy.ExactMatch)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    writer.addFileAttachment("provenance.json", QByteArray(about.encode()), "application/json")
    with QPainter(writer) as painter:
        paint(painter, widget)
    return bytes(buffer.data().data())
