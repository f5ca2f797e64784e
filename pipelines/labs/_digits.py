"""Digits of the shape of MNIST (28 × 28 grey values, ten classes), drawn here: nothing is fetched.

Each is a glyph of 5 × 7 dots, enlarged, turned, sheared and moved by chance, blurred, with noise.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from profiler.arrays import F32, I64

SIDE: Final = 28
GLYPHS: Final = (
    "01110100011001110101110011000101110",
    "00100011000010000100001000010001110",
    "01110100010000100010001000100011111",
    "11111000100010000010000011000101110",
    "00010001100101010010111110001000010",
    "11111100001111000001000011000101110",
    "00110010001000011110100011000101110",
    "11111000010001000100010000100001000",
    "01110100011000101110100011000101110",
    "01110100011000101111000010001001100",
)
"""Rows of dots from the top (the HD44780's character table)."""
TURN, SHEAR, MOVE, SCALE = 0.3, 0.25, 2.5, (2.4, 3.4)
"""Radians, share, pixels, pixels per dot: by chance up to these."""
NOISE = 0.08


def drawn(count: int, seed: int) -> tuple[F32, I64]:
    """`count` digits f32 [count, 28, 28] in 0…1 and their classes i64 [count]."""
    draw = np.random.default_rng(seed)
    glyphs = np.array([[int(dot) for dot in glyph] for glyph in GLYPHS], np.float32).reshape(-1, 7, 5)
    classes = draw.integers(0, 10, count)
    images = np.empty((count, SIDE, SIDE), np.float32)
    rows, columns = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    for first in range(0, count, 4096):
        part = slice(first, min(first + 4096, count))
        n = part.stop - part.start
        angle, shear = draw.uniform(-TURN, TURN, n), draw.uniform(-SHEAR, SHEAR, n)
        scale = draw.uniform(*SCALE, n)
        down, right = draw.uniform(-MOVE, MOVE, (2, n))
        c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
        y, x = rows - down[:, None, None], columns - right[:, None, None]
        v = (c * y - s * x) / scale[:, None, None] + 3
        u = (s * y + c * x) / scale[:, None, None] + shear[:, None, None] * (v - 3) + 2
        images[part] = _between_dots(glyphs[classes[part]], v, u)
    images += draw.normal(0, NOISE, images.shape).astype(np.float32)
    return np.clip(images, 0, 1), classes


def _between_dots(glyphs: F32, v: F32, u: F32) -> F32:
    """Grey at rows `v` and columns `u` of dots [n, 28, 28], linear between dots; nothing outside."""
    n = np.arange(len(glyphs))[:, None, None]
    edged = np.pad(glyphs, ((0, 0), (1, 2), (1, 2)))
    v, u = np.clip(v + 1, 0, 8), np.clip(u + 1, 0, 6)
    i, j = v.astype(int), u.astype(int)
    down, right = v - i, u - j
    above = edged[n, i, j] * (1 - right) + edged[n, i, j + 1] * right
    below = edged[n, i + 1, j] * (1 - right) + edged[n, i + 1, j + 1] * right
    found: F32 = above * (1 - down) + below * down
    return found
