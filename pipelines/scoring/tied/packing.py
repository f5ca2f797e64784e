"""A tied-mixture model laid out for the kernels: panels of sixteen, padded, codebook by codebook.

A diagonal Gaussian's log density is linear in the squares and values of the features, so all of
them are one matrix product with [x², x, 1] (27 columns per stream of 13 dimensions).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring import cache
from pipelines.scoring.gaussians.product import NEVER
from pipelines.scoring.simd.vector import LANES, aligned, aligned_copy
from pipelines.scoring.tied.kernels import Order
from profiler.arrays import Array


def _padded(count: int) -> int:
    return -(-count // LANES) * LANES


@dataclass(frozen=True, eq=False)
class PackedGmm:
    """The parameters of one model in the layouts of `kernels`; `n_densities` is unpadded."""

    n_densities: int
    n_senones: int
    senones_per_codebook: Array
    centre: Array
    gaussians: Array
    weights: Array
    start: Array
    runs: Array
    run_start: Array

    def small(self) -> PackedGmm:
        """A model of one of its codebooks alone, for compiling."""
        book = int(np.argmax(self.senones_per_codebook > 0))
        senones, (begin, end) = int(self.senones_per_codebook[book]), self.start[book:][:2]
        size = self.n_streams * self.padded_densities
        return replace(
            self,
            n_senones=senones,
            senones_per_codebook=self.senones_per_codebook[book : book + 1],
            gaussians=self.gaussians[book : book + 1],
            weights=self.weights[begin * size : end * size],
            start=np.array([0, end - begin]),
            runs=np.array([[0, 0, senones]]),
            run_start=np.array([0, 1]),
        )

    @property
    def n_codebooks(self) -> int:
        return len(self.gaussians)

    @property
    def n_streams(self) -> int:
        return int(self.gaussians.shape[1])

    @property
    def n_gaussians(self) -> int:
        return self.n_codebooks * self.n_streams * self.n_densities

    @property
    def n_weights(self) -> int:
        return self.n_senones * self.n_streams * self.n_densities

    @property
    def expanded(self) -> int:
        """Squares, values and one of a stream: 27 of 13 dimensions."""
        return int(self.gaussians.shape[3])

    @property
    def padded_densities(self) -> int:
        return _padded(self.n_densities)

    @property
    def columns(self) -> int:
        return int(self.start[-1])

    @cached_property
    def order(self) -> Order:
        return self.start, self.runs, self.run_start

    @cached_property
    def identity(self) -> str:
        return cache.digest(self.centre, self.gaussians, self.weights)

    @cached_property
    def rows(self) -> Array:
        """The mixture weights once more, a contiguous row of senones for each density."""
        result = aligned(self.weights.shape)
        for book in range(self.n_codebooks):
            begin, end = (self.n_streams * self.padded_densities * int(at) for at in self.start[book:][:2])
            panels = self.weights[begin:end].reshape(-1, self.n_streams, self.padded_densities, LANES)
            result[begin:end] = panels.transpose(1, 2, 0, 3).ravel()
        return result

    def log_rows(self) -> Array:
        """Logarithms of `rows`."""
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.rows), np.float32(NEVER))

    @cached_property
    def column_of_senone(self) -> Array:
        """Column of each senone among the padded ones, int64 [n_senones]."""
        result = np.empty(self.n_senones, np.int64)
        for senone, column, length in self.runs.tolist():
            result[senone : senone + length] = np.arange(column, column + length)
        return result

    @cached_property
    def book_of_senone(self) -> Array:
        """Codebook of each senone, int32 [n_senones]."""
        found = np.searchsorted(self.start, self.column_of_senone, side="right") - 1
        return found.astype(np.int32)

    @cached_property
    def dots(self) -> Array:
        """The weights once more, f32 [n_senones, 3, padded densities]: those of a senone side by side."""
        panels = self.weights.reshape(-1, self.n_streams, self.padded_densities, LANES)
        by_column = panels.transpose(0, 3, 1, 2).reshape(-1, self.n_streams, self.padded_densities)
        return aligned_copy(by_column[self.column_of_senone])


def pack(model: AcousticModel) -> PackedGmm:
    """Lay out `model` (PTM or semi-continuous), neighbouring densities side by side."""
    model = _neighbours_together(model)
    books = model.n_codebooks
    counts = np.bincount(model.senone_codebook, minlength=books)
    start = np.concatenate([[0], np.cumsum(-(-counts // LANES) * LANES)]).astype(np.int64)
    order = np.argsort(model.senone_codebook, kind="stable")
    column = np.empty(model.n_senones, np.int64)
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    books_in_order = model.senone_codebook[order]
    column[order] = np.arange(model.n_senones) - first[books_in_order] + start[books_in_order]
    runs, run_start = _runs(model.senone_codebook, column, books)
    centre, gaussians = _gaussians(model)
    weights = _weights(model, column, start)
    numbers = model.n_densities, model.n_senones, counts
    return PackedGmm(*numbers, centre, gaussians, weights, start, runs, run_start)


def _neighbours_together(model: AcousticModel) -> AcousticModel:
    """The same model with the densities of each codebook and stream in the order of a k-d tree.

    Selection takes or leaves panels of sixteen, which should therefore lie near each other.
    """
    means, variances, weights = (np.array(a) for a in (model.means, model.variances, model.weights))
    for book in range(model.n_codebooks):
        senones = np.flatnonzero(model.senone_codebook == book)
        for s in range(model.n_streams):
            scaled = model.means[book, s] / np.sqrt(model.variances[book, s].mean(axis=0))
            order = np.array(_halved(scaled, np.arange(len(scaled))))
            means[book, s] = model.means[book, s, order]
            variances[book, s] = model.variances[book, s, order]
            weights[s][:, senones] = model.weights[s][np.ix_(order, senones)]
    return replace(model, means=means, variances=variances, weights=weights)


def _halved(points: Array, members: Array) -> list[int]:
    """`members` in the order of a k-d tree over `points`, cut at multiples of sixteen."""
    if len(members) <= LANES:
        return [int(member) for member in members]
    widest = int(np.ptp(points[members], axis=0).argmax())
    ordered = members[np.argsort(points[members, widest], kind="stable")]
    cut = _padded(len(members) // 2)
    return _halved(points, ordered[:cut]) + _halved(points, ordered[cut:])


def _gaussians(model: AcousticModel) -> tuple[Array, Array]:
    means, variances = model.means.astype(np.float64), model.variances.astype(np.float64)
    # Features about the middle of all means: smaller squares cancel with less rounding.
    centre = means.mean(axis=(0, 2))
    means -= centre[:, None, :]
    books, streams, densities, dim = means.shape
    constant = -0.5 * (dim * math.log(2 * math.pi) + np.log(variances).sum(3) + (means**2 / variances).sum(3))
    padded = _padded(densities)
    matrix = np.zeros((books, streams, 2 * dim + 1, padded))
    matrix[:, :, :dim, :densities] = (-0.5 / variances).swapaxes(2, 3)
    matrix[:, :, dim : 2 * dim, :densities] = (means / variances).swapaxes(2, 3)
    matrix[:, :, 2 * dim, :densities] = constant
    matrix[:, :, 2 * dim, densities:] = NEVER
    panels = matrix.reshape(books, streams, -1, padded // LANES, LANES).swapaxes(2, 3)
    return centre.astype(np.float32).ravel(), aligned_copy(panels.astype(np.float32))


def _weights(model: AcousticModel, column: Array, start: Array) -> Array:
    padded = _padded(model.n_densities)
    # Padding columns repeat nothing and mean nothing; one keeps their logarithm finite.
    wide = np.ones((model.n_streams, padded, int(start[-1])), np.float32)
    wide[:, : model.n_densities, column] = model.weights
    wide[:, model.n_densities :] = 0.0
    panels = wide.reshape(model.n_streams, padded, -1, LANES).transpose(2, 0, 1, 3)
    return aligned_copy(panels).ravel()


def _runs(codebook: Array, column: Array, books: int) -> tuple[Array, Array]:
    """Stretches of senones that lie side by side in both orders, sorted by codebook."""
    breaks = np.flatnonzero((np.diff(codebook) != 0) | (np.diff(column) != 1)) + 1
    begins = np.concatenate([[0], breaks])
    lengths = np.diff(np.concatenate([begins, [len(codebook)]]))
    runs = np.stack([begins, column[begins], lengths], axis=1)
    runs = runs[np.argsort(column[begins])]
    run_start = np.searchsorted(codebook[runs[:, 0]], np.arange(books + 1))
    return np.ascontiguousarray(runs, np.int64), run_start.astype(np.int64)
