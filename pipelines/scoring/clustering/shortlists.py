"""Shortlists of Gaussians by codeword (Bocchieri 1993), in panels of sixteen so that they are contiguous runs.

A Gaussian is on the shortlist of a codeword c when (1/D) Σ (c − mean)² / (σ · σ_avg) ≤ `threshold`. That is this
project's choice; Bocchieri divides by σ_avg² alone, and misses wide Gaussians that matter: at 22 % of the panels the
best senone of a frame was found in 59 % of the frames and not in 66 %. A panel is computed when one of its Gaussians is
listed, and so is the panel that is the likeliest at the codeword, in each group (16 senones, or one codebook of a tied
model): nothing is left without a Gaussian, and none is scored by one that lies absurdly far.

Panels are those of both families' layouts, f32 [groups, streams, slots, 2·D + 1, 16]: rows of −½/variance,
mean/variance and the constant. In a continuous model each of the 16 lanes is another senone.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pipelines.scoring import cache
from pipelines.scoring.clustering import quantiser
from pipelines.scoring.clustering.quantiser import FAR, Codebook
from pipelines.scoring.gaussians.product import NOTHING, multiply
from pipelines.scoring.simd.maxima import reached
from pipelines.scoring.simd.vector import LANES, address, address_of_rows
from pipelines.scoring.strategy import Cancelling, Progress
from profiler.arrays import Array, ArrayError
from profiler.errors import BadInput, Cancelled

NOWHERE = np.float32(1e15)  # Each coordinate of the mean of padding
MAX_ITEMS, MAX_SLOTS = 1 << 31, 1 << 8  # Limits of the number types of `Shortlists.start` and `items`
AT_ONCE = 128  # Codewords whose lists are made together: bounds the memory that it takes


class Shortlists(NamedTuple):
    """For each stream, codeword and group the panels to compute, in the order of memory.

    `items` uint8: panels; those of stream s, codeword k and group g are
    items[start[s, k, g] : start[s, k, g + 1]] (`start` int32 [streams, K, groups + 1]). `lanes` uint16: which
    of an item's Gaussians are listed themselves, bit by lane.
    """

    codebook: Codebook
    start: Array
    items: Array
    lanes: Array

    @property
    def mean_panels(self) -> float:
        """Panels on a list, on average."""
        return len(self.items) / self.start[:, :, 1:].size

    @property
    def mean_lanes(self) -> float:
        """Gaussians that are listed themselves, on average."""
        return int(np.bitwise_count(self.lanes).sum(dtype=np.int64)) / self.start[:, :, 1:].size


def means_and_variances(panels: Array) -> tuple[Array, Array]:
    """Means f32 [groups, streams, slots, D, 16] (far away for padding) and average variances f64 [streams, D]."""
    dim = panels.shape[3] // 2
    precision = -2 * panels[:, :, :, :dim]
    real = precision > 0
    means = np.divide(panels[:, :, :, dim : 2 * dim], precision, out=np.full_like(precision, NOWHERE), where=real)
    inverse = np.divide(1.0, precision, out=np.zeros_like(precision), where=real)
    count = real.sum(axis=(0, 2, 4), dtype=np.float64)
    return means, inverse.sum(axis=(0, 2, 4), dtype=np.float64) / count


def codebook_of(panels: Array, identity: str, size: int, progress: Progress, cancelled: Cancelling) -> Codebook:
    """The codebook of a model, from the cache or trained now; `identity` is the digest of the model."""

    def make() -> dict[str, Array]:
        means, variances = means_and_variances(panels)
        dim = means.shape[3]
        flat = (means[:, s].swapaxes(2, 3).reshape(-1, dim) for s in range(means.shape[1]))
        points = [some[some[:, 0] < NOWHERE] for some in flat]
        scale = (1 / (dim * variances)).astype(np.float32)
        return quantiser.train(points, scale, size, progress, cancelled)

    return Codebook(**cache.prepared("codebook", (identity, size), make))


def build(
    panels: Array,
    codebook: Codebook,
    identity: str,
    threshold: float,
    progress: Progress,
    cancelled: Cancelling,
    shared: bool = False,
) -> Shortlists:
    """The shortlists of a model at `threshold`, from the cache or made now.

    `shared`: the 16 Gaussians of a panel belong to one codebook, and the likeliest is one of them; otherwise
    they belong to 16 senones, and the likeliest panel is so by the mean over these.
    """

    def make() -> dict[str, Array]:
        bound = np.float32(-0.5 * threshold)
        streams, size = codebook.words.shape[:2]
        groups, slots = len(panels), panels.shape[2]
        if streams * size * groups * slots > MAX_ITEMS or slots > MAX_SLOTS:
            raise BadInput(
                f"Shortlists of {size} codewords for {groups * slots * LANES} Gaussians are too many; "
                "choose fewer codewords (gmm.selection.codewords)."
            )
        start = np.empty((streams, size, groups + 1), np.int32)
        items, lanes = [], []
        used = 0
        for s in range(streams):
            rows = _distance_rows(panels[:, s], codebook.scale[s])
            for at in range(0, size, AT_ONCE):
                if cancelled():
                    raise Cancelled
                progress("listing the Gaussians", (s + at / size) / streams)
                some = codebook.words[s, at : at + AT_ONCE]
                words = np.concatenate([some**2, some, np.ones((len(some), 1), np.float32)], axis=1)
                masks = np.empty((len(some), groups, slots), np.uint16)
                products = np.empty((len(some), slots * LANES), np.float32)
                _masks(words, rows, panels[:, s], bound, shared, products, masks)
                on = masks > 0
                counts = on.sum(axis=2).cumsum().reshape(len(some), groups)
                start[s, at : at + AT_ONCE, 1:] = used + counts
                start[s, at : at + AT_ONCE, 0] = used + np.append(0, counts[:-1, -1])
                used += int(counts[-1, -1])
                items.append(np.nonzero(on)[2].astype(np.uint8))
                lanes.append(masks[on])
        return {"start": start, "items": np.concatenate(items), "lanes": np.concatenate(lanes)}

    return Shortlists(codebook, **cache.prepared("shortlists", (identity, codebook.size, float(threshold)), make))


def _distance_rows(panels: Array, scale: Array) -> Array:
    """[groups, slots, 2·D + 1, 16]: products with [c², c, 1] are minus half the distance of codeword c."""
    dim = len(scale)
    precision = -2 * panels[:, :, :dim]
    weight = np.sqrt(precision * (scale / dim)[:, None])
    real = precision > 0
    means = np.divide(panels[:, :, dim : 2 * dim], precision, out=np.zeros_like(precision), where=real)
    rows = np.empty(panels.shape, np.float32)
    rows[:, :, :dim] = -0.5 * weight
    rows[:, :, dim : 2 * dim] = weight * means
    rows[:, :, 2 * dim] = np.where(real[:, :, 0], -0.5 * (weight * means**2).sum(2), -FAR)
    return rows


@njit(nogil=True, cache=True)
def _masks(words: Array, rows: Array, panels: Array, bound: Any, shared: bool, products: Array, masks: Array) -> None:
    """masks uint16 [words, groups, slots]: lanes of `rows` that reach the bound, and one of the likeliest panel.

    `words` f32 [words, depth], `rows` and `panels` f32 [groups, slots, depth, 16].
    """
    n = words.shape[0]
    groups, slots, depth, lanes = rows.shape
    panel = depth * lanes * 4
    row = slots * lanes
    if (
        lanes != LANES
        or slots == 0
        or words.shape != (n, depth)
        or panels.shape != rows.shape
        or panels.strides[1:] != (panel, lanes * 4, 4)
        or len(products) < n
        or products.shape[1] != row
        or masks.shape != (n, groups, slots)
    ):
        raise ArrayError("_masks: codewords, Gaussians and masks do not fit each other")
    here, found = address(words, np.float32), address(products, np.float32)
    for g in range(groups):
        at = address(rows, np.float32) + g * slots * panel
        multiply(here, depth * 4, n, at, slots, depth, found, NOTHING)
        for k in range(n):
            for m in range(slots):
                masks[k, g, m] = reached(found + (k * row + m * lanes) * 4, bound)
        at = address_of_rows(panels, np.float32) + g * panels.strides[0]
        multiply(here, depth * 4, n, at, slots, depth, found, NOTHING)
        for k in range(n):
            likeliest, lane_of, highest = 0, 0, np.float32(-np.inf)
            for m in range(slots):
                total, best = np.float32(0), 0
                for lane in range(lanes):
                    value = products[k, m * lanes + lane]
                    total += value
                    if value > products[k, m * lanes + best]:
                        best = lane
                if shared:
                    total = products[k, m * lanes + best]
                if total > highest:
                    likeliest, lane_of, highest = m, best, total
            masks[k, g, likeliest] |= np.uint16(1 << lane_of)
