"""SVG by Qt's own writer: each widget as it writes it, put together, with outlines for letters.

What Qt's writer does that other programs show wrongly is mended here:

- A clip within another one stays when it was left, and is shifted in a widget that is not at the origin: each widget is
  written by itself.
- A thin line of a chart has the chart's coordinates and an attribute that keeps its width, which few programs know: it
  gets coordinates of the widget.
- A text names its font, which other machines do not have: it becomes an outline with its letters as its label
  (`aria-label`), which screen readers and editors read.
"""

import html
import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QPointF, QRect
from PySide6.QtGui import QFont, QPainter, QPainterPath, QRawFont, QRegion, QTransform
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from app.style.theme import theme
from profiler.plain import one_line

DOTS_PER_INCH: Final = 96  # Points of a widget per inch
EM: Final = 1000  # Size in pixels at which outlines are taken: at small sizes they depend on what was drawn before
_EMPTY: Final = re.compile(r"<g [^<>]*>\s*</g>\s*")
FAR: Final = 1e5  # Where lines end that go far beyond a page: some programs leave out what is much larger
_BODY: Final = re.compile(r"(<defs>.*)</svg>", re.DOTALL)
_THIN: Final = re.compile(
    r'(?P<before><g [^>]*?)transform="matrix\((?P<matrix>[^)]*)\)"(?P<between>[^>]*>\s*)'
    r'(?P<shapes>(?:<\w+ [^>]*vector-effect="non-scaling-stroke"[^>]*/>\s*)+</g>)'
)
_POINT: Final = re.compile(r"([-+.\de]+),([-+.\de]+)")
_TEXT_OR_NAME: Final = re.compile(
    r'<text (?P<ink>fill="[^"]*" fill-opacity="[^"]*") [^>]*?x="(?P<x>[^"]*)" y="(?P<y>[^"]*)" '
    r'font-family="(?P<family>[^"]*)" font-size="(?P<size>[^"]*)" font-weight="(?P<weight>\d+)" '
    r'font-style="(?P<style>\w+)"[^>]*>(?P<text>[^<]*)</text>|(?P<named>id="|url\(#)'
)


def parts(widget: QWidget, at: QPoint | None = None) -> Iterator[tuple[QWidget, QPoint, QRect]]:
    """A widget and those in it, from back to front: where each is on the page, and what is seen of it there.

    Each is painted and clipped by itself. `QWidget.render` of the whole clips by means that Qt's writers of SVG and PDF
    ignore: a text that is scrolled away would lie over what is below its view.
    """
    if not widget.isVisible():
        return
    at = at or QPoint()
    seen: QRect = widget.visibleRegion().boundingRect()
    if not seen.isEmpty():
        yield widget, at, seen.translated(at)
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isWindow():
            yield from parts(child, at + child.pos())


def paint_part(painter: QPainter, part: QWidget, at: QPoint) -> None:
    part.render(painter, at, QRegion(), QWidget.RenderFlag(0))


def svg(widget: QWidget, title: str, description: str) -> bytes:
    """Return the file of a widget that is laid out; title and description are plain text."""
    width, height = widget.width(), widget.height()
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(one_line(title, 2000))}</title>",
        f"<desc>{escape(description)}</desc>",
        f'<rect width="{width}" height="{height}" fill="{theme().color("surface").name()}"/>',
    ]
    for number, (part, at, seen) in enumerate(parts(widget)):
        if body := _part(part, f"p{number}"):
            lines += [
                f'<defs><clipPath id="p{number}"><rect x="{seen.x()}" y="{seen.y()}" '
                f'width="{seen.width()}" height="{seen.height()}"/></clipPath></defs>',
                f'<g clip-path="url(#p{number})"><g transform="translate({at.x()} {at.y()})">',
                f"{body}</g></g>",
            ]
    return "\n".join([*lines, "</svg>", ""]).encode()


def _part(part: QWidget, name: str) -> str:
    """What Qt writes of one widget; empty where it paints nothing. `name` begins the names of its definitions."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # The other version that Qt writes has no clips.
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
    generator.setOutputDevice(buffer)
    generator.setResolution(DOTS_PER_INCH)
    generator.setSize(part.size())
    with QPainter(generator) as painter:
        paint_part(painter, part, QPoint())
    found = _BODY.search(bytes(buffer.data().data()).decode())
    body = found[1] if found else ""
    # Groups within groups.
    for _ in range(3):
        body = _EMPTY.sub("", body)
    if "<g" not in body:
        return ""
    return _TEXT_OR_NAME.sub(
        lambda match: f"{match[0]}{name}-" if match["named"] else _outlined(match), _THIN.sub(_moved, body)
    )


def _moved(group: re.Match[str]) -> str:
    """Shapes whose outlines keep their width, with points of the widget instead of those of a chart."""
    transform = QTransform(*(float(value) for value in group["matrix"].split(",")))

    def moved(point: re.Match[str]) -> str:
        at = transform.map(QPointF(float(point[1]), float(point[2])))
        return ",".join(f"{min(max(value, -FAR), FAR):.2f}" for value in (at.x(), at.y()))

    return f"{group['before']}{group['between']}{_POINT.sub(moved, group['shapes'])}"


def _outlined(text: re.Match[str]) -> str:
    letters = html.unescape(text["text"])
    slanted = text["style"] != "normal"
    font = QFont(html.unescape(text["family"]), -1, int(text["weight"]), slanted)
    font.setPointSizeF(float(text["size"]) * 72 / DOTS_PER_INCH)
    # Qt lays text out at whole pixels on some systems.
    drawn = QRawFont.fromFont(font).pixelSize()
    scale = (drawn if drawn > 0 else float(text["size"])) / EM
    label = quoteattr(one_line(letters.replace("\N{ZERO WIDTH SPACE}", "")))
    return (
        f'<path {text["ink"]} stroke="none" fill-rule="nonzero" '
        f'transform="translate({text["x"]} {text["y"]}) scale({scale:g})" '
        f'd="{_outline(font, letters)}" aria-label={label}/>'
    )


def _outline(font: QFont, letters: str) -> str:
    """The path of a line of text at size EM, as SVG writes it."""
    large = QFont(font)
    large.setPixelSize(EM)
    path = QPainterPath()
    path.addText(QPointF(), large, letters)
    elements = (path.elementAt(index) for index in range(path.elementCount()))
    # Move, line, first point of a curve, one of its other two.
    return "".join(f"{'MLC '[e.type.value]}{e.x:.0f} {e.y:.0f}" for e in elements)
