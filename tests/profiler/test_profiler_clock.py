from __future__ import annotations

import pytest

from profiler import clock
from tests.fake_clock import FakeClock


def test_wall_pair_keeps_the_tightest_reading() -> None:
    readings = iter([0, 1000, 2000, 2010, 3000, 3500, 4000, 4900, 5000, 5900])
    mono, _ = clock.wall_pair(lambda: next(readings))
    assert mono == 2005


def test_fake_clock_stands_still_until_told() -> None:
    fake = FakeClock(5)
    assert (fake(), fake(), fake.advance(7), fake()) == (5, 5, 12, 12)
    with pytest.raises(ValueError, match="cannot go back"):
        fake.advance(-1)
