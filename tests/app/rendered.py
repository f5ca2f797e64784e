"""Pictures turned back into pixels, to compare what other programs will show with what was drawn."""

import importlib.util
import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app import views
from app.model.time_axis import TimeAxis
from app.pictures.request import PictureRequest
from app.pictures.session import SessionPictures
from app.views.view import View
from profiler.arrays import F64

POINTS_PER_INCH, DOTS_PER_INCH = 72, 96


def grey(image: QImage) -> F64:
    """Brightness [height, width], 0…255."""
    plain = image.convertToFormat(QImage.Format.Format_Grayscale8)
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(plain.height(), -1)
    return rows[:, : plain.width()].astype(np.float64)


def desk_picture(
    session: str | os.PathLike[str], out: str | os.PathLike[str], request: PictureRequest | None = None
) -> None:
    """Write one picture of a session."""
    with closing(SessionPictures(session)) as pictures:
        pictures.write(request or PictureRequest(), out)


def views_of(
    session: str | os.PathLike[str], request: PictureRequest, monkeypatch: pytest.MonkeyPatch
) -> dict[str, View]:
    """Draw a picture of a session and return the views in it, by name."""
    made: dict[str, View] = {}

    def create(name: str, axis: TimeAxis) -> View:
        made[name] = views.create(name, axis)
        return made[name]

    monkeypatch.setattr("app.pictures.session.create", create)
    with closing(SessionPictures(session)) as pictures:
        pictures.draw(request, "png")
    return made


def of_svg(file: bytes) -> F64:
    """Brightness of an SVG at one pixel per point, as Qt's own renderer shows it, which knows no clipping."""
    renderer = QSvgRenderer(QByteArray(file))
    assert renderer.isValid()
    image = QImage(renderer.viewBox().size(), QImage.Format.Format_RGB32)
    image.fill(0xFF808080)
    with QPainter(image) as painter:
        renderer.render(painter)
    return grey(image)


def of_pdf(path: Path) -> F64:
    """Brightness of a PDF's page at one pixel per point of a widget, by whatever can show one; skips without any."""
    out = path.with_suffix(".page.png")
    if importlib.util.find_spec("PySide6.QtPdf") is not None:
        from PySide6.QtPdf import QPdfDocument  # type: ignore[import-not-found, unused-ignore]

        document = QPdfDocument()
        document.load(str(path))
        size = document.pagePointSize(0) * (DOTS_PER_INCH / POINTS_PER_INCH)
        return grey(document.render(0, size.toSize()))
    if importlib.util.find_spec("pypdfium2") is not None:
        import pypdfium2  # type: ignore[import-not-found, import-untyped, unused-ignore]

        pages = pypdfium2.PdfDocument(str(path))
        bitmap = pages[0].render(scale=DOTS_PER_INCH / POINTS_PER_INCH, grayscale=True)
        found = np.array(bitmap.to_numpy(), dtype=np.float64)
        pages.close()
        return found.reshape(found.shape[:2])
    if program := shutil.which("pdftoppm"):
        options = ["-png", "-singlefile", "-r", str(DOTS_PER_INCH)]
        subprocess.run([program, *options, path, out.with_suffix("")], check=True)
        return grey(QImage(str(out)))
    pytest.skip("nothing here shows a PDF: PySide6.QtPdf, pypdfium2 or pdftoppm")


def coarse(picture: F64, shape: tuple[int, int], side: int = 8) -> F64:
    """Means over squares of `side` pixels of the part [height, width] at the top left: no edge is too fine for them."""
    rows, columns = shape[0] // side, shape[1] // side
    part = picture[: rows * side, : columns * side]
    return np.asarray(part.reshape(rows, side, columns, side).mean(axis=(1, 3)))
