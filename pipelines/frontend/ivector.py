"""Online i-vectors of a Kaldi net: numbers that describe the speaker and the channel.

As in online2/online-ivector-feature and ivector/ivector-extractor of Kaldi. Cepstra, once as they are and once with
online CMVN, are spliced and transformed (LDA). The normalised ones choose Gaussians of a background model; the plain
ones are accumulated as statistics of these Gaussians. The i-vector is the most probable one under the statistics of all
frames so far: every `ivector_period` frames, some steps of conjugate gradients from the last estimate. Silence
weighting, which needs the search's best path, is left out, and so is what was known of the speaker from earlier
utterances.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipelines.frontend import _ivector_kernels as kernels
from pipelines.frontend.ivector_parameters import IvectorModel
from profiler.arrays import F32, check
from profiler.costs import KERNEL_CALL, NUMPY_CALL
from profiler.spans import Cost, Linear

IVECTOR = "frontend.ivector"
"""Name of the stage, of group `frontend`."""
WORK = ("ivector gaussians", "ivectors")
"""Work counts of its spans: Gaussians accumulated, i-vectors estimated."""
PIECE_FRAMES = 256
"""Frames of a call, about 5 ms of work."""


class IvectorExtractor:
    """The tables of one model, which all utterances share."""

    def __init__(self, model: IvectorModel) -> None:
        self.model = model
        width = model.spliced
        self._matrix = np.ascontiguousarray(model.transform[:, :width].T)
        self._offset = model.transform[:, width] if model.transform.shape[1] > width else np.float32(0)
        self._gaussians = np.concatenate([model.means_invvars, -0.5 * model.inv_vars], axis=1).T.copy()

    def fill(self, cepstra: F32, out: F32, record: Callable[[int, int, int, int], None]) -> None:
        """Fill `out` f32 [frames, d] with the i-vector of each frame of `cepstra` f32 [frames, n].

        After each piece, `record` takes its first frame, its frames, and the work counts (WORK).
        """
        frames, speaker = len(cepstra), Speaker(self)
        check("i-vectors", out, np.float32, (frames, self.model.dimension), writable=True, contiguous=False)
        for first in range(0, frames, PIECE_FRAMES):
            last = min(first + PIECE_FRAMES, frames)
            work = speaker.advance(cepstra, first, out[first:last], estimate=last == frames)
            record(first, last - first, *work)
        if self.greedy and frames:
            out[:] = out[-1]

    @property
    def greedy(self) -> bool:
        """Whether there is one estimate at the end of what is known, and none in between."""
        return self.model.options.greedy_ivector_extractor

    def transformed(self, cepstra: F32, first: int, last: int) -> tuple[F32, F32]:
        """Of the frames first … last − 1: log likelihoods f32 [frames, gaussians], features f32 [frames, m]."""
        model = self.model
        begin, end = max(first - model.left_context, 0), min(last + model.right_context, len(cepstra))
        normalised = self._spliced(model.cmvn.apply(cepstra, begin, end), first, last, begin)
        likelihoods = np.concatenate([normalised, np.square(normalised)], axis=1) @ self._gaussians
        likelihoods += model.constants
        if model.options.online_cmvn_iextractor:
            return likelihoods, normalised
        return likelihoods, self._spliced(cepstra[begin:end], first, last, begin)

    def _spliced(self, frames: F32, first: int, last: int, begin: int) -> F32:
        """Frames first … last − 1 spliced and transformed; `frames` begin at `begin`, the outermost are repeated."""
        around = np.arange(-self.model.left_context, self.model.right_context + 1)
        rows = np.clip(np.arange(first, last)[:, None] + around - begin, 0, len(frames) - 1)
        transformed: F32 = frames[rows].reshape(last - first, -1) @ self._matrix + self._offset
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
                "gemm": Linear(per_frame=2.0 * width * model.spliced * m + 4.0 * m * gaussians),
                "fma": Linear(
                    per_frame=8.0 * n + 2.0 * gaussians + d,
                    per_work=(2.0 * (m * d + triangle), estimate, 0.0),
                ),
                "exp": Linear(per_work=(1.0, 0.0, 0.0)),
            },
            bytes_min=Linear(fixed=tables, per_frame=least),
            bytes_max=Linear(
                fixed=tables,
                per_frame=least + 8.0 * width * (model.spliced + m) + 16.0 * gaussians,
                per_work=(gaussian + 8.0 * triangle, 8.0 * d * d * kernels.STEPS, 0.0),
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
            0 if extractor.greedy else options.ivector_period,
            min(options.num_gselect, len(model.constants)),
            options.min_post,
            options.posterior_scale,
            options.max_count,
            model.prior_offset,
        )
        d = model.dimension
        packed, linear, solution = np.zeros(d * (d + 1) // 2), np.zeros(d), np.zeros(d)
        packed[np.cumsum(np.arange(1, d + 1)) - 1] = 1.0
        linear[0] = solution[0] = model.prior_offset
        self._state = np.zeros(3)
        self._statistics = packed, linear, solution, self._state, np.empty((d, d)), np.empty((3, d))

    def advance(self, cepstra: F32, first: int, out: F32, estimate: bool = True) -> tuple[int, int]:
        """Take in the next frames, from `first` on, and fill `out` f32 [frames, d] with their i-vectors.

        `cepstra` f32 [frames so far, n]: with those that splicing wants behind them, unless there are none. `estimate`:
        whether a greedy extractor, which estimates at no frame of its own, does so now. Returns the work counts (WORK).
        """
        extractor, model = self._extractor, self._extractor.model
        check("cepstra", cepstra, np.float32, (len(cepstra), model.cmvn.dimension))
        last, before = first + len(out), self._state.copy()
        likelihoods, features = extractor.transformed(cepstra, first, last)
        made = np.empty((len(out), model.dimension), np.float32)
        tables = model.projections, model.quadratics
        kernels.extract(likelihoods, features, tables, self._limits, self._statistics, first, last, made)
        if extractor.greedy:
            packed, linear, solution, state, matrix, work = self._statistics
            if estimate:
                kernels.solve(packed, linear, solution, matrix, work)
                state[kernels.SOLVED] += 1
            made[:] = solution
            made[:, 0] -= model.prior_offset
        out[:] = made
        chosen, solved = (int(n) for n in (self._state - before)[[kernels.CHOSEN, kernels.SOLVED]])
        return chosen, solved
