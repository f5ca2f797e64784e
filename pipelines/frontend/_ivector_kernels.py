"""Compiled inner loops of the i-vectors: plain functions over typed arrays."""

from __future__ import annotations

import math

import numba
import numpy as np

STEPS = 15
"""Steps of conjugate gradients for each estimate, as in Kaldi."""
MOST_LEAST = 0.99
"""The highest least posterior: the best Gaussian of a frame always counts."""
COUNT, CHOSEN = range(2)
"""Elements of the state: frames counted so far (times weight and scale of posteriors), Gaussians accumulated."""


@numba.njit(cache=True, nogil=True)
def select(likelihoods, most, least, chosen, posteriors):  # type: ignore[no-untyped-def]
    """The Gaussians of a frame and their posteriors, largest first; returns how many.

    likelihoods f32[gaussians]; at most `most` are taken, of posteriors over `least`; chosen i32[most],
    posteriors f64[most] are filled. Kaldi's VectorToPosteriorEntry.
    """
    best = -np.inf
    for g in range(likelihoods.shape[0]):
        best = max(best, likelihoods[g])
    if not best > -np.inf:
        return 0
    cutoff = best + math.log(least) if least > 0.0 else -np.inf
    n = 0
    for g in range(likelihoods.shape[0]):
        value = likelihoods[g]
        if not value > cutoff or (n == most and value <= posteriors[n - 1]):
            continue
        at = n if n < most else n - 1
        while at > 0 and posteriors[at - 1] < value:
            posteriors[at], chosen[at] = posteriors[at - 1], chosen[at - 1]
            at -= 1
        posteriors[at], chosen[at] = value, g
        n = min(n + 1, most)
    total = 0.0
    for k in range(n):
        posteriors[k] = math.exp(posteriors[k] - best)
        total += posteriors[k]
    smallest = least * total
    while n > 1 and posteriors[n - 1] < smallest:
        n -= 1
        total -= posteriors[n]
    for k in range(n):
        posteriors[k] /= total
    return n


@numba.njit(cache=True, nogil=True)
def solve(packed, linear, solution, matrix, work):  # type: ignore[no-untyped-def]
    """Improve `solution` f64[d] of packed · x = linear by STEPS steps of conjugate gradients (Kaldi's LinearCgd).

    packed f64[d(d+1)/2]: the lower triangle of a symmetric positive matrix, by rows; linear f64[d]; matrix f64[d, d]
    and work f64[3, d] are workspace. More steps, up to ten times d, where the residual has grown.
    """
    d = linear.shape[0]
    at = 0
    for i in range(d):
        for j in range(i + 1):
            matrix[i, j] = packed[at]
            matrix[j, i] = packed[at]
            at += 1
    residual, direction, image = work[0], work[1], work[2]
    residual[:] = linear
    for i in range(d):
        for j in range(d):
            residual[j] -= matrix[i, j] * solution[i]
    first = 0.0
    for j in range(d):
        direction[j] = residual[j]
        first += residual[j] * residual[j]
    now = first
    step = 0
    while now > 1e-30 * (1.0 + first) and (step < STEPS or (now > first and step < 10 * d)):
        step += 1
        image[:] = 0.0
        for i in range(d):
            for j in range(d):
                image[j] += matrix[i, j] * direction[i]
        slope, curvature = 0.0, 0.0
        for j in range(d):
            slope += direction[j] * residual[j]
            curvature += direction[j] * image[j]
        if not curvature > 0.0:
            break
        length = slope / curvature
        before, now = now, 0.0
        for j in range(d):
            solution[j] += length * direction[j]
            residual[j] -= length * image[j]
            now += residual[j] * residual[j]
        for j in range(d):
            direction[j] = residual[j] + now / before * direction[j]


@numba.njit(cache=True, nogil=True)
def accumulate(likelihoods, features, weights, tables, limits, statistics):  # type: ignore[no-untyped-def]
    """Add frames to the statistics, each `weights` f64[frames] times; a weight may be negative, or 0.

    likelihoods f32[frames, gaussians], features f32[frames, m]; tables: projections f32[gaussians, m, d] and quadratics
    f32[gaussians, d(d+1)/2]; limits: Gaussians a frame, least posterior, scale of posteriors, largest count (0: none),
    offset of the prior; statistics: packed f64[d(d+1)/2], linear f64[d], state f64[2], which go on from one call to the
    next. A frame of small weight has fewer Gaussians.
    """
    projections, quadratics = tables
    most, least, scale, largest, offset = limits
    packed, linear, state = statistics
    d = linear.shape[0]
    chosen, posteriors = np.empty(most, np.int32), np.empty(most)
    total = 0.0
    for row in range(weights.shape[0]):
        change = weights[row]
        if change == 0.0:
            continue
        n = select(likelihoods[row], most, min(least / abs(change), MOST_LEAST), chosen, posteriors)
        for k in range(n):
            weight = scale * change * posteriors[k]
            projection, quadratic = projections[chosen[k]], quadratics[chosen[k]]
            for i in range(features.shape[1]):
                value = weight * features[row, i]
                for j in range(d):
                    linear[j] += value * projection[i, j]
            for j in range(packed.shape[0]):
                packed[j] += weight * quadratic[j]
        state[CHOSEN] += n
        if n > 0:
            total += scale * change
    if largest > 0.0:
        # The prior grows with the count, as if the statistics were scaled down.
        more = (max(state[COUNT] + total, largest) - max(state[COUNT], largest)) / largest
        linear[0] += offset * more
        at = -1
        for i in range(d):
            at += i + 1
            packed[at] += more
    state[COUNT] += total
