"""Roofs that cost laws name: each measured once, at the beginning or between two blocks, and outside the wall time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import kernel_roofs
from pipelines.config import assign, presets
from pipelines.run.control import Control
from pipelines.run.roofs_needed import RUN_APART, STAGE, NeededRoofs
from pipelines.run.session_run import Request, execute
from pipelines.scoring import roofs_tasks
from pipelines.scoring.gaussians import roofs as gaussians
from pipelines.scoring.kernel_work import (
    AT_ONCE,
    KERNEL_CALL,
    MOST_PASSED,
    SEARCH_SECONDS,
    calls,
    named,
    units,
)
from pipelines.scoring.tied import roofs as tied
from profiler.analysis.breakdown import breakdown
from profiler.costs import CALL, KERNEL, STREAM, Cost, Linear, Term
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration, table, timing
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import OVERHEAD, PROBES, Roof, RoofTable
from profiler.machine.roofs.terms import WorkOf
from profiler.machine.roofs.timing import Counted
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.span_layout import SPAN
from profiler.spans import Recorder
from tests.fake_clock import FakeClock

Asked = Iterable[tuple[Term, int]]
SPEECH = "08-kal16-short.flac"


def figure(kind: str, name: str, value: float, size: int = 0, threads: int = 1) -> Roof:
    return Roof(kind, name, "float32", threads, size, value, value, value, "x")


def of(*terms: tuple[str, str, float]) -> Cost:
    return Cost(terms=tuple(Term(kind, name, Linear(1.0), size) for kind, name, size in terms))


class Rig:
    """The journal of a session, and a machine on which every roof takes a millisecond."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock(10**9)
        self.recorder = Recorder(self.clock)
        self.writer = SessionWriter(path, self.recorder, {})
        self.lane = self.recorder.lane("decode", decode=True)
        self.measured: list[list[str]] = []
        self.settled: list[bool] = []
        self.beside: list[list[str]] = []
        self.apart: list[tuple[float, float]] = []
        self.rate = 7.0
        self.stopping = False
        self.progress: list[str] = []
        self.needed = NeededRoofs(
            self.writer,
            self.recorder,
            self.lane,
            lambda what, share: self.progress.append(what),
            lambda: self.stopping,
        )
        monkeypatch.setattr(calibration, "measure_terms", self.measure)

    def measure(
        self,
        terms: Asked,
        work_of: WorkOf,
        progress: Callable[[str, float], None],
        cancelled: Callable[[], bool],
        *,
        beside: Sequence[Step],
        settle: bool,
        apart: float,
        aged: float,
    ) -> RoofTable:
        assert work_of is kernel_roofs.work_of
        self.beside.append([step.key.name for step in beside])
        self.apart.append((apart, aged))
        terms = list(terms)
        self.settled.append(settle)
        self.measured.append([term.roof for term, _ in terms])
        for term, _ in terms:
            progress(term.roof, 0.5)
            self.clock.advance(1_000_000)
            if cancelled():
                raise Cancelled("stopped")
        kinds = {KERNEL: table.KERNEL, CALL: OVERHEAD}
        known = [figure(table.KERNEL, "known/1", 5.0)]
        found = [figure(kinds[t.kind], t.roof, self.rate, int(t.bytes), n) for t, n in terms]
        return RoofTable((*known, *found), (*known, *(replace(roof, median=6.0) for roof in found)))


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterable[Rig]:
    made = Rig(tmp_path / "s.asrs", monkeypatch)
    yield made
    made.writer.close()


def test_what_is_named_is_measured_once_and_put_into_the_session(rig: Rig, tmp_path: Path) -> None:
    first = [of((KERNEL, "a/1", 0), (CALL, "kernel call", 0), (STREAM, "read", 8)), Cost()]
    start = rig.clock()
    assert rig.needed.take(first) == start + 2_000_000 == rig.clock()
    assert rig.needed.take(first) == 0
    more = [*first, of((KERNEL, "a/1", 1 << 20), (KERNEL, "b/2", 0))]
    assert rig.needed.take(more, 9) == rig.clock()
    # Before the first frame there is time for what is known, too.
    assert rig.settled == [True, False]
    assert rig.measured == [["a/1", "kernel call"], ["a/1", "b/2"]]
    assert rig.progress[0] == "measuring the machine: a/1"
    rig.writer.close()
    with closing(Session.open(tmp_path / "s.asrs")) as session:
        names = {(roof.name, roof.bytes) for roof in session.calibration.roofs}
        # What else the machine's file knows is there already.
        assert names == {("a/1", 0), ("kernel call", 0), ("a/1", 1 << 20), ("b/2", 0)}
        assert {(roof.name, roof.bytes) for roof in session.calibration.lasting} == names
        assert {roof.median for roof in session.calibration.lasting} == {6.0}
        spans = session.spans
        assert {session.stages[int(n)].name for n in spans["stage"]} == {STAGE}
        assert {session.stages[int(n)].group for n in spans["stage"]} == {"setup"}
        assert spans["duration_ns"].tolist() == [2_000_000, 2_000_000]
        assert spans["first_frame"].tolist() == [0, 9]


def test_at_the_end_what_the_laws_named_is_taken_at_one_more_moment(
    rig: Rig, tmp_path: Path
) -> None:
    rig.needed.settle()
    assert not rig.measured  # nothing was named
    rig.needed.take([of((KERNEL, "a/1", 1 << 20))])
    rig.needed.take([of((KERNEL, "a/1", 1 << 20), (KERNEL, "b/2", 0))], 9)
    rig.rate = 9.0
    rig.needed.settle()
    assert rig.measured[2] == ["a/1", "b/2"]
    assert rig.settled == [True, False, True]
    # And what says how fast the machine is, which the kernels' loops are compared with.
    assert rig.beside[:2] == [[], []]
    assert {"gemm", "fma", "exp.scorer", *PROBES} <= set(rig.beside[2])
    assert "read" not in rig.beside[2]
    # Before a run nobody waits for what is known well and has only aged.
    before = [(calibration.MOMENT_SECONDS, math.inf)]
    assert rig.apart == 2 * before + [(RUN_APART, calibration.AGED_SECONDS)]
    rig.writer.close()
    with closing(Session.open(tmp_path / "s.asrs")) as session:
        found = session.calibration.kernel("a/1", size_bytes=1 << 20)
        assert found is not None
        assert found.median == 9.0


class Again:
    """What times calls on: notes what it is told."""

    def __init__(self) -> None:
        self.needed: list[list[str]] = []
        self.anew: list[bool] = []

    def need(self, terms: Asked, roof_table: RoofTable) -> None:
        assert {roof.name for roof in roof_table.roofs} >= {term.roof for term, _ in terms}
        self.needed.append([term.roof for term, _ in terms])

    def tell(self, *, anew: bool = False) -> None:
        self.anew.append(anew)


def test_calls_are_timed_on_by_the_laws_that_count_and_not_by_those_that_may(rig: Rig) -> None:
    again = Again()
    rig.needed._again = again  # type: ignore[assignment]
    rig.needed.take([of((CALL, "now", 0))])
    rig.needed.ahead([])
    rig.needed.ahead([of((CALL, "later", 0))])
    assert rig.measured == [["now"], ["later"]]
    assert rig.settled == [True, True]
    assert again.needed == [["now"]]
    rig.needed.take([of((CALL, "later", 0))], 9)
    assert rig.measured[2:] == []
    assert again.needed == [["now"], ["later"]]
    rig.needed.settle()
    assert again.anew == [True], "what the run met, after what the calibration has"


def test_laws_that_name_no_roof_of_their_own_take_no_time(rig: Rig) -> None:
    assert rig.needed.take([Cost(), Cost(terms=()), of((STREAM, "read", 8))]) == 0
    assert not rig.measured
    assert not rig.lane.waiting


def test_a_run_that_is_stopped_stops_measuring_and_says_how_long_it_took(rig: Rig) -> None:
    rig.stopping = True
    costs = [of((KERNEL, "a/1", 0), (KERNEL, "b/2", 0))]
    start = rig.clock()
    assert rig.needed.take(costs) == start + 1_000_000
    (span,) = np.frombuffer(rig.lane.take(), SPAN)
    assert span["duration_ns"] == 1_000_000
    # Nothing is known of them, and they would be measured if it went on.
    rig.stopping = False
    rig.needed.take(costs)
    assert rig.measured == [["a/1", "b/2"]] * 2


@pytest.fixture(scope="module")
def wanted() -> dict[str, tuple[int, ...]]:
    """Roofs that there must be, at least: numbers for each family of the tied mixtures."""
    return {
        tied.GAUSSIANS: (4,),
        tied.EXP: (4, 32),
        tied.MIXTURE: (4, 32, 256),
        tied.LOG: (2, 40, 3),
        KERNEL_CALL: (),
        tied.FIRST_LOG_CALL: (16,),
    }


@pytest.mark.parametrize("size", [0, 1 << 18, 1 << 19])
def test_every_family_makes_work_that_runs(wanted: dict[str, tuple[int, ...]], size: int) -> None:
    assert set(wanted) <= set(kernel_roofs.FAMILIES)
    for family, numbers in wanted.items():
        work = kernel_roofs.work_of("/".join([family, *map(str, numbers)]), size)
        assert work.operations > 0
        task = work.make()
        task(1)
        task(2)


def test_a_kernel_that_nobody_has_is_an_error() -> None:
    with pytest.raises(KeyError):
        kernel_roofs.work_of("guess/4", 0)


def test_the_first_call_of_a_span_is_one_after_other_data() -> None:
    first, more = calls(3)
    assert (first.roof, first.bytes, first.count.fixed) == (KERNEL_CALL, MOST_PASSED, 1.0)
    assert (more.roof, more.bytes, more.count.fixed) == (KERNEL_CALL, 0.0, 2.0)
    assert calls(1) == (first,)
    task = kernel_roofs.work_of(first.roof, int(first.bytes)).make()
    # What the data before it take is not the call's.
    assert isinstance(task(1), Counted)


def test_a_kernel_with_data_of_its_own_is_timed_after_others_and_as_long_as_a_search_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, read, begun = 0.0, [], []
    takes, idle = 1e-3, 0.5

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now

    def reading(values: np.ndarray) -> None:
        nonlocal now
        begun.append(now)
        now += takes
        read.append(values.nbytes)

    def evaluate(*given: object) -> None:
        nonlocal now
        if given[-1] == 0:
            now += idle
            return
        begun.append(now)
        now += 3.0

    monkeypatch.setattr(timing, "clock", clock)
    monkeypatch.setattr(roofs_tasks, "read", reading)
    monkeypatch.setattr(tied.kernels, "evaluate", evaluate)
    name = named(tied.GAUSSIANS, 4, own=float(1 << 18), frames=16)
    assert name == f"{tied.GAUSSIANS}/4+256x16"
    work = kernel_roofs.work_of(name, 1 << 20)
    assert work.in_turn
    took = work.make()(2)
    assert isinstance(took, Counted)
    assert took.seconds == pytest.approx(6.0, abs=1e-5)
    # The caches are read past, then a chunk at a time as long as the wait lasts: one and then another of 1 ms.
    chunk = roofs_tasks.CHUNK * roofs_tasks.FLOAT
    assert read == [(1 << 20) - (1 << 18), chunk, chunk] * 2
    # Reading is part of that time, or more than it.
    waits = [at - since for since, at in zip(begun[::4], begun[3::4], strict=True)]
    # A call that does nothing comes before, and is no part of it either. The last chunk may end after the wait.
    assert waits == pytest.approx([3 * takes + idle] * 2, abs=1e-5)
    assert 2 * takes < 16 * SEARCH_SECONDS < 3 * takes
    takes = 1.0
    begun.clear()
    work.make()(1)
    assert begun[1] - begun[0] == pytest.approx(1.0 + idle, abs=1e-5)
    # As much is computed as of its own data alone; within the first cache there is nothing in between.
    assert work.operations == kernel_roofs.work_of(f"{tied.GAUSSIANS}/4", 1 << 18).operations
    read.clear()
    assert not isinstance(kernel_roofs.work_of(name, 0).make()(1), Counted)
    assert not read


def test_the_nearest_that_data_can_be_is_timed_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    monkeypatch.setattr(roofs_tasks, "read", lambda values: read.append(values.nbytes))
    monkeypatch.setattr(timing, "clock", lambda: 0.0)
    own, scoring = float(1 << 18), float(1 << 19)
    term = units(tied.GAUSSIANS, 4, size=scoring, search=float(1 << 19), own=own)
    assert (term.bytes, term.nearest) == (1 << 20, scoring)
    kernel_roofs.work_of(term.roof, int(scoring)).make()(2)
    # At once after what scoring itself goes through besides.
    assert read == [scoring - own] * 2
    # With its search it waits as well: here that is over after two looks at the clock.
    clock = count(0, 3e-4)
    monkeypatch.setattr(timing, "clock", lambda: next(clock))
    read.clear()
    kernel_roofs.work_of(term.roof, int(term.bytes)).make()(1)
    chunk = roofs_tasks.CHUNK * roofs_tasks.FLOAT
    assert 4 * SEARCH_SECONDS == 6e-4
    assert read == [term.bytes - own, chunk]
    assert units(tied.GAUSSIANS, 4, size=scoring, own=own).nearest == 0.0


@pytest.mark.parametrize("family", [gaussians.PRODUCT, gaussians.BYTES])
def test_a_kernel_with_all_of_the_data_goes_through_them_once_a_block(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[int] = []

    def products(x: object, panels: np.ndarray, *rest: Any) -> None:
        some, repeats = rest[-2:]
        met.append(some * repeats * panels[0].nbytes)

    monkeypatch.setattr(gaussians, "_products", products)
    monkeypatch.setattr(gaussians, "_in_bytes", products)
    size = 5 << 20
    name = named(family, 4, 26, 2, 1, own=float(size), frames=4)
    work = kernel_roofs.work_of(name, size)
    assert work.in_turn
    work.make()(2)
    # Nothing, and then all; a piece more where they do not come out even.
    assert met[::2] == [0, 0]
    assert all(size * 0.95 <= nbytes <= size + AT_ONCE for nbytes in met[1::2])
    piece = kernel_roofs.work_of(f"{family}/4/26/2/1", size)
    assert work.operations == piece.to_pass * piece.operations > 4 * piece.operations


def test_logarithms_again_and_again_are_always_of_the_same_numbers() -> None:
    products, shift, order, scores = tied._frames_of(2, 3, 40, 2)
    tied._logarithms(products, shift, order, scores, 1000)
    assert np.allclose(products, 1.0, atol=1e-3)
    assert np.allclose(scores, 1.0, atol=1e-3)


def test_work_grows_with_its_data() -> None:
    for family, numbers in ((tied.GAUSSIANS, "4"), (tied.EXP, "4/32")):
        small, large = (kernel_roofs.work_of(f"{family}/{numbers}", n) for n in (1 << 18, 1 << 20))
        assert 3 <= large.operations / small.operations <= 5


def test_mixtures_over_much_data_are_of_other_weights_at_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: list[tuple[int, int]] = []

    def mix(g: object, weights: np.ndarray, *_: object) -> None:
        met.append((weights.ctypes.data, weights.nbytes))

    monkeypatch.setattr(tied.kernels, "mix", mix)
    for size, turns in ((1 << 20, 1), (4 << 20, 4)):
        work = kernel_roofs.work_of(f"{tied.MIXTURE}/4/32/{(1 << 20) // (3 * 32 * 4)}", size)
        met.clear()
        work.make()(2 * turns)
        assert len({place for place, _ in met}) == turns
        assert sum(nbytes for _, nbytes in set(met)) == pytest.approx(size, rel=0.1)


# -- a whole run --------------------------------------------------------------------------------


class Asks(Control):
    """Somebody who asks for a change at a frame."""

    def __init__(self, frame: int, key: str, value: Any) -> None:
        super().__init__()
        self.change: tuple[int, str, Any] | None = (frame, key, value)

    @property
    def stopping(self) -> bool:
        if self.change is not None and self.frame >= self.change[0]:
            _, key, value = self.change
            self.change = None
            self.ask(key, value)
        return super().stopping


OF_TERMS = table.KERNEL, OVERHEAD


def test_roofs_for_a_live_change_are_measured_between_two_blocks(
    bundled_speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.asrs"
    asked: list[set[str]] = []
    real = calibration.measure_terms

    def measure(terms: Asked, *rest: Any, **how: Any) -> RoofTable:
        terms = list(terms)
        asked.append({term.roof for term, _ in terms})
        return real(terms, *rest, **how)

    monkeypatch.setattr(calibration, "measure_terms", measure)
    config = assign(presets.load("gmm-quick").config, {"block": 16})
    request = Request(config, "test", (str(bundled_speech / SPEECH),), None, path)
    outcome = execute(request, Asks(40, "frames.skip", 2), lambda *_: None)
    first, second, last = asked
    assert last == first | second, "at the end all that were named"
    # Half the frames a call: other tiles of the same kernels, and frames that numpy copies.
    families = {name.split("/")[0] for name in first}
    assert {name.split("/")[0] for name in second} <= families | {"numpy"}
    assert any(name not in first for name in second)
    assert not first & second, "nothing is measured twice"
    with closing(Session.open(path)) as session:
        names = {number: stage.name for number, stage in session.stages.items()}
        stages = np.array([names[int(n)] for n in session.spans["stage"]])
        tiles = session.spans[np.isin(stages, ["decode.block", "decode.utterance"])]
        measured = session.spans[stages == STAGE][-1]
        parts = breakdown(session)
        known = {r.name for r in session.calibration.roofs if r.kind in OF_TERMS}
        lasting = {roof.name for roof in session.calibration.lasting}
    assert {name for name in first | second if "/" in name} <= known
    assert {"gemm", "exp.scorer", *PROBES} <= lasting
    begin, end = measured["start_ns"], measured["start_ns"] + measured["duration_ns"]
    ends = tiles["start_ns"] + tiles["duration_ns"]
    assert ((ends <= begin) | (tiles["start_ns"] >= end)).all(), "no block holds any of it"
    assert (ends <= begin).any()
    assert (tiles["start_ns"] >= end).any()
    assert parts.wall_ns == outcome.result.wall_ns == tiles["duration_ns"].sum()
    assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns, rel=1e-9)
    assert not any("not measured" in row.sentence for row in parts.stages if row.parts)
