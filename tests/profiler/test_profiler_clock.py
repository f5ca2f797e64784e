from __future__ import annotations

from profiler import clock


def test_wall_pair_keeps_the_tightest_reading() -> None:
    readings = iter([0, 1000, 2000, 2010, 3000, 3500, 4000, 4900, 5000, 5900])
    mono, _ = clock.wall_pair(lambda: next(readings))
    assert mono == 2005
