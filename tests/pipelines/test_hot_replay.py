"""Hot replays: within their budget, half of the time each, set-up to the nanosecond."""

from collections.abc import Iterator
from itertools import cycle
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipelines.config import Config
from pipelines.run import hot_replay
from pipelines.run.hot_replay import GAIN, MOST_TIMES, USUAL_TIMES, HotReplay, hot
from pipelines.scoring.layered import LayeredScorer
from pipelines.search.viterbi import Viterbi
from profiler.analysis.attribution import REPLAYED
from profiler.recording.lanes import Lane
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each
from tests.fake_clock import FakeClock


@pytest.fixture(autouse=True)
def not_early(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No replays come early, but in the tests of those that do; the search is a stand-in for one."""
    monkeypatch.setattr(hot_replay, "SearchReplay", Search)
    if "early" not in request.node.name:
        monkeypatch.setattr(hot_replay, "EARLY_SHARE", 0.0)


class Pure(LayeredScorer):
    """A scorer with two stages that take as long as the test says."""

    def __init__(self, clock: FakeClock, stages: tuple[int, ...]) -> None:
        self.clock, self.stages_of = clock, stages
        self.can, self.hot_ns, self.times = True, 400, 0
        self.slower: Iterator[int] = iter(())

    def _arranged(self, config: Config) -> Any:
        raise NotImplementedError

    @property
    def replayable(self) -> bool:
        return self.can

    def note(self) -> None:
        """Everything is known."""

    def again(self, first_frame: int, lane: Lane | NullLane) -> bool:
        self.times += 1
        slower = next(self.slower, 1)
        for stage in self.stages_of:
            start = self.clock()
            lane.put(stage, start, self.clock.advance(self.hot_ns * slower), first_frame, 16)
        return True


class Search:
    """In the place of a search's replay: it repeats, or cannot, as the search says that the test made."""

    def __init__(self, viterbi: Any) -> None:
        self.viterbi = viterbi
        self.clock, self.can = viterbi.replay_limits

    def keep(self) -> None:
        """Takes no time."""

    def again(self, scores: Any, first_frame: int, lane: Any) -> dict[str, int]:
        if not self.can:
            return {}
        self.clock.advance(500)
        return {"search.emit": 500}


SCORES = np.zeros((16, 3), np.float32)
DUE = USUAL_TIMES * 100  # Blocks until a first replay at a hundredth of the time, of blocks that are all replayed
PASSES = 4
SPENT = 2 * (3 + 1 + 1 + 1) * 400  # ns: two stages, cold and then hot, until two passes have gained nothing


class Rig:
    """A lane with a block of two scoring stages, 1000 ns each, and one of search."""

    def __init__(self, share: float, can: bool = True) -> None:
        self.clock = FakeClock(10**9)
        self.viterbi: Any = object.__new__(Viterbi)
        self.viterbi.replay_limits = self.clock, can
        self.recorder = Recorder(self.clock)
        self.lane = self.recorder.lane("decode", decode=True)
        self.stages = tuple(self.recorder.stage(f"score.{n}", "scoring") for n in "ab")
        self.search = self.recorder.stage("search.emit", "search")
        self.waited: list[int] = []  # for other programs, since the queue was asked before
        queue: Any = SimpleNamespace(waited_ns=lambda: self.waited.pop() if self.waited else 0)
        self.replay = HotReplay(self.recorder, self.lane, queue, share)
        self.scorer: Any = Pure(self.clock, self.stages)
        # A run's first block, from which on time counts.
        assert self.plan() == 0

    def plan(self, took_ns: int = 3000, recorded: int = 0, search: Any = None) -> int:
        """Plan after a block that took so long; where it recorded nothing, as if all of it had been scoring."""
        self.clock.advance(took_ns)
        return self.replay.plan(self.scorer, search, recorded, took_ns)

    def choose(self, search: Any = None) -> int:
        """Plan until the block that comes next is chosen; returns how many it took."""
        return next(plans for plans in range(1, 10_000) if self.plan(search=search))

    def take(self, each: int = 1000, frame: int = 0, scores: Any = SCORES, own: float = 1.0, cold: int = 1) -> int:
        """Record the block that was planned and do it again; when that ended, 0 if there was none.

        The first time takes `cold` times as long.
        """
        self.lane.take()
        before = self.lane.recorded
        for stage in (*self.stages, self.search):
            self.lane.put(stage, self.clock(), self.clock.advance(each), 0, 16)
        self.scorer.slower = iter((cold,))
        return self.replay.take(self.scorer, scores, before, frame, own=own)

    def taken(self) -> np.ndarray:
        """The spans of set-up since the last call."""
        spans = np.frombuffer(self.lane.take(), SPAN)
        return spans[[self.recorder.stages[n].group == "setup" for n in spans["stage"]]]

    def replayed(self) -> list[tuple[str, int, int]]:
        """Of the hot spans since the last call name, duration and what the block took."""
        found = ((self.recorder.stages[span["stage"]].name, span) for span in self.taken())
        hot = [(name, int(s["duration_ns"]), int(s["work0"])) for name, s in found if name.startswith(REPLAYED)]
        return sorted(hot)


def test_hot_spans_lie_within_the_replay_and_set_up_is_its_time():
    rig = Rig(0.1)
    rig.choose()
    end = rig.take(frame=32, cold=3)
    assert end == rig.clock()
    spans = np.sort(rig.taken(), order="start_ns")
    names = np.array([rig.recorder.stages[n].name for n in spans["stage"]])
    assert sorted(names) == [f"{REPLAYED}score.a", f"{REPLAYED}score.b", "setup.replay"]
    hot = spans[names != "setup.replay"]
    assert hot["duration_ns"].tolist() == [400, 400]
    assert hot["work0"].tolist() == [1000, 1000]
    assert set(spans["first_frame"]) == {32}
    assert not spans["frames"].any()
    # One after another without a gap: together they are all of the time that it took.
    ends = spans["start_ns"] + spans["duration_ns"]
    assert spans["start_ns"].tolist() == [end - SPENT, *ends[:-1]]
    assert ends[-1] == end


@each(
    "took, least, times",
    [
        ([100, 50, 50, 50], 50, 4),
        ([100, 90, 80, 70, 69, 69], 69, 6),
        # One that was disturbed is not taken.
        ([100, 60, 200, 60], 60, 4),
        # A pass may gain nothing, and the next one does.
        ([100, 98, 80, 70, 60, 60, 60], 60, 7),
        ([round(1e6 * (1 - 2 * GAIN) ** n) for n in range(20)], None, MOST_TIMES),
    ],
)
def test_data_are_hot_when_another_pass_takes_no_less(took, least, times):
    order = iter(took)
    passes: list[int] = []

    def once() -> dict[str, int]:
        passes.append(next(order))
        return {"a": passes[-1]}

    assert hot(once) == {"a": least or took[times - 1]}
    assert len(passes) == times


def test_the_budget_is_kept():
    rig = Rig(0.02)
    replays, began = 0, rig.clock()
    for n in range(700):
        each = (500, 1000, 3000)[n % 3]
        if n % 50 == 0:
            # An utterance is prepared, which is time as well.
            rig.clock.advance(100_000)
        rig.plan(3 * each, rig.lane.recorded)
        replays += rig.take(each, cold=3) > 0
        # How much one takes is known when it is done.
        spent = replays * SPENT
        took = rig.clock() - began - spent
        assert spent <= 0.02 * took + SPENT
    assert replays > 5
    assert spent >= 0.7 * 0.02 * took
    assert rig.scorer.times == PASSES * replays


@each("why", ["no share", "remembers", "another kind", "frame by frame", "forgotten"])
def test_what_must_not_be_replayed_is_not(why):
    rig = Rig(0.0 if why == "no share" else 0.1)
    rig.scorer.can = why != "remembers"
    chosen = any(rig.plan() for _ in range(DUE))
    assert chosen == (why not in ("no share", "remembers"))
    scorer = rig.scorer
    if why == "another kind":
        rig.scorer = SimpleNamespace()
    if why == "forgotten":
        rig.replay.forget()
    rig.take(scores=None if why == "frame by frame" else SCORES)
    assert scorer.times == 0
    assert not rig.replayed()


def test_what_other_programs_took_of_block_and_passes_is_off():
    rig = Rig(0.1)
    again = rig.scorer.again
    rig.scorer.again = lambda *block: rig.waited.append(400) or again(*block)
    rig.choose()
    assert rig.take(own=0.75)
    # Half of each pass of 800 ns, and a quarter of the block.
    assert rig.replayed() == [(f"{REPLAYED}score.{n}", 200, 750) for n in "ab"]
    rig.choose()
    assert not rig.take(own=hot_replay.LEAST_OWN - 0.01)


def test_keeping_the_search_for_nothing_is_paid_for_like_a_replay(monkeypatch):
    """Where no block hands its scores over, the search would else be kept before every one of them."""
    rig = Rig(0.01)
    rig.scorer.can = False
    keeping = 90
    monkeypatch.setattr(Search, "keep", lambda self: rig.clock.advance(keeping))
    chosen = 0
    for n in range(DUE + 1000):
        chosen += rig.plan(search=rig.viterbi) > 0 and n >= DUE
        assert rig.replay.take(rig.scorer, None, 0, 0) == 0
    spent = keeping * chosen
    assert 0.005 < spent / (1000 * 3000) <= 0.011


def planned(rig: Rig, search: Any = None) -> list[str]:
    """The names of what was replayed of one more block."""
    rig.choose(search)
    rig.take()
    return [name for name, _, _ in rig.replayed()]


SCORED = [f"{REPLAYED}score.a", f"{REPLAYED}score.b"]
SEARCHED = [f"{REPLAYED}search.emit"]


def test_what_takes_less_is_replayed_more_often():
    """Three passes over scoring take 2 400 ns, over search 1 500."""
    rig = Rig(0.1)
    assert [planned(rig, rig.viterbi) for _ in range(6)] == [SCORED, SEARCHED, SEARCHED] * 2
    # Where it takes more, the other is.
    rig.scorer.hot_ns = 50
    found = [planned(rig, rig.viterbi) for _ in range(60)]
    assert found[-12:].count(SCORED) > 6 > found[-12:].count(SEARCHED) > 1


@each("can", [True, False])
def test_what_cannot_be_done_again_has_had_its_turn(can):
    rig = Rig(0.1, can)
    found = [planned(rig, rig.viterbi) for _ in range(6)]
    assert found == ([SCORED, SEARCHED, SEARCHED] * 2 if can else [SCORED, []] * 3)
    # Where the other is not possible, neither waits for it.
    assert [planned(rig) for _ in range(2)] == [SCORED] * 2
    rig.scorer.can = False
    assert [planned(rig, rig.viterbi) for _ in range(2)] == [SEARCHED if can else []] * 2


def test_what_was_forgotten_has_not_had_its_turn():
    """Short utterances end between plan and block most of the time, and search would never be replayed."""
    rig = Rig(0.1)
    rig.choose(rig.viterbi)
    rig.replay.forget()
    assert planned(rig, rig.viterbi) == SCORED
    rig.choose(rig.viterbi)
    rig.replay.forget_search()
    assert [planned(rig, rig.viterbi) for _ in range(2)] == [SEARCHED] * 2
    # Scoring does not depend on what came before the block.
    rig.choose(rig.viterbi)
    rig.replay.forget_search()
    assert rig.take()
    assert rig.scorer.times


@each("then", [[100], [100_000], [100, 100_000]])
def test_what_blocks_take_does_not_say_which_is_chosen(then):
    """Else those after a long one are, or silence as soon as it comes."""
    rig = Rig(0.01)
    rig.plan(3000)
    took = cycle(then)
    chosen = [rig.plan(next(took)) > 0 for _ in range(DUE - 1)]
    assert chosen.index(True) == DUE - 2


def test_the_first_replays_come_early_and_the_later_ones_at_their_share():
    rig = Rig(0.01)
    waited = []
    for _ in range(hot_replay.EARLY + 3):
        waited.append(rig.choose())
        rig.take(cold=3)
    early, later = waited[: hot_replay.EARLY], waited[hot_replay.EARLY + 1 :]
    assert max(early) <= ceil(SPENT / 3000 / hot_replay.EARLY_SHARE) + USUAL_TIMES * 10
    assert min(later) >= 0.8 * SPENT / 3000 / 0.01
    # Under other settings nothing is known yet.
    rig.replay.begin_again()
    rig.choose()
    rig.take(cold=3)
    assert rig.choose() == max(early[1:])


@each("block", [1, 5, 16, 64])
def test_the_search_is_done_again_over_several_frames(block, monkeypatch):
    seen: list[tuple[int, int]] = []
    again = Search.again

    def counting(self: Search, scores: Any, first_frame: int, lane: Any) -> dict[str, int]:
        seen.append((first_frame, sum(map(len, scores))))
        return again(self, scores, first_frame, lane)

    monkeypatch.setattr(Search, "again", counting)
    rig = Rig(0.1)
    rig.scorer.can = False
    rig.choose(rig.viterbi)
    wanted = -(-hot_replay.FRAMES // block)
    for n in range(wanted):
        assert not seen
        assert rig.replay.chosen
        before = rig.lane.recorded
        rig.take(frame=100 + n * block, scores=np.zeros((block, 3), np.float32))
        if n < wanted - 1:
            assert rig.plan(3000, before, rig.viterbi) == 0
    assert set(seen) == {(100, wanted * block)}
    assert rig.replayed() == [(SEARCHED[0], 500, 1000 * wanted)]
