"""Calls that are timed again while a run goes on: which, when, and what the session is told."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.config import assign, presets
from pipelines.run import beside, calls_again
from pipelines.run.calls_again import (
    APART_NS,
    AT_FIRST_NS,
    AT_ONCE,
    LEAST,
    MOST,
    STAGE,
    CallsAgain,
)
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from pipelines.scoring.kernel_work import KERNEL_CALL
from pipelines.search.roofs import ADVANCE
from profiler.arrays import Array
from profiler.costs import ACCESS, CALL, KERNEL, Linear, Term
from profiler.machine.roofs.probe import Probe
from profiler.machine.roofs.table import KERNEL as KERNELS
from profiler.machine.roofs.table import OVERHEAD, PROBES, Roof, RoofTable
from profiler.machine.roofs.timing import PIECE_SECONDS, Task, Work
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import SPAN, Recorder
from tests.fake_clock import FakeClock

UNITS = 10.0
BLOCK_NS = 1_000_000
AFTER = 1 << 20
"""Bytes that are read before a call."""


def call(name: str, ns: float, after: int = AFTER) -> Roof:
    """A call that takes `ns`."""
    return Roof(OVERHEAD, name, "", 1, after, ns, ns, ns, "ns")


def term(name: str, after: int = AFTER, kind: str = CALL) -> tuple[Term, int]:
    return Term(kind, name, Linear(1.0), after), 1


class Rig:
    """A session, and a machine on which each call takes as many ns as is said."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
        self.path, self.clock = path, FakeClock(10**9)
        self.recorder = Recorder(self.clock)
        self.writer = SessionWriter(path, self.recorder, {})
        self.lane = self.recorder.lane("decode", decode=True)
        self.probe_ns, self.decoded_ns = 1000, 0
        self.ns = {"a": 100, "b": 200, "c": 300}
        self.ran: list[str] = []
        self.repeats: list[int] = []
        self.sizes: set[int] = set()
        probing: Task = lambda repeats: self.clock.advance(self.probe_ns * repeats)  # noqa: E731
        monkeypatch.setattr("profiler.machine.roofs.probe.TASKS", (lambda: probing,) * 2)
        monkeypatch.setattr(calls_again, "work_of", self.work_of)
        self.probe = Probe(self.recorder, self.lane)
        self.again = CallsAgain(self.recorder, self.lane, self.writer, self.probe, share)

    def work_of(self, name: str, size: int) -> Work:
        self.sizes.add(size)

        def task(repeats: int) -> None:
            self.ran.append(name)
            self.repeats.append(repeats)
            self.clock.advance(int(self.ns[name] * UNITS) * repeats)

        return Work(UNITS, lambda: task)

    def need(self, *terms: tuple[Term, int], known: Iterable[Roof] = ()) -> None:
        found = [*known, *(call(name, ns) for name, ns in self.ns.items())]
        found.append(Roof(KERNELS, PROBES[0], "float32", 1, 0, 1e6, 1e6, 1e6, "unit/s"))
        self.writer.calibration(RoofTable(tuple(found)).rows())
        before = len(self.ran)
        self.again.need(terms, RoofTable(tuple(found)))
        assert len(self.ran) == before, "the run goes on at once"
        self.blocks(len(self.again._waiting))
        self.lane.take()  # what making them ready took
        self.ran.clear()
        self.repeats.clear()

    def blocks(self, count: int) -> None:
        """So many blocks, each as long after the other as may be between two timings."""
        for _ in range(count):
            self.decoded_ns += APART_NS
            self.again.take(self.clock.advance(APART_NS), 0, self.decoded_ns)

    def spans(self) -> Array:
        """What was recorded of it since the last time."""
        spans = np.frombuffer(bytes(self.lane.take()), SPAN)
        return spans[spans["stage"] == self.recorder.stage_id(STAGE)]

    def session(self) -> RoofTable:
        self.writer.close()
        with Session.open(self.path) as session:
            return session.calibration


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterable[Rig]:
    made = Rig(tmp_path / "s.asrs", monkeypatch, 0.5)
    yield made
    made.writer.close()


def found(table: RoofTable, name: str, after: int = AFTER) -> Roof:
    roof = table.call(name, after)
    assert roof is not None
    return roof


def test_the_session_is_told_the_middle_of_what_the_run_met(rig: Rig) -> None:
    rig.need(term("a"))
    for ns in (150, 170, 140):
        rig.ns["a"] = ns
        rig.blocks(1)
    assert rig.sizes == {AFTER}
    table = rig.session()
    roof = found(table, "a")
    assert (roof.low, roof.median, roof.high) == pytest.approx((140, 150, 160)), "the fastest"
    assert found(table, "b").median == pytest.approx(200), "as it was: no law named it"


def test_fewer_timings_than_can_be_believed_change_nothing(rig: Rig) -> None:
    rig.need(term("a"))
    rig.ns["a"] = 150
    rig.blocks(LEAST - 1)
    rig.again.tell()
    rig.again.tell(anew=True)
    assert found(rig.session(), "a").median == pytest.approx(100)


def test_timings_of_a_slow_moment_count_as_at_the_probes_roof(rig: Rig) -> None:
    """Readers slow the roof down by the same."""
    rig.need(term("a"))
    rig.probe_ns, rig.ns["a"] = 2000, 200
    rig.probe.take(rig.clock(), 0)
    rig.blocks(LEAST)
    assert found(rig.session(), "a").median == pytest.approx(100)


def test_the_same_call_after_other_data_is_another(rig: Rig) -> None:
    far = AFTER << 3
    rig.need(term("a"), term("a", far), known=[call("a", 900.0, far)])
    rig.ns["a"] = 700
    rig.blocks(LEAST)
    assert rig.sizes == {AFTER, far}
    table = rig.session()
    assert (found(table, "a").median, found(table, "a", far).median) == pytest.approx((700, 700))


def test_all_calls_take_turns_and_nothing_else_is_timed(rig: Rig) -> None:
    rig.ns |= dict.fromkeys("defg", 50)
    numpy = Roof(OVERHEAD, "numpy", "", 1, 0, 900.0, 900.0, 900.0, "ns")
    loop = Roof(KERNELS, "b", "float32", 1, AFTER, 1e7, 1e7, 1e7, "unit/s")
    rig.need(
        *map(term, "adefg"),
        term("b", kind=KERNEL),
        term("c", kind=ACCESS),
        term("numpy", 0),
        term("not known"),
        known=[numpy, loop],
    )
    rig.blocks(10)
    counts = {name: rig.ran.count(name) for name in sorted(set(rig.ran))}
    assert set(counts) == set("adefg")
    assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.parametrize(("share", "ns"), [(0.01, 100), (0.01, 100_000), (0.2, 200_000)])
def test_it_keeps_to_its_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, ns: int
) -> None:
    """Of short pieces, whose distance is what counts, and of long ones; what making them ready took is in it."""
    rig = Rig(tmp_path / "s.asrs", monkeypatch, share)
    made = rig.clock()
    rig.ns["a"] = ns
    rig.need(term("a"))
    ready, began = rig.clock() - made, rig.clock()
    taken = []
    for _ in range(200):
        for _ in range(100):
            rig.decoded_ns += BLOCK_NS
            rig.again.take(rig.clock.advance(BLOCK_NS), 0, rig.decoded_ns)
        taken.append(rig.spans())  # the lane holds so many
    mine = np.concatenate(taken)
    longest = int(mine["duration_ns"].max())
    allowed = max(AT_FIRST_NS, share * rig.decoded_ns)
    assert len(mine) > 50
    assert mine["start_ns"][0] <= began + APART_NS + BLOCK_NS, "short runs have them as well"
    assert mine["duration_ns"].sum() <= allowed + longest
    assert mine["duration_ns"].sum() + ready >= min(allowed, len(mine) * longest)
    ends = mine["start_ns"] + mine["duration_ns"]
    assert (mine["start_ns"][1:] - ends[:-1] >= APART_NS).all()
    rig.writer.close()


def test_a_short_run_has_them_before_its_share_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path / "s.asrs", monkeypatch, 1e-6)
    rig.ns["a"] = 100_000
    made = rig.clock()
    rig.need(term("a"))
    ready = rig.clock() - made - APART_NS
    rig.blocks(80)
    spent = rig.spans()["duration_ns"]
    assert AT_FIRST_NS < ready + spent.sum() <= AT_FIRST_NS + spent.max()
    rig.writer.close()


def test_no_share_no_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(tmp_path / "s.asrs", monkeypatch, 0.0)
    rig.need(term("a"))
    now = rig.clock.advance(10**9)
    assert rig.again.take(now, 0, now) == now
    assert not rig.ran
    rig.writer.close()


def test_after_a_change_what_is_still_needed_goes_on_and_the_rest_is_left(rig: Rig) -> None:
    rig.need(term("a"), term("b"))
    rig.ns |= {"a": 110, "b": 210}
    rig.blocks(LEAST - 1)
    rig.need(term("a"), term("c"))
    rig.ns |= {"a": 120, "c": 330}
    rig.blocks(LEAST)
    assert "b" not in rig.ran
    table = rig.session()
    assert found(table, "a").median == pytest.approx(120)
    assert found(table, "c").median == pytest.approx(330)


def test_what_is_still_needed_is_not_begun_anew(rig: Rig) -> None:
    rig.need(term("a"))
    rig.blocks(LEAST - 1)
    rig.ran.clear()
    rig.again.need([term("a")], RoofTable((call("a", 100.0),)))
    assert rig.ran == []
    rig.ns["a"] = 150
    rig.blocks(1)
    assert found(rig.session(), "a").median == pytest.approx(100), "the middle of all three"


def test_a_call_is_timed_once_what_it_needs_is_back_in_the_caches(rig: Rig) -> None:
    rig.need(term("a"))
    rig.blocks(1)
    before, piece = rig.repeats
    assert before == 1
    assert piece * UNITS * rig.ns["a"] >= PIECE_SECONDS * 1e9 > piece / 2 * UNITS * rig.ns["a"]


def test_so_many_at_once_and_then_the_next(rig: Rig) -> None:
    names = "abcdef"
    rig.ns |= dict.fromkeys(names, 50)
    rig.need(*map(term, names))
    rig.blocks(len(names) // AT_ONCE)
    assert rig.ran[::2] == list(names)
    rig.blocks(1)
    assert rig.ran[2 * len(names) :: 2] == list(names[:AT_ONCE])


def test_what_is_found_is_told_again_when_there_is_twice_as_much(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(rig.writer, "calibration", lambda _: told.append(rig.ran.count("a") // 2))
    rig.need(term("a"))
    told.clear()
    rig.blocks(4 * LEAST + 1)
    assert told == [LEAST, 2 * LEAST, 4 * LEAST]
    rig.again.tell()
    rig.again.tell()
    assert told[3:] == [4 * LEAST + 1], "at the end what is new, once"
    rig.again.tell(anew=True)
    assert told[4:] == [4 * LEAST + 1], "and again after others were written"


def test_until_all_have_been_timed_often_enough_nothing_is_told(rig: Rig) -> None:
    names = "abd"
    rig.ns |= dict.fromkeys(names, 50)
    rig.need(*map(term, names))
    rig.ns |= dict.fromkeys(names, 70)
    rig.blocks(LEAST + 1)
    assert {rig.ran.count(name) // 2 for name in names} == {LEAST - 1, LEAST}
    rig.again.tell()
    assert found(rig.session(), "a").median == pytest.approx(50)


def test_the_latest_timings_count(rig: Rig) -> None:
    rig.need(term("a"))
    rig.blocks(MOST)
    rig.ns["a"] = 300
    rig.blocks(MOST)
    rig.again.tell()
    roof = found(rig.session(), "a")
    assert (roof.low, roof.median, roof.high) == pytest.approx((300,) * 3)


def test_a_run_times_its_calls_on(
    bundled_speech: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "CallsAgain", CallsAgain)
    # What is timed may have to be loaded first, here for longer than so short a run allows.
    monkeypatch.setattr(calls_again, "AT_FIRST_NS", 10**10)
    told: list[dict[tuple[str, int], float]] = []
    tell = SessionWriter.calibration

    def noted(writer: SessionWriter, rows: list[dict[str, Any]]) -> None:
        tell(writer, rows)
        told.append({(row["name"], row["bytes"]): row["median"] for row in rows})

    monkeypatch.setattr(SessionWriter, "calibration", noted)
    path = tmp_path / "s.asrs"
    config = assign(presets.load("gmm-quick").config, {"block": 1, "replay": 0.01})
    speech = str(bundled_speech / "08-kal16-short.flac")
    execute(Request(config, "test", (speech,), None, path, repeat=10), Control(), lambda *_: None)
    with closing(Session.open(path)) as session:
        (stage,) = (number for number, one in session.stages.items() if one.name == STAGE)
        assert session.stages[stage].group == "setup"
        assert (session.spans["stage"] == stage).any()
        own = told[-1]
        assert {name for name, _ in own} >= {KERNEL_CALL, ADVANCE}
        assert len(own) < len(told[0]), "calls alone"
        for (name, size), median in own.items():
            assert found(session.calibration, name, size).median == median
