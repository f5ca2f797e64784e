"""`bench device`: steps are taken once, within the time there is, and again when named; and the rules of the search."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import BadInput
from profiler.process.children import ROOT
from tests.bench import device
from tests.bench.device_steps import checks, searches
from tests.bench.device_steps.__main__ import Step


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three steps that only leave a row, but for `slow`, which is ended by its time; the names of those that ran."""
    ran: list[str] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] == "git":
            return subprocess.CompletedProcess(command, 0, "abc\n", "")
        step, file = command[3], Path(command[6])
        ran.append(step)
        if step == "slow":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        file.write_text(json.dumps({"step": step, "proved": True, "why": "it is", "figures": {}}), "utf-8")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(device, "STEPS", {name: Step(lambda task: None, 50.0) for name in ("first", "slow", "last")})
    monkeypatch.setattr(device, "FOLDER", tmp_path)
    monkeypatch.setattr(device, "device", lambda require: "torch-cpu")
    monkeypatch.setattr(device.subprocess, "run", run)
    return ran


def bench(**more: Any) -> dict[str, Any]:
    return device.run([], None, 1, lambda *_: None, **more)


def test_steps_are_taken_once_for_a_commit_and_a_device_and_again_when_named(taken, monkeypatch):
    assert [row["proved"] for row in bench()["rows"]] == [True, False, True]
    assert taken == ["first", "slow", "last"]
    bench()
    assert len(taken) == 3
    bench(only=["last"])
    assert taken[3:] == ["last"]
    monkeypatch.setattr(device, "_commit", lambda: "def")
    assert len(bench()["rows"]) == 3
    assert taken[4:] == ["first", "slow", "last"]


def test_what_there_is_no_time_for_is_left_for_another_call(taken, monkeypatch, tmp_path):
    # Less than the limit of a step, so that it may need no more than another try.
    monkeypatch.setattr(device, "BUDGET_S", 40.0)
    tree = bench()
    assert tree["agreement"]["left for another call"] == ["slow"]
    assert "| first | yes | it is |" in (tmp_path / "table.md").read_text("utf-8")
    monkeypatch.setattr(device, "BUDGET_S", 0.0)
    assert bench()["agreement"]["left for another call"] == ["slow"]
    assert taken == ["first", "slow", "last"]


def test_a_step_that_is_none_is_refused(taken):
    with pytest.raises(BadInput, match="there is no step 'second'; choose among first, slow, last"):
        bench(only=["second"])


def test_the_tests_of_a_device_are_there():
    assert all((ROOT / file.partition("::")[0]).is_file() for file in checks.EVERYWHERE + checks.ON_AN_ACCELERATOR)


def test_goals_that_are_missed_are_named():
    rows = [{"preset": "gmm", "at once": size, "× real time": speed} for size, speed in ((1, 251.0), (256, 19_999.0))]
    missed = searches.fast(rows, searches.SEARCH_GOALS, "cuda")
    assert missed.proved is False
    assert missed.why == "gmm, 256 at once: 19999 times real time, not 20000"
    assert searches.fast(rows[:1], searches.SEARCH_GOALS, "cuda").proved
    # The processor's own search has no goal.
    assert searches.fast([{**rows[0], "× real time": 1.0, "on": "one core"}], searches.SEARCH_GOALS, "cuda").proved
    assert searches.fast(rows, searches.SEARCH_GOALS, "torch-cpu").proved is None


@pytest.mark.parametrize(("apart", "furthest", "proved"), [(0, 0.0, True), (1, 0.0, False), (0, 0.01, False)])
def test_the_kernel_has_to_find_the_words_and_the_cost(apart, furthest, proved):
    assert searches.same_words(10, apart, furthest).proved is proved


@pytest.mark.parametrize(("ratios", "proved"), [([0.9, 1.015, 1.2], True), ([1.0, 1.03, 1.04], False)])
def test_stamps_may_cost_two_percent(ratios, proved):
    assert searches.cheap(ratios, "cuda").proved is proved
    assert searches.cheap(ratios, "torch-cpu").proved is None
