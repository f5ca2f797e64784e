"""A device's stages at a device's roofs: every class of work has one, launches count, and copies have their size."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from profiler_sessions import fake_session, spans_of

from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.categories import CATEGORIES
from profiler.analysis.device import transfers
from profiler.analysis.own_cost import recorder_cost
from profiler.analysis.stage_sums import StageSums
from profiler.analysis.verdict import LAUNCH_BOUND, UNDECIDED
from profiler.costs import CHASE, Accesses, Cost, Linear
from profiler.device.time import DEVICE, EVENTS, TRANSFER_COST, TRANSFER_WORK
from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs import timing
from profiler.machine.roofs.table import BANDWIDTH, LATENCY, OVERHEAD, RATE, Key, Roof, RoofTable
from profiler.machine.roofs.timing import Effort
from profiler.session.model import LaneInfo
from profiler.spans import Stage
from tests.fake_clock import FakeClock

US = 1_000


TABLE = RoofTable(
    tuple(
        Roof(kind, f"{name}@cuda", "float32" if kind in (RATE, BANDWIDTH) else "", 1, size, value, value, value, "")
        for kind, name, value, size in (
            (RATE, "gemm.torch", 50e12, 0),
            (RATE, "exp.torch", 1e12, 0),
            (BANDWIDTH, "read", 2e12, 1 << 16),
            (BANDWIDTH, "read", 1e12, 1 << 26),
            (BANDWIDTH, "to_device.pinned", 5e9, 1 << 12),
            (BANDWIDTH, "to_device.pinned", 20e9, 1 << 24),
            (BANDWIDTH, "from_device.pageable", 4e9, 1 << 12),
            (OVERHEAD, "launch", 6_000.0, 0),
            (OVERHEAD, "held", 1_500.0, 0),
            (OVERHEAD, "barrier", 50.0, 0),
            (LATENCY, "chase", 200.0, 1 << 20),
            (LATENCY, "chase", 800.0, 1 << 28),
        )
    )
)


def recorded(cost: Cost, ns: int, copies: tuple[int, ...] = (), back: tuple[int, ...] = ()) -> Any:
    """Four pieces of work of `ns` on a device with `cost` each; pinned `copies`, pageable ones `back`, 1 ms each."""
    rows: list[tuple[int, ...]] = [(10_000_000 * i, ns, 0, 16 * i, 16, 1000) for i in range(4)]
    rows += [(10_000_000 * i, 1_000_000, 1, 16 * i, 16, size, size) for i, size in enumerate(copies)]
    rows += [(10_000_000 * i, 1_000_000, 2, 16 * i, 16, size, 0) for i, size in enumerate(back, 6)]
    spans = spans_of(rows)
    spans["lane"] = np.where(spans["stage"] > 0, 2, 1)
    stages = [
        Stage(0, "score.exp", "scoring", ("exponentials",)),
        Stage(1, "transfer.to device", "transfer", TRANSFER_WORK),
        Stage(2, "transfer.to host", "transfer", TRANSFER_WORK),
    ]
    names = (("decode", "cpu", True), ("cuda compute", DEVICE, False), ("cuda copy", DEVICE, False))
    lanes = tuple(LaneInfo(number, *lane, 0, 0) for number, lane in enumerate(names))
    costs = {(0, 0): cost, (1, 0): TRANSFER_COST, (2, 0): TRANSFER_COST}
    events = {"events": 100, "ns_per_event": 2_000.0, "recording_ns": 50_000}
    about = {"recorder": {"ns_per_span": 100.0}, EVENTS: events}
    return fake_session(spans, stages, costs, TABLE, lanes, meta=about)


def law(launches: float, moved: float = 1e6, exponentials: float = 1.0, name: str = "exp") -> Cost:
    """The cost of a stage that launches `launches` kernels and moves `moved` bytes."""
    read = Linear(fixed=moved)
    return Cost(
        {f"{name}@cuda": Linear(per_work=(exponentials, 0.0, 0.0))},
        read,
        read,
        float(1 << 26),
        device="cuda",
        calls={"launch@cuda": Linear(fixed=launches)},
    )


def row_of(cost: Cost, ns: int) -> StageRow:
    return next(row for row in breakdown(recorded(cost, ns)).stages if row.name == "score.exp")


def test_many_small_kernels_are_launch_bound_and_those_of_a_graph_one_launch_and_a_time_each():
    row = row_of(law(10), 64 * US)
    assert row.verdict == LAUNCH_BOUND
    # 1 µs of its 64 moves bytes; ten launches of 6 µs wait for nothing else.
    assert row.parts.likely["calls"] == pytest.approx(4 * 59 * US, rel=0.01)
    assert row.parts.likely["bandwidth"] == pytest.approx(4 * US, rel=0.01)
    assert "launches 10 kernels per block" in row.sentence
    assert row.defect is None
    graph = replace(law(1), calls={"launch@cuda": Linear(fixed=1.0), "held@cuda": Linear(fixed=30)})
    row = row_of(graph, 64 * US)
    # 6 µs of launch and 30 kernels of 1.5 µs; 1 µs of them is what moves the bytes.
    assert row.parts.likely["calls"] == pytest.approx(4 * 50 * US, rel=0.01)
    assert "launches one kernel per block" in row.sentence


def test_what_a_thread_waits_for_is_latency():
    """16 frames of a hundred loads and twenty barriers each: 336 µs, and 1 µs that moves the bytes."""
    waits = replace(
        law(1),
        calls={"launch@cuda": Linear(fixed=1.0), "barrier@cuda": Linear(per_frame=20.0)},
        accesses=(Accesses(Linear(per_frame=100.0), float(1 << 20), CHASE),),
    )
    row = row_of(waits, 400 * US)
    assert row.parts.likely["latency"] == pytest.approx(4 * 336 * US, rel=0.01)
    assert row.parts.likely["bandwidth"] == pytest.approx(4 * US, rel=0.01)
    assert row.parts.likely["calls"] == pytest.approx(4 * 5 * US, rel=0.02)
    assert row.verdict == "latency-bound"
    assert row.defect is None
    # Farther away a load takes longer, which is more than there was time for.
    far = replace(waits, accesses=(Accesses(Linear(per_frame=100.0), float(1 << 28), CHASE),))
    assert row_of(far, 400 * US).parts.likely["latency"] == pytest.approx(4 * 399 * US, rel=0.01)


def test_what_is_measured_within_a_kernel_needs_numba_cuda(monkeypatch):
    import torch

    for kind, installed, reason in (("cuda", True, ""), ("cuda", False, "extra gpu"), ("xpu", True, "only CUDA")):
        monkeypatch.setattr(device_roofs, "find_spec", lambda name, there=installed: there or None)
        missing: list[device_roofs.Missing] = []
        device = device_roofs.Device("cpu", kind, lambda: None)
        keys = [key for key, _ in device_roofs.steps(torch, device, missing)]
        named = {key.name for key in keys if key.kind == LATENCY or "barrier" in key.name}
        assert named == (set() if reason else {"chase@cuda", "barrier@cuda"})
        reasons = [why for name, why in missing if name.startswith("chase")]
        assert [reason in why for why in reasons] == ([True] if reason else [])


def test_a_roof_of_several_kinds_of_calls_reaches_from_the_quickest_to_the_slowest(clock):
    calls = tuple(partial(clock.advance, ns) for ns in (9_000, 3_000, 20_000))
    key = Key(OVERHEAD, "launch@cuda", "")
    roof = device_roofs._over(key, STAND_IN, calls, Effort(3, 0.0))
    assert (roof.low, roof.median, roof.high) == pytest.approx((3_000, 9_000, 20_000))


def test_launches_behind_which_the_device_works_cost_nothing():
    """The host is ahead: the stage takes what its work takes, however many kernels it is."""
    row = row_of(law(10, moved=100e6), 102 * US)
    assert row.verdict == "bandwidth-bound"
    assert row.parts.likely["calls"] == 0.0
    row = row_of(law(10), 3 * US)
    assert row.parts.likely["calls"] <= 4 * 2 * US
    assert row.defect is None


def test_arithmetic_without_a_roof_is_unknown_and_not_nothing():
    row = row_of(law(0, moved=30e6, name="log"), 64 * US)
    assert row.arithmetic_ns is None
    # The logarithms may be all of the 34 µs that the bytes do not explain.
    assert row.verdict == UNDECIDED
    assert "not measured here: log@cuda" in row.sentence


def test_copies_are_held_against_the_roof_of_their_size():
    session = recorded(law(0), 64 * US, (1 << 12, 1 << 24), (1 << 12,))
    row, back = sorted(transfers(session), key=lambda row: row.stage)
    expected = (1 << 12) / 5e9 + (1 << 24) / 20e9
    assert row.least_ns == pytest.approx(expected * 1e9)
    assert row.of_roof == pytest.approx(expected / 2e-3)
    assert back.least_ns == pytest.approx((1 << 12) / 4e9 * 1e9)


def test_what_timed_events_cost_is_part_of_the_recorders_own_cost():
    track: Any = SimpleNamespace(
        n_frames=1, tiles=0, misplaced=0, stages=StageSums(),
        wall_row=SimpleNamespace(total=lambda *_: 1e9), total_ns=lambda *_: [0.0] * len(CATEGORIES),
    )  # fmt: skip
    session = recorded(law(0), 64 * US)
    with_events = recorder_cost(session, track).perturbation
    del session.meta[EVENTS]
    assert with_events - recorder_cost(session, track).perturbation == pytest.approx((100 * 2_000 + 50_000) / 1e9)


STAND_IN = device_roofs.Device("cuda", "cuda", lambda: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock(0)
    for name in ("clock", "cpu_clock"):
        monkeypatch.setattr(timing, name, lambda: made() / 1e9)
    return made


class Library:
    """Torch as far as roofs ask for it, on a device of 5 TB/s whose launches take 6 µs."""

    def __init__(self, clock: FakeClock) -> None:
        import torch

        self._clock, self._torch = clock, torch
        self.passes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def ones(self, n: int, device: Any = None) -> Any:
        return self._torch.ones(n)

    def empty(self, *shape: Any, device: Any = None) -> Any:
        return self._torch.empty(*shape)

    def zeros(self, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        return SimpleNamespace(add_=lambda _: self._clock.advance(6_000))

    def sum(self, values: Any, dim: Any, out: Any) -> None:
        moved = values.numel() * 4
        self.passes.append(moved)
        self._clock.advance(max(6_000, round(moved / 5_000.0)))

    def exp(self, values: Any, out: Any) -> None:
        self._clock.advance(40_000)

    def neg(self, values: Any, out: Any) -> None:
        self._clock.advance(30_000)


def test_a_small_set_is_read_many_times_in_one_launch(clock, monkeypatch):
    """A launch takes 6 µs: one that reads 64 KiB once shows 11 GB/s, whatever the cache gives."""
    library, key = Library(clock), Key(BANDWIDTH, "read@cuda", bytes=1 << 16)
    roof = device_roofs._memory(library, STAND_IN, key, Effort(3, 0.0))
    assert roof.median == pytest.approx(5e12, rel=0.01)
    assert min(library.passes) >= device_roofs.READ_BYTES
    # Over a set that no cache holds each launch goes once: 64 MiB take 13 µs, more than two launches.
    library.passes.clear()
    small, large = STAND_IN._replace(cache=48 << 20), Key(BANDWIDTH, "read@cuda", bytes=1 << 26)
    assert device_roofs._memory(library, small, large, Effort(3, 0.0)).median > 4.9e12
    assert set(library.passes) == {1 << 26}
    for size, least in ((1 << 17, 10), (1 << 16, 2)):
        monkeypatch.setattr(device_roofs, "READ_BYTES", size)
        with pytest.raises(RuntimeError, match=f"64 KiB takes less than {least} launches"):
            device_roofs._memory(library, STAND_IN, key, Effort(3, 0.0))


def test_exponentials_count_beyond_the_traffic_of_their_pass(clock, monkeypatch):
    monkeypatch.setattr(device_roofs, "ELEMENTS", 16)
    key = Key(RATE, "exp.torch@cuda")
    found = device_roofs._beyond(Library(clock), STAND_IN, key, Effort(3, 0.0))
    # 10 µs of the 40.
    assert found.median == pytest.approx(16 / 10e-6, rel=0.01)
    assert found.low == pytest.approx(16 / 40e-6, rel=0.01)
    assert np.isfinite(found.high)
