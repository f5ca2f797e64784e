"""Gaussians in eight bits (Kanthak 2000): a byte for each mean and each deviation, distances in 16-bit integers.

A third of the bytes are read (576 for 16 Gaussians of 13 dimensions, not 1 728), and integer lanes are twice as many as
those of floats. Each dimension is scaled by the deviation of its narrow Gaussians: a mean is q · 16 steps, a frame is
known to one step. An inverse deviation is one of 255 levels of the Gaussian's largest.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.scoring.simd.panels import AHEAD, panel_of_bytes
from pipelines.scoring.simd.vector import LANES, VECTOR_BYTES, address, aligned
from profiler.arrays import Array, ArrayError
from profiler.process.numba_flags import njit_part

NARROW = 0.02
"""Share of the Gaussians that are narrower than the deviation by which the steps of a dimension are chosen."""
LEVELS = 255
MEANS = 127
FINE = 16  # steps of a frame in one of a mean
FARTHEST = 8192  # steps at which a frame is clamped: sums of squares stay within 32 bits
MIN_REACH = 1e-3  # deviations
LOOK = 20_000  # Gaussians that the scale is taken from


class Int8Gaussians(NamedTuple):
    """8-bit Gaussians in panels of 16, and how a frame is put on their scale.

    `panels` uint8 [groups, streams, slots, 64 · pairs + 128]: means and inverse deviations [pairs, 2, 32], then
    f32 [2, 16], constants, and nat per unit of the sum of squares; `steps` f32 [streams, D]: steps of a frame
    per unit of a feature.
    """

    panels: Array
    steps: Array

    @property
    def pairs(self) -> int:
        return int(self.steps.shape[1] + 1) // 2

    def frames(self, x: Array) -> Array:
        """int16 [n, streams, 2 · pairs] of expanded frames `x` f32 [n, streams, 2·D + 1]."""
        dim = self.steps.shape[1]
        result = np.zeros((*x.shape[:2], dim + dim % 2), np.int16)
        scaled = np.rint(x[:, :, dim : 2 * dim] * self.steps)
        result[:, :, :dim] = np.clip(scaled, -FARTHEST, FARTHEST)
        return result


def in_int8(gaussians: Array) -> Int8Gaussians:
    """Quantise `gaussians` f32 [groups, streams, slots, 2·D + 1, 16], rows −½/variance, mean/variance, constant."""
    groups, streams, slots, depth, _ = gaussians.shape
    dim = depth // 2
    every = max(1, groups * slots * LANES // LOOK)
    # Deviations of the narrow ones and reach of the means, for each stream and dimension.
    narrow, reach = np.empty((streams, dim)), np.empty((streams, dim))
    for s in range(streams):
        flat = gaussians[:, s].transpose(0, 1, 3, 2).reshape(-1, depth)
        flat = flat[flat[:, 0] < 0]
        some = -2.0 * flat[::every, :dim].astype(np.float64)
        narrow[s] = np.quantile(1 / np.sqrt(some), NARROW, axis=0)
        reach[s] = np.abs(flat[:, dim : 2 * dim] / (-2 * flat[:, :dim])).max(axis=0)
    # Of Gaussians that all lie in the middle none reaches anywhere.
    step = narrow * max((reach / narrow).max(), MIN_REACH) / MEANS
    depth_of_bytes = 4 * LANES * ((dim + 1) // 2)
    panels = aligned((groups, streams, slots, depth_of_bytes + 8 * LANES), np.uint8)
    vectors = panels[..., :depth_of_bytes].reshape(groups, streams, slots, -1, 2, 2 * LANES)
    tails = panels[..., depth_of_bytes:].view(np.float32).reshape(groups, streams, slots, 2, LANES)
    _quantise(gaussians, step, vectors, tails)
    return Int8Gaussians(panels, (FINE / step).astype(np.float32))


@njit(nogil=True, cache=True)
def _quantise(gaussians: Array, step: Array, panels: Array, tails: Array) -> None:
    groups, streams, slots, depth, lanes = gaussians.shape
    dim = depth // 2
    if (
        depth != 2 * dim + 1
        or step.shape != (streams, dim)
        or panels.shape != (groups, streams, slots, (dim + 1) // 2, 2, 2 * lanes)
        or tails.shape != (groups, streams, slots, 2, lanes)
    ):
        raise ArrayError("_quantise: Gaussians and panels of bytes do not fit each other")
    for g in range(groups):
        for s in range(streams):
            for m in range(slots):
                for lane in range(lanes):
                    constant = np.float64(gaussians[g, s, m, 2 * dim, lane])
                    largest = 0.0  # steps of this Gaussian's deviations, inverse
                    for d in range(dim):
                        precision = max(0.0, -2.0 * np.float64(gaussians[g, s, m, d, lane]))
                        largest = max(largest, step[s, d] * np.sqrt(precision))
                    if largest > 0:  # not padding
                        for d in range(dim):
                            precision = -2.0 * np.float64(gaussians[g, s, m, d, lane])
                            linear = np.float64(gaussians[g, s, m, dim + d, lane])
                            mean = linear / precision
                            # Complete the square: what was part of the constant is part of the distance.
                            constant += 0.5 * linear * mean
                            level = round(step[s, d] * np.sqrt(precision) / largest * LEVELS)
                            where = d % 2 + 2 * lane
                            panels[g, s, m, d // 2, 0, where] = np.int8(round(mean / step[s, d]))
                            panels[g, s, m, d // 2, 1, where] = level
                    # How many deviations a unit of z is; the log density is less by half their square.
                    unit = largest * 65536 / (FINE * 128 * LEVELS)
                    tails[g, s, m, 0, lane] = constant
                    tails[g, s, m, 1, lane] = 0.5 * unit * unit


@njit_part
def bytes_fit(x: Array, panels: Array) -> bool:
    """Whether frames int16 [n, streams, 2 · pairs] are those of `panels` uint8 [groups, streams, slots, size]."""
    streams, depth = x.shape[1], x.shape[2]
    size = VECTOR_BYTES * (depth // 2 + 2)
    return depth % 2 == 0 and panels.shape[1] == streams and panels.shape[3] == size  # type: ignore[no-any-return]


@njit_part
def row_of_bytes(frame: int, panels: int, slots: int, pairs: int, to: int) -> None:
    """Log densities f32 [slots, 16] of one frame; addresses of int16 [2 · pairs], the panels and the densities."""
    size = VECTOR_BYTES * (pairs + 2)
    for m in range(slots):
        panel = panels + m * size
        panel_of_bytes(frame, panel, pairs, panel + AHEAD * size, to + m * VECTOR_BYTES)


@njit(nogil=True, cache=True)
def densities_of_bytes(x: Array, panels: Array, g: Array, first: int, last: int) -> None:
    """Log densities `g` f32 [n, groups, streams, slots · 16] of the groups first … last − 1."""
    n, streams, depth = x.shape
    groups, _, slots, size = panels.shape
    if not bytes_fit(x, panels) or g.shape != (n, groups, streams, slots * LANES) or not 0 <= first <= last <= groups:
        raise ArrayError("densities_of_bytes: frames, panels and densities do not fit each other")
    for group in range(first, last):
        for s in range(streams):
            base = address(panels, np.uint8) + (group * streams + s) * slots * size
            for t in range(n):
                frame = address(x, np.int16) + (t * streams + s) * depth * 2
                to = address(g, np.float32) + ((t * groups + group) * streams + s) * slots * LANES * 4
                row_of_bytes(frame, base, slots, depth // 2, to)
