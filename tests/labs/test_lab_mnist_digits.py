"""Lab `mnist-digits`: its digits, the most that a device could gain, its verdict on planted passes."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.labs import _digits, mnist_digits
from pipelines.labs.mnist_digits import LAB, PARTS, Params, Passes, Result
from tests.labs.contract import Contract, NoDevice, about
from tests.labs.planted_training import times


def test_digits_are_of_mnists_shape_and_can_be_told_apart():
    images, classes = _digits.drawn(600, 1)
    assert images.shape == (600, 28, 28)
    assert images.dtype == np.float32
    assert 0 <= images.min() < images.max() <= 1
    assert set(classes.tolist()) == set(range(10))
    again, _ = _digits.drawn(600, 1)
    np.testing.assert_array_equal(images, again)
    assert not np.array_equal(_digits.drawn(600, 2)[0], images)
    # By the nearest mean of the class alone most are known.
    means = np.stack([images[classes == n].mean(0) for n in range(10)])
    new, right = _digits.drawn(300, 3)
    apart = ((new[:, None] - means[None]) ** 2).sum((2, 3))
    assert (apart.argmin(1) == right).mean() > 0.6


def test_a_straight_digit_is_its_glyph(monkeypatch):
    """Without chance each dot is a square of pixels: a one has its stem in the middle, nothing at the edges."""
    for name, value in (
        ("TURN", 0.0),
        ("SHEAR", 0.0),
        ("MOVE", 0.0),
        ("SCALE", (3.0, 3.0)),
        ("NOISE", 0.0),
    ):
        monkeypatch.setattr(_digits, name, value)
    images, classes = _digits.drawn(50, 1)
    one = images[classes == 1][0]
    assert one[10:18, 13:15].min() > 0.7
    assert one[:, :6].max() == one[:, -6:].max() == 0


def passes(loading, computing, noise=0.01):
    parts = {part: times(1e-6) for part in PARTS}
    parts |= {"loader": times(loading, 0.0), "computing": times(computing, 0.0)}
    return Passes(seconds=times(loading + computing, noise), parts=parts, right=0.9)


def planted(small=1.0, large=2.0, noise=0.01, device=True):
    """Seconds on the device; on the processor 2 s and 20 s, 1 s of each for loading."""
    here = {"small": passes(1.0, 1.0, noise), "large": passes(1.0, 19.0, noise)}
    there = {"small": passes(0.5, small - 0.5, noise), "large": passes(0.5, large - 0.5, noise)}
    return Result(
        digits=640,
        device="cuda" if device else "",
        weights={"small": 1, "large": 2},
        here=here,
        there=there if device else {},
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"small": 3.0}, {"small": 1.0, "large": 15.0}],
    noisy=[{"small": 1.9, "large": 19.5, "noise": 1.5}],
    impossible=[{"device": False}],
    figures={"gain_small": about(2), "gain_large": about(10)},
    memory=(Params(digits=640), Params(digits=60_000)),
)


def test_without_a_device_amdahl_says_what_one_could_gain():
    found = LAB.judge(planted(device=False))
    assert found.figures["most_gain_small"] == pytest.approx(2, rel=0.05)
    assert found.figures["most_gain_large"] == pytest.approx(20, rel=0.1)


def test_a_small_run_measures_and_draws(monkeypatch):
    monkeypatch.setattr(mnist_digits, "MODELS", {"small": 1, "large": 2})
    monkeypatch.setattr(mnist_digits, "TEST", 64)
    found = LAB.measure(Params(digits=640, rounds=3), NoDevice())
    for each in found.here.values():
        assert len(each.seconds) == 3
        for whole, *parts in zip(each.seconds, *each.parts.values(), strict=True):
            assert sum(parts) == pytest.approx(whole, rel=0.2)
    assert LAB.judge(found).why
    assert LAB.picture(found).layers
