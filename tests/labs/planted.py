"""Times as a lab might have measured them, for verdict rules: known middles, known noise."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from pipelines.labs.sweep import Timings

ROUNDS = 12
NOISE = 0.01
LOUD = 1.5
"""A spread as large as the times: no difference of some percent is seen in it."""


def times(milliseconds: float, noise: float = NOISE, seed: int = 0) -> list[float]:
    """Seconds by round: never below what they are, `noise` of it above at most."""
    draw = np.random.default_rng(seed)
    found: list[float] = (1e-3 * milliseconds * (1 + noise * draw.random(ROUNDS))).tolist()
    return found


def timings(milliseconds: Mapping[str, Mapping[int, float]], noise: float = NOISE) -> Timings:
    """A sweep of variants over sizes, each with noise of its own."""
    return Timings(
        seconds={
            variant: {
                size: times(middle, noise, zlib.crc32(f"{variant} {size}".encode()))
                for size, middle in row.items()
            }
            for variant, row in milliseconds.items()
        }
    )


def at_size(size: int, milliseconds: Mapping[str, float], noise: float = NOISE) -> Timings:
    """Variants that were taken at one size."""
    return timings({variant: {size: middle} for variant, middle in milliseconds.items()}, noise)
