"""Plain down-sampling: every k-th frame of the utterance is scored.

The simplest rule of the frame layer of Chan, Ravishankar and Rudnicky (2004), Sphinx' `-ds`.
"""

from __future__ import annotations

import numpy as np

from pipelines.scoring.blocks import Meter
from pipelines.scoring.frames import FrameRule
from profiler.arrays import Array


class Rule(FrameRule):
    """Frame numbers divisible by `skip`."""

    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        """Bool [n]: whether each of these frames is scored."""
        chosen: Array = np.arange(first, first + len(features)) % skip == 0
        return chosen
