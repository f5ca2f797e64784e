"""Plain down-sampling: every k-th frame of the utterance is scored.

The simplest rule of the frame layer of Chan, Ravishankar and Rudnicky (2004), Sphinx' `-ds`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Rule:
    """Frame numbers divisible by `skip`."""

    def reset(self) -> None:
        """Keeps nothing between frames."""

    def choose(self, features: Array, first: int, skip: int) -> Array:
        """Bool [n]: whether each of these frames is scored."""
        chosen: Array = np.arange(first, first + len(features)) % skip == 0
        return chosen
