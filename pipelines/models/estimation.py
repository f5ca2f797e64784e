"""Estimation of full-width mixtures: samples drawn from a model's own densities, and weighted EM.

Every senone is estimated by itself from rows of features with weights: frames that were aligned to it, and samples that
stand for what is known beforehand. All chance comes from a seed: the same model on every run.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from profiler.arrays import Array, ArrayError, check, check_indices, check_offsets

VARIANCE_SHARE = 0.01
"""Floor of a variance, as a share of the senone's own total variance in that dimension (Kaldi: 0.01)."""
WEIGHT_FLOOR = 1e-5  # of a component's weight, as Kaldi's min-gaussian-weight
NEGLIGIBLE = 12.0  # nat below the best component: e⁻¹² of a frame is not accumulated


class Densities(NamedTuple):
    """What senones are drawn from.

    `means`, `deviations` f32 [codebooks, streams, densities, dim]; `cumulative` f32 [streams, densities, senones],
    the running sum of the mixture weights; `codebooks` [senones].
    """

    means: Array
    deviations: Array
    cumulative: Array
    codebooks: Array


class Frames(NamedTuple):
    """Real frames of each senone: `features` f32 [n, dim]; those of senone q are `features[which[i]]`, each by
    its share `shares[i]`, for i from first[q] to first[q + 1]."""

    features: Array
    which: Array
    shares: Array
    first: Array


class Mixtures(NamedTuple):
    """Full-width mixtures: `means`, `variances` f32 [senones, 1, M, dim]; `weights` f32 [1, M, senones]."""

    means: Array
    variances: Array
    weights: Array


class _Effort(NamedTuple):
    """Draws of a senone's own density, the frames that these count as together, and steps of EM."""

    samples: int
    prior: float
    steps: int


@njit(nogil=True, cache=True)
def _draw(old: Densities, senone: int, rng: Any, out: Array) -> None:
    """Fill `out` f32 [n, streams · dim] with samples of one senone's density, stream by stream."""
    means, deviations, cumulative, codebooks = old
    codebook = codebooks[senone]
    _, streams, densities, dim = means.shape
    for row in range(len(out)):
        for s in range(streams):
            level = rng.random() * cumulative[s, densities - 1, senone]
            low, high = 0, densities - 1
            while low < high:
                middle = (low + high) // 2
                if cumulative[s, middle, senone] < level:
                    low = middle + 1
                else:
                    high = middle
            for d in range(dim):
                noise = rng.standard_normal()
                out[row, s * dim + d] = means[codebook, s, low, d] + deviations[codebook, s, low, d] * noise


@njit(nogil=True, cache=True)
def _scatter(rows: Array, weights: Array, spread: Array, mean: Array, variance: Array, mix: Array) -> None:
    """A first guess: components on rows that are evenly spaced by weight, each with the variance of all.

    Fills `mean`, `variance` f32 [M, dim] and `mix` f32 [M].
    """
    components = len(mix)
    total = weights.sum()
    passed, row = np.float64(weights[0]), 0
    for m in range(components):
        while passed < (m + 0.5) / components * total and row + 1 < len(rows):
            row += 1
            passed += weights[row]
        mean[m] = rows[row]
        variance[m] = spread
        mix[m] = 1.0 / components


@njit(nogil=True, cache=True)
def _total_variance(rows: Array, weights: Array) -> Array:
    """Weighted variance of each column, f32 [dim]."""
    n, dim = rows.shape
    sums, squares, total = np.zeros(dim), np.zeros(dim), 0.0
    for i in range(n):
        total += weights[i]
        for d in range(dim):
            sums[d] += weights[i] * rows[i, d]
            squares[d] += weights[i] * rows[i, d] * rows[i, d]
    return np.maximum(squares / total - (sums / total) ** 2, 1e-4).astype(np.float32)


@njit(nogil=True, cache=True, fastmath=True)
def _maximise(rows: Array, weights: Array, floor: Array, steps: int, mean: Array, variance: Array, mix: Array) -> float:
    """`steps` EM steps on weighted rows, in place; returns the last step's mean log-likelihood, nat per row.

    `rows` f32 [n, dim], `weights` f32 [n], `floor` f32 [dim]; `mean`, `variance` f32 [M, dim], `mix` f32 [M].
    A component that too few rows support keeps its place and gets the least weight.
    """
    n, dim = rows.shape
    components = len(mix)
    # Components side by side: the inner loops are over them, and are vectorised.
    centre = np.empty((dim, components), np.float32)
    precision = np.empty((dim, components), np.float32)
    constant = np.empty(components, np.float32)
    density = np.empty(components, np.float32)
    counts = np.empty(components)
    sums, squares = np.empty((components, dim)), np.empty((components, dim))
    likelihood = 0.0
    for _ in range(steps):
        for m in range(components):
            value = math.log(mix[m]) - 0.5 * dim * math.log(2 * math.pi)
            for d in range(dim):
                centre[d, m] = mean[m, d]
                precision[d, m] = 1 / variance[m, d]
                value -= 0.5 * math.log(variance[m, d])
            constant[m] = value
        counts[:] = 0
        sums[:] = 0
        squares[:] = 0
        likelihood, total = 0.0, 0.0
        for i in range(n):
            for m in range(components):
                density[m] = 0
            for d in range(dim):
                x = rows[i, d]
                for m in range(components):
                    difference = x - centre[d, m]
                    density[m] += difference * difference * precision[d, m]
            best = np.float32(-3e38)
            for m in range(components):
                density[m] = constant[m] - np.float32(0.5) * density[m]
                best = max(best, density[m])
            evidence = np.float32(0)
            for m in range(components):
                if density[m] > best - NEGLIGIBLE:
                    density[m] = math.exp(density[m] - best)
                    evidence += density[m]
                else:
                    density[m] = 0
            likelihood += weights[i] * (best + math.log(evidence))
            total += weights[i]
            for m in range(components):
                if density[m] > 0:
                    share = weights[i] * density[m] / evidence
                    counts[m] += share
                    for d in range(dim):
                        sums[m, d] += share * rows[i, d]
                        squares[m, d] += share * rows[i, d] * rows[i, d]
        likelihood /= total
        kept = 0.0
        for m in range(components):
            mix[m] = max(counts[m] / total, WEIGHT_FLOOR)
            kept += mix[m]
            if counts[m] < 1e-3 * total / components:
                continue
            for d in range(dim):
                mean[m, d] = sums[m, d] / counts[m]
                spread = squares[m, d] / counts[m] - (sums[m, d] / counts[m]) ** 2
                variance[m, d] = max(spread, floor[d])
        for m in range(components):
            mix[m] /= kept
    return likelihood


@njit(nogil=True, cache=True)
def _fit(old: Densities, frames: Frames, new: Mixtures, effort: _Effort, rng: Any, first: int, last: int) -> None:
    """As `fit`, which has checked the arrays."""
    mix = np.empty(new.means.shape[2], np.float32)
    for senone in range(first, last):
        begin, end = frames.first[senone], frames.first[senone + 1]
        rows = np.empty((end - begin + effort.samples, new.means.shape[3]), np.float32)
        weights = np.empty(len(rows), np.float32)
        for i in range(end - begin):
            rows[i] = frames.features[frames.which[begin + i]]
            weights[i] = frames.shares[begin + i]
        _draw(old, senone, rng, rows[end - begin :])
        weights[end - begin :] = effort.prior / effort.samples
        spread = _total_variance(rows, weights)
        mean, variance = new.means[senone, 0], new.variances[senone, 0]
        _scatter(rows, weights, spread, mean, variance, mix)
        floor = spread * np.float32(VARIANCE_SHARE)
        _maximise(rows, weights, floor, effort.steps, mean, variance, mix)
        new.weights[0, :, senone] = mix


def fit(
    old: Densities,
    frames: Frames,
    new: Mixtures,
    first: int,
    last: int,
    *,
    samples: int,
    prior: float,
    steps: int,
    rng: np.random.Generator,
) -> None:
    """Fit one full-width mixture to each of the senones first … last − 1, and fill `new` with them.

    A fit sees `samples` draws of the senone's own density, which together count as `prior` frames, and its real
    frames of streams · dim floats. `steps`: of EM.
    """
    means, codebooks, which, first_of = old.means, old.codebooks, frames.which, frames.first
    books, streams, densities, dim = means.shape
    senones, _, components, _ = new.means.shape
    f32 = np.float32
    check("means", means, f32, (books, streams, densities, dim))
    check("deviations", old.deviations, f32, means.shape)
    check("cumulative weights", old.cumulative, f32, (streams, densities, senones))
    check("codebooks", codebooks, codebooks.dtype, (senones,))
    check_indices("codebooks", codebooks, books)
    check("frames", frames.features, f32, (None, streams * dim))
    check("which", which, which.dtype, (None,))
    check_indices("which", which, len(frames.features))
    check("shares", frames.shares, f32, (len(which),))
    check("first_of", first_of, first_of.dtype, (senones + 1,))
    check_offsets("first_of", first_of, len(which))
    check("new means", new.means, f32, (senones, 1, components, streams * dim), writable=True)
    check("new variances", new.variances, f32, new.means.shape, writable=True)
    check("new weights", new.weights, f32, (1, components, senones), writable=True)
    if not (0 <= first <= last <= senones and min(samples, components, densities) >= 1):
        raise ArrayError(f"no senones {first} to {last} of {senones} can be fitted to {samples} samples")
    _fit(old, frames, new, _Effort(samples, prior, steps), rng, first, last)
