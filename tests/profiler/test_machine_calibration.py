"""The kept roofs: what is measured when, what stays, and what each tier says when it is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from profiler_sessions import roof

from profiler.costs import CALL, KERNEL, Linear, Term
from profiler.errors import Cancelled
from profiler.machine.roofs import calibration, cpu, probe, terms, timing, torch_child
from profiler.machine.roofs.calibration import (
    BUSY_SECONDS,
    MOMENT_SECONDS,
    MOMENTS,
    OWN_MOMENTS,
    SETTLING_SECONDS,
    Calibration,
)
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Key, Roof
from profiler.machine.roofs.tiers import NOT_YET, roof_tiers
from profiler.machine.roofs.timing import Effort, Task, Work
from profiler.machine.roofs.torch_child import Answer, Missing
from profiler.process import kernel_cache

QUICK = {"gemm": 1e11, "exp": 2e9}
REST = {"gemv": 3e10}


class Machine:
    """A plan of three roofs and a torch child, both of which keep a record of what they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1e9
        self.spread = 0.01
        self.factor = 1.0
        self.taken: list[str] = []
        self.asked: list[list[str]] = []
        self.answer = Answer()
        monkeypatch.setattr(calibration.time, "time", lambda: self.now)
        monkeypatch.setattr(calibration, "plan", self.plan)
        monkeypatch.setattr(torch_child, "measure", self.torch)
        monkeypatch.setattr(calibration, "usable_cores", lambda: 2)

    def plan(
        self, counts: Iterable[int], kernels: Mapping[str, Work] | None, *, whole: bool
    ) -> list[cpu.Step]:
        rates = {**QUICK, **dict.fromkeys(kernels or {}, 1e9), **(REST if whole else {})}
        keys = {Key(RATE, name, threads=n): rate for n in counts for name, rate in rates.items()}
        return [cpu.Step(key, self._taker(key, rate)) for key, rate in keys.items()]

    def _taker(self, key: Key, rate: float):  # type: ignore[no-untyped-def]
        def take(effort: Effort) -> Roof:
            self.taken.append(f"{key.name}/{key.threads}")
            return roof(RATE, key.name, self.factor * rate, 0, key.threads, self.spread)

        return take

    def torch(self, parts: Sequence[str], *_: object) -> Answer:
        self.asked.append(list(parts))
        return self.answer


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    return Machine(monkeypatch)


def stored() -> Path:
    return calibration.file()


def test_a_run_measures_what_it_lacks_and_nothing_twice(machine: Machine) -> None:
    first = calibration.load_or_measure(1)
    assert machine.taken == ["gemm/1", "exp/1"]
    assert calibration.load_or_measure(1) == first == calibration.stored()
    assert len(machine.taken) == 2
    calibration.load_or_measure(2)
    assert machine.taken[2:] == ["gemm/2", "exp/2"]
    kernel = Work(1.0, lambda: lambda n: None)
    table = calibration.load_or_measure(1, kernels={"exp.scorer": kernel})
    assert machine.taken[4:] == ["exp.scorer/1"]
    assert table.rate("exp.scorer") is not None
    calibration.load_or_measure(1, fresh=True)
    assert machine.taken[5:] == ["gemm/1", "exp/1"]
    assert not machine.asked


def test_a_calibration_adds_the_rest_to_what_runs_measured(machine: Machine) -> None:
    calibration.load_or_measure(1)
    machine.answer.roofs["torch on 2"] = [roof(RATE, "gemm.torch", 2e11, threads=2)]
    machine.answer.missing["device"] = [Missing("device", "none here")]
    known = calibration.calibrate()
    assert machine.taken[2:] == ["gemv/1", "gemm/2", "exp/2", "gemv/2"]
    assert machine.asked == [["device", "torch on 1", "torch on 2"]]
    assert known.missing == [Missing("device", "none here")]
    rate = known.roof_table.rate("gemm", 2)
    assert rate is not None
    assert rate.median == 2e11
    again = calibration.calibrate()
    assert again.as_dict() == known.as_dict() == calibration.load(stored()).as_dict()
    assert len(machine.asked) == 1
    calibration.calibrate(1, fresh=True)
    assert machine.asked[1:] == [["device", "torch on 1"]]
    assert machine.taken[6:] == ["gemm/1", "exp/1", "gemv/1"]
    assert calibration.load(stored()).roof_table.rate("gemm", 2) == rate


def test_a_fresh_calibration_takes_what_cost_laws_named_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"tile", "gone", "a call"}
    made: list[tuple[str, int]] = []

    def figure(key: Key, *_: object) -> Roof:
        made.append((key.name, key.bytes))
        return Roof(*key, 1e9, 1e9, 1e9, "x")

    for taker in ("together", "roof_of", "after_pauses"):
        monkeypatch.setattr(terms, taker, figure)

    def work_of(name: str, size: int) -> Work:
        if name not in names:
            raise KeyError(name)
        return Work(1.0, lambda: lambda repeats: None)

    named = [
        (Term(KERNEL, "tile", Linear(1.0), 1 << 20), 1),
        (Term(KERNEL, "gone", Linear(1.0)), 1),
        (Term(KERNEL, "tile", Linear(1.0)), 2),
        (Term(CALL, "a call", Linear(1.0)), 1),
    ]
    calibration.measure_terms(named, work_of)
    before = calibration.load(stored()).measured
    names.remove("gone")
    made.clear()
    machine.now += 1.0
    calibration.calibrate(1, work_of=work_of)
    assert not made
    known = calibration.calibrate(1, fresh=True, work_of=work_of)
    # On two threads none was wanted.
    assert sorted(made) == [("a call", 0), ("tile", 0), ("tile", 1 << 20)]
    ours = [Key(KERNEL, "tile"), Key(KERNEL, "tile", bytes=1 << 20), Key(OVERHEAD, "a call", "")]
    assert all(known.measured[key] > before[key] for key in ours)
    two = Key(KERNEL, "tile", threads=2)
    assert known.measured[two] == before[two]
    assert not [key for key in known.roofs if key.name == "gone"]


def test_a_child_that_failed_is_asked_again(machine: Machine) -> None:
    machine.answer.missing["torch on 1"] = [Missing("torch on 1", "it ended early")]
    calibration.calibrate(1)
    machine.answer.missing["torch on 1"] = []
    assert not calibration.calibrate(1).missing
    assert machine.asked == [["device", "torch on 1"], ["torch on 1"]]


def test_what_was_disturbed_is_measured_again_and_the_better_stays(machine: Machine) -> None:
    machine.spread = 0.9
    for _ in range(OWN_MOMENTS):
        machine.now += MOMENT_SECONDS
        calibration.load_or_measure(1)
    assert machine.taken == ["gemm/1", "exp/1"] * OWN_MOMENTS
    machine.now += BUSY_SECONDS / 2
    calibration.load_or_measure(1)
    assert len(machine.taken) == 6, "there are as many moments as are wanted"
    machine.now += BUSY_SECONDS
    machine.factor = 0.5
    rate = calibration.load_or_measure(1).rate("gemm")
    assert machine.taken[6:] == ["gemm/1", "exp/1"]
    assert rate is not None
    assert rate.median == QUICK["gemm"]
    machine.now += BUSY_SECONDS
    machine.spread, machine.factor = 0.01, 1.1
    calibration.load_or_measure(1)
    assert len(machine.taken) == 10
    machine.now += 100 * BUSY_SECONDS
    calibration.load_or_measure(1)
    assert len(machine.taken) == 10


def test_steps_beside_the_terms_are_taken_at_one_more_moment_as_these_are(machine: Machine) -> None:
    def work_of(name: str, size: int) -> Work:
        raise KeyError(name)

    calibration.load_or_measure(1)
    machine.now += MOMENT_SECONDS
    beside = machine.plan([1], None, whole=False)
    calibration.measure_terms([], work_of, beside=beside, settle=False)
    assert machine.taken == ["gemm/1", "exp/1"]
    calibration.measure_terms([], work_of, beside=beside)
    assert machine.taken == ["gemm/1", "exp/1"] * 2


def test_a_roof_over_shared_caches_is_taken_at_several_moments_and_their_middle_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([2e9, 3e9, 1e9, 4e9, 9e9, 8e9])
    taken: list[int] = []

    def figure(key: Key, *_: object) -> Roof:
        taken.append(key.bytes)
        rate = 1e9 if not key.bytes else next(rates)
        return Roof(*key, rate, rate, rate, "x")

    monkeypatch.setattr(terms, "together", figure)
    monkeypatch.setattr(terms, "steps_of", lambda keys, work_of: [_taken(k, figure) for k in keys])
    wide = [(Term(KERNEL, "tile", Linear(1.0), 4 << 20), 1)]

    def after(seconds: float, *, settle: bool = True, aged: float = math.inf) -> float:
        machine.now += seconds
        table = calibration.measure_terms(wide, work_of, settle=settle, aged=aged)
        (roof,) = (roof for roof in table.roofs if roof.bytes)
        return roof.median

    def work_of(name: str, size: int) -> Work:
        raise AssertionError

    assert after(0) == 2e9
    # Not at once again, nor where what is known has to do.
    assert after(MOMENT_SECONDS / 2) == after(MOMENT_SECONDS, settle=False) == 2e9
    assert sorted(taken) == [0, 4 << 20]
    assert [after(0), *(after(MOMENT_SECONDS) for _ in range(3))] == [2e9, 2e9, 2e9, 3e9]
    # Settled, also for the next process; what fits nearer caches sooner.
    assert after(100 * MOMENT_SECONDS) == 3e9
    assert sorted(taken) == OWN_MOMENTS * [0] + MOMENTS * [4 << 20]
    # At the end of a run what has aged is taken once more, and the oldest moment no longer counts.
    assert after(0, aged=101 * MOMENT_SECONDS) == 3e9
    assert after(0, aged=99 * MOMENT_SECONDS) == 4e9
    assert after(0, aged=99 * MOMENT_SECONDS) == 4e9
    assert sorted(taken) == (OWN_MOMENTS + 1) * [0] + (MOMENTS + 1) * [4 << 20]


def _never() -> Task:
    raise AssertionError


def test_what_is_known_is_taken_again_for_a_moment_only_the_longest_ago_first(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(count(0.0, 0.6 * SETTLING_SECONDS))
    monkeypatch.setattr(timing, "clock", lambda: next(clock))
    taken: list[str] = []

    def figure(key: Key, *_: object) -> Roof:
        taken.append(key.name)
        return Roof(*key, 1e9, 1e9, 1e9, "x")

    monkeypatch.setattr(
        calibration,
        "plan",
        lambda *_, **__: [_taken(Key(KERNEL, name, bytes=4 << 20), figure) for name in "abc"],
    )
    calibration.load_or_measure(1)
    for _ in range(3):
        machine.now += MOMENT_SECONDS
        calibration.load_or_measure(1)
    assert "".join(taken) == "abc" + "a" + "b" + "c"


def test_what_was_taken_too_few_times_goes_before_what_has_aged() -> None:
    known = Calibration()
    for name, times, at in (("aged", MOMENTS, 0.0), ("older", MOMENTS, -1.0), ("new", 1, 100.0)):
        for _ in range(times):
            known.add([Roof(KERNEL, name, "", 1, 4 << 20, 1e9, 1e9, 1e9, "x")], "run", at)
    steps = [_taken(key, known.roofs.__getitem__) for key in known.roofs]
    unsettled = calibration._unsettled(known, steps, 1.0, 600.0)
    assert [step.key.name for step in unsettled] == ["new", "older", "aged"]


def _taken(key: Key, figure: Callable[[Key], Roof]) -> cpu.Step:
    return cpu.Step(key, lambda effort: figure(key))


def test_terms_are_measured_where_they_lack_and_kept_with_the_rest(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def figure(key: Key, *_: object) -> Roof:
        return Roof(*key, 1e9, 1e9, 1e9, "x")

    monkeypatch.setattr(terms, "together", figure)
    monkeypatch.setattr(terms, "roof_of", figure)
    monkeypatch.setattr(terms, "after_pauses", figure)

    def work_of(name: str, size: int) -> Work:
        asked.append((name, size))
        return Work(100.0, lambda: lambda repeats: None)

    tile, call = Term(KERNEL, "tile/4", Linear()), Term(CALL, "kernel call", Linear())
    calibration.load_or_measure(1)
    table = calibration.measure_terms([(tile, 1), (call, 1)], work_of)
    assert asked == [("tile/4", 0), ("kernel call", 0)]
    assert table == calibration.stored()
    assert table.kernel("tile/4") is not None
    assert table.call("kernel call") is not None
    assert table.rate("gemm") is not None
    over = Term(KERNEL, "tile/4", Linear(), 1 << 20)
    calibration.measure_terms([(tile, 1), (over, 1), (over, 2)], work_of)
    assert sorted(asked[2:]) == [("tile/4", 0), *[("tile/4", 1 << 20)] * 2]
    calibration.measure_terms([(tile, 2), (over, 1), (call, 1)], work_of)
    assert len(asked) == 5
    more = [(Term(KERNEL, f"tile/{n}", Linear()), 1) for n in (8, 16)]
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        calibration.measure_terms(more, work_of, cancelled=lambda: next(answers))
    assert calibration.stored().kernel("tile/8") is None


def test_the_whole_plan_holds_what_every_run_needs_and_each_roof_once() -> None:
    for counts, whole in (([1], False), ([1, 2], True)):
        steps = calibration.plan(counts, None, whole=whole)
        keys = [step.key for step in steps]
        assert len(set(keys)) == len(keys)
        for some in (cpu.plan(counts[-1], whole=whole), terms.access_steps(), probe.steps()):
            assert {step.key for step in some} <= set(keys)


@pytest.mark.parametrize(
    "spoiled", ["", "{", "[]", '{"roofs": [{}]}', '{"roofs": [], "unavailable": 3}', "\x00"]
)
def test_a_spoiled_file_is_measured_anew(machine: Machine, spoiled: str) -> None:
    first = calibration.load_or_measure(1)
    stored().write_text(spoiled)
    machine.taken.clear()
    assert calibration.load_or_measure(1) == first
    assert machine.taken == ["gemm/1", "exp/1"]
    assert calibration.load(stored()).roofs


def test_nothing_half_is_kept(machine: Machine) -> None:
    calibration.calibrate(1)
    before = stored().read_bytes()
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        calibration.calibrate(2, cancelled=lambda: next(answers))
    assert stored().read_bytes() == before
    assert [path.name for path in stored().parent.iterdir()] == [stored().name]


def test_another_method_or_build_or_other_kernels_have_a_file_of_their_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stored()
    monkeypatch.setattr(calibration, "METHOD", 99)
    other = stored()
    monkeypatch.setattr(calibration, "BUILD", ())
    built = stored()
    monkeypatch.setattr(kernel_cache, "own", lambda: "faster")
    assert len({one, other, built, stored()}) == 4


def test_thread_counts_thin_out_on_many_cores() -> None:
    assert calibration.thread_counts(1) == [1]
    assert calibration.thread_counts(3) == [1, 2, 3]
    assert calibration.thread_counts(24) == [1, 2, 3, 4, 8, 16, 24]


def test_every_tier_has_a_figure_or_a_reason(machine: Machine) -> None:
    tiers = {tier.name: tier for tier in roof_tiers(Calibration())}
    assert all(not tier.available and tier.detail for tier in tiers.values())
    assert tiers["roofs: device"].detail == NOT_YET
    known = Calibration()
    known.add(
        [
            roof(RATE, "gemm", 1e11, spread=0.01),
            Roof(RATE, "gemm.torch", "int8", 2, 0, 8e11, 8e11, 8e11, "op/s"),
            roof(RATE, "exp.numpy", 2e9, spread=0.5),
            roof(BANDWIDTH, "read", 1e11, 1 << 14, spread=0.01),
            roof(BANDWIDTH, "read", 2e10, 1 << 27, spread=0.01),
            roof(OVERHEAD, "numpy", 800.0),
        ],
        "run",
        0.0,
    )
    known.unavailable["device"] = [Missing("device", "no accelerator")]
    known.unavailable["torch on 1"] = [Missing("gemm.torch float16", "a fallback")]
    tiers = {tier.name: tier for tier in roof_tiers(known)}
    assert tiers["roofs: GEMM int8"].detail == "800 Gop/s with 2 threads"
    assert tiers["roofs: bandwidth"].detail == "ladder from 16 KiB to 128 MiB"
    assert not tiers["roofs: GEMM float16"].available
    assert tiers["roofs: GEMM float16"].detail == "a fallback"
    assert tiers["roofs: device"].detail == "no accelerator"
    assert tiers["roofs: steadiness"].detail.startswith("1 of 6")


def test_the_scorers_kernels_compute_what_they_are_named_after() -> None:

    from pipelines.scoring import roofs

    assert set(roofs.KERNELS) == {"exp.scorer", "log.scorer", "gemm.scorer"}
    source = np.linspace(0.1, 5.0, roofs.SIZE, dtype=np.float32)
    target = np.empty_like(source)
    roofs._log(source, target, 2)
    np.testing.assert_allclose(target, np.log(source), rtol=1e-5, atol=1e-6)
    roofs._exp(-source, target, 2)
    np.testing.assert_allclose(target, np.exp(-source), rtol=1e-5)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(roofs.ROWS, roofs.DEPTH)).astype(np.float32)
    b = rng.normal(size=(roofs.PANELS, roofs.DEPTH, 16)).astype(np.float32)
    c = np.empty((roofs.ROWS, 16 * roofs.PANELS), np.float32)
    roofs._product(a, b, c, 2)
    np.testing.assert_allclose(c, a @ np.concatenate(list(b), axis=1), atol=1e-4)
    flops = 2 * a.size * c.shape[1]
    for (name, work), operations in zip(
        roofs.KERNELS.items(), (roofs.SIZE, roofs.SIZE, flops), strict=True
    ):
        task: Task = work.make()
        task(1)
        assert work.operations == operations, name
