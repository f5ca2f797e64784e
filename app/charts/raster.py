"""A stacked area, and upright strokes, drawn by numpy into pixels: bounded cost for any number of frames.

The cost of Qt's polygon filling grows with vertices and crossings; this grows with pixels. One column of pixels shows
one column of values; full pixels are filled by counting boundaries, pixels that a boundary crosses get the exact area
mix of the layers in them, so thin layers neither vanish nor jump. Each layer has a hatch besides its colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QPainter

from app.charts.items import RasterItem, polyline
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.style.theme import blended, rgb, theme
from profiler.analysis.categories import NOT_OWN
from profiler.arrays import F32, F64, I16, I64, U32, Array, Bool

CELL = 8  # Side of a hatch pattern in pattern pixels
HATCH_STRENGTH = 0.14  # How far a hatch moves a colour towards the ink: visible on a close look, unobtrusive otherwise
MAX_LAYERS = 16  # Layers that one raster can hold: the hatch planes are the bits of a 16-bit number


def hatch_cell(hatch: str) -> Bool:
    """Pattern [CELL, CELL] of a hatch by name, True where there is ink; unknown names are solid."""
    x: I64
    y: I64
    y, x = np.mgrid[0:CELL, 0:CELL]
    cells: dict[str, Bool] = {
        "diagonal": (x - y) % CELL < 2,  # from the top left down, as Qt's brushes in the legend
        "back": (x + y) % CELL < 2,
        "cross": ((x + y) % CELL < 1) | ((x - y) % CELL < 1),
        "dots": (x % 4 < 1) & (y % 4 < 1),
        "horizontal": y % 4 < 1,
        "vertical": x % 4 < 1,
        "grid": (x % CELL < 1) | (y % CELL < 1),
        "sparse": (x % CELL < 1) & (y % CELL < 1),
        "dense": (x + y) % 2 < 1,
    }
    return cells.get(hatch, np.zeros((CELL, CELL), dtype=bool))


def stacked(
    heights: F64,
    height: int,
    colors: Sequence[str],
    ink: str,
    hatches: Sequence[str] = (),
    scale: int = 1,
    number: int = 0,
) -> U32:
    """Draw stacked layers into pixels [height, columns], premultiplied ARGB.

    `heights` [columns, layers], from below, are shares of the height of the picture: NaN (no data) draws nothing, and
    what is above 1 is cut off. `hatches`: a name per layer (none: all are solid), whose pixels are moved towards `ink`,
    `scale` device pixels per pattern pixel; `number` is that of the first column, in pattern pixels: hatches of columns
    drawn apart fit each other.
    """
    if not 0 < len(colors) <= MAX_LAYERS:
        raise ValueError(f"a stack needs 1 to {MAX_LAYERS} layers, not {len(colors)}")
    heights = np.nan_to_num(heights)
    shown = np.flatnonzero(heights.any(axis=0)).tolist()
    heights, colors, hatches = heights[:, shown], [colors[n] for n in shown], [hatches[n] for n in shown if hatches]
    planes = _planes(tuple(hatches), scale)
    # Columns that are all alike are drawn once.
    other = np.ones(len(heights), bool)
    if not planes.any():
        np.any(heights[1:] != heights[:-1], axis=1, out=other[1:])
        heights = heights[other]
    layers, columns = len(shown), len(heights)
    tops = np.zeros((layers + 1, columns), dtype=np.float32)
    np.cumsum(heights.T, axis=0, out=tops[1:])
    # Upper edge of each layer in pixels from the top of the picture.
    edge = np.clip(height * (1 - tops), 0, height)
    rows = edge.astype(np.int64)
    pixels = np.zeros((height, columns), dtype=np.uint32)
    first = min(int(rows[layers].min(initial=height)), height - 1)
    _fill(pixels[first:], rows - first, first, _inks(tuple(colors), ink), np.roll(planes, -number * scale, 1))
    _smooth(pixels, edge, rows, colors)
    return pixels if other.all() else pixels.take(np.cumsum(other) - 1, axis=1)


@cache
def _inks(colors: tuple[str, ...], ink: str) -> U32:
    """ARGB by 2 × layer + 1 where the hatch has ink; the layer after the last one is the empty background."""
    pairs = ((opaque(color), opaque(blended(color, ink, HATCH_STRENGTH))) for color in colors)
    return np.array([*pairs, (0, 0)], dtype=np.uint32).ravel()


@cache
def _planes(hatches: tuple[str, ...], scale: int) -> Array:
    """The pattern [side, side] of all layers: bit n has the ink of layer n."""
    planes = np.zeros((CELL, CELL), dtype=np.uint16)
    for layer, hatch in enumerate(hatches):
        planes |= hatch_cell(hatch).astype(np.uint16) << np.uint16(layer)
    return planes.repeat(scale, axis=0).repeat(scale, axis=1)


def _fill(pixels: U32, rows: I64, first: int, inks: U32, planes: Array) -> None:
    """Whole pixels: the layer is the number of boundaries (`rows` [layers + 1, columns]) at or below a pixel."""
    height, columns = pixels.shape
    layers = len(rows) - 1
    index = np.zeros((height + 1, columns), dtype=np.uint8)
    # From the top: background first, one layer down after each boundary passed.
    for layer in range(1, layers + 1):
        index[rows[layer], np.arange(columns)] += 1
    np.subtract(layers, index[0], out=index[0])
    for row in range(1, height):
        np.subtract(index[row - 1], index[row], out=index[row])
    index = index[:height]
    codes = 2 * index
    if planes.any():
        down, across = np.arange(first, first + height), np.arange(columns)
        inked = planes[down[:, None] % len(planes), across % len(planes)] >> index & 1
        codes += inked.astype(np.uint8)
    np.take(inks, codes, out=pixels, mode="clip")


def _smooth(pixels: U32, edge: F32, rows: I64, colors: Sequence[str]) -> None:
    """Pixels crossed by a boundary: each layer by the share of the pixel that it covers."""
    layers, columns = len(colors), pixels.shape[1]
    # Blue, green, red, alpha per layer: the byte order of ARGB32 in little-endian memory.
    mix = np.zeros((4, layers + 1), dtype=np.float32)
    for layer, (red, green, blue) in enumerate(map(rgb, colors)):
        mix[:, layer] = blue, green, red, 255
    crossed = np.minimum(rows[1:], len(pixels) - 1)  # [layers, columns]
    below = np.empty((layers, layers + 2, columns), dtype=np.float32)
    np.subtract(edge[None], crossed[:, None], out=below[:, :-1], casting="unsafe")
    below[:, -1] = 0.0
    np.clip(below, 0.0, 1.0, out=below)
    share = below[:, :-1] - below[:, 1:]  # [layers, layers + 1, columns]
    mixed = (mix @ share + np.float32(0.5)).astype(np.uint8)  # [layers, 4, columns]
    packed = np.ascontiguousarray(mixed.transpose(0, 2, 1)).view(np.uint32)[..., 0]
    # A boundary that lies exactly between two pixels crosses none.
    for layer in range(layers):
        pixels[crossed[layer], np.arange(columns)] = packed[layer]


def uprights(pixels: U32, top: I16, bottom: I16, color: Array | int) -> None:
    """Colour the rows top … bottom of each column of `pixels` [height, columns], in place.

    Columns with top > bottom stay as they are. `color`: premultiplied ARGB, one for all or one per column.
    """
    if not len(top):
        return
    # Only the rows that any of them reaches.
    begin, end = max(0, int(top.min())), min(int(bottom.max()) + 1, len(pixels))
    if end <= begin:
        return
    rows = np.arange(begin, end, dtype=np.int16)[:, None]
    inks = np.asarray(color, np.uint32)
    np.copyto(pixels[begin:end], inks, where=(rows >= top) & (rows <= bottom))


def between(start: F64, end: F64, scale: int) -> tuple[I16, I16]:
    """First and last device pixel (int16) of strokes from `start` to `end` (pixels, either order); none where NaN."""
    ends = np.stack([np.minimum(start, end), np.maximum(start, end)])
    there = np.isfinite(ends[0]) & np.isfinite(ends[1])
    top, bottom = np.floor(np.where(there, ends, 0.0) * scale).astype(np.int16)
    # A stroke is a pixel wide, however short.
    np.maximum(bottom, top + (scale - 1), out=bottom)
    return np.where(there, top, np.int16(1)), np.where(there, bottom, np.int16(0))


def opaque(color: str) -> int:
    red, green, blue = rgb(color)
    return 0xFF000000 | red << 16 | green << 8 | blue


ALWAYS = NOT_OWN  # Layers that have their hatch on the screen as well: they are no part of the sum


class Stack(RasterItem):
    """Layers on top of each other, named after the categories whose colours they have; heights 0…1 are of the scale."""

    def __init__(self, plot: TimePlot, names: Sequence[str]) -> None:
        """`names`: from below; at most `raster.MAX_LAYERS`."""
        super().__init__(plot)
        self._names = names
        self.hatched = False  # Whether all layers have hatches: in a picture. On the screen the legend has them.
        self._scale = Scale(0.0, 1.0)
        self._layers = np.empty((0, len(names)))

    def show_layers(self, layers: F64, scale: Scale, first_s: float, last_s: float) -> None:
        """Show other values [columns, layers] over these seconds; NaN: nothing is there."""
        self._scale, self._layers = scale, layers
        self.show_columns(first_s, last_s, 0.0, 1.0, scale.stacked(layers))

    def look(self) -> object:
        return self.hatched

    def draw_pixels(self, height: int, scale: int, at: slice[int, int]) -> U32:
        tokens = theme()
        ink = tokens.surface if tokens.is_dark else tokens.card
        colors = [tokens.category[name] for name in self._names]
        heights = self._values[at]
        if not (self.hatched or any(name in ALWAYS for name in self._names)):
            return stacked(heights, height, colors, ink)
        hatches = [tokens.hatch[name] if self.hatched or name in ALWAYS else "solid" for name in self._names]
        wide = np.repeat(heights, scale, axis=0)
        return stacked(wide, height, colors, ink, hatches, scale, self._first + at.start)

    def draw_shapes(self, painter: QPainter, place: QRectF) -> None:
        layers = self._layers
        there = np.flatnonzero(np.isfinite(layers[:, 0]))
        if not len(there):
            return
        left, right = int(there[0]), int(there[-1]) + 1
        upper = np.cumsum(np.nan_to_num(layers[left:right]), axis=1)
        y = place.bottom() - self._scale.place(upper) * place.height()
        x = place.left() + np.arange(left, right + 1) / len(layers) * place.width()
        steps = np.repeat(x, 2)[1:-1]
        around, below = np.append(steps, steps[::-1]), np.full(len(steps), place.bottom())
        painter.setPen(Qt.PenStyle.NoPen)
        for layer, name in enumerate(self._names):
            above = np.repeat(y[:, layer], 2)
            if np.array_equal(above, below):
                continue
            for brush in (QBrush(theme().color(name)), theme().hatch_brush(name)):
                painter.setBrush(brush)
                painter.drawPolygon(polyline(around, np.append(above, below[::-1])))
            below = above
