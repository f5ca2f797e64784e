"""Which component of a real recogniser holds which memory, and what a session keeps of it."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.model import memory as reported
from pipelines.config import Config, assign
from pipelines.run import hot_replay, measurements
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.hot_replay import LIMIT, USUAL_TIMES
from pipelines.run.measurements import OTHERS_EVERY_NS, RunMeasurements
from pipelines.run.playlist import Item
from pipelines.run.recogniser import build
from pipelines.run.session_run import RunMemory
from pipelines.search.viterbi import Viterbi
from profiler.machine import memory
from profiler.machine.run_queue import Lost
from profiler.session.reader import Session
from profiler.session.writer import NullWriter
from profiler.spans import NullLane, Recorder
from tests.bench import memory_use
from tests.each import each
from tests.fake_clock import FakeClock
from tests.pipelines.whole_runs import never, quiet, run

needs_pages = pytest.mark.skipif(
    not Path("/proc/self/pagemap").exists(), reason="only Linux tells which pages of a process are there"
)

PLANTED = 10_000_000


class Rig:
    def __init__(self, config: Config) -> None:
        self.recorder, self.decoder = Recorder(), SimpleNamespace(features=[])
        self.recogniser = build(config, self.recorder, NullLane(), quiet, never)
        given: Any = (self.decoder, self.recorder, SimpleNamespace(), SimpleNamespace())
        self.memory = RunMemory([self.recogniser], *given)

    def used(self) -> dict[str, int]:
        return {name: held.used for name, held in self.memory.meter.measure().parts.items()}


@pytest.fixture(scope="module")
def rig(quick: Config) -> Rig:
    return Rig(assign(quick, {"search.lattice": True}))


OWNERS: dict[str, Callable[[Rig], Any]] = {
    "model": lambda rig: rig.recogniser.scorer,
    "graph": lambda rig: rig.recogniser.search.graph,
    "tokens": lambda rig: rig.recogniser.search,
    "lattice": lambda rig: rig.recogniser.search.nbest,
    "frontend": lambda rig: rig.decoder.features,
    "recorder": lambda rig: rig.recorder,
}


@needs_pages
@each("component", OWNERS)
def test_a_component_that_holds_10_mb_more_is_named(rig, component):
    before, owner, planted = rig.used(), OWNERS[component](rig), np.ones(PLANTED, np.uint8)
    assert before.keys() == OWNERS.keys()
    if isinstance(owner, list):
        owner.append(planted)
    else:
        object.__setattr__(owner, "planted", planted)  # past the frozen dataclass of a graph
    grown = {name: size - before[name] for name, size in rig.used().items()}
    assert grown.pop(component) == pytest.approx(PLANTED, rel=0.01)
    assert max(map(abs, grown.values())) < PLANTED / 100
    if isinstance(owner, list):
        owner.clear()
    else:
        object.__delattr__(owner, "planted")
    assert rig.used()[component] == pytest.approx(before[component], abs=PLANTED / 100)


@needs_pages
def test_a_session_has_the_memory_from_set_up_to_the_end(quick, short, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", 1.0)
    assert run(quick, [short], tmp_path / "run.asrs").state == "closed"
    with closing(Session.open(tmp_path / "run.asrs")) as session:
        tree, cost = reported.memory(session), reported.cost(session)
        assert tree is not None
        used = {name: one["used_bytes"] for name, one in tree["components"].items()}
        assert used.keys() == reported.TITLES.keys()
        assert sum(used.values()) == tree["resident_bytes"]
        if "process.rss_bytes" in session.sample_names:  # a run may be over before the first of them
            resident = session.samples("process.rss_bytes")[1]
            assert tree["resident_bytes"] == pytest.approx(resident[-1], rel=0.05)
        assert tree["peak_at_load_bytes"] <= tree["peak_bytes"]
        assert tree["resident_bytes"] <= tree["peak_bytes"]
        assert tree["components"]["tokens"]["reserved_bytes"] >= used["tokens"]
        assert tree["mappings"]["heap"] > used["model"]
        assert "numpy" in tree["mappings"]
        assert tree["growth_bytes_per_audio_hour"] is None
        assert cost["energy"]
        assert session.samples("memory.frontend_bytes")[1].all()


@needs_pages
def test_features_are_held_while_they_are_decoded_and_neither_before_nor_after(quick, short, monkeypatch):
    recogniser = build(quick, Recorder(), NullLane(), quiet, never)
    decoder = Decoder(recogniser, Recorder(), NullLane(), NullWriter(), Control())
    advance, held = recogniser.search.advance, []

    def seen(*arguments: Any) -> None:
        held.append(sum(len(features) for features in decoder.features))
        advance(*arguments)

    monkeypatch.setattr(recogniser.search, "advance", seen)
    assert decoder.features == ()
    (decoded,) = decoder.run([Item("short", short, None)]).utterances
    assert decoded.done
    assert min(held) >= round(decoded.audio_s * 100) - 5
    assert decoder.features == ()


@needs_pages
@pytest.mark.slow
def test_a_run_over_looped_speech_has_no_growth(short, monkeypatch):
    """The bench's two hours in small."""
    monkeypatch.setattr(memory, "SHARE", 0.5)
    monkeypatch.setattr("profiler.analysis.resources.LEAST_S", 30.0)
    tree = memory_use.growth([short], 0.1)
    assert tree["hours"] == pytest.approx(0.1, rel=0.1)
    for name in ("model", "graph", "tokens", "lattice", "frontend"):
        slope = tree["growth_mb"][name]
        assert slope is not None
        assert slope[1] <= 1.0, name


class MeasuredRig:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock(10**9)
        self.answers: list[int] = []
        """Of the run queue, the next ones; all others are 0."""

        def lost() -> Lost:
            return Lost(self.answers.pop(0) if self.answers else 0)

        self.queue = SimpleNamespace(lost=lost, waited_ns=lambda: sum(lost()), steal=SimpleNamespace(total_ns=0))
        monkeypatch.setattr(measurements, "RunQueue", lambda pulse: self.queue)
        monkeypatch.setattr(hot_replay, "EARLY_SHARE", 0.0)
        self.recorder = Recorder(self.clock)
        self.lane = self.recorder.lane("decode", decode=True)
        self.measurements = RunMeasurements(self.recorder, self.lane, 0.01)


@each("adaptive", [False, True])
def test_a_search_whose_beam_follows_the_time_is_not_kept(monkeypatch, adaptive):
    """It would be another one when it is done again."""
    rig, kept = MeasuredRig(monkeypatch), list[int]()
    replay = SimpleNamespace(viterbi=None, keep=lambda: kept.append(1))
    monkeypatch.setattr(hot_replay, "SearchReplay", lambda search: replay)
    config = assign(Config(), {"search.adaptive_beam": adaptive})
    who: Any = SimpleNamespace(scorer=SimpleNamespace(), search=Viterbi.__new__(Viterbi), config=config)
    for _ in range(100 * USUAL_TIMES + 1):
        rig.clock.advance(1000)
        rig.measurements.between(who, None, rig.clock(), 0, 1000)
    assert len(kept) == (not adaptive)


def test_a_span_holds_what_other_programs_took_however_long(monkeypatch):
    rig = MeasuredRig(monkeypatch)
    rig.answers = [7, LIMIT + 5]
    assert rig.measurements.lost(0, surely=True) == Lost(7)
    held = rig.measurements.lost(OTHERS_EVERY_NS)
    assert held == Lost(LIMIT)
    rig.lane.put(rig.recorder.stage("decode.block", "decode"), 0, 1, 0, 1, *held)


@each("stolen_ns, wall_ns, notes", [(5e8, 2e10, 1), (4e8, 1e9, 0), (5e8, 3e10, 0), (7e8, 3e10, 1)])
def test_what_the_host_took_is_noted_where_it_is_worth_a_note(monkeypatch, stolen_ns, wall_ns, notes):
    rig = MeasuredRig(monkeypatch)
    rig.queue.steal.total_ns = int(stolen_ns)
    assert len(rig.measurements.notes(int(wall_ns))) == notes
