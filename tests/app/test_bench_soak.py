"""The bench *soak*: slopes of what it has read, and its option."""

from __future__ import annotations

from command_line import refused

from tests.bench import soak


def test_growth_is_the_slope_after_the_settling() -> None:
    """40 MB in the first minutes, then 3 MB a minute, a file every ten minutes and no thread."""
    seconds = range(0, 3600, 10)
    values = [
        (s, 200 + 40 * min(s, 300) / 300 + 3 * s / 60, 8 + max(s - 300, 0) // 600, 2 + s % 20 / 10) for s in seconds
    ]
    row = soak._row("window", values)
    assert abs(row["memory_mb_per_minute"] - 3) < 0.01
    assert (row["files_more"], row["threads_more"], row["samples"]) == (5, 0, 360)
    # Of a minute the last three quarters count.
    assert soak._row("window", values[:7])["memory_mb_first"] == 203.7


def test_its_option_is_for_no_other_bench() -> None:
    assert "--minutes is for `bench soak`; the bench desk has no use for it" in refused(
        "bench", "desk", "--minutes", "3"
    )
