"""Roofs that are timed again while a run goes on: which, when, and what the session is told."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.run import roofs_again
from pipelines.run.roofs_again import APART_NS, AT_FIRST_NS, LEAST, MOST, RoofsAgain
from profiler.costs import ACCESS, CALL, KERNEL, Linear, Term
from profiler.machine.roofs.probe import Probe
from profiler.machine.roofs.table import OVERHEAD, PROBES, Roof, RoofTable
from profiler.machine.roofs.timing import PIECE_SECONDS, Task, Work
from profiler.session.reader import Session
from profiler.session.writer import SessionWriter
from profiler.spans import SPAN, Recorder
from tests.fake_clock import FakeClock

UNITS = 10.0
BLOCK_NS = 1_000_000


def kernel(name: str, ns: float, size: int = 0) -> Roof:
    """A kernel that takes `ns` a unit."""
    return Roof("kernel", name, "float32", 1, size, 1e9 / ns, 1e9 / ns, 1e9 / ns, "unit/s")


def term(kind: str, name: str, size: float = 0.0) -> tuple[Term, int]:
    return Term(kind, name, Linear(1.0), size), 1


AFTER = {"call": 1 << 20}
"""Bytes that are read before a call."""


class Rig:
    """A session, and a machine on which a unit of every kernel takes as many ns as is said."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
        self.path, self.clock = path, FakeClock(10**9)
        self.recorder = Recorder(self.clock)
        self.writer = SessionWriter(path, self.recorder, {})
        self.lane = self.recorder.lane("decode", decode=True)
        self.probe_ns = 1000
        self.ns = {"a": 100, "b": 200, "c": 300, "call": 400}
        self.ran: list[str] = []
        self.repeats: list[int] = []
        probing: Task = lambda repeats: self.clock.advance(self.probe_ns * repeats)  # noqa: E731
        monkeypatch.setattr("profiler.machine.roofs.probe.TASKS", (lambda: probing,) * 2)
        monkeypatch.setattr(roofs_again, "work_of", self.work_of)
        self.probe = Probe(self.recorder, self.lane)
        self.again = RoofsAgain(self.recorder, self.lane, self.writer, self.probe, share)

    def work_of(self, name: str, size: int) -> Work:
        assert size == AFTER.get(name, 0), "over much data nothing is timed again"

        def task(repeats: int) -> None:
            self.ran.append(name)
            self.repeats.append(repeats)
            self.clock.advance(int(self.ns[name] * UNITS) * repeats)

        return Work(UNITS, lambda: task)

    def need(self, *terms: tuple[Term, int], known: Iterable[Roof] = ()) -> None:
        found = [*known, *(kernel(name, ns) for name, ns in self.ns.items() if name != "call")]
        found.append(Roof(OVERHEAD, "call", "", 1, AFTER["call"], 400.0, 400.0, 400.0, "ns"))
        found.append(kernel(PROBES[0], 1000.0))
        self.writer.calibration(RoofTable(tuple(found)).rows())
        before = len(self.ran)
        self.again.need(terms, RoofTable(tuple(found)))
        assert len(self.ran) == before, "the run goes on at once"
        self.blocks(len(self.again._waiting))
        self.lane.take()  # what making their data took
        self.ran.clear()
        self.repeats.clear()

    def blocks(self, count: int) -> None:
        """So many blocks, each as long after the other as may be between two timings."""
        for _ in range(count):
            self.again.take(self.clock.advance(APART_NS), 0)

    def session(self) -> RoofTable:
        self.writer.close()
        with Session.open(self.path) as session:
            return session.calibration


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterable[Rig]:
    made = Rig(tmp_path / "s.asrs", monkeypatch, 0.5)
    yield made
    made.writer.close()


def found(roof: Roof | None) -> float:
    assert roof is not None
    return 1e9 / roof.median


def test_the_session_is_told_the_middle_of_what_the_run_met(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"), term(CALL, "call", AFTER["call"]))
    for a in (150, 170, 140):
        rig.ns |= {"a": a, "call": a}
        rig.blocks(1)
    table = rig.session()
    assert found(table.kernel("a")) == pytest.approx(150)
    assert found(table.kernel("b")) == pytest.approx(200), "as it was: no law named it"
    roof = table.kernel("a")
    assert roof is not None
    assert (1e9 / roof.low, 1e9 / roof.high) == pytest.approx((160, 145)), "low: the slowest"
    call = table.call("call", AFTER["call"])
    assert call is not None
    assert (call.low, call.median, call.high) == pytest.approx((140, 150, 160)), "the fastest"


def test_fewer_timings_than_can_be_believed_change_nothing(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"))
    rig.ns["a"] = 150
    rig.blocks(LEAST - 1)
    rig.again.tell()
    assert found(rig.session().kernel("a")) == pytest.approx(100)


def test_what_much_data_takes_longer_is_added_to_what_is_found(rig: Rig) -> None:
    rig.need(term(KERNEL, "a", 1e6), term(ACCESS, "b", 1e7), known=[kernel("a", 130.0, 1_000_000)])
    rig.ns["a"] = 150
    rig.blocks(LEAST)
    table = rig.session()
    assert found(table.kernel("a", size_bytes=1e6)) == pytest.approx(180)
    assert found(table.kernel("a")) == pytest.approx(150)


def test_timings_of_a_slow_moment_count_as_at_the_probes_roof(rig: Rig) -> None:
    """Readers slow the roof down by the same."""
    rig.need(term(KERNEL, "a"))
    rig.probe_ns, rig.ns["a"] = 2000, 200
    rig.probe.take(rig.clock(), 0)
    rig.blocks(LEAST)
    assert found(rig.session().kernel("a")) == pytest.approx(100)


def test_all_take_turns_and_none_is_asked_for_that_is_not_named(rig: Rig) -> None:
    rig.ns |= dict.fromkeys("defg", 50)
    terms = [term(KERNEL, name) for name in "adefg"]
    rig.need(*terms, term(CALL, "numpy"), term(ACCESS, "gather", 1e6))
    rig.blocks(5)
    counts = {name: rig.ran.count(name) for name in sorted(set(rig.ran))}
    assert set(counts) == set("adefg")
    assert max(counts.values()) - min(counts.values()) <= 2


@pytest.mark.parametrize(("share", "ns"), [(0.01, 100), (0.01, 100_000), (0.2, 200_000)])
def test_it_keeps_to_its_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, ns: int
) -> None:
    """Of short pieces, whose distance is what counts, and of long ones."""
    rig = Rig(tmp_path / "s.asrs", monkeypatch, share)
    made = rig.clock()
    rig.ns["a"] = ns
    rig.need(term(KERNEL, "a"))
    began = rig.clock()
    taken = b""
    for _ in range(200):
        for _ in range(100):
            rig.again.take(rig.clock.advance(BLOCK_NS), 0)
        taken += bytes(rig.lane.take())  # it holds so many spans
    spans = np.frombuffer(taken, SPAN)
    mine = spans[spans["stage"] == rig.recorder.stage_id("setup.roofs again")]
    longest = int(mine["duration_ns"].max())
    assert len(mine) > 100
    assert mine["start_ns"][0] <= began + APART_NS + BLOCK_NS, "short runs have them as well"
    assert mine["duration_ns"].sum() <= AT_FIRST_NS + share * (rig.clock() - made) + longest
    ends = mine["start_ns"] + mine["duration_ns"]
    assert (mine["start_ns"][1:] - ends[:-1] >= APART_NS).all()
    rig.writer.close()


def test_no_share_no_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(tmp_path / "s.asrs", monkeypatch, 0.0)
    rig.need(term(KERNEL, "a"))
    now = rig.clock.advance(10**9)
    assert rig.again.take(now, 0) == now
    assert not rig.ran
    rig.writer.close()


def test_after_a_change_what_is_still_needed_goes_on_and_the_rest_is_left(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"), term(KERNEL, "b"))
    rig.ns |= {"a": 110, "b": 210}
    rig.blocks(LEAST - 1)
    rig.need(term(KERNEL, "a"), term(KERNEL, "c"))
    rig.ns |= {"a": 120, "c": 330}
    rig.blocks(LEAST)
    assert "b" not in rig.ran
    table = rig.session()
    assert found(table.kernel("a")) == pytest.approx(120)
    assert found(table.kernel("c")) == pytest.approx(330)


def test_a_piece_is_timed_once_its_data_are_back_in_the_caches(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"))
    rig.blocks(1)
    before, piece = rig.repeats
    assert before == 1
    assert piece * UNITS * rig.ns["a"] >= PIECE_SECONDS * 1e9 > piece / 2 * UNITS * rig.ns["a"]


def test_eight_take_two_turns_of_four(rig: Rig) -> None:
    names = "abcdefgh"
    rig.ns |= dict.fromkeys(names, 50)
    rig.need(*(term(KERNEL, name) for name in names))
    rig.blocks(2)
    assert rig.ran[::2] == list(names)
    rig.blocks(1)
    assert rig.ran[16::2] == list("abcd")


def test_what_is_found_is_told_again_when_there_is_twice_as_much(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(rig.writer, "calibration", lambda _: told.append(rig.ran.count("a") // 2))
    rig.need(term(KERNEL, "a"))
    told.clear()
    rig.blocks(4 * LEAST + 1)
    assert told == [LEAST, 2 * LEAST, 4 * LEAST]
    rig.again.tell()
    rig.again.tell()
    assert told[3:] == [4 * LEAST + 1], "at the end what is new, once"


def test_until_all_have_been_timed_often_enough_nothing_is_told(rig: Rig) -> None:
    names = "abdef"
    rig.ns |= dict.fromkeys(names, 50)
    rig.need(*(term(KERNEL, name) for name in names))
    rig.ns |= dict.fromkeys(names, 70)
    rig.blocks(LEAST)
    assert {rig.ran.count(name) // 2 for name in names} == {LEAST - 1, LEAST}
    rig.again.tell()
    assert found(rig.session().kernel("a")) == pytest.approx(50)


def test_the_latest_timings_count(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"))
    rig.blocks(MOST)
    rig.ns["a"] = 300
    rig.blocks(MOST)
    rig.again.tell()
    roof = rig.session().kernel("a")
    assert roof is not None
    assert [1e9 / ns for ns in (roof.low, roof.median, roof.high)] == pytest.approx([300] * 3)


def test_work_on_more_threads_and_calls_that_every_calibration_has_are_left(rig: Rig) -> None:
    numpy = Roof(OVERHEAD, "numpy", "", 1, 0, 900.0, 900.0, 900.0, "ns")
    two_threads = term(KERNEL, "b")[0], 2
    rig.need(term(KERNEL, "a"), term(CALL, "numpy"), two_threads, known=[numpy])
    rig.blocks(LEAST)
    assert set(rig.ran) == {"a"}


def test_what_is_still_needed_is_not_begun_anew(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"))
    rig.blocks(LEAST - 1)
    rig.ran.clear()
    table = RoofTable((kernel("a", 100), kernel(PROBES[0], 1000.0)))
    rig.again.need([term(KERNEL, "a")], table)
    assert rig.ran == []
    rig.ns["a"] = 150
    rig.blocks(1)
    assert found(rig.session().kernel("a")) == pytest.approx(100), "the middle of all three"


def test_over_much_data_an_interval_stays_in_proportion_and_other_threads_are_others(
    rig: Rig,
) -> None:
    far = replace(kernel("a", 125.0, 1_000_000), low=4e6, high=16e6)
    rig.need(term(KERNEL, "a", 1e6), known=[far, replace(far, threads=2)])
    rig.ns["a"] = 175
    rig.blocks(LEAST)
    table = rig.session()
    near = table.kernel("a", size_bytes=1e6)
    assert near is not None
    assert (near.low, near.median, near.high) == pytest.approx((2.5e6, 5e6, 10e6))
    assert table.kernel("a", 2, 1e6) == replace(far, threads=2)


def test_much_data_is_never_faster_than_little(rig: Rig) -> None:
    rig.need(term(KERNEL, "a", 1e6), known=[kernel("a", 80.0, 1_000_000)])
    rig.ns["a"] = 150
    rig.blocks(LEAST)
    assert found(rig.session().kernel("a", size_bytes=1e6)) == pytest.approx(150)


def test_a_short_run_has_them_before_its_share_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path / "s.asrs", monkeypatch, 1e-6)
    rig.ns["a"] = 100_000
    rig.need(term(KERNEL, "a"))
    rig.blocks(50)
    spans = np.frombuffer(rig.lane.take(), SPAN)
    spent = spans[spans["stage"] == rig.recorder.stage_id("setup.roofs again")]["duration_ns"]
    assert AT_FIRST_NS < spent.sum() <= AT_FIRST_NS + spent.max()
    rig.writer.close()


def test_what_is_known_at_the_end_is_what_more_data_is_counted_from(rig: Rig) -> None:
    rig.need(term(KERNEL, "a"), known=[kernel("a", 250.0, 1 << 20)])
    rig.blocks(LEAST)
    rig.again.known(RoofTable((kernel("a", 100.0), kernel("a", 400.0, 1 << 20))))
    rig.ns["a"] = 100
    rig.again.tell()
    table = rig.session()
    assert found(table.kernel("a", size_bytes=1 << 20)) == pytest.approx(400)
