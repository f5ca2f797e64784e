"""Online i-vectors of a Kaldi net: numbers that describe the speaker and the channel.

As in online2/online-ivector-feature and ivector/ivector-extractor of Kaldi. Cepstra, once as they are and once with
online CMVN, are spliced and transformed (LDA). The normalised ones choose Gaussians of a background model; the plain
ones are accumulated as statistics of these Gaussians, each frame with a weight that may change later
(`silence_weights`). The i-vector is the most probable one under the statistics of all frames so far: some steps of
conjugate gradients from the last estimate. What was known of the speaker from earlier utterances is left out.
"""

from __future__ import annotations

import numpy as np

from pipelines.frontend import _ivector_kernels as kernels
from pipelines.frontend.ivector_parameters import IvectorModel
from profiler.arrays import F32, F64, I64, check
from profiler.costs import KERNEL_CALL, NUMPY_CALL
from profiler.spans import Cost, Linear

IVECTOR = "frontend.ivector"
"""Name of the stage, of group `frontend`."""
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
        estimate = 2.0 * triangle + kernels.STEPS * (2.0 * d * d + 10.0 * d) + 2.0 * d * d
        gaussian = 4.0 * (m * d + triangle)
        least = 4.0 * (n + d)
        tables = 4.0 * (2 * m + 1) * gaussians
        return Cost(
            operations={
                "gemm": Linear(per_work=(0.0, 0.0, 2.0 * width * model.spliced * m + 4.0 * m * gaussians)),
                "fma": Linear(per_work=(2.0 * (m * d + triangle), estimate, 8.0 * n + 2.0 * gaussians)),
                "exp": Linear(per_work=(1.0, 0.0, 0.0)),
            },
            bytes_min=Linear(fixed=tables, per_frame=least),
            bytes_max=Linear(
                fixed=tables,
                per_frame=least,
                per_work=(
                    gaussian + 8.0 * triangle,
                    8.0 * d * d * kernels.STEPS,
                    8.0 * width * (model.spliced + m) + 16.0 * gaussians,
                ),
            ),
            working_set_bytes=gaussian * gaussians + tables + 8.0 * d * d,
            calls={NUMPY_CALL: Linear(fixed=30.0), KERNEL_CALL: Linear(fixed=1.0)},
        )


class Speaker:
    """What is known of the speaker of an utterance: statistics of the frames so far, and the last estimate."""

    def __init__(self, extractor: IvectorExtractor) -> None:
        self._extractor = extractor
        model, options = extractor.model, extractor.model.options
        self._limits = (
            min(options.num_gselect, len(model.constants)),
            options.min_post,
            options.posterior_scale,
            options.max_count,
            model.prior_offset,
        )
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
        extractor, model, before = self._extractor, self._extractor.model, int(self._state[kernels.CHOSEN])
        check("cepstra", cepstra, np.float32, (len(cepstra), model.cmvn.dimension))
        if len(frames):
            likelihoods, features = extractor.transformed(cepstra, frames)
            check("changes", changes, np.float64, (len(frames),))
            tables, statistics = (model.projections, model.quadratics), (self._packed, self._linear, self._state)
            kernels.accumulate(likelihoods, features, changes, tables, self._limits, statistics)
        kernels.solve(self._packed, self._linear, self._solution, self._matrix, self._work)
        made = self._solution.astype(np.float32)
        made[0] = self._solution[0] - model.prior_offset
        return made, (int(self._state[kernels.CHOSEN]) - before, 1, len(frames))
