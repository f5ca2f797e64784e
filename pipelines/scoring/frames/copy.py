"""Plain down-sampling: every k-th frame of the utterance is scored.

The simplest rule of the frame layer of Chan, Ravishankar and Rudnicky (2004), Sphinx' `-ds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.meter import Meter
from pipelines.scoring.strategy import Immediate
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines.config import Config


class Rule(Immediate):
    """Frame numbers divisible by `skip`."""

    stages: Mapping[str, tuple[str, ...]] = {}

    def __init__(self, model: AcousticModel) -> None:
        """Needs nothing of the model."""

    def configure(self, config: Config, prepared: None = None) -> None:
        """Nothing can be set."""

    def reset(self) -> None:
        """Keeps nothing between frames."""

    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        """Bool [n]: whether each of these frames is scored."""
        chosen: Array = np.arange(first, first + len(features)) % skip == 0
        return chosen

    def costs(self, frames: int) -> dict[str, Cost]:
        """A few operations a block: no stage of its own."""
        return {}
