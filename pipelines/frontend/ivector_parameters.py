"""The parameters of an extractor of i-vectors, and its options, named as Kaldi's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.frontend.online_cmvn import OnlineCmvn
from profiler.arrays import F32, check

VOSK_MAX_COUNT = 100.0
"""What Vosk sets `max_count` to."""


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
