"""The component layer of a tied-mixture model: how the log densities of its codebooks are computed.

`Floats` as a matrix product, `Bytes` with 8-bit parameters, `Bounded` by partial distance elimination, which
computes only what can be among the N best. All give f32 [n, codebooks, 3, padded densities] and close the
stage `score.gaussians`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numba import njit

from pipelines.scoring.blocks import FLOAT, Meter
from pipelines.scoring.costs import continuous, tied
from pipelines.scoring.gaussians.int8 import Int8Gaussians, densities_of_bytes
from pipelines.scoring.gaussians.product import NEVER, PARTS, Bounds, bring_forward
from pipelines.scoring.simd.maxima import bound_of_nth, can_reach
from pipelines.scoring.simd.panels import partial
from pipelines.scoring.simd.vector import LANES, address, copy_floats
from pipelines.scoring.tied.gmm import Gmm
from profiler.arrays import Array, ArrayError, check
from profiler.costs import Cost

MAX_BOUNDED = 16
"""Densities kept of which the worst is found quickly; with more, no density is eliminated."""


Evaluate = Callable[[Array, int, int, Meter], Array]
"""Log densities f32 [n, codebooks, 3, padded densities] of codebooks first … last − 1, from frames f32 [n, 3, 27]."""


class Evaluation(Protocol):
    """An `Evaluate` with its cost law."""

    def __call__(self, x: Array, first: int, last: int, meter: Meter, /) -> Array:
        """As `Evaluate`."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost law of `score.gaussians`; empty where it is the family's own."""


class Floats:
    """All of them, in float32."""

    def __init__(self, gmm: Gmm) -> None:
        self._gmm = gmm

    def __call__(self, x: Array, first: int, last: int, meter: Meter) -> Array:
        return self._gmm.densities(x, first, last, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """The family's own."""
        return {}


class Bytes:
    """All of them, with 8-bit parameters."""

    def __init__(self, gmm: Gmm, parameters: Int8Gaussians) -> None:
        parameters.check_for(gmm.parameters.gaussians)
        self._gmm, self._bytes = gmm, parameters

    def __call__(self, x: Array, first: int, last: int, meter: Meter) -> Array:
        """In 16-bit arithmetic."""
        g = self._gmm.workspace(len(x))
        frames = self._bytes.frames(x)
        densities_of_bytes(frames, self._bytes.panels, g, first, last)
        meter.close("score.gaussians", len(x) * self._gmm.parameters.n_gaussians)
        return g

    def costs(self, frames: int) -> dict[str, Cost]:
        """A third of the bytes."""
        return {"score.gaussians": continuous.gaussians_in_bytes(self._bytes, stored=2.0 * FLOAT)}


class Bounded:
    """Only what can be among the `keep` best of a codebook and stream; what cannot gets NEVER.

    With `follow`, the panels that held the best of the last frame are computed first (pocketsphinx).
    """

    def __init__(self, gmm: Gmm, rest: Array, keep: int, follow: bool) -> None:
        shape = gmm.parameters.gaussians.shape[:3]
        check("rest", rest, np.float32, (*shape, PARTS, LANES))
        order = np.tile(np.arange(shape[2], dtype=np.uint8), (*shape[:2], 1))
        self._gmm = gmm
        self._bounds: Bounds = rest, order, keep, follow

    def __call__(self, x: Array, first: int, last: int, meter: Meter) -> Array:
        """A Gaussian that is given up counts by the part of it that was computed."""
        p, n = self._gmm.parameters, len(x)
        g = self._gmm.workspace(n)
        dimensions = bounded(x, p.gaussians, self._bounds, g, first, last)
        # Counted for the calling thread's codebooks, taken for all where threads share the block.
        share = p.n_codebooks / max(1, last - first)
        meter.close("score.gaussians", round(share * dimensions / (p.expanded // 2)))
        return g

    def costs(self, frames: int) -> dict[str, Cost]:
        return {"score.gaussians": tied.bounded_gaussians(self._gmm.parameters, frames)}


@njit(nogil=True, cache=True)
def bounded(x: Array, gaussians: Array, within: Bounds, g: Array, first: int, last: int) -> int:
    """Log densities `g` of the codebooks; returns how many dimensions of a Gaussian were computed."""
    rest, order, keep, follow = within
    books, streams, slots, depth, _ = gaussians.shape
    n, dim = len(x), depth // 2
    if (
        gaussians.shape != (books, streams, slots, 2 * dim + 1, LANES)
        or slots == 0
        or x.shape != (n, streams, depth)
        or rest.shape != (books, streams, slots, PARTS, LANES)
        or order.shape != (books, streams, slots)
        or g.shape != (n, books, streams, slots * LANES)
        or keep < 1
        or not 0 <= first <= last <= books
    ):
        raise ArrayError("bounded: frames, Gaussians and densities do not fit each other")
    vector = LANES * 4
    bounds = np.empty(LANES, np.float32)
    entered = np.empty(slots, np.int64)
    computed = 0
    for book in range(first, last):
        for s in range(streams):
            which = book * streams + s
            for t in range(n):
                frame = address(x, np.float32) + (t * streams + s) * depth * 4
                row = address(g, np.float32) + (t * books * streams + which) * slots * vector
                g[t, book, s] = NEVER
                bounds[:] = NEVER
                winners = np.int64(0)  # a literal is a type, for which `bring_forward` would be compiled once more
                for i in range(slots):
                    m = order[book, s, i]
                    panel = address(gaussians, np.float32) + (which * slots + m) * depth * vector
                    parts = address(rest, np.float32) + (which * slots + m) * PARTS * vector
                    to = row + m * vector
                    copy_floats(to, panel + 2 * dim * vector, LANES)
                    alive = True
                    for part in range(PARTS):
                        if not can_reach(to, parts + part * vector, address(bounds, np.float32)):
                            alive = False
                            break
                        begin, end = part * dim // PARTS, (part + 1) * dim // PARTS
                        partial(frame, panel, dim, begin, end, to)
                        computed += end - begin
                    if not alive:
                        g[t, book, s, m * LANES : (m + 1) * LANES] = NEVER
                        continue
                    entered[winners] = i
                    winners += 1
                    if keep <= MAX_BOUNDED:
                        bounds[:] = bound_of_nth(row, slots, keep)[0]
                if follow:
                    bring_forward(order[book, s], entered, winners)
    return computed * LANES
