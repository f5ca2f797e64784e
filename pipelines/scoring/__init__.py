"""Acoustic scoring: features in, log-likelihoods of all senones out, with spans and cost laws.

The dense GMM scorer, its kernels, Gaussian selection strategies and frame rules live here. Reading
models belongs to `pipelines.models`, choosing what to ask for to `pipelines.search`.
"""

from pipelines.scoring.scorer import Scorer, build_scorer

__all__ = ["Scorer", "build_scorer"]
