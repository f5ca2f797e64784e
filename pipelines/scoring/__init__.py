"""Acoustic scoring: features in, log-likelihoods of all senones out, with spans and cost laws.

Scorers by mixtures and by nets, their kernels, Gaussian selection strategies and frame rules live here, with their cost
laws (`costs`). Reading models belongs to `pipelines.models`, choosing active senones to `pipelines.search`.
"""

from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.layered import Prepared, with_context
from pipelines.scoring.scorer import build_scorer, is_lazy, kernels_of
from pipelines.scoring.strategy import Scorer

__all__ = ["MAX_FRAMES", "Prepared", "Scorer", "build_scorer", "is_lazy", "kernels_of", "with_context"]
