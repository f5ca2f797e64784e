"""The pixels of a chart, one column after the other, of which only those that changed are drawn again. No Qt.

A live chart moves by some columns per update and gets one or two new ones; all others show what they showed. So the
pixels lie in a ring: column n of the time axis (`columns.column_grid`) is kept at n modulo the width, nothing is moved
when the range moves, and a column is drawn again only if what it shows is another. What a column looks like may
depend on its own values, its number and what is the same for the whole chart, and on nothing else: then the pixels
are those of a chart drawn afresh, which a test holds it to.
"""

from collections.abc import Callable, Hashable

import numpy as np

from app.views.raster import rgb
from profiler.arrays import F64, I16, I64, U32, Array, Bool

Draw = Callable[[int, int], U32]
"""Pixels [height, (last − first) × scale] of the columns first … last − 1, counted from the left of the chart."""


CLOSE = 16
"""Changed columns at most this far apart are drawn in one go."""


class Strips:
    """Pixels [height, columns × scale] as premultiplied ARGB, kept up with what the columns show."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self._first = 0
        self._rows: Array = np.empty((0, 0))
        self._pixels: U32 = np.empty((0, 0), np.uint32)
        self._scale = 1
        self.drawn = 0
        """Columns drawn so far, for tests and benches."""

    def update(
        self, key: Hashable, first: int, rows: Array, height: int, scale: int, draw: Draw
    ) -> None:
        """Draw the columns that changed.

        Args:
            key: what is the same for all columns (theme, scale of values, width of a column); another key: all anew.
            first: number of the leftmost column.
            rows: what each column shows [columns, n]; compared bit by bit.
            height: device pixels.
            scale: device pixels per column.
            draw: gives pixels of some columns.
        """
        rows = np.ascontiguousarray(rows)
        columns = len(rows)
        shape = (height, columns * scale)
        changed = np.ones(columns, bool)
        if (key, scale, shape) == (self._key, self._scale, self._pixels.shape):
            moved = first - self._first
            kept = slice(max(0, -moved), min(columns, columns - moved))
            if kept.start < kept.stop and rows.shape == self._rows.shape:
                before = self._rows[kept.start + moved : kept.stop + moved]
                changed[kept] = (_bits(rows[kept]) != _bits(before)).any(axis=1)
        elif shape != self._pixels.shape:
            self._pixels = np.zeros(shape, np.uint32)
        self._key, self._first, self._rows, self._scale = key, first, rows, scale
        self._draw(np.flatnonzero(changed), draw)

    def _draw(self, changed: I64, draw: Draw) -> None:
        """Draw the stretches of changed columns, in two pieces where the ring ends."""
        scale, columns = self._scale, len(self._rows)
        seam = columns - self._first % columns if columns else 0
        apart = np.flatnonzero(np.diff(changed) > CLOSE) + 1
        for stretch in np.split(changed, apart):
            if not len(stretch):
                continue
            begin, end = int(stretch[0]), int(stretch[-1]) + 1
            self.drawn += end - begin
            pixels = draw(begin, end)
            for left, right in ((begin, min(end, seam)), (max(begin, seam), end)):
                if left < right:
                    at, of = (self._first + left) % columns * scale, (left - begin) * scale
                    wide = (right - left) * scale
                    self._pixels[:, at : at + wide] = pixels[:, of : of + wide]

    @property
    def ring(self) -> U32:
        """The pixels as they are kept, [height, columns × scale]."""
        return self._pixels

    @property
    def pieces(self) -> tuple[tuple[int, int, int], ...]:
        """What lies where: (device pixel from the left of the chart, pixel in the ring, width) of up to two pieces."""
        width = self._pixels.shape[1]
        start = self._first * self._scale % width if width else 0
        return tuple(
            piece for piece in ((0, start, width - start), (width - start, 0, start)) if piece[2]
        )

    def whole(self) -> U32:
        """The pixels from left to right, [height, columns × scale]."""
        parts = [self._pixels[:, begin : begin + width] for _, begin, width in self.pieces]
        return np.concatenate(parts, axis=1)


def different(rows: Array) -> Bool:
    """Which of the columns `rows` [columns, n] show another thing than the one before [columns]; the first one does."""
    bits = _bits(np.ascontiguousarray(rows))
    new = np.ones(len(rows), bool)
    np.any(bits[1:] != bits[:-1], axis=1, out=new[1:])
    return new


def _bits(rows: Array) -> Array:
    """Values as integers of their size: NaN equals NaN."""
    return rows.view(f"i{rows.dtype.itemsize}")


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
