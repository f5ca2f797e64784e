"""Lab `minibatch`: its verdict on planted trainings, a small run."""

from __future__ import annotations

import pytest
import torch

from pipelines.labs import minibatch as lab
from pipelines.labs.desk import Desk
from pipelines.labs.minibatch import LAB, Params, Result, Run
from pipelines.training.parallel.net import Layers
from tests.labs.contract import Contract, about
from tests.labs.planted_training import ROUNDS, losses, times
from tests.pipelines import workers_in_threads


def planted(ends=None, noise=0.01, quick=()):
    """`ends`: the last loss by size; a second rate is worse for each. `quick`: sizes whose frames take no time."""
    usual = {16: 3.0, 256: 2.0, 1024: 2.1, 8192: 4.0}
    runs = [
        Run(
            size=size,
            rate=rate,
            seconds=times(0.0025 if size in quick else 0.25),
            examples=[size * 10] * ROUNDS,
            segments=[
                losses(worse * end * (1 + 0.1 * left), noise, size)
                for left in reversed(range(ROUNDS))
            ],
        )
        for size, end in (ends or usual).items()
        for rate, worse in ((0.1, 1.0), (0.4, 1.5))
    ]
    return Result(runs=runs)


CONTRACT = Contract(
    LAB,
    planted,
    false=[
        {"ends": {16: 1.8, 256: 2.0, 8192: 4.0}},
        {"ends": {16: 3.0, 256: 2.0, 8192: 1.5}},
        # Small ones that use the machine as well.
        {"ends": {16: 3.0, 256: 2.0}, "quick": (16,)},
    ],
    noisy=[{"ends": {16: 2.02, 256: 2.0}, "noise": 0.5}],
    figures={"best_minibatch": 256, "frames_per_s_at_16": about(160 / 0.25)},
    memory=(Params(largest=64), Params(largest=8192)),
)


def test_a_small_run_measures_and_draws(small_training):
    found = LAB.measure(Params(seconds=0.0, largest=64), Desk())
    assert sorted({run.size for run in found.runs}) == [1, 4, 16, 64]
    assert all(len(run.segments) == lab.PIECES for run in found.runs)
    assert LAB.picture(found).layers


def test_losses_are_those_of_plain_descent(small_training, monkeypatch):
    """Without time a piece is one minibatch: as many steps of torch's own SGD, and the loss of what is examined."""
    monkeypatch.setattr(lab, "HIDDEN", (8, 6))
    found = LAB.measure(Params(seconds=0.0, largest=64), Desk())
    run = next(r for r in found.runs if r.size == 16)
    taught = workers_in_threads.lessons(context=7)
    card = taught.card((8, 6), 0)
    start, place, width = Layers(card, 1, torch.device("cpu")).vector, 0, card.inputs
    net = torch.nn.Sequential()
    for outputs in (8, 6, workers_in_threads.CLASSES):
        layer = torch.nn.Linear(width, outputs)
        for parameter in (layer.weight, layer.bias):
            end = place + parameter.numel()
            parameter.data = start[place:end].clone().view_as(parameter)
            place = end
        net.extend([layer, torch.nn.ReLU()])
        width = outputs
    net = net[:-1]
    mean, scale = torch.tensor(card.mean), torch.tensor(card.scale)

    def loss(x, y):
        return torch.nn.functional.cross_entropy(net(((x - mean) * scale).flatten(1)), y)

    descent = torch.optim.SGD(net.parameters(), run.rate)
    for number in range(lab.PIECES):
        descent.zero_grad()
        loss(*taught.batch(number, 16)).backward()
        descent.step()
    examined = taught.taught.examples(taught.examined, 7)
    assert run.examples == [16] * lab.PIECES
    assert run.losses[-1] == pytest.approx(float(loss(*examined).detach()), rel=1e-3)
