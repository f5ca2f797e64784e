"""Scales and figures of the charts: round, robust against single frames, and as people read them."""

import numpy as np
import pytest

from app.charts.scale import Scale, robust_top, round_up
from profiler.plain import clock, count, milliseconds


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: milliseconds(0.0612), "0.061"),
        (lambda: milliseconds(0.0002), "<0.001"),
        (lambda: milliseconds(0.0), "0.000"),
        (lambda: milliseconds(3.4), "3.40"),
        (lambda: milliseconds(128.2), "128"),
        (lambda: milliseconds(None), "–"),
        (lambda: clock(61.239, 2), "1:01.24"),
        (lambda: clock(3725), "1:02:05"),
        (lambda: clock(59.999, 1), "1:00.0"),
        (lambda: count(135634.2), "135\u202f634"),
        (lambda: Scale(0.0, 0.3).labels()[1], "0.1"),
        (lambda: Scale(0.0, 2.0).labels()[-1], "2.0"),
    ],
)
def test_figures_as_people_read_them(call, text):
    assert call() == text


def test_scales_are_round_and_robust():
    assert round_up(0.61) == pytest.approx(0.8)
    assert round_up(2.0) == 2.0
    assert round_up(0.0) == 1.0
    quiet = np.full(1000, 0.6)
    assert robust_top(quiet) == pytest.approx(0.8)
    quiet[7] = 40.0
    assert robust_top(quiet) == pytest.approx(0.8)
    quiet[:100] = 40.0
    assert robust_top(quiet) >= 40.0
    assert robust_top(np.full(3, np.nan)) == 1.0
