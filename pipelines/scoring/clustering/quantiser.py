"""Vector quantisation of feature frames: a codebook for each stream, searched in full or down a binary tree.

The codewords are the k-means centres of a model's means (Bocchieri 1993), so no speech is needed to make them.
Distances are normalised: (1/D) Σ (x − y)² / σ², where σ² is the average variance of the model's Gaussians in
that dimension. The tree (the "dictionary" of the VQ lore) splits the codewords in two again and again; a frame
goes down it by one dot product a level and arrives at a codeword that is near, mostly the nearest.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import cache
from pipelines.scoring.blocks import Meter
from pipelines.scoring.gaussians.product import NOTHING, expand, multiply
from pipelines.scoring.simd.vector import LANES, address, aligned_copy
from pipelines.scoring.strategy import Cancelling, Progress
from profiler.arrays import Array, ArrayError, check_indices
from profiler.errors import Cancelled

ROUNDS = 12  # Rounds of k-means; the mean distance falls by less than 1 % in further ones
MAX_POINTS = 32_768  # Means that k-means sees; more are sampled down, 8 for each of the most codewords
SEED = 1993
FAR = 1e30  # squared norm of padding codewords: never the nearest

QUANTISE = "score.quantise"
"""Stage: expanding the frames and finding their codewords; work `codewords`: how many were compared."""


@dataclass(eq=False)
class Codebook:
    """Codewords of all streams, and what finds the nearest.

    `words` f32 [streams, K, D], about the centre of the features; `scale` f32 [streams, D]: 1 / (σ² D).
    `planes` f32 [streams, nodes, D + 1], `children` int32 [streams, nodes, 2]: at a node take the second
    child when the product with [x, 1] is positive; a child c < 0 is the codeword ~c.
    """

    words: Array
    scale: Array
    planes: Array
    children: Array
    panels: Array = field(init=False)
    """F32 [streams, K/16, D + 1, 16]: products with [x, 1] are largest for the nearest codeword."""

    def __post_init__(self) -> None:
        """Raise ArrayError unless every path down the tree ends at a codeword: the kernel trusts it."""
        nodes, inner = self.planes.shape[1], self.children >= 0
        check_indices("nodes of the tree", self.children[inner], nodes)
        check_indices("codewords of the tree", ~self.children[~inner], self.size)
        # A node's children come after it, so that no path leads back.
        if (inner & (self.children <= np.arange(nodes)[:, None])).any() or not nodes:
            raise ArrayError("the tree of the codewords has no node or leads back to one")
        self.panels = _panels(self.words, self.scale)

    @property
    def size(self) -> int:
        return int(self.words.shape[1])

    def nearest(self, x: Array, out: Array) -> None:
        """Write to `out` int32 [n, streams] the nearest codewords of expanded frames `x` f32 [n, streams, 2·D + 1]."""
        products = np.empty((len(x), self.panels.shape[1] * LANES), np.float32)
        _nearest(x, self.panels, self.size, products, out)

    def descend(self, x: Array, out: Array) -> int:
        """As `nearest`, by the tree; returns how many codewords were compared (two at each node)."""
        compared: int = _descend(x, self.planes, self.children, out)
        return compared


def train(means: list[Array], scale: Array, size: int, progress: Progress, cancelled: Cancelling) -> dict[str, Array]:
    """The arrays of a Codebook of `size` codewords per stream (fewer where there are not as many different means).

    `means`: f32 [n, D] for each stream, about the centre of the features; `scale` as in Codebook.
    """
    rng = np.random.default_rng(SEED)
    points = [np.unique(some * np.sqrt(s), axis=0) for some, s in zip(means, scale, strict=True)]
    size = min(size, *(len(some) for some in points))
    words = np.empty((len(means), size, scale.shape[1]), np.float32)
    for s, some in enumerate(points):
        progress("clustering the Gaussians", s / len(points))
        if len(some) > MAX_POINTS:
            some = some[np.sort(rng.choice(len(some), MAX_POINTS, replace=False))]
        words[s] = kmeans(some, size, rng, cancelled) / np.sqrt(scale[s])
    trees = [_tree(w * np.sqrt(s), rng) for w, s in zip(words, scale, strict=True)]
    nodes = max(1, *(len(children) for _, children in trees))
    planes = np.zeros((len(means), nodes, scale.shape[1] + 1), np.float32)
    children = np.full((len(means), nodes, 2), -1, np.int32)
    for s, (plane, child) in enumerate(trees):
        planes[s, : len(plane)] = plane
        planes[s, :, :-1] *= np.sqrt(scale[s])
        children[s, : len(child)] = child
    return {"words": words, "scale": scale, "planes": planes, "children": children}


def kmeans(points: Array, size: int, rng: np.random.Generator, cancelled: Cancelling, rounds: int = ROUNDS) -> Array:
    """Centres f32 [size, D] of `points` f32 [n ≥ size, D]: Lloyd's rounds from a random choice of points."""
    centres = points[np.sort(rng.choice(len(points), size, replace=False))].copy()
    for _ in range(rounds):
        if cancelled():
            raise Cancelled
        label, distance = assign(points, centres)
        count = np.bincount(label, minlength=size)
        for d in range(points.shape[1]):
            total = np.bincount(label, points[:, d], size)
            np.divide(total, count, out=centres[:, d], where=count > 0, casting="unsafe")
        # A centre without points starts again where the worst served point is.
        empty = np.flatnonzero(count == 0)
        centres[empty] = points[np.argsort(-distance)[: len(empty)]]
    return centres


def assign(points: Array, centres: Array, chunk: int = 8192) -> tuple[Array, Array]:
    """(index of the nearest centre, its squared distance) of each of `points`."""
    half = 0.5 * (centres**2).sum(1)
    label, distance = np.empty(len(points), np.int64), np.empty(len(points), np.float32)
    for at in range(0, len(points), chunk):
        some = points[at : at + chunk]
        gain = some @ centres.T - half
        label[at : at + chunk] = nearest = gain.argmax(1)
        distance[at : at + chunk] = (some**2).sum(1) - 2 * gain[np.arange(len(some)), nearest]
    return label, distance


def _tree(words: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Binary tree over `words` f32 [K, D] in normalised space: (planes [nodes, D + 1], children [nodes, 2])."""
    planes: list[Array] = []
    children: list[list[int]] = []

    def grow(members: Array) -> int:
        if len(members) == 1:
            return ~int(members[0])
        node = len(planes)
        low, high = pair = kmeans(words[members], 2, rng, lambda: False, rounds=6)
        right = assign(words[members], pair)[0] == 1
        if right.all() or not right.any():  # equal codewords
            right = np.arange(len(members)) % 2 == 1
        planes.append(np.append(high - low, 0.5 * (low @ low - high @ high)))
        children.append([0, 0])
        children[node] = [grow(members[~right]), grow(members[right])]
        return node

    if grow(np.arange(len(words))) < 0:  # one codeword: a node both of whose sides are it
        planes.append(np.zeros(words.shape[1] + 1, np.float32))
        children.append([-1, -1])
    return np.array(planes, np.float32), np.array(children, np.int32)


def _panels(words: Array, scale: Array) -> Array:
    streams, size, dim = words.shape
    groups = -(-size // LANES)
    wide = np.zeros((streams, groups * LANES, dim + 1), np.float32)
    wide[:, :, dim] = -FAR
    wide[:, :size, :dim] = words * scale[:, None]
    wide[:, :size, dim] = -0.5 * (words**2 * scale[:, None]).sum(2)
    return aligned_copy(wide.reshape(streams, groups, LANES, dim + 1).swapaxes(2, 3))


@njit(nogil=True, cache=True)
def _nearest(x: Array, panels: Array, size: int, products: Array, nearest: Array) -> None:
    """The nearest of `size` codewords: what fills up their panels is never meant."""
    n, streams, expanded = x.shape
    groups, rows = panels.shape[1], panels.shape[2]
    dim = rows - 1
    if (
        expanded != 2 * dim + 1
        or panels.shape != (streams, groups, rows, LANES)
        or not 0 < size <= groups * LANES
        or products.shape != (n, groups * LANES)
        or nearest.shape != (n, streams)
    ):
        raise ArrayError("_nearest: frames, codewords and what is nearest do not fit each other")
    for s in range(streams):
        frames, words = address(x, np.float32) + (s * expanded + dim) * 4, address(panels, np.float32)
        here, to = words + s * groups * rows * LANES * 4, address(products, np.float32)
        multiply(frames, streams * expanded * 4, n, here, groups, rows, to, NOTHING)
        for t in range(n):
            best = 0
            for k in range(1, size):
                if products[t, k] > products[t, best]:
                    best = k
            nearest[t, s] = best


@njit(nogil=True, cache=True, fastmath=True)
def _descend(x: Array, planes: Array, children: Array, nearest: Array) -> int:
    n, streams, expanded = x.shape
    dim = expanded // 2
    compared = 0
    if (
        expanded != 2 * dim + 1
        or planes.shape != (streams, planes.shape[1], dim + 1)
        or children.shape != (streams, planes.shape[1], 2)
        or nearest.shape != (n, streams)
    ):
        raise ArrayError("_descend: frames, tree and what is nearest do not fit each other")
    for s in range(streams):
        for t in range(n):
            node = np.int32(0)
            while node >= 0:
                side = np.float32(0)
                for d in range(dim + 1):
                    side += planes[s, node, d] * x[t, s, dim + d]
                node = children[s, node, 1 if side > 0 else 0]
                compared += 2
            nearest[t, s] = ~node
    return compared


STAGE = "score.frames"  # Work count `codewords`: how many a frame was compared with


class Codewords(NamedTuple):
    """Codewords of whole feature vectors about `centre` f32 [dim]: whether the sound has changed.

    The codebook, of one stream, is trained on one vector for each senone, the mean of its mixture: it tells as many
    sounds apart as it has codewords, whether a model has one stream or three.
    """

    book: Codebook
    centre: Array

    def nearest(self, features: Array, meter: Meter) -> Array:
        """Number of the nearest codeword of `features` f32 [n, dim], int32 [n]; stage `score.frames`."""
        n, dim = features.shape
        x = np.empty((n, 1, 2 * dim + 1), np.float32)
        expand(features, self.centre, x)
        nearest = np.empty((n, 1), np.int32)
        self.book.nearest(x, nearest)
        meter.close(STAGE, n * self.book.size)
        return nearest[:, 0]


def codewords_of(model: AcousticModel, size: int, progress: Progress, cancelled: Cancelling) -> Codewords:
    """The codebook of `size` codewords for `model` (fewer if it has fewer senones), from the cache or trained now.

    Raises Cancelled.
    """
    points = _senone_means(model)
    centre = points.mean(0)
    variance = model.variances.mean(axis=(0, 2), dtype=np.float64).ravel()
    scale = (1.0 / (variance * len(variance)))[None].astype(np.float32)

    facts = cache.digest(points, scale), size
    make = partial(train, [points - centre], scale, size, progress, cancelled)
    return Codewords(Codebook(**cache.prepared("codewords", facts, make)), centre)


def _senone_means(model: AcousticModel) -> Array:
    """f32 [n_senones, dim]: the mean of each senone's mixture, streams side by side."""
    n_senones = len(model.senone_codebook)
    result = np.empty((n_senones, model.means.shape[1], model.means.shape[3]), np.float32)
    order = np.argsort(model.senone_codebook, kind="stable")
    edges = np.searchsorted(model.senone_codebook[order], np.arange(model.n_codebooks + 1))
    for book, (begin, end) in enumerate(pairwise(edges)):
        mine = order[begin:end]
        weights = model.weights[:, :, mine]
        result[mine] = np.einsum("skn,skd->nsd", weights, model.means[book])
    return result.reshape(n_senones, -1)
