"""The exponential of scoring: as exact as float32 where it counts, and never the cause of subnormal numbers."""

import numpy as np
from numba import njit

from pipelines.models import sphinx
from pipelines.scoring.simd.exponential import LOWEST_EXPONENT, exp_shifted
from pipelines.scoring.simd.vector import LANES, address
from pipelines.scoring.tied import packing
from profiler.arrays import Array

SIZE = 2048


@njit(nogil=True)
def _exp(source: Array, target: Array) -> None:
    here, there = address(source, np.float32), address(target, np.float32)
    exp_shifted(here, there, source.size // LANES, np.float32(0))


def exponentials(x: Array) -> Array:
    """exp of `x` f32 [SIZE] by the kernel."""
    found = np.empty_like(x)
    _exp(x, found)
    return found


def test_it_is_the_exponential_down_to_the_lowest_exponent() -> None:
    x = np.linspace(LOWEST_EXPONENT, 0.0, SIZE, dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    # An exponent of 60 has a spacing of 4e-6 in float32.
    assert np.abs(exponentials(x) / expected - 1).max() < 4e-6


def test_what_lies_below_is_nothing_next_to_the_best() -> None:
    x = np.full(SIZE, -1e30, np.float32)
    x[::2] = LOWEST_EXPONENT - 0.5
    found = exponentials(x)
    assert (found == found[0]).all()
    # All densities of a codebook together, beside the smallest weight of the best one.
    weights = packing.pack(sphinx.load(sphinx.default_directory())).weights
    assert 3 * 128 * float(found[0]) / float(weights.min()) < np.finfo(np.float32).eps


def test_its_product_with_any_weight_is_a_normal_number() -> None:
    least = exponentials(np.full(SIZE, -1e30, np.float32))[0]
    weights = packing.pack(sphinx.load(sphinx.default_directory())).weights
    assert weights.min() > 0
    assert least * weights.min() >= np.finfo(np.float32).tiny
