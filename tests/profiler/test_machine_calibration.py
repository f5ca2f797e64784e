"""The kept roofs: what is measured when, what stays, and what each tier says when it is not there."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from profiler_sessions import roof

from app.cli import _output, calibrate
from app.cli._tiers import NOT_YET, kinds_of_roofs
from pipelines.config import Config, assign
from pipelines.scoring import peaks
from profiler.analysis.machine_costs import MachineCosts
from profiler.errors import Cancelled
from profiler.machine.roofs import accesses, calibration, cpu, table
from profiler.machine.roofs.calibration import BUSY_SECONDS, Answer, Calibration
from profiler.machine.roofs.device import Missing
from profiler.machine.roofs.table import BANDWIDTH, LEAST_GAIN, MOST_GAIN, OVERHEAD, RATE, Key, Roof, RoofTable
from profiler.machine.roofs.timing import Effort, Work
from tests.each import each

QUICK = {"gemm": 1e11, "exp": 2e9}
REST = {"gemv": 3e10}


class Machine:
    """A plan of three roofs and a torch child; both record their requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1e9
        self.spread = 0.01
        self.factor = 1.0
        self.taken: list[str] = []
        self.asked: list[list[str]] = []
        self.answer = Answer()
        monkeypatch.setattr(calibration.time, "time", lambda: self.now)
        monkeypatch.setattr(calibration, "plan", self.plan)
        monkeypatch.setattr(calibration, "measure", self.torch)
        monkeypatch.setattr(calibration, "usable_cores", lambda: 2)

    def plan(self, counts: Iterable[int], kernels: Mapping[str, Work] | None, *, whole: bool) -> list[cpu.Step]:
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


def test_a_run_measures_what_it_lacks_and_nothing_twice(machine):
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


def test_a_calibration_adds_the_rest_to_what_runs_measured(machine):
    calibration.load_or_measure(1)
    machine.answer.roofs["torch on 2"] = [roof(RATE, "gemm.torch", 2e11, threads=2)]
    machine.answer.missing = {
        "device": [Missing("device", "none here")],
        "torch on 1": [Missing("torch on 1", "it ended")],
    }
    calibration.calibrate()
    assert machine.taken[2:] == ["gemv/1", "gemm/2", "exp/2", "gemv/2"]
    # A child that failed is called again.
    machine.answer.missing["torch on 1"] = []
    known = calibration.calibrate()
    assert machine.asked == [["device", "torch on 1", "torch on 2"], ["torch on 1"]]
    assert known.missing == [Missing("device", "none here")]
    rate = known.roof_table.rate("gemm", 2)
    assert rate.median == 2e11
    again = calibration.calibrate()
    assert again.as_dict() == known.as_dict() == calibration.load(calibration.file()).as_dict()
    calibration.calibrate(1, fresh=True)
    assert machine.asked[2:] == [["device", "torch on 1"]]
    assert machine.taken[6:] == ["gemm/1", "exp/1", "gemv/1"]
    assert calibration.load(calibration.file()).roof_table.rate("gemm", 2) == rate


def test_what_was_disturbed_is_measured_again_and_the_better_stays(machine):
    for passed, factor, spread, measured in (
        (0, 1.0, 0.9, 1),
        (0.5 * BUSY_SECONDS, 1.0, 0.9, 1),
        (BUSY_SECONDS, 0.5, 0.9, 2),
        (BUSY_SECONDS, 1.1, 0.01, 3),
        (100 * BUSY_SECONDS, 1.1, 0.01, 3),
    ):
        machine.now += passed
        machine.factor, machine.spread = factor, spread
        rate = calibration.load_or_measure(1).rate("gemm")
        assert machine.taken == ["gemm/1", "exp/1"] * measured
        assert rate.median == max(1.0, factor) * QUICK["gemm"]


def test_the_whole_plan_holds_what_every_run_needs_and_each_roof_once():
    for counts, whole in (([1], False), ([1, 2], True)):
        keys = [step.key for step in calibration.plan(counts, None, whole=whole)]
        assert len(set(keys)) == len(keys)
        for some in (cpu.plan(counts[-1], whole=whole), accesses.steps()):
            assert {step.key for step in some} <= set(keys)
    counts = [calibration.thread_counts(cores) for cores in (1, 3, 24)]
    assert counts == [[1], [1, 2, 3], [1, 2, 3, 4, 8, 16, 24]]


@each("spoiled", ["", "{", "[]", '{"roofs": [{}]}', '{"roofs": [], "unavailable": 3}', "\x00"])
def test_a_spoiled_file_is_measured_anew(machine, spoiled):
    calibration.load_or_measure(1)
    first = calibration.stored()
    calibration.file().write_text(spoiled)
    machine.taken.clear()
    assert calibration.load_or_measure(1) == first
    assert machine.taken == ["gemm/1", "exp/1"]
    assert calibration.load(calibration.file()).roofs


def test_nothing_half_is_kept(machine):
    calibration.calibrate(1)
    path = calibration.file()
    before = path.read_bytes()
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        calibration.calibrate(2, cancelled=lambda: next(answers))
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


def test_every_tier_has_a_figure_or_a_reason(machine):
    tiers = [*kinds_of_roofs(Calibration())]
    assert all(not tier.available and tier.reason for tier in tiers)
    assert {tier.name: tier.reason for tier in tiers}["roofs: device"] == NOT_YET
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
    tiers = [*kinds_of_roofs(known)]
    assert {
        "roofs: GEMM int8": "800 Gop/s with 2 threads",
        "roofs: bandwidth": "ladder from 16 KiB to 128 MiB",
        "roofs: GEMM float16": "a fallback",
        "roofs: device": "no accelerator",
    }.items() <= {tier.name: tier.reason for tier in tiers}.items()
    assert {tier.available for tier in tiers if tier.name in ("roofs: device", "roofs: GEMM float16")} == {False}
    assert any(tier.reason.startswith("1 of 6") for tier in tiers if tier.name == "roofs: steadiness")


def test_products_in_bytes_have_a_rate_that_layers_are_judged_by():
    config = assign(Config(), {"model": "dnn", "dnn.dtype": "int8"})
    for name, work in peaks.of(config).items():
        work.make()(2)
        assert work.operations > 0
        (key,) = (step.key for step in cpu.plan(1, {name: work}, whole=False) if step.key.dtype == "int8")
        assert RoofTable((Roof(*key, 5e9, 5e9, 5e9, "op/s"),)).rate("gemm:int8").median == 5e9
    assert set(peaks.everywhere()) <= set(peaks.of(config))


# What was once kept as steady: two threads of exponentials that did 3 500 times as much as one.
ABSURD = (roof(RATE, "exp.torch", 1166.0), roof(RATE, "exp.torch", 4.1e6, threads=2))


@each("kind", [RATE, table.KERNEL])
@each(
    "gain, accepted",
    [
        (0.99 * LEAST_GAIN, False),
        (1.01 * LEAST_GAIN, True),
        (2.0, True),
        (0.99 * MOST_GAIN * 2, True),
        (1.01 * MOST_GAIN * 2, False),
        (4.1e6 / 1166.0, False),
    ],
)
def test_two_threads_fit_one(kind, gain, accepted):
    one, two = roof(kind, "gemm", 1e9), roof(kind, "gemm", gain * 1e9, threads=2)
    known = RoofTable((one, two))
    find = known.rate if kind == RATE else known.kernel
    assert find("gemm") == one
    assert find("gemm", 2) == (two if accepted else None)
    assert set(known.refused) == (set() if accepted else {two})


def test_what_a_refused_roof_would_bound_is_not_attributed_and_named():
    costs = MachineCosts(RoofTable((ABSURD[0], ABSURD[1], roof(RATE, "fma", 1e9))))
    assert costs.operation_ns("exp", 2) is None
    assert list(costs.missing) == ["exp"]
    assert costs.operation_ns("exp", 1) is not None


def test_calibration_and_doctor_say_which_and_why():
    sentence = (
        "exp.torch float32 on 2 threads is 3.52e+03 times what one thread does, which cannot be; "
        "`asrscope calibrate --fresh` measures it again."
    )
    for roofs, sound in ((ABSURD, False), (ABSURD[:1], True)):
        known = Calibration()
        known.add(roofs, "torch", 0.0)
        text = _output.text(calibrate.document(calibrate.as_json(known)))
        assert (f"* {sentence}" not in text.splitlines()) == ("cannot be" not in text) == sound
        (tier,) = (tier for tier in kinds_of_roofs(known) if tier.name == "roofs: threads")
        assert (tier.available, tier.reason == sentence) == (sound, not sound)
