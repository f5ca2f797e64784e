"""SVG from shapes: text as outlines of its glyphs, no clipping, the same bytes for the same shapes.

Each glyph is defined once and placed by reference, as matplotlib does; the letters are kept as the label that
screen readers and editors read (`aria-label`). Numbers have two decimals: a hundredth of a point.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from PySide6.QtCore import QBuffer, QIODevice, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainterPath, QPen

from app.pictures.shapes import Item, Pixels, Shape, Text
from profiler.plain import one_line

CELL: Final = 8
"""Side of a hatch in points, as Qt draws them."""

HATCHES: Final[Mapping[Qt.BrushStyle, str]] = {
    Qt.BrushStyle.FDiagPattern: "M-1 -1L9 9M-1 7L1 9M7 -1L9 1",
    Qt.BrushStyle.BDiagPattern: "M-1 9L9 -1M-1 1L1 -1M7 9L9 7",
    Qt.BrushStyle.DiagCrossPattern: "M-1 -1L9 9M-1 9L9 -1",
    Qt.BrushStyle.HorPattern: "M0 3.5H8M0 7.5H8",
    Qt.BrushStyle.VerPattern: "M3.5 0V8M7.5 0V8",
    Qt.BrushStyle.CrossPattern: "M0 3.5H8M3.5 0V8",
    Qt.BrushStyle.Dense5Pattern: "M0.5 0V1M2.5 0V1M4.5 0V1M6.5 0V1M1.5 2V3M3.5 2V3M5.5 2V3M7.5 2V3"
    "M0.5 4V5M2.5 4V5M4.5 4V5M6.5 4V5M1.5 6V7M3.5 6V7M5.5 6V7M7.5 6V7",
    Qt.BrushStyle.Dense6Pattern: "M0.5 0V1M4.5 0V1M2.5 2V3M6.5 2V3M0.5 4V5M4.5 4V5M2.5 6V7M6.5 6V7",
}
"""Lines of width 1 in a cell."""

DASHES: Final[Mapping[Qt.PenStyle, tuple[float, ...]]] = {
    Qt.PenStyle.DashLine: (4, 2),
    Qt.PenStyle.DotLine: (1, 2),
    Qt.PenStyle.DashDotLine: (4, 2, 1, 2),
    Qt.PenStyle.DashDotDotLine: (4, 2, 1, 2, 1, 2),
}
"""In widths of the line, as Qt draws them."""

_ZERO: Final = re.compile(r"(\.\d)0")
_MINUS: Final = re.compile(r"-0(?![.\d])")

Point = tuple[float, float]

MAX_TITLE: Final = 2000

CAPS: Final = {Qt.PenCapStyle.FlatCap: "butt", Qt.PenCapStyle.RoundCap: "round"}
JOINS: Final = {Qt.PenJoinStyle.BevelJoin: "bevel", Qt.PenJoinStyle.RoundJoin: "round"}


def svg(size: QSize, items: Iterable[Item], title: str, description: str) -> bytes:
    """Return the file of a page of `size` points; title and description are plain text."""
    definitions: dict[str, str] = {}
    body = [line for item in items for line in _element(item, definitions)]
    width, height = size.width(), size.height()
    head = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(one_line(title, MAX_TITLE))}</title>",
        f"<desc>{escape(description)}</desc>",
        "<defs>",
        *definitions.values(),
        "</defs>",
    ]
    return "\n".join([*head, *body, "</svg>", ""]).encode()


def _element(item: Item, definitions: dict[str, str]) -> list[str]:
    if isinstance(item, Shape):
        found = _shape(item, definitions)
        return [found] if found else []
    if isinstance(item, Text):
        return [_text(item, definitions)]
    return [_image(item)]


def _shape(shape: Shape, definitions: dict[str, str]) -> str:
    outline = data(shape.path)
    if not outline:
        return ""
    filled = shape.fill.style() != Qt.BrushStyle.NoBrush
    parts = [f'<path d="{outline}"', *_fill(shape.fill, definitions)]
    if filled and shape.path.fillRule() == Qt.FillRule.OddEvenFill:
        parts.append('fill-rule="evenodd"')
    if shape.pen.style() != Qt.PenStyle.NoPen:
        parts += _stroke(shape.pen)
    if not shape.smooth:
        parts.append('shape-rendering="crispEdges"')
    return " ".join(parts) + "/>"


def _fill(brush: QBrush, definitions: dict[str, str]) -> list[str]:
    style = brush.style()
    if style == Qt.BrushStyle.NoBrush:
        return ['fill="none"']
    hatch = HATCHES.get(style)
    if hatch is None:
        return _colour("fill", brush.color())
    ink = " ".join(_colour("stroke", brush.color()))
    name = f"h-{style.name}-{brush.color().name(QColor.NameFormat.HexArgb)[1:]}"
    definitions[name] = (
        f'<pattern id="{name}" patternUnits="userSpaceOnUse" width="{CELL}" height="{CELL}">'
        f'<path d="{hatch}" fill="none" {ink} stroke-width="1"/></pattern>'
    )
    return [f'fill="url(#{name})"']


def _stroke(pen: QPen) -> list[str]:
    width = pen.widthF()
    parts = [*_colour("stroke", pen.color()), f'stroke-width="{number(width)}"']
    if dashes := DASHES.get(pen.style()):
        parts.append(f'stroke-dasharray="{" ".join(number(dash * width) for dash in dashes)}"')
    parts.append(f'stroke-linecap="{CAPS.get(pen.capStyle(), "square")}"')
    parts.append(f'stroke-linejoin="{JOINS.get(pen.joinStyle(), "miter")}"')
    return parts


def _colour(kind: str, colour: QColor) -> list[str]:
    parts = [f'{kind}="{colour.name()}"']
    if colour.alpha() < 255:
        parts.append(f'{kind}-opacity="{number(colour.alphaF())}"')
    return parts


def _text(text: Text, definitions: dict[str, str]) -> str:
    label = quoteattr(one_line(text.text))
    ink = " ".join(_colour("fill", text.colour))
    if text.clip is not None:
        return f'<path d="{data(text.outline().intersected(text.clip))}" {ink} aria-label={label}/>'
    turned = text.transform
    if turned.isScaling() or turned.isRotating():
        return f'<path d="{data(text.outline())}" {ink} aria-label={label}/>'
    placed = []
    for glyph, origin in text.glyphs:
        definitions.setdefault(glyph.name, f'<path id="{glyph.name}" d="{data(glyph.path)}"/>')
        at = turned.map(text.at + origin)
        placed.append(
            f'<use xlink:href="#{glyph.name}" x="{number(at.x())}" y="{number(at.y())}"/>'
        )
    return f"<g {ink} aria-label={label}>{''.join(placed)}</g>"


def _image(pixels: Pixels) -> str:
    drawn = QBuffer()
    drawn.open(QIODevice.OpenModeFlag.WriteOnly)
    pixels.image.save(drawn, "PNG")  # type: ignore[call-overload]
    coded = base64.b64encode(drawn.data().data()).decode()
    area = pixels.area
    return (
        f'<image x="{number(area.x())}" y="{number(area.y())}" width="{number(area.width())}" '
        f'height="{number(area.height())}" preserveAspectRatio="none" '
        f'xlink:href="data:image/png;base64,{coded}"/>'
    )


def number(value: float) -> str:
    """A number with at most two decimals."""
    return _short(f"{value:.2f}")


def _short(text: str) -> str:
    """`text` with numbers of two decimals less the zeros that say nothing."""
    return _MINUS.sub("0", _ZERO.sub(r"\1", text.replace(".00", "")))


def data(path: QPainterPath) -> str:
    """The path as SVG writes it; points in the middle of an upright or level line are left out."""
    parts: list[str] = []
    start: Point = (0.0, 0.0)
    line: list[Point] = []
    """Points of the straight run under way; the first of them is written already."""

    def end_run(following: Sequence[Point] = ()) -> None:
        parts.extend(f"L{x:.2f} {y:.2f}" for x, y in line[1:])
        if following:
            parts.append("C" + " ".join(f"{x:.2f} {y:.2f}" for x, y in following))
            line[:] = [following[-1]]

    def end_part() -> None:
        end_run()
        if line and line[-1] == start and not parts[-1].startswith("M"):
            parts.append("Z")

    elements = (path.elementAt(index) for index in range(path.elementCount()))
    for element in elements:
        at = (element.x, element.y)
        if element.isLineTo():
            if len(line) > 1 and _between(line[-2], line[-1], at):
                line[-1] = at
            else:
                line.append(at)
        elif element.isMoveTo():
            end_part()
            start, line[:] = at, [at]
            parts.append(f"M{at[0]:.2f} {at[1]:.2f}")
        else:
            second, end = next(elements), next(elements)
            end_run((at, (second.x, second.y), (end.x, end.y)))
    end_part()
    return _short("".join(parts))


def _between(before: Point, point: Point, after: Point) -> bool:
    """Whether `point` lies on an upright or level line from one neighbour to the other."""
    for across in (0, 1):
        if before[across] == point[across] == after[across]:
            along = 1 - across
            return (point[along] - before[along]) * (after[along] - point[along]) >= 0
    return False
