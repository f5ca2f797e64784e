"""A table of cases in one test: all are run, the ones that fail are named, and none leaves anything to the next."""

import os
from pathlib import Path

import pytest

from tests.each import each


def test_every_case_is_run_and_those_that_fail_are_named(tmp_path, monkeypatch):
    met = []

    @each("a, b", [(1, 1), (1, 2), (3, 3), (4, 5)])
    @each("c", "xy")
    def test(a: int, b: int, c: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        met.append((a, b, c))
        assert "EACH" not in os.environ
        monkeypatch.setenv("EACH", c)
        assert not list(tmp_path.iterdir())
        (tmp_path / "left").touch()
        assert a == b

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases of test") as failed:
        test(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(met) == 8
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["case 1 of a, b: (1, 2)"],
        ["case 3 of a, b: (4, 5)"],
    ]
    one = each("a", [1, 2])(lambda a: pytest.fail("two") if a == 2 else None)
    with pytest.raises(pytest.fail.Exception, match="two") as failure:
        one()
    assert failure.value.__notes__ == ["case 1 of a: 2"]
