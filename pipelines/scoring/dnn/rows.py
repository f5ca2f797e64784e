"""Chosen rows of an output layer: lazy evaluation (Vanhoucke 2011), in float32 and in 8-bit integers.

A row is the weights of one senone, side by side in whole vectors; its score in a frame is a dot product. Four rows at
up to four frames share every load and hide each other's latency, and the rows that come next are prefetched, since no
hardware prefetcher expects them.
"""

from typing import Any

import numpy as np
from numba import njit

from pipelines.scoring.costs import nets as laws
from pipelines.scoring.simd.byte_products import OFFSET, Bytes
from pipelines.scoring.simd.dot_products import LATER, ROWS, Floats, make_chosen_rows
from pipelines.scoring.simd.vector import VECTOR_BYTES, address, aligned
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part
from profiler.spans import Cost

AHEAD = 4
"""Frames for which a senone that the search asks for is computed at once (`dnn.senones=active-ahead`).

Of all senones a frame of speech asks for 37 % (5 000 words, beam 13); computed and read from memory are then, by frames
ahead in blocks of 32: 1: 37 %, 37 % · 2: 39, 20 · 4: 41, 11 · 8: 46, 6 · 16: 54, 4 · to the end of the block: 62, 3.
"""


TOGETHER = (1, 2, 4)  # Numbers of frames that share every load of a row
_float_rows, _byte_rows = make_chosen_rows(Floats(), TOGETHER), make_chosen_rows(Bytes(), TOGETHER)


@njit_part
def _together(left: int) -> int:
    """How many of the frames that are left to do next."""
    return 4 if left >= 4 else 2 if left >= 2 else 1


@njit_part
def rows_fit(row_bytes: int, count: int, hidden: Array, first: int, last: int, scores: Array) -> bool:
    """Whether activations are at least as wide as rows of whole vectors, and scores are of `count` rows."""
    return (
        hidden.shape[1] * hidden.itemsize >= row_bytes
        and row_bytes % VECTOR_BYTES == 0
        and scores.shape[1] == count
        and 0 <= first <= last <= min(len(hidden), len(scores))
    )


@njit_part
def _places(senones: Array, count: int) -> Array:
    """`senones`, and the last one as often as the tiles look ahead or compute it once more."""
    for senone in senones:
        if not 0 <= senone < count:
            raise ArrayError("_places: a senone that there is none")
    places = np.empty(len(senones) + LATER + 2 * ROWS, np.int64)
    for i in range(len(places)):
        places[i] = senones[min(i, len(senones) - 1)]
    return places


@njit(nogil=True, cache=True)
def float_rows(
    weights: Array, bias: Array, hidden: Array, first: int, last: int, senones: Array, scores: Array
) -> None:
    """scores[t, s] = weights[s] · hidden[t] + bias[s] for s in `senones` int64, first ≤ t < last.

    `weights` f32 [senones of the net, width] in whole vectors, `hidden` f32 [n, width or more], `scores` f32
    [n, senones of the net].
    """
    count, width = weights.shape
    if bias.shape != (count,) or not rows_fit(width * 4, count, hidden, first, last, scores):
        raise ArrayError("float_rows: rows, activations and scores do not fit each other")
    if len(senones) == 0:
        return
    w, row_bytes = address(weights, np.float32), width * 4
    places, b = _places(senones, count), address(bias, np.float32)
    inputs, found = address(hidden, np.float32), address(scores, np.float32)
    stride, to_stride = hidden.shape[1] * 4, count * 4
    for i in range(0, len(senones), ROWS):
        at = address(places, np.int64) + 8 * i
        t = first
        while t < last:
            x, to = (inputs + t * stride, stride), (found + t * to_stride, to_stride)
            frames = _together(last - t)
            _float_rows(frames, at, w, row_bytes, x, to, (b, 0, 0))
            t += frames


@njit(nogil=True, cache=True)
def byte_rows(
    weights: Array, affine: Array, hidden: Array, scales: Array, first: int, last: int, senones: Array, scores: Array
) -> None:
    """As `float_rows` of integers, with a scale f32 for each row and each frame.

    `weights` uint8, 128 more than they are; `affine` f32 [2, senones of the net], scales and biases; `hidden` int8.
    """
    count, width = weights.shape
    if affine.shape != (2, count) or len(scales) < last or not rows_fit(width, count, hidden, first, last, scores):
        raise ArrayError("byte_rows: rows, activations and scores do not fit each other")
    if len(senones) == 0:
        return
    frames = np.empty((last - first, 2), np.float32)
    excess = frames.view(np.int32)
    for t in range(first, last):
        total = np.int32(0)
        for i in range(width):
            total += np.int32(hidden[t, i])
        frames[t - first, 0] = scales[t]
        excess[t - first, 1] = OFFSET * total
    w, row_bytes = address(weights, np.uint8), width
    places, of_frames = _places(senones, count), address(frames, np.float32)
    rs = address(affine, np.float32)
    b = rs + count * 4
    inputs, found = address(hidden, np.int8), address(scores, np.float32)
    stride, to_stride = hidden.shape[1], count * 4
    for i in range(0, len(senones), ROWS):
        at = address(places, np.int64) + 8 * i
        t = first
        while t < last:
            x, to = (inputs + t * stride, stride), (found + t * to_stride, to_stride)
            count_of_frames = _together(last - t)
            _byte_rows(count_of_frames, at, w, row_bytes, x, to, (b, rs, of_frames + (t - first) * 8))
            t += count_of_frames


def room(frames: int, values: int, kind: Any = np.float32) -> Array:
    """Zeros of `kind` [frames, `values` filled up to whole vectors]: `hidden` of `score` below."""
    return _padded(np.zeros((frames, values), kind), kind)


class FloatRows:
    """The rows of an output layer in float32."""

    def __init__(self, weight: Array) -> None:
        """`weight` f32 [senones, inputs + 1], the bias in the last column."""
        self._weights, self._bias = _padded(weight[:, :-1], np.float32), weight[:, -1].copy()

    def score(self, hidden: Array, first: int, last: int, senones: Array, scores: Array) -> None:
        """Fill scores[first:last, senones]; `hidden` f32 [n, inputs filled up] as `room` gives it."""
        float_rows(self._weights, self._bias, hidden, first, last, senones, scores)

    def cost(self) -> Cost:
        return laws.chosen_rows(self._weights, "gemm", 0.0)


class ByteRows:
    """The rows of an output layer in 8-bit integers, whose sums are exact."""

    def __init__(self, weight: Array, scale: Array, bias: Array, scales: Array) -> None:
        """`weight` int8 [senones, inputs], `scale` and `bias` f32 [senones]; `scales` f32 [n]: of the frames scored."""
        offset = weight.astype(np.int16) + OFFSET
        self._weights, self._affine, self._scales = _padded(offset, np.uint8), np.stack([scale, bias]), scales

    def score(self, hidden: Array, first: int, last: int, senones: Array, scores: Array) -> None:
        """Fill scores[first:last, senones]; `hidden` int8 [n, inputs filled up] as `room` gives it."""
        byte_rows(self._weights, self._affine, hidden, self._scales, first, last, senones, scores)

    def cost(self) -> Cost:
        return laws.chosen_rows(self._weights, "gemm:int8", 2.0)


def _padded(weight: Array, kind: Any) -> Array:
    """`weight` [senones, inputs] as `kind`, its rows filled up with zeros to whole vectors."""
    count, inputs = weight.shape
    whole = VECTOR_BYTES // np.dtype(kind).itemsize
    rows = aligned((count, -(-inputs // whole) * whole), kind)
    rows[:, :inputs] = weight
    return rows
