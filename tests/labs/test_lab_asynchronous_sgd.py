"""Lab `asynchronous-sgd`: its verdict on planted curves, its shares and model against sums by hand."""

from __future__ import annotations

import pytest

from pipelines.labs import asynchronous_sgd as lab
from pipelines.labs.asynchronous_sgd import LAB, Params, Result
from pipelines.labs.desk import Desk
from tests.labs.contract import Contract, about
from tests.labs.planted_training import curve


def planted(several=0.6, loss=2.0, waiting=0.1, noise=0.01, synchronous=0.8):
    curves = [
        curve("one worker", 1.0, 2.0, workers=1, noise=noise),
        curve("synchronous", synchronous, 2.0, noise=noise),
        curve("each", 0.9, 2.0, waiting=0.4, ranks=3, delays={0: 10, 1: 30}, noise=noise),
        curve("several", several, loss, waiting=waiting, ranks=3, noise=noise),
        curve("slowed", 0.9, 2.0, ranks=3, noise=noise),
    ]
    return Result(workers=2, batch=8, accumulate=4, parameters=10, curves=curves)


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"several": 1.5}, {"loss": 2.6}, {"waiting": 0.5}, {"synchronous": 0.4}],
    noisy=[{"several": 0.9, "synchronous": 0.9, "noise": 0.8}],
    figures={
        "speed_up": about(1 / 0.6),
        "mean_staleness_updates": about(0.75),
        "communication_share_each": pytest.approx(0.4, abs=0.01),
    },
    memory=(Params(workers=2), Params(workers=64)),
)


def test_the_model_is_the_number_of_devices_until_the_server_is_busy():
    fast = curve("fast", waiting=0.0, ranks=3)
    assert lab.modelled(fast, 4) == pytest.approx(4, rel=0.01)
    busy = list(fast.by_worker)
    busy[0] = type(busy[0])(seconds={"update": 1.0}, delays={})
    slow = type(fast)(name="slow", workers=2, by_worker=busy)
    # Two workers compute two seconds while the server is busy for one: no more than 2 are ever fed.
    assert lab.modelled(slow, 64) == pytest.approx(2.0, rel=0.01)


def test_a_small_run_measures_and_draws(small_training):
    params = Params(batch=4, batches=16, rounds=3)
    found = LAB.measure(params, Desk())
    assert [len(c.seconds) for c in found.curves] == [3] * 5
    assert found.curves[0].examples == [64] * 3
    assert sum(found.curves[2].by_worker[0].delays.values()) == sum(found.curves[2].updates)
    assert LAB.judge(found).why
    assert len(LAB.picture(found).beside) == 4
