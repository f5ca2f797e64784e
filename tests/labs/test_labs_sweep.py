"""Sweeps: which cells are called in which turns, what is kept of them, and what is read off."""

from __future__ import annotations

import pytest

from pipelines.labs.desk import LEAST_ROUNDS, Desk, per_call
from pipelines.labs.sweep import Sweep, SweepResult, Timings, key, one_size, run_all
from profiler.errors import Cancelled
from tests.labs.contract import at_size, timings


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


def test_a_cell_is_a_stage_with_its_cost():
    desk = Desk()
    sweep = Calls().sweep(label="{variant} of {size}", cost=lambda variant, size: per_call({"fma": float(size)}))
    sweep.run(desk, 0.0)
    names = [stage.name for stage in desk.recorder.stages]
    assert {"all of 1", "all of 4", "small of 1"} <= set(names)
    cost = desk.recorder.cost_of(names.index("all of 4"), 0)
    assert cost.operations["fma"].per_work == (4.0, 0.0, 0.0)


def test_no_cell_takes_the_place_of_another():
    with pytest.raises(ValueError, match="two cells of a sweep are called all"):
        Calls().sweep(label="{variant}", together=True).run(Desk(), 0.0)


def test_rounds_can_be_few_at_some_sizes():
    found = Calls().sweep(rounds=lambda size: 3 if size == 4 else None).run(Desk(), 0.0)
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


def test_a_stop_request_ends_a_sweep():
    calls = Calls()
    desk = Desk(stopping=lambda: len(calls.made) > 4)
    with pytest.raises(Cancelled):
        calls.sweep(together=True).run(desk, 60.0)
    assert len(calls.made) == 5


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
    assert PLANTED.per(lambda size: size).time("one", 4) == pytest.approx(5e-4)


def test_figures_lines_and_bars_are_made_of_cells():
    table = PLANTED.table("{variant}_at_{size}_ms", lambda size, s: 1e3 * s)
    assert table == pytest.approx({"one_at_1_ms": 1, "one_at_4_ms": 2, "two_fast_at_4_ms": 0.5})
    line = PLANTED.line("one", "first", lambda size, s: size / s, x=lambda size: 10 * size)
    assert (line.name, line.x) == ("first", (10, 40))
    assert line.y == pytest.approx((1e3, 2e3))
    bars = PLANTED.bars("both", [("one", 4), ("two, fast", 4)])
    assert bars.values == bars.low == bars.high == pytest.approx((2e-3, 5e-4))
    assert key("8 bit, batches") == "8_bit_batches"


def test_timings_join_by_cell():
    other = at_size(8, {"one": 3.0, "three": 1.0})
    assert PLANTED.joined(other).cells() == [("one", 1), ("one", 4), ("one", 8), ("two, fast", 4), ("three", 8)]
    assert PLANTED.joined(Timings(seconds={})) == PLANTED


def test_caches_are_marked_where_they_are_full():
    found = SweepResult(timings=PLANTED, cache_bytes={1: 32768, 2: 1 << 20})
    assert [(mark.text, mark.value) for mark in found.cache_marks()] == [("L1", 32768), ("L2", 1 << 20)]
