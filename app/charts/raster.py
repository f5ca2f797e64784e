"""A stacked area, and upright strokes, drawn by numpy into pixels: bounded cost for any number of frames.

The cost of Qt's polygon filling grows with vertices and crossings; this grows with pixels. One column of
pixels shows one column of values; full pixels are filled by counting boundaries, pixels that a
boundary crosses get the exact area mix of the layers in them, so thin layers neither vanish nor
jump. Each layer has a hatch besides its colour, for people who distinguish colours less well.

No Qt in here: the result is a `uint32` array in the layout of `QImage.Format_ARGB32_Premultiplied`.
"""

from collections.abc import Sequence

import numpy as np

from profiler.arrays import F32, F64, I16, I64, U32, Array, Bool

CELL = 8
"""Side of a hatch pattern in pattern pixels."""

HATCH_STRENGTH = 0.14
"""How far a hatch moves a colour towards the ink: visible on a close look, unobtrusive otherwise."""

NARROW = 128
"""Below this width numpy's own running sum down the columns is faster than one row after the other."""

MAX_LAYERS = 8
"""Layers that one raster can hold: the hatch planes are the bits of one byte."""


def hatch_cell(hatch: str) -> Bool:
    """Pattern [CELL, CELL] of a hatch by name, True where there is ink; unknown names are solid."""
    x: I64
    y: I64
    y, x = np.mgrid[0:CELL, 0:CELL]
    match hatch:
        case "diagonal":  # from the top left down, as Qt's brushes in the legend
            return (x - y) % CELL < 2
        case "back":
            return (x + y) % CELL < 2
        case "cross":
            return ((x + y) % CELL < 1) | ((x - y) % CELL < 1)
        case "dots":
            return (x % 4 < 1) & (y % 4 < 1)
        case "horizontal":
            return y % 4 < 1
        case "vertical":
            return x % 4 < 1
        case "grid":
            return (x % CELL < 1) | (y % CELL < 1)
        case "dense":
            return (x + y) % 2 < 1
    return np.zeros((CELL, CELL), dtype=bool)


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green, blue 0…255 of ``#rrggbb`` (or ``#aarrggbb``, whose alpha is left out)."""
    digits = color.lstrip("#")[-6:]
    return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def blended(color: str, towards: str, share: float) -> str:
    """`color` moved by `share` (0…1) towards another, as ``#rrggbb``."""
    pairs = zip(rgb(color), rgb(towards), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


class StackRaster:
    """Draws stacked layers into a reused pixel buffer.

    Args:
        colors: one ``#rrggbb`` per layer, bottom first; at most `MAX_LAYERS - 1` layers.
        hatches: one hatch name per layer.
        ink: ``#rrggbb`` towards which hatched pixels are moved.
        scale: device pixels per pattern pixel (high-density screens, enlarged pictures).
    """

    def __init__(
        self, colors: Sequence[str], hatches: Sequence[str], ink: str, scale: int = 1
    ) -> None:
        if not 0 < len(colors) <= MAX_LAYERS:
            raise ValueError(f"a stack needs 1 to {MAX_LAYERS} layers, not {len(colors)}")
        self.layers = len(colors)
        self._scale = max(1, scale)
        flat = [rgb(color) for color in colors]
        inked = [rgb(blended(color, ink, HATCH_STRENGTH)) for color in colors]
        # Look-up: 2 × layer + hatch bit; the layer after the last one is the empty background.
        table = np.zeros(2 * (self.layers + 1), dtype=np.uint32)
        for layer in range(self.layers):
            for bit, (r, g, b) in enumerate((flat[layer], inked[layer])):
                table[2 * layer + bit] = 0xFF000000 | r << 16 | g << 8 | b
        self._table = table
        # Blue, green, red, alpha per layer: the byte order of ARGB32 in little-endian memory.
        self._mix = np.zeros((4, self.layers + 1), dtype=np.float32)
        for layer, (r, g, b) in enumerate(flat):
            self._mix[:, layer] = b, g, r, 255
        planes = np.zeros((CELL, CELL), dtype=np.uint8)
        for layer, hatch in enumerate(hatches):
            planes |= hatch_cell(hatch).astype(np.uint8) << layer
        self._cell = np.repeat(np.repeat(planes, self._scale, axis=0), self._scale, axis=1)
        self._shape = (0, 0)
        self._phase = 0

    def _resize(self, height: int, width: int, phase: int) -> None:
        self._shape, self._phase = (height, width), phase
        side = len(self._cell)
        down, across = np.arange(height) % side, (phase + np.arange(width)) % side
        self._planes = self._cell[down[:, None], across]
        self._steps = np.zeros((height + 1, width), dtype=np.uint8)
        self._index = np.empty((height, width), dtype=np.uint8)
        self._ink = np.empty((height, width), dtype=np.uint8)
        self._pixels = np.empty((height, width), dtype=np.uint32)
        self._at = np.arange(width)

    def draw(self, values: F64, top: float, height: int, first: int = 0) -> U32:
        """Draw one column per row of `values`, bottom layer first.

        Args:
            values: heights [width, layers] in units of `top`; NaN (no data) draws nothing.
            top: value at the upper edge; what is above it is cut off.
            height: pixels.
            first: number of the first column; hatches are those of the number, so they move with the values.

        Returns:
            Pixels [height, width], premultiplied ARGB; the buffer is reused by the next call.
        """
        width = len(values)
        phase = first % len(self._cell)
        if (height, width) != self._shape or phase != self._phase:
            self._resize(height, width, phase)
        stacked = np.zeros((self.layers + 1, width), dtype=np.float32)
        np.cumsum(np.nan_to_num(values).T, axis=0, out=stacked[1:])
        # Upper edge of each layer in pixels from the top of the picture.
        edge = np.clip(height * (1 - stacked / np.float32(top)), 0, height)
        rows = edge.astype(np.int64)
        self._fill(rows)
        pixels = self._pixels
        self._smooth(edge, rows, pixels)
        return pixels

    def _fill(self, rows: I64) -> None:
        """Whole pixels: the layer is the number of boundaries at or below a pixel."""
        height, width = self._shape
        first = min(int(rows[self.layers].min()), height - 1)
        self._pixels[:first] = 0
        steps, index = self._steps[: height + 1 - first], self._index[: height - first]
        steps.fill(0)
        # From the top: background first, one layer down after each boundary passed.
        for layer in range(1, self.layers + 1):
            steps[rows[layer] - first, self._at] += 1
        np.subtract(self.layers, steps[0], out=index[0])
        if width < NARROW:
            np.subtract(self.layers, np.add.accumulate(steps[:-1], axis=0), out=index)
        else:
            for row in range(1, height - first):
                np.subtract(index[row - 1], steps[row], out=index[row])
        ink = self._ink[: height - first]
        np.right_shift(self._planes[first:], index, out=ink)
        np.bitwise_and(ink, 1, out=ink)
        np.left_shift(index, 1, out=index)
        np.bitwise_or(index, ink, out=index)
        np.take(self._table, index, out=self._pixels[first:], mode="clip")

    def _smooth(
        self,
        edge: F32,
        rows: I64,
        pixels: U32,
    ) -> None:
        """Pixels crossed by a boundary: each layer by the share of the pixel that it covers."""
        height, width = self._shape
        crossed = np.minimum(rows[1:], height - 1)  # [layers, width]
        below = np.empty((self.layers, self.layers + 2, width), dtype=np.float32)
        np.subtract(edge[None], crossed[:, None], out=below[:, :-1], casting="unsafe")
        below[:, -1] = 0.0
        np.clip(below, 0.0, 1.0, out=below)
        share = below[:, :-1] - below[:, 1:]  # [layers, layers + 1, width]
        mixed = (self._mix @ share + np.float32(0.5)).astype(np.uint8)  # [layers, 4, width]
        packed = np.ascontiguousarray(mixed.transpose(0, 2, 1)).view(np.uint32)[..., 0]
        # A boundary that lies exactly between two pixels crosses none.
        for layer in range(self.layers):
            pixels[crossed[layer], self._at] = packed[layer]


def uprights(pixels: U32, top: I16, bottom: I16, color: Array | int, scale: int = 1) -> None:
    """Colour the rows top … bottom of each column.

    Args:
        pixels: [height, columns × scale], changed in place.
        top: first row of each column; columns with top > bottom stay as they are.
        bottom: last row.
        color: premultiplied ARGB, one for all or one per column.
        scale: device pixels per column.
    """
    if not len(top):
        return
    # Only the rows that any of them reaches.
    begin, end = max(0, int(top.min())), int(bottom.max()) + 1
    rows = np.arange(begin, min(end, len(pixels)), dtype=np.int16)[:, None]
    inks = np.asarray(color, np.uint32)
    if scale > 1:
        top, bottom = np.repeat(top, scale), np.repeat(bottom, scale)
        inks = np.repeat(inks, scale) if inks.ndim else inks
    np.copyto(pixels[begin:end], inks, where=(rows >= top) & (rows <= bottom))


def between(start: F64, end: F64, scale: int) -> tuple[I16, I16]:
    """First and last device pixel of strokes from `start` to `end` (pixels, either way round); none where NaN.

    Short integers, of which many are compared at once: no picture has as many rows as they count.
    """
    ends = np.stack([np.minimum(start, end), np.maximum(start, end)])
    there = np.isfinite(ends[0]) & np.isfinite(ends[1])
    top, bottom = np.floor(np.where(there, ends, 0.0) * scale).astype(np.int16)
    # A stroke is a pixel wide, however short.
    np.maximum(bottom, top + (scale - 1), out=bottom)
    return np.where(there, top, np.int16(1)), np.where(there, bottom, np.int16(0))


def opaque(color: str) -> int:
    """Premultiplied ARGB of ``#rrggbb``."""
    red, green, blue = rgb(color)
    return 0xFF000000 | red << 16 | green << 8 | blue
