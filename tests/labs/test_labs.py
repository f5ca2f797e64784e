"""The frame of the labs: what lists them loads little, what runs them leaves a valid session however it ends."""

from contextlib import closing
from typing import Annotated

import pytest

from pipelines import labs
from pipelines.config.options import setting
from pipelines.labs import record, running
from pipelines.labs.chart import Axis, Bars, Chart
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.desk import LEAST_ROUNDS, Desk, per_call
from pipelines.labs.sweep import Sweep, SweepResult, Timings, key, one_size, run_all
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, UNDECIDED, Finding, all_of, at_least, at_most
from profiler.analysis.comparison.statistics import Ratio
from profiler.errors import BadInput
from profiler.machine.describe import usable_cores
from profiler.session.reader import Session
from tests.each import each
from tests.labs.contract import at_size, timings


class Threads(Parameters, frozen=True, kw_only=True):
    threads: Annotated[int, setting("Threads", "0: all.", ge=0, le=64)] = 0


class Counted(Measured, frozen=True, kw_only=True):
    times: dict[str, list[float]]
    level: dict[int, int]


def planted(measure, needed=0):
    return Lab(
        claim="Both take the same.",
        source="note 0",
        group="scoring",
        measured="Nothing.",
        bound="Always, as the claim has it.",
        steps=(
            measure,
            lambda m: Finding("holds here", "So it is.", {"rounds": float(len(m.times["a"]))}),
            lambda m: Chart(Axis("arm"), Axis("time", "s"), (Bars("a", (1.0,)),)),
        ),
        follows={},
        bytes_needed=lambda _: needed,
    )


def two_arms(parameters: Parameters, desk: Desk) -> Counted:
    arms, costs = dict.fromkeys("ab", lambda: None), {"a": per_call({"fma": 8.0}, 64.0)}
    return Counted(times=desk.turns(arms, seconds=0.0, inner={"a": 3, "b": 3}, costs=costs), level={1: 32768})


@pytest.fixture
def run(monkeypatch, tmp_path):
    def execute(measure, needed=0, **more):
        lab = planted(measure, needed)
        monkeypatch.setattr(labs, "load", lambda name: lab)
        return running.execute(running.Request("planted", {}, tmp_path / "a.asrs"), **more)

    return execute


def test_a_run_is_a_session_that_says_what_was_found(tmp_path, run):
    outcome = run(two_arms)
    assert (outcome.state, outcome.problem) == ("closed", None)
    with closing(Session.open(tmp_path / "a.asrs")) as session:
        assert session.state == "closed"
        names = {stage.name: number for number, stage in session.stages.items()}
        of_a = session.spans[session.spans["stage"] == names["a"]]
        assert len(of_a) == LEAST_ROUNDS
        assert set(of_a["work0"]) == {3}
        assert session.costs[names["a"], 0].operations["fma"].of(of_a).tolist() == [24.0] * len(of_a)
        found = record.read(session.meta)
        times = [span["duration_ns"] / 3e9 for span in of_a]
    assert found.measured == outcome.measured
    assert outcome.measured.times["a"] == pytest.approx(times)
    assert found.finding == outcome.finding
    assert found.finding.figures == {"rounds": LEAST_ROUNDS}


def test_sizes_that_do_not_fit_memory_are_refused_with_their_bytes(tmp_path, run):
    with pytest.raises(BadInput, match=f"{1 << 60:,} bytes"):
        run(two_arms, needed=1 << 60)
    assert not (tmp_path / "a.asrs").exists()


def test_a_lab_that_dies_leaves_a_valid_session(tmp_path, run):
    def failing(parameters: Parameters, desk: Desk) -> Counted:
        two_arms(parameters, desk)
        raise BadInput("The worker 1 died: out of cards.")

    outcome = run(failing)
    assert (outcome.state, outcome.problem) == ("failed", "The worker 1 died: out of cards.")
    with closing(Session.open(tmp_path / "a.asrs")) as session:
        assert (session.state, session.meta["lab"]["problem"]) == ("failed", outcome.problem)
        assert len(session.spans) == 4 * LEAST_ROUNDS


def test_no_threads_are_all_of_them(run):
    """`threads=0` in a process that has torch loaded: torch refuses the number 0."""
    import torch

    found = []

    def measured(parameters: Threads, desk: Desk) -> Counted:
        found.append(torch.get_num_threads())
        return two_arms(parameters, desk)

    assert run(measured).state == "closed"
    assert found == [usable_cores()]


def test_a_stop_request_ends_a_lab_between_turns(tmp_path, run):
    asked = []

    def stopped(parameters: Parameters, desk: Desk) -> Counted:
        return Counted(times=desk.turns({"a": lambda: asked.append(1)}, inner={"a": 1}), level={})

    outcome = run(stopped, stopping=lambda: len(asked) > 2)
    assert (outcome.state, outcome.finding, len(asked)) == ("stopped", None, 3)
    with closing(Session.open(tmp_path / "a.asrs")) as session:
        assert session.state == "stopped"
        assert record.read(session.meta).finding is None


def test_progress_of_a_part_is_part_of_the_whole():
    said = []
    desk = Desk(progress=lambda what, share: said.append(share))
    with desk.part(0.5, 1.0), desk.part(0.0, 0.5):
        desk.progress("half of the half", 0.5)
    desk.progress("all", 1.0)
    assert said == [0.625, 1.0]


@each(
    "fact",
    [
        None,
        [],
        {"name": "../../etc"},
        {"name": "matrix-orders", "parameters": {"n": "large"}},
        {"name": "matrix-orders", "parameters": {}, "measured": {"n": 3}},
    ],
)
def test_a_strangers_fact_is_no_lab(fact):
    assert record.read({"lab": fact}) is None


BOUND = 1.5


@each(
    "low, high, least, most",
    [
        (1.0, 1.4, FAILS, HOLDS),
        (1.0, 1.5, UNDECIDED, HOLDS),  # 1.5 is both: 1.5 or more, and 1.5 or less
        (1.4, 1.6, UNDECIDED, UNDECIDED),
        (1.5, 2.0, HOLDS, UNDECIDED),
        (1.6, 2.0, HOLDS, FAILS),
        (1.5, 1.5, HOLDS, HOLDS),
        (None, None, UNDECIDED, UNDECIDED),
    ],
)
def test_an_interval_decides_where_all_of_it_lies_on_one_side(low, high, least, most):
    ratio = Ratio(1.5, low, high)
    assert at_least(ratio, BOUND) == least
    assert at_most(ratio, BOUND) == most
    assert at_least(None, BOUND) == at_most(None, BOUND) == UNDECIDED


@each(
    "parts, verdict",
    [
        ((HOLDS, UNDECIDED, FAILS, IMPOSSIBLE), FAILS),
        ((HOLDS, UNDECIDED, IMPOSSIBLE), UNDECIDED),
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, IMPOSSIBLE), PART),
        ((IMPOSSIBLE, IMPOSSIBLE), IMPOSSIBLE),
    ],
)
def test_the_worst_part_of_a_claim_decides(parts, verdict):
    assert all_of(*parts) == verdict


class Calls:
    """Variants that write down who is called: "all" at every size, "small" at 1 alone."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []

    def variants(self, size: int):
        names = ["all"] + (["small"] if size == 1 else [])
        return {name: lambda name=name: self.made.append((name, size)) for name in names}

    def sweep(self, **more) -> Sweep:
        return Sweep(self.variants, [1, 4], "size {size}", calls=lambda variant, size: 1, **more)


@pytest.mark.parametrize("together", [True, False])
def test_every_cell_is_timed_in_turns(together):
    calls = Calls()
    found = calls.sweep(together=together).run(Desk(), 0.0)
    assert found.cells() == [("all", 1), ("all", 4), ("small", 1)]
    assert {len(found.rounds(*cell)) for cell in found.cells()} == {LEAST_ROUNDS}
    # The first calls, which warm up, and then rounds: of all cells, or of one size after the other.
    assert len(calls.made) == len(found.cells()) * (LEAST_ROUNDS + 1)
    of_the_last_rounds = {size for _, size in calls.made[-LEAST_ROUNDS:]}
    assert of_the_last_rounds == ({1, 4} if together else {4})


def test_a_cell_is_a_stage_with_its_cost_and_rounds_can_be_few():
    desk, rounds = Desk(), {1: None, 4: 3}
    costs = {"label": "{variant} of {size}", "cost": lambda variant, size: per_call({"fma": float(size)})}
    found = Calls().sweep(**costs, rounds=rounds.get).run(desk, 0.0)
    names = [stage.name for stage in desk.recorder.stages]
    assert {"all of 1", "all of 4", "small of 1"} <= set(names)
    cost = desk.recorder.cost_of(names.index("all of 4"), 0)
    assert cost.operations["fma"].per_work == (4.0, 0.0, 0.0)
    assert (len(found.rounds("all", 1)), len(found.rounds("all", 4))) == (LEAST_ROUNDS, 3)


def test_sweeps_share_time_and_progress():
    said = []
    desk = Desk(progress=lambda what, share: said.append((what, share)))
    work = {"a": lambda: None}
    sweeps = [one_size(work, 1, "first", calls=1, share=3), one_size(work, 1, "last", calls=1)]
    assert len(run_all(desk, 0.004, sweeps)) == 2
    assert [what for what, _ in said[:1] + said[-1:]] == ["first", "last"]
    for what, share in said:
        assert (share <= 0.75) if what == "first" else (share >= 0.75)


PLANTED = timings({"one": {1: 1.0, 4: 2.0}, "two, fast": {4: 0.5}}, noise=0.0)


def test_times_and_ratios_are_those_of_cells():
    assert PLANTED.variants == ["one", "two, fast"]
    assert PLANTED.sizes() == PLANTED.sizes("one") == [1, 4]
    assert PLANTED.size("two, fast") == 4
    with pytest.raises(LookupError, match="2 sizes"):
        PLANTED.rounds("one")
    assert PLANTED.time("two, fast") == pytest.approx(5e-4)
    assert PLANTED.ratio("one", "two, fast", 4).ratio == pytest.approx(4.0)
    assert PLANTED.ratio("one", "two, fast", 1, 4).ratio == pytest.approx(2.0)
    assert PLANTED.fastest(PLANTED.cells()) == ("two, fast", 4)
    assert PLANTED.per_unit().time("one", 4) == pytest.approx(5e-4)


def test_figures_lines_and_bars_are_made_of_cells():
    table = PLANTED.table("{variant}_at_{size}_ms", lambda size, s: 1e3 * s)
    assert table == pytest.approx({"one_at_1_ms": 1, "one_at_4_ms": 2, "two_fast_at_4_ms": 0.5})
    line = PLANTED.line("one", "first", lambda size, s: size / s, x=lambda size: 10 * size)
    assert (line.name, line.x) == ("first", (10, 40))
    assert line.y == pytest.approx((1e3, 2e3))
    bars = PLANTED.bars("both", [("one", 4), ("two, fast", 4)])
    assert bars.values == bars.low == bars.high == pytest.approx((2e-3, 5e-4))
    assert key("8 bit, batches") == "8_bit_batches"


def test_timings_join_by_cell_and_caches_are_marked_where_they_are_full():
    other = at_size(8, {"one": 3.0, "three": 1.0})
    assert PLANTED.joined(other).cells() == [("one", 1), ("one", 4), ("one", 8), ("two, fast", 4), ("three", 8)]
    assert PLANTED.joined(Timings(seconds={})) == PLANTED
    found = SweepResult(timings=PLANTED, cache_bytes={1: 32768, 2: 1 << 20})
    assert [(mark.text, mark.value) for mark in found.cache_marks()] == [("L1", 32768), ("L2", 1 << 20)]
