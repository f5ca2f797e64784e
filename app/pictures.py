"""Pictures of a view or of the whole desk: PNG, SVG or PDF, with their origin in them.

Everything goes through `QWidget.render`, so a picture shows what the window shows. The origin
(session, configuration, machine, versions, command) is printed in a caption line under the picture
and embedded in the file: PNG text chunks, SVG title and description, a JSON file inside the PDF.
pyqtgraph's exporters are not used.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QMarginsF,
    QMessageLogContext,
    QPoint,
    QRect,
    QRectF,
    QSize,
    QSizeF,
    Qt,
    QtMsgType,
    qInstallMessageHandler,
)
from PySide6.QtGui import (
    QFontMetricsF,
    QImage,
    QImageWriter,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QWidget

from app.plain_text import write
from app.provenance import caption, provenance_of
from app.theme import THEMES, font, set_theme, theme
from profiler.errors import BadInput
from profiler.outputs import writing
from profiler.session.files import own_files

SUFFIXES = (".png", ".svg", ".pdf")

LEAST_SIDE, MOST_SIDE = 120, 16_384
"""Sides of a picture in points; beyond 16 384 pixels many programs refuse to open it."""

MOST_PIXELS = 120_000_000
"""Pixels of a PNG: 480 MB while it is drawn."""

DOTS_PER_INCH = 96
"""Points of a widget per inch."""

CAPTION = 26
"""Height of the caption line in points."""

DESK_SIZE = (1600, 1000)


class PictureError(BadInput):
    """A picture that cannot be made, in one sentence."""


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
        provenance: origin of the picture, in order of importance; none leaves out the caption.
        theme: "dark" or "light"; the one in use if None.
        sources: files that the picture is made from, and that it must not take the place of.

    Raises:
        PictureError: unknown suffix, impossible size.
        OutputError: a place that cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise PictureError(f"{target}: a picture ends in {known}, not in {target.suffix!r}.")
    if theme is not None and theme not in THEMES:
        raise PictureError(f"a picture is {' or '.join(THEMES)}, not {theme!r}.")
    width, height = size if size is not None else (widget.width(), widget.height())
    _check_size(target, width, height, scale)
    origin = dict(provenance or {})
    draw = {".png": _draw_png, ".svg": _draw_svg, ".pdf": _draw_pdf}[target.suffix.lower()]
    with (
        writing(target, "the picture", sources) as draft,
        _themed(theme),
        _prepared(widget, QSize(width, height)),
    ):
        # In memory: Qt opens no file whose name is no UTF-8.
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
    """Write a picture of a widget that `make` makes for it, without a display; see `export`."""
    _need_no_display()
    from app.gui import application

    # Kept in a name of its own: without one, Qt's application would be collected at once.
    qt = application()
    widget = make()
    try:
        export(widget, out, size, scale, provenance, theme)
    finally:
        widget.deleteLater()
        qt.processEvents()


def desk_picture(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    view: str | None = None,
    size: tuple[int, int] = DESK_SIZE,
    theme: str = "dark",
    scale: float = 2.0,
) -> None:
    """Write a picture of a session, without a display: the whole desk, or one view of it.

    Args:
        session_path: session file.
        out: .png, .svg or .pdf.
        view: name of a view; None for the whole desk.
        size: width and height in points without the caption line.
        theme: "dark" or "light".
        scale: pixels per point of a PNG.

    Raises:
        PictureError: unknown view, theme or suffix, impossible size.
        OutputError: a place that cannot be written.
        SessionError: the session cannot be read.
    """
    from app.views import VIEWS

    if view is not None and view not in VIEWS:
        raise PictureError(f"no view is called {view!r}; there are {', '.join(VIEWS)}.")
    if theme not in THEMES:
        raise PictureError(f"a picture is {' or '.join(THEMES)}, not {theme!r}.")
    _need_no_display()
    from app.gui import application

    # Kept in a name of its own: without one, Qt's application would be collected at once.
    qt = application()
    with _quiet(), _themed(theme):
        if view is None:
            _whole_desk(session_path, out, size, scale)
        else:
            _one_view(session_path, out, view, size, scale)
        qt.processEvents()


def _need_no_display() -> None:
    """Before there is an application: a display that is not there, or a wrong name of one, would end the process."""
    if QApplication.instance() is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"


def _check_size(target: Path, width: int, height: int, scale: float) -> None:
    if not (LEAST_SIDE <= width <= MOST_SIDE and LEAST_SIDE <= height <= MOST_SIDE):
        raise PictureError(
            f"{target}: a picture is {LEAST_SIDE} to {MOST_SIDE} points wide and high, "
            f"not {width}×{height}."
        )
    if not (math.isfinite(scale) and 0.25 <= scale <= 8):
        raise PictureError(f"{target}: a picture's scale is 0.25 to 8, not {scale:g}.")
    pixels = width * scale * (height + CAPTION) * scale
    if target.suffix.lower() == ".png" and (
        pixels > MOST_PIXELS or max(width, height + CAPTION) * scale > MOST_SIDE
    ):
        raise PictureError(
            f"{target}: {width}×{height} points at scale {scale:g} is more than a PNG of "
            f"{MOST_PIXELS // 10**6} million pixels, {MOST_SIDE} a side; choose a smaller size."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the offscreen platform's remark on every resize from the command line's stderr."""

    def tell(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if "propagateSizeHints" in text:
            return
        if before is not None:
            before(kind, context, text)
        else:
            sys.stderr.write(f"{text}\n")

    before = qInstallMessageHandler(tell)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


@contextmanager
def _themed(name: str | None) -> Iterator[None]:
    before = theme().name
    if name is None or name == before:
        # Also makes style sheet and fonts exist when no window ever set a theme.
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
def _prepared(widget: QWidget, size: QSize) -> Iterator[None]:
    """Lay `widget` out at `size` with nothing in it that makes sense on a screen only."""
    from app.views.view import View

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
    _settle()
    for view in views:
        view.settle()
    try:
        if widget.size() != size:
            least = widget.size()
            raise PictureError(
                f"a picture of this needs at least {least.width()}×{least.height()} points, "
                f"not {size.width()}×{size.height()}."
            )
        yield
    finally:
        for part in hidden:
            part.show()
        if size != was_size:
            widget.resize(was_size)
        if not was_visible:
            widget.hide()
            widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
        _settle()


def _settle() -> None:
    """Let layouts and the redraws that they ask for happen."""
    for _ in range(3):
        QApplication.sendPostedEvents()
        QApplication.processEvents()


def _paint(painter: QPainter, widget: QWidget, origin: Mapping[str, str]) -> None:
    """Background, widget, caption, in points."""
    whole = QRect(QPoint(0, 0), _whole_size(widget, origin))
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


def _whole_size(widget: QWidget, origin: Mapping[str, str]) -> QSize:
    return widget.size() + QSize(0, CAPTION if origin else 0)


def _draw_png(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = _whole_size(widget, origin)
    pixels = QSize(round(size.width() * scale), round(size.height() * scale))
    image = QImage(pixels, QImage.Format.Format_RGB32)
    if image.isNull():
        raise PictureError(f"There is no memory for {pixels.width()}×{pixels.height()} pixels.")
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        _paint(painter, widget, origin)
    per_metre = round(DOTS_PER_INCH * scale / 0.0254)
    image.setDotsPerMeterX(per_metre)
    image.setDotsPerMeterY(per_metre)
    image.setText("Software", "asrscope")
    image.setText("asrscope", json.dumps(dict(origin)))
    writer = QImageWriter(out, QByteArray(b"png"))
    if not writer.write(image):
        raise PictureError(f"The picture cannot be written: {writer.errorString()}.")


def _draw_svg(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = _whole_size(widget, origin)
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
    _paint(painter, widget, origin)
    painter.end()


def _draw_pdf(widget: QWidget, out: QBuffer, scale: float, origin: Mapping[str, str]) -> None:
    size = _whole_size(widget, origin)
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
    _paint(painter, widget, origin)
    painter.end()


def _one_view(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    view_id: str,
    size: tuple[int, int],
    scale: float,
) -> None:
    from app.playhead import Playhead
    from app.time_axis import TimeAxis
    from app.views import create

    axis = TimeAxis()
    playhead = Playhead(axis)
    view = create(view_id, axis)
    playhead.changed.connect(view.update_snapshot)
    try:
        playhead.open(Path(session_path))
        playhead.pause()
        assert playhead.session is not None
        origin = provenance_of(playhead.session)
        export(view, out, size, scale, origin, sources=own_files(session_path))
    finally:
        playhead.close()
        view.deleteLater()
        _settle()


def _whole_desk(
    session_path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    size: tuple[int, int],
    scale: float,
) -> None:
    """The main window's inside, on settings of its own that nobody remembers."""
    from app.main_window import MainWindow
    from app.recent import Memory

    with tempfile.TemporaryDirectory() as folder:
        window = MainWindow(memory=Memory(Path(folder) / "settings.ini"))
        try:
            window.playhead.open(Path(session_path))
            window.playhead.pause()
            window.show_desk()
            window.menuBar().hide()
            assert window.playhead.session is not None
            origin = provenance_of(window.playhead.session)
            inside = window.takeCentralWidget()
            assert inside is not None
            export(inside, out, size, scale, origin, sources=own_files(session_path))
            window.setCentralWidget(inside)
        finally:
            window.close()
            window.deleteLater()
            _settle()
