"""What can only be seen on a device of torch's own (CUDA, MPS, XPU): scores, streams and times. Skipped without one."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config, presets
from pipelines.device import COMPUTE, COPY, DeviceWork, open_device
from pipelines.models import derived
from pipelines.models.nets import Layer
from pipelines.models.sphinx import AcousticModel
from profiler.analysis.breakdown import breakdown
from profiler.analysis.device import transfers
from profiler.session.reader import Session
from profiler.spans import SPAN, Recorder
from tests.pipelines.device_scoring import make, placed, record, scored
from tests.pipelines.net_files import card, forward, net, write
from tests.pipelines.scoring_reference import brute_force, likely_features

DTYPES = ("fp32", "fp16", "bf16")
GMM_NAT = dict(zip(DTYPES, (0.05, 0.5, 5.0), strict=True))
"""Largest error of log densities of some hundred nat; CUDA sums float32 products in another order."""
NET_SHARE = dict(zip(DTYPES, (1e-5, 5e-3, 4e-2), strict=True))
"""Largest error as a part of the largest score: 24, 11 and 8 bits of fraction, through four products."""


@pytest.fixture(scope="module")
def where() -> str:
    """The accelerator's name in the settings."""
    import torch

    if not torch.accelerator.is_available():
        pytest.skip("there is no device of torch here")
    return str(torch.accelerator.current_accelerator().type)


@pytest.fixture(scope="module")
def made(model: AcousticModel) -> Any:
    layers = Layer(256), Layer(128), Layer(64, relu=False)
    return net(card(*layers, senones=model.n_senones))


@pytest.fixture(scope="module")
def of_net(made: Any, where: str, tmp_path_factory: Any) -> Config:
    path = write(tmp_path_factory.mktemp("net"), made, np.float32)
    chosen = {"dnn.net": str(path), "dnn.senones": "all", "device": where, "block": 8}
    return settings.check(settings.assign(presets.load("dnn").config, chosen))


def placements() -> Any:
    return (
        {"dtype": dtype, "overlapped": overlapped, "pinned": pinned, **moved}
        for dtype, overlapped, pinned, moved in itertools.product(
            DTYPES,
            (False, True),
            (False, True),
            ({}, {"weights": "each-block"}, {"transfer": "frame"}, {"graphs": True}),
        )
    )


@pytest.mark.parametrize("owned", [False, True])
def test_mixtures_score_the_same_however_they_are_placed(model, where, owned):
    chosen = derived.untied(model, 8) if owned else model
    features = likely_features(chosen, 21)
    expected = brute_force(chosen, features)
    config = settings.assign(Config(), {"device": where, "block": 8})
    scorer = make(config, chosen)
    scorer.warm_up()
    for placement in placements():
        scorer.configure(placed(config, **placement))
        scorer.reset()
        error = np.abs(scored(scorer, features) - expected).max()
        assert error < GMM_NAT[placement["dtype"]], placement
    assert scorer.take_notices() == []


@pytest.mark.parametrize("keep", [False, True])
def test_a_net_scores_the_same_however_it_is_placed(model, made, of_net, keep):
    features = np.random.default_rng(5).normal(0, 3, (21, 39)).astype(np.float32)
    expected = forward(made, features)
    scorer = make(of_net, model, keep=keep)
    scorer.warm_up()
    for placement in placements():
        for skip in (1, 3):
            config = settings.assign(placed(of_net, **placement), {"frames.skip": skip})
            scorer.configure(config)
            scorer.reset()
            wanted = expected[np.arange(21) // skip * skip]
            error = np.abs(scored(scorer, features) - wanted).max() / np.abs(expected).max()
            assert error < NET_SHARE[placement["dtype"]], (placement, skip)
    assert scorer.take_notices() == []


def test_moves_and_times_of_a_net(tmp_path, model, of_net, where):
    features = np.zeros((64, 39), np.float32)
    with Session.open(record(tmp_path / "a.asrs", of_net, model, features)) as session:
        parts = breakdown(session)
        assert sum(parts.categories.values()) == pytest.approx(parts.wall_ns)
        rows = {row.stage: row for row in transfers(session)}
        parameters = sum(4 * array.size for array in make(of_net, model)._arithmetic.arrays.values())
        assert rows["transfer.to device"].bytes == parameters + 8 * (8 + 5) * 39 * 4
        assert rows["transfer.to host"].bytes == 64 * model.n_senones * 4
        decode = next(lane.id for lane in session.lanes.values() if lane.name == "decode")
        spans = session.spans[session.spans["lane"] == decode]
        tiles = [s.id for s in session.stages.values() if s.group == "decode"]
        leaves = np.sort(spans[~np.isin(spans["stage"], tiles)], order="start_ns")
        ends = leaves["start_ns"] + leaves["duration_ns"]
        assert (leaves["start_ns"][1:] >= ends[:-1]).all()
        lanes = {lane.name for lane in session.lanes.values()}
        assert {f"{where} compute", f"{where} copy"} <= lanes


def test_arithmetic_is_not_billed_to_the_copy(where):
    import torch

    if not hasattr(getattr(torch, where), "Stream"):
        pytest.skip("this device has one queue, and shares the host's memory")
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    stage = recorder.stage("score.dense", "scoring")
    work = DeviceWork(open_device(where), recorder, lane)
    there = work.device
    big = torch.full((4096, 4096), 0.001, device=there.where)
    product = torch.empty_like(big)

    def twenty() -> None:
        for _ in range(20):
            torch.mm(big, big, out=product)

    small = there.host_tensor((64,), torch.float32, pinned=False)
    torch.accelerator.synchronize()
    for _ in range(3):  # the first rounds load kernels
        lane.take()
        start = time.perf_counter_ns()
        work.work(stage, twenty, 0, 1)
        work.then(COMPUTE, COPY)
        work.download(small, product[0, :64], 0, 1)
        work.end_block(0, 1)
        wall = time.perf_counter_ns() - start
    names = [found.name for found in recorder.stages]
    spans = np.frombuffer(lane.take(), SPAN)
    sums = {
        names[number]: int(spans["duration_ns"][spans["stage"] == number].sum()) for number in np.unique(spans["stage"])
    }
    assert sums["score.dense.wait"] > 0.5 * wall
    assert sums["transfer.to host.wait"] < 0.2 * wall
