"""What a run measures beside its stages: where it begins and ends, and that none of it is a block's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.run import beside, hot_replay
from pipelines.run.beside import OTHERS_EVERY_NS, Beside
from pipelines.run.hot_replay import LIMIT, USUAL_TIMES
from pipelines.scoring.layered import LayeredScorer
from pipelines.search.viterbi import Viterbi
from profiler.recording.layout import SPAN
from profiler.spans import Recorder
from tests.fake_clock import FakeClock


class Again(LayeredScorer):
    """A scorer that could score its block again."""

    replayable = True

    def __init__(self) -> None:
        pass

    def _arranged(self, config: Config) -> Any:
        raise NotImplementedError


NOBODY: Any = SimpleNamespace(scorer=SimpleNamespace(), search=None, config=Config())
SOMEBODY: Any = SimpleNamespace(scorer=Again(), search=None, config=Config())


class Queue:
    """A run queue whose next answers the test gives; all others are 0."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.asked = 0
        self.closed = False

    def waited_ns(self) -> int:
        self.asked += 1
        return self.answers.pop(0) if self.answers else 0

    def close(self) -> None:
        self.closed = True


class Rig:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.queue = FakeClock(10**9), Queue()
        monkeypatch.setattr(beside, "RunQueue", lambda: self.queue)
        monkeypatch.setattr(hot_replay, "EARLY_SHARE", 0.0)
        self.recorder = Recorder(self.clock)
        self.lane = self.recorder.lane("decode", decode=True)
        self.beside = Beside(self.recorder, self.lane, 0.01)
        self.began = self.clock()

    def names(self) -> list[str]:
        spans = np.frombuffer(self.lane.take(), SPAN)
        return [self.recorder.stages[int(n)].name for n in spans["stage"]]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(monkeypatch)


@pytest.mark.parametrize(("who", "planned"), [(SOMEBODY, ["setup.replay"]), (NOBODY, [])])
def test_a_replay_is_planned_after_enough_blocks_if_any_can_be(
    rig: Rig, who: Any, planned: list[str]
) -> None:
    rig.names()
    # With the first block it begins; after these there is time, at a hundredth of it.
    for _ in range(100 * USUAL_TIMES):
        rig.clock.advance(1000)
        rig.beside.between(who, None, rig.clock(), 0, 1000)
        assert rig.names() == []
    rig.beside.between(who, None, rig.clock(), 0, 1000)
    assert rig.names() == planned


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_search_whose_beam_follows_the_time_is_not_kept(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, adaptive: bool
) -> None:
    """It would be another one when it is done again."""
    kept: list[int] = []
    replay = SimpleNamespace(viterbi=None, keep=lambda: kept.append(1))
    monkeypatch.setattr(hot_replay, "SearchReplay", lambda search: replay)
    config = assign(Config(), {"search.adaptive_beam": adaptive})
    who: Any = SimpleNamespace(
        scorer=SimpleNamespace(), search=Viterbi.__new__(Viterbi), config=config
    )
    for _ in range(100 * USUAL_TIMES + 1):
        rig.clock.advance(1000)
        rig.beside.between(who, None, rig.clock(), 0, 1000)
    assert len(kept) == (not adaptive)


def test_a_span_holds_what_other_programs_took_however_long(rig: Rig) -> None:
    rig.queue.answers = [7, LIMIT + 5]
    assert rig.beside.other_programs_ns(0, surely=True) == 7
    held = rig.beside.other_programs_ns(OTHERS_EVERY_NS)
    assert held == LIMIT
    rig.lane.put(rig.recorder.stage("decode.block", "decode"), 0, 1, 0, 1, held)


def test_other_programs_are_asked_about_at_times_and_where_it_matters(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = rig.clock()
    rig.queue.answers = [7]
    assert rig.beside.other_programs_ns(now, surely=True) == 7
    rig.queue.answers = [8]
    assert rig.beside.other_programs_ns(now + OTHERS_EVERY_NS - 1) == 0, "it is not yet time"
    assert rig.beside.other_programs_ns(now + OTHERS_EVERY_NS) == 8, "nothing is lost"
    rig.queue.answers = [9]
    monkeypatch.setattr(type(rig.beside._replay), "chosen", True)
    assert rig.beside.other_programs_ns(now + OTHERS_EVERY_NS + 1) == 9, "it is to be done again"


def test_a_block_is_compared_with_its_own_spans_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def take(scorer: Any, scores: Any, recorded: int, frame: int, own: float) -> int:
        given.append(recorded)
        return 0

    monkeypatch.setattr(rig.beside._replay, "take", take)
    monkeypatch.setattr(type(rig.beside._replay), "chosen", True)
    stage = rig.recorder.stage("score.some", "scoring")
    before = rig.lane.recorded
    rig.beside.begin()
    for _ in range(3):
        rig.lane.put(stage, 0, 1)
        rig.beside.between(NOBODY, None, rig.clock.advance(1), 0, 1)
    assert given == [before, before + 1, before + 2]


def test_it_gives_the_file_back(rig: Rig, tmp_path: Path) -> None:
    rig.beside.close()
    assert rig.queue.closed
