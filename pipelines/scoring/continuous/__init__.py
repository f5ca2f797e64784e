"""Scoring of continuous-density models: every senone owns its Gaussians, so their parameters fill memory.

`packing` lays a model out, `kernels` are compiled functions over that layout, `dense` puts threads and cost
laws around them; `listed` computes chosen panels. Selection of Gaussians is in `scoring.selection`, classes
`Continuous`.
"""

from pipelines.scoring.continuous.dense import ContinuousGmm
from pipelines.scoring.continuous.packing import PackedContinuous, pack

__all__ = ["ContinuousGmm", "PackedContinuous", "pack"]
