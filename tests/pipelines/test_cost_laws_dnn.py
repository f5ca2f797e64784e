"""What the laws of nets and of the front end count."""

from __future__ import annotations

import functools

import pytest

from pipelines.config import Config, Dnn, assign
from pipelines.frontend.mfcc import Mfcc
from pipelines.frontend.parameters import FeatureParameters
from pipelines.models import nets
from pipelines.models.nets import Net
from pipelines.scoring import dnn, peaks
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.dnn import products
from pipelines.scoring.dnn.arithmetic import can_choose
from profiler.analysis.machine_costs import MachineCosts
from profiler.costs import KERNEL_CALL, NUMPY_CALL, Cost
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import RATE, Roof, RoofTable
from tests.each import each

WAYS = [*(Dnn(product=name) for name in products.names()), Dnn(dtype="int8")]


@functools.cache
def read(name: str) -> Net:
    return nets.load(nets.find(name))


@functools.cache
def created(way: int, name: str) -> dnn.Arithmetic:
    return dnn.create(WAYS[way], read(name), 1, MAX_FRAMES)


def costs_of(dnn_settings: Dnn, name: str, frames: int) -> dict[str, Cost]:
    made, net = created(WAYS.index(dnn_settings), name), read(name)
    made.heads_used = 1
    found = {f"all/{name}": cost for name, cost in made.costs(frames).items()}
    if can_choose(made):
        found |= {f"some/{name}": cost for name, cost in made.costs_of_some(frames).items()}
        made.heads_used = net.card.heads
        found |= {f"heads/{name}": cost for name, cost in made.costs(frames).items()}
    return found


@each("variant", WAYS)
@each("net", nets.shipped())
def test_every_stage_of_every_net_has_a_law(net: str, variant: Dnn) -> None:
    for frames in (1, 16, MAX_FRAMES):
        for name, cost in costs_of(variant, net, frames).items():
            assert not cost.is_empty, name
            assert cost.working_set_bytes > 0
            for work in (1.0, 16.0, 1616.0):
                least, most = (b.total(1, 1, (work, work, 0)) for b in (cost.bytes_min, cost.bytes_max))
                assert 0 < least <= most, name
            assert set(cost.calls) <= {KERNEL_CALL, NUMPY_CALL}
            assert Cost.from_dict(cost.as_dict()) == cost


@each("variant", WAYS)
def test_all_arithmetic_of_a_net_has_a_peak_on_a_machine_never_calibrated(variant: Dnn) -> None:
    """Integers too: nothing waits for `asrscope calibrate`."""
    costs = costs_of(variant, "base", 16)
    config = assign(Config(), {"model": "dnn", "dnn.dtype": variant.dtype})
    quick = calibration.plan([1], peaks.of(config), whole=False)
    machine = MachineCosts(
        RoofTable(tuple(Roof(*step.key, 1e9, 1e9, 1e9, "op/s") for step in quick if step.key.kind == RATE))
    )
    for cost in costs.values():
        assert all(machine.operation_ns(name) is not None for name in cost.operations)
    assert not machine.missing


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_the_best_rate_of_numbers_is_that_of_a_product_of_them(dtype: str) -> None:
    config = assign(Config(), {"model": "dnn", "dnn.dtype": dtype})
    for name, work in peaks.of(config).items():
        assert name == peaks.INT8
        work.make()(1)
        assert work.operations > 0


def test_more_heads_are_more_calls() -> None:
    made = dnn.create(Dnn(), read("multi-frame"), 1, MAX_FRAMES)
    one = made.costs(16)["score.output"].calls[KERNEL_CALL].fixed
    made.heads_used = 3
    assert made.costs(16)["score.output"].calls[KERNEL_CALL].fixed == 3 * one


def test_stages_of_the_front_end_have_laws() -> None:
    for p in (FeatureParameters(), FeatureParameters(remove_noise=True, remove_dc=True)):
        assert not any(cost.is_empty for cost in Mfcc(p).costs().values())
