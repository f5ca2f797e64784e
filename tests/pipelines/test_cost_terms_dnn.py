"""What the laws of nets and of the front end name is there to be measured, and counts the work that is done."""

from __future__ import annotations

import functools
import math
from importlib.util import find_spec

import numpy as np
import pytest

from pipelines.config import Dnn
from pipelines.frontend.mfcc import END, Mfcc
from pipelines.frontend.parameters import FeatureParameters
from pipelines.kernel_roofs import work_of
from pipelines.models import nets
from pipelines.models.nets import Net
from pipelines.scoring import dnn, roofs, roofs_tasks
from pipelines.scoring.blocks import FLOAT, MAX_FRAMES
from pipelines.scoring.dnn import dense, products, terms
from pipelines.scoring.dnn.arithmetic import can_choose
from pipelines.scoring.dnn.roofs import _layers
from pipelines.scoring.dnn.roofs._kernels import FEW_OUTPUTS
from pipelines.scoring.dnn.rows import FloatRows
from pipelines.scoring.kernel_work import OWN, SEARCHED_PER_FRAME
from pipelines.scoring.meter import Meter
from pipelines.scoring.roofs_tasks import outputs_of
from profiler.analysis.law import law_of, needed
from profiler.arrays import Array
from profiler.costs import CALL, KERNEL, Cost, Linear, Term
from profiler.lanes import Lane
from profiler.machine.roofs import calibration, timing
from profiler.machine.roofs.table import RATE, RoofTable
from tests.profiler.profiler_sessions import roof

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
WAYS = [
    *(Dnn(product=name) for name in products.names()),
    pytest.param(Dnn(dtype="int8"), id="int8"),
    pytest.param(Dnn(dtype="bf16"), id="bf16", marks=needs_torch),
]
SMALL = 1 << 16
"""Bytes of data for a roof that is only tried."""


@functools.cache
def read(name: str) -> Net:
    return nets.load(nets.find(name))


def costs_of(dnn_settings: Dnn, net: Net, frames: int) -> dict[str, Cost]:
    made = dnn.create(dnn_settings, net, 1, MAX_FRAMES)
    found = {f"all/{name}": cost for name, cost in made.costs(frames).items()}
    if can_choose(made):
        found |= {f"some/{name}": cost for name, cost in made.costs_of_some(frames).items()}
        made.heads_used = net.card.heads
        found |= {f"heads/{name}": cost for name, cost in made.costs(frames).items()}
    return found


def named(costs: dict[str, Cost]) -> list[Term]:
    return [t for cost in costs.values() for t in cost.terms or () if t.kind in (KERNEL, CALL)]


@functools.cache
def tried(name: str, size: int) -> float:
    """Run the work behind a roof once; its units."""
    work = work_of(name, size)
    work.make()(1)
    return work.operations


@functools.cache
def units(name: str) -> float:
    """Those of the work behind a roof, which is not run."""
    return work_of(name, SMALL).operations


@pytest.mark.parametrize("frames", [1, 16])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("net", ["base", "multi-frame"])
def test_every_roof_that_a_law_names_can_be_taken(net: str, way: Dnn, frames: int) -> None:
    costs = costs_of(way, read(net), frames)
    for name, cost in costs.items():
        assert cost.terms or cost.unmodelled, name
    for term in named(costs):
        for size in {0, min(int(term.bytes), SMALL)}:
            assert tried(term.roof, size) > 0, term


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("net", nets.shipped())
def test_every_cost_of_every_net_has_terms(net: str, way: Dnn) -> None:
    for frames in (1, 16, MAX_FRAMES):
        costs = costs_of(way, read(net), frames)
        assert all(cost.terms or cost.unmodelled for cost in costs.values())
        for term in named(costs):
            assert units(term.roof) > 0


@pytest.mark.parametrize("way", WAYS)
def test_all_arithmetic_of_a_net_has_a_peak_on_a_machine_never_calibrated(way: Dnn) -> None:
    """Integers too: a run measures what its own laws count, and nothing waits for `asrscope calibrate`."""
    costs = costs_of(way, read("base"), 16)
    quick = calibration.plan([1], roofs.KERNELS, whole=False)
    rates = [roof(RATE, step.key.name, 1e9) for step in quick if step.key.kind == RATE]
    kernels = [roof(KERNEL, term.roof, 1e9) for term, _ in needed(costs.values())]
    known = RoofTable((*rates, *kernels))
    for cost in costs.values():
        assert cost.operations.keys().isdisjoint(law_of(cost, known).missing)
    for term, _ in needed(costs.values()):
        if ":" in term.roof:
            assert tried(term.roof, 0) > 0


@pytest.mark.parametrize("way", WAYS)
def test_a_product_counts_its_multiply_adds(way: Dnn) -> None:
    families = ("net panels", "net blas", "net scalar", "net csr", "net blocks", *OTHERS)
    for stage, cost in costs_of(way, read("base"), 16).items():
        products_of = [t for t in cost.terms or () if t.roof.partition("/")[0] in families]
        if not stage.startswith("all/") or stage.endswith("splice"):
            continue
        (term,) = products_of
        operations = sum(
            law.total(1, 0, (5126, 0, 0)) for n, law in cost.operations.items() if n in ARITHMETIC
        )
        # The last panel of outputs is filled up, and a row of inputs to whole groups.
        assert 1.0 <= 2 * term.count.total(1, 0, (5126, 0, 0)) / operations < 1.3


OTHERS = (terms.INT8, terms.INT8_LIBRARY, terms.BF16)
ARITHMETIC = ("gemm", "gemm:int8", "gemm:bfloat16", "scalar")


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_rows_lie_between_those_of_one_frame_and_of_four(frames: int) -> None:
    law = FloatRows(np.ones((100, 33), np.float32)).cost(16, 0.0)
    counts = {t.roof: t.count for t in law.terms or () if t.kind == KERNEL}
    one, four = (counts[terms.named(terms.ROWS, 4, n, 32, own=12_800, frames=1)] for n in (1, 4))

    def of(count: object) -> float:
        assert hasattr(count, "total")
        return float(count.total(1, 1, (30.0 * frames, 30.0, 0.0)))

    # Where a row of four frames takes as long as four rows of one, frames are all that counts.
    assert of(one) + 4 * of(four) == pytest.approx(30 * frames)
    # Where it takes as long as a row of one frame, only rows are.
    assert of(one) + of(four) == pytest.approx(30)


def test_a_call_is_timed_after_reading_and_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def call() -> None:
        nonlocal now
        now += 3.0

    read = 0

    def reading(values: np.ndarray) -> None:
        nonlocal now, read
        now, read = now + 100.0, read + values.nbytes

    monkeypatch.setattr(timing, "clock", lambda: now)
    monkeypatch.setattr(roofs_tasks, "read", reading)
    task = roofs_tasks.after_reading(64 << 10, call)
    assert task(5) == timing.Counted(15.0)
    assert read == 5 * 64 << 10
    (term,) = terms.calls(terms.SPLICE, (), 64 << 10, 3.0)
    assert (term.roof, term.bytes, term.count.fixed) == (terms.SPLICE, 64 << 10, 3.0)


def test_the_roofs_of_the_front_end_can_be_taken() -> None:
    for p in (
        FeatureParameters(),
        FeatureParameters(remove_noise=True, remove_dc=True),
        FeatureParameters(feat="s2_4x"),
        FeatureParameters(samprate=8_000, nfft=256, upperf=3_500.0),
    ):
        for cost in Mfcc(p).costs().values():
            assert cost.terms
            for term in cost.terms:
                assert tried(term.roof, 0) > 0
                once = term.roof == END
                assert (term.most or term.count) == (
                    Linear(fixed=1) if once else Linear(per_frame=1)
                )


def test_windows_of_the_front_end_are_those_that_are_named() -> None:
    """A roof of other numbers would be measured on other work."""
    p = FeatureParameters()
    frames: Array = Mfcc(p).start(np.ones(p.hop_samples * 9, np.float32)).windows(0, 2)
    assert frames.shape == (2, p.nfft)


def test_a_name_that_no_kernel_has_is_refused() -> None:
    with pytest.raises(KeyError):
        work_of("net nothing/1", 0)


@pytest.mark.parametrize(
    ("way", "family"),
    [(Dnn(), "net panels layer"), (Dnn(dtype="int8"), terms.INT8_CALL)],
    ids=["float", "int8"],
)
def test_a_layer_is_called_after_what_lies_before_it(way: Dnn, family: str) -> None:
    """The weights of the layer before, not the mean of all; before the first layer there was the search."""
    costs = costs_of(way, read("base"), 1)
    found = []
    for stage in ("layer 1", "layer 2", "layer 5", "output"):
        (call,) = (t for t in costs[f"all/score.{stage}"].terms or () if t.roof.startswith(family))
        found.append(call.bytes)
    # Layers of 512 × 513 weights after one of 512 × 586, the scores after one of 256 × 513.
    first, second, fifth, output = found
    assert first == terms.AFTER_SEARCH
    assert second == fifth == (1 << 20 if family != terms.INT8_CALL else 1 << 18)
    assert output == fifth // 2
    assert terms.passed(0.0) == 1 << 10
    assert terms.passed(1e12) == terms.MOST_PASSED


@pytest.mark.parametrize(("way", "frames"), [(Dnn(), 1), (Dnn(dtype="int8"), 1), (Dnn(), 16)])
def test_the_input_of_a_net_is_made_after_the_search(way: Dnn, frames: int) -> None:
    """As any first call of scoring: of more than that there is no more to be pushed out."""
    law = costs_of(way, read("base"), frames)["all/score.splice"]
    (call,) = (term for term in law.terms or () if term.kind == CALL)
    assert (call.roof, call.bytes) == (terms.SPLICE, terms.MOST_PASSED)


def test_closing_a_span_is_part_of_what_a_call_takes() -> None:
    meter = roofs_tasks.recording()
    lane = meter._lane
    assert isinstance(lane, Lane)
    for _ in range(3 * roofs_tasks._SPANS):
        meter.done(roofs_tasks.CALLED, 1)
    assert lane.recorded == 3 * roofs_tasks._SPANS, "what nobody takes makes room"
    assert lane.dropped == 0
    spliced = _layers.spliced()
    assert spliced.__closure__ is not None
    (mine,) = (c.cell_contents for c in spliced.__closure__ if isinstance(c.cell_contents, Meter))
    before = mine._lane.recorded
    spliced()
    assert mine._lane.recorded == before + 1


@pytest.mark.parametrize(
    ("size", "outputs", "row_bytes", "computed"),
    [(0, 5126, 1024, 256), (0, 100, 1024, 100), (0, 9, 1 << 30, 1), (1 << 23, 5126, 1024, 5126)],
)
def test_a_librarys_product_in_the_nearest_caches_is_of_as_many_outputs_as_these_keep(
    size: int, outputs: int, row_bytes: int, computed: int
) -> None:
    assert outputs_of(size, outputs, row_bytes) == computed


def test_before_a_librarys_product_is_timed_its_code_is_called_and_no_weight_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[tuple[int, ...]] = []
    product = np.matmul

    def noted(weight: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
        called.append(weight.shape)
        product(weight, x, out=out)

    monkeypatch.setattr(np, "matmul", noted)
    task = work_of("net blas/1/64/500/0", 64 * 500 * 4).make()
    task(0)
    assert called == [(FEW_OUTPUTS, 64)]
    task(2)
    assert called[1:] == [(500, 64)] * 2


@pytest.mark.parametrize(
    ("passed", "products"), [(terms.AFTER_SEARCH, True), (1 << 20, False), (1 << 19, False)]
)
def test_only_the_first_layer_of_a_block_finds_the_librarys_code_pushed_out(
    passed: int, products: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = 0
    product = np.matmul

    def noted(weight: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
        nonlocal called
        called += 1
        product(weight, x, out=out)

    monkeypatch.setattr(np, "matmul", noted)
    work_of("net blas layer/1", passed).make()(3)
    assert called == (3 if products else 0)


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_before_the_rows_of_one_frame_come_the_layers_of_their_net(dtype: str) -> None:
    net = read("base")
    made = dnn.create(Dnn(dtype=dtype), net, 1, MAX_FRAMES)
    each = 1 if dtype == "int8" else FLOAT
    shapes = net.card.shapes.items()
    hidden = sum(each * math.prod(shape) for name, shape in shapes if name.startswith("layers"))
    one, more = (
        {t.bytes for t in made.costs_of_some(n)[dense.ACTIVE_STAGE].terms or () if t.kind == KERNEL}
        for n in (1, 16)
    )
    # Layers are filled up to whole panels, and have their scales beside them.
    assert max(one) - max(more) == pytest.approx(hidden, rel=0.1)


@pytest.mark.parametrize(
    ("frames", "between"),
    [(1, SEARCHED_PER_FRAME + 5e6), (2, SEARCHED_PER_FRAME), (64, SEARCHED_PER_FRAME)],
)
def test_between_two_frames_the_search_goes_through_its_own_and_of_one_the_layers_too(
    frames: int, between: float
) -> None:
    rows = FloatRows(np.ones((100, 33), np.float32))
    kernels = [t for t in rows.cost(frames, 5e6).terms or () if t.kind == KERNEL]
    assert [t.bytes for t in kernels] == [rows.nbytes + between] * len(kernels)
    # Those of the search are no part of its own: they are read between two uses.
    assert all(
        term.roof.split(OWN)[1].startswith(f"{-(-rows.nbytes // 1024)}x") for term in kernels
    )
