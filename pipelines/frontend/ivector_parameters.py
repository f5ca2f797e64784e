"""The parameters of an extractor of i-vectors, its options, named as Kaldi's, and how much each frame counts in it.

A frame counts little where the search's best path is in silence: Kaldi's OnlineSilenceWeighting
(online2/online-ivector-feature). The search lags behind the features: its frames after the last one that it has decoded
count like that one, before it has decoded any they count as silence, and what the path says later changes their weight.
Rows are those of scores, one for `subsampling` frames.
"""

from dataclasses import dataclass

import numpy as np

from pipelines.frontend.online_cmvn import OnlineCmvn
from profiler.arrays import F32, F64, I64, Bool, check

VOSK_MAX_COUNT = 100.0  # What Vosk sets `max_count` to


@dataclass(frozen=True)
class IvectorOptions:
    """Named as the options of Kaldi's online2 programs, with their defaults.

    `max_count`: with more frames (times `posterior_scale`) the prior gets a greater weight; 0: never.
    """

    num_gselect: int = 5
    min_post: float = 0.025
    posterior_scale: float = 0.1
    max_count: float = 0.0
    online_cmvn_iextractor: bool = False


@dataclass(frozen=True, eq=False)
class IvectorModel:
    """The files of an i-vector extractor.

    `transform` f32 [m, n] of n spliced cepstra, or [m, n + 1] with what is added. Of the background model: `constants`
    f32 [gaussians], `means_invvars`, `inv_vars` f32 [gaussians, m]. `projections` f32 [gaussians, m, d]: Σ⁻¹M;
    `quadratics` f32 [gaussians, d(d+1)/2]: the lower triangles of MᵀΣ⁻¹M by rows. `prior_offset`: of the first value.
    """

    options: IvectorOptions
    cmvn: OnlineCmvn
    left_context: int
    right_context: int
    transform: F32
    constants: F32
    means_invvars: F32
    inv_vars: F32
    projections: F32
    quadratics: F32
    prior_offset: float

    def __post_init__(self) -> None:
        """Raise ArrayError unless the arrays fit each other, which the kernels assume."""
        gaussians, m, d = self.projections.shape
        spliced = self.spliced
        columns = spliced + (self.transform.shape[1] == spliced + 1)
        check("transform", self.transform, np.float32, (m, columns))
        check("constants", self.constants, np.float32, (gaussians,))
        check("means_invvars", self.means_invvars, np.float32, (gaussians, m))
        check("inv_vars", self.inv_vars, np.float32, (gaussians, m))
        check("projections", self.projections, np.float32, (gaussians, m, d))
        check("quadratics", self.quadratics, np.float32, (gaussians, d * (d + 1) // 2))

    @property
    def dimension(self) -> int:
        return int(self.projections.shape[2])

    @property
    def spliced(self) -> int:
        return self.cmvn.dimension * (self.left_context + 1 + self.right_context)


LOOK_BACK = 100  # Rows before the last known one whose weight may still change, as in Kaldi
SILENCE_WEIGHT = 1e-3  # What Vosk sets `silence_weight` to


@dataclass(frozen=True)
class Pacing:
    """Each of the net's chunks of `chunk` frames gets the latest i-vector; a row of scores stands for `subsampling`.

    `silence_weight`: of frames of silence; 1: as the others.
    """

    chunk: int = 20
    subsampling: int = 1
    silence_weight: float = 1.0


PLAIN = Pacing()


class SilenceWeights:
    """The weights of a segment's frames, those that the search begins anew with."""

    def __init__(self, pacing: Pacing, first_frame: int) -> None:
        self._pacing, self._first = pacing, first_frame
        self._weights: F64 = np.zeros(0)
        self._kept = 0

    def changes(self, ready: int, before: int, silent: Bool, decoded: int) -> tuple[I64, F64]:
        """The frames i64 [k] of the utterance whose weight changes now, ascending, and by how much, f64 [k].

        `ready` frames of the utterance are known, and `before` were the last time; the search has
        decoded `decoded` rows of the segment, and `silent` bool [≤ decoded] says of the last of these whether they are
        silence.
        """
        each, weight = self._pacing.subsampling, self._pacing.silence_weight
        rows, known = (max(-(-(frames - self._first) // each), 0) for frames in (ready, before))
        rows = max(rows, decoded)
        begin = max(max(known, decoded) - LOOK_BACK, 0)
        # Weights before that are final; one of them may be repeated.
        kept = max(begin - 1, 0)
        old = np.zeros(rows - kept)
        before_now = self._weights[kept - self._kept :]
        old[: len(before_now)] = before_now
        new = old.copy()
        if decoded > begin and len(silent):
            traced = max(begin, decoded - len(silent))
            new[traced - kept : decoded - kept] = np.where(silent[traced - decoded :], weight, 1.0)
            new[decoded - kept :] = new[decoded - kept - 1]
        else:
            new[begin - kept :] = old[0] if begin else weight
        self._weights, self._kept = new, kept
        changed = np.flatnonzero(new != old)
        frames = self._first + ((kept + changed)[:, None] * each + np.arange(each)).reshape(-1)
        return frames, np.repeat(new[changed] - old[changed], each)
