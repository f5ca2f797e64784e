"""What a run measures apart from its stages: its begin and end, none of it within a block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.config import Config, assign
from pipelines.run import hot_replay, measurements
from pipelines.run.hot_replay import LIMIT, USUAL_TIMES
from pipelines.run.measurements import OTHERS_EVERY_NS, RunMeasurements
from pipelines.search.viterbi import Viterbi
from profiler.machine.run_queue import Lost
from profiler.spans import Recorder
from tests.fake_clock import FakeClock


class Queue:
    """A run queue whose next answers the test gives; all others are 0."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.asked = 0
        self.steal = SimpleNamespace(total_ns=0)
        self.closed = False

    def lost(self) -> Lost:
        self.asked += 1
        return Lost(self.answers.pop(0) if self.answers else 0)

    def waited_ns(self) -> int:
        return sum(self.lost())

    def close(self) -> None:
        self.closed = True


class Rig:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.queue = FakeClock(10**9), Queue()
        monkeypatch.setattr(measurements, "RunQueue", lambda pulse: self.queue)
        monkeypatch.setattr(hot_replay, "EARLY_SHARE", 0.0)
        self.recorder = Recorder(self.clock)
        self.lane = self.recorder.lane("decode", decode=True)
        self.measurements = RunMeasurements(self.recorder, self.lane, 0.01)
        self.began = self.clock()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_search_whose_beam_follows_the_time_is_not_kept(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, adaptive: bool
) -> None:
    """It would be another one when it is done again."""
    kept: list[int] = []
    replay = SimpleNamespace(viterbi=None, keep=lambda: kept.append(1))
    monkeypatch.setattr(hot_replay, "SearchReplay", lambda search: replay)
    config = assign(Config(), {"search.adaptive_beam": adaptive})
    who: Any = SimpleNamespace(scorer=SimpleNamespace(), search=Viterbi.__new__(Viterbi), config=config)
    for _ in range(100 * USUAL_TIMES + 1):
        rig.clock.advance(1000)
        rig.measurements.between(who, None, rig.clock(), 0, 1000)
    assert len(kept) == (not adaptive)


def test_a_span_holds_what_other_programs_took_however_long(rig: Rig) -> None:
    rig.queue.answers = [7, LIMIT + 5]
    assert rig.measurements.lost(0, surely=True) == Lost(7)
    held = rig.measurements.lost(OTHERS_EVERY_NS)
    assert held == Lost(LIMIT)
    rig.lane.put(rig.recorder.stage("decode.block", "decode"), 0, 1, 0, 1, *held)


@pytest.mark.parametrize(
    ("stolen_ns", "wall_ns", "notes"), [(5e8, 2e10, 1), (4e8, 1e9, 0), (5e8, 3e10, 0), (7e8, 3e10, 1)]
)
def test_what_the_host_took_is_told_where_it_is_worth_telling(
    rig: Rig, stolen_ns: float, wall_ns: float, notes: int
) -> None:
    rig.queue.steal.total_ns = int(stolen_ns)
    assert len(rig.measurements.notes(int(wall_ns))) == notes
