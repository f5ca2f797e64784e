from __future__ import annotations

import time
from pathlib import Path

import pytest

from profiler import clock
from profiler.files import paths
from tests.fake_clock import FakeClock


def test_wall_pair_ties_the_two_clocks() -> None:
    before = time.time_ns()
    mono, wall = clock.wall_pair()
    after = time.time_ns()
    assert before <= wall <= after
    assert mono <= clock.now_ns()


def test_wall_pair_keeps_the_tightest_reading() -> None:
    readings = iter([0, 1000, 2000, 2010, 3000, 3500, 4000, 4900, 5000, 5900])
    mono, _ = clock.wall_pair(lambda: next(readings))
    assert mono == 2005


def test_fake_clock_stands_still_until_told() -> None:
    fake = FakeClock(5)
    assert (fake(), fake(), fake.advance(7), fake()) == (5, 5, 12, 12)
    with pytest.raises(ValueError, match="cannot go back"):
        fake.advance(-1)


def test_cache_dir_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "c"))
    assert paths.cache_dir("graphs") == tmp_path / "c" / "graphs"
    assert (tmp_path / "c" / "graphs").is_dir()


@pytest.mark.skipif("sys.platform != 'linux'")
def test_cache_dir_follows_xdg_unless_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASRSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache_dir() == tmp_path / "asrscope"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache_dir() == tmp_path / "home" / ".cache" / "asrscope"


def test_cache_dir_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match="set ASRSCOPE_CACHE"):
        paths.cache_dir("x")
