"""Online i-vectors of a Kaldi net: numbers that describe the speaker and the channel.

As in online2/online-ivector-feature and ivector/ivector-extractor of Kaldi. Cepstra, once as they are and once with
online CMVN, are spliced and transformed (LDA). The normalised ones choose Gaussians of a background model; the plain
ones are accumulated as statistics of these Gaussians, each frame with a weight that may change later
(`SilenceWeights`). The i-vector is the most probable one under the statistics of all frames so far: some steps of
conjugate gradients from the last estimate. What was known of the speaker from earlier utterances is left out.
"""

import math

import numba
import numpy as np

from pipelines.frontend.ivector_parameters import IvectorModel
from profiler.arrays import F32, F64, I64
from profiler.costs import KERNEL_CALL, NUMPY_CALL
from profiler.spans import Cost, Linear

IVECTOR = "frontend.ivector"  # Name of the stage, of group `frontend`
WORK = ("ivector gaussians", "ivectors", "weighed frames")
"""Work counts of its spans: Gaussians accumulated, i-vectors estimated, frames whose weight changed."""


class IvectorExtractor:
    """The tables of one model, which all utterances share."""

    def __init__(self, model: IvectorModel) -> None:
        self.model = model
        width = model.spliced
        self._matrix = np.ascontiguousarray(model.transform[:, :width].T)
        self._offset = model.transform[:, width] if model.transform.shape[1] > width else np.float32(0)
        self._gaussians = np.concatenate([model.means_invvars, -0.5 * model.inv_vars], axis=1).T.copy()

    def transformed(self, cepstra: F32, frames: I64) -> tuple[F32, F32]:
        """Of the `frames` i64 [k], ascending: log likelihoods f32 [k, gaussians], features f32 [k, m]."""
        model = self.model
        begin = max(int(frames[0]) - model.left_context, 0)
        end = min(int(frames[-1]) + 1 + model.right_context, len(cepstra))
        normalised = self._spliced(model.cmvn.apply(cepstra, begin, end), frames - begin)
        likelihoods = np.concatenate([normalised, np.square(normalised)], axis=1) @ self._gaussians
        likelihoods += model.constants
        if model.options.online_cmvn_iextractor:
            return likelihoods, normalised
        return likelihoods, self._spliced(cepstra[begin:end], frames - begin)

    def _spliced(self, cepstra: F32, frames: I64) -> F32:
        """The `frames` spliced and transformed; the outermost ones of `cepstra` are repeated."""
        around = np.arange(-self.model.left_context, self.model.right_context + 1)
        rows = np.clip(frames[:, None] + around, 0, len(cepstra) - 1)
        transformed: F32 = cepstra[rows].reshape(len(frames), -1) @ self._matrix + self._offset
        return transformed

    def cost(self) -> Cost:
        """Cost law: two copies of splicing and LDA, the background model, then by Gaussians and estimates (WORK).

        A step of conjugate gradients counts one product with the matrix and five passes over its vectors.
        """
        model = self.model
        gaussians, m, d = model.projections.shape
        n, triangle = model.cmvn.dimension, d * (d + 1) // 2
        width = 1 if model.options.online_cmvn_iextractor else 2
        estimate = 2.0 * triangle + STEPS * (2.0 * d * d + 10.0 * d) + 2.0 * d * d
        gaussian = 4.0 * (m * d + triangle)
        least = 4.0 * (n + d)
        tables = 4.0 * (2 * m + 1) * gaussians
        frames = 2.0 * width * model.spliced * m + 4.0 * m * gaussians
        moved = (gaussian + 8.0 * triangle, 8.0 * d * d * STEPS, 8.0 * width * (model.spliced + m) + 16.0 * gaussians)
        return Cost(
            operations={
                "gemm": Linear(per_work=(0.0, 0.0, frames)),
                "fma": Linear(per_work=(2.0 * (m * d + triangle), estimate, 8.0 * n + 2.0 * gaussians)),
                "exp": Linear(per_work=(1.0, 0.0, 0.0)),
            },
            bytes_min=Linear(fixed=tables, per_frame=least),
            bytes_max=Linear(fixed=tables, per_frame=least, per_work=moved),
            working_set_bytes=gaussian * gaussians + tables + 8.0 * d * d,
            calls={NUMPY_CALL: Linear(fixed=30.0), KERNEL_CALL: Linear(fixed=1.0)},
        )


class Speaker:
    """What is known of the speaker of an utterance: statistics of the frames so far, and the last estimate."""

    def __init__(self, extractor: IvectorExtractor) -> None:
        self._extractor = extractor
        model, options = extractor.model, extractor.model.options
        most = min(options.num_gselect, len(model.constants))
        self._limits = most, options.min_post, options.posterior_scale, options.max_count, model.prior_offset
        d = model.dimension
        self._packed, self._linear, self._solution = np.zeros(d * (d + 1) // 2), np.zeros(d), np.zeros(d)
        self._packed[np.cumsum(np.arange(1, d + 1)) - 1] = 1.0
        self._linear[0] = self._solution[0] = model.prior_offset
        self._state = np.zeros(2)
        self._matrix, self._work = np.empty((d, d)), np.empty((3, d))

    def estimate(self, cepstra: F32, frames: I64, changes: F64) -> tuple[F32, tuple[int, int, int]]:
        """The i-vector f32 [d] after the weights of `frames` i64 [k] have changed by `changes` f64 [k]; work counts.

        `cepstra` f32 [frames so far, n]: with those that splicing wants behind these frames, unless there are none.
        """
        extractor, model, before = self._extractor, self._extractor.model, int(self._state[CHOSEN])
        if len(frames):
            likelihoods, features = extractor.transformed(cepstra, frames)
            tables, statistics = (model.projections, model.quadratics), (self._packed, self._linear, self._state)
            accumulate(likelihoods, features, changes, tables, self._limits, statistics)
        solve(self._packed, self._linear, self._solution, self._matrix, self._work)
        made = self._solution.astype(np.float32)
        made[0] = self._solution[0] - model.prior_offset
        return made, (int(self._state[CHOSEN]) - before, 1, len(frames))


STEPS = 15  # Steps of conjugate gradients for each estimate, as in Kaldi
MOST_LEAST = 0.99  # The highest least posterior: the best Gaussian of a frame always counts
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
