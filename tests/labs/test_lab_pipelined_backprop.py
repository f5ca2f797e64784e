"""Lab `pipelined-backprop`: its verdict on planted times and losses, its simulation against what they must give."""

from __future__ import annotations

from pipelines.labs import pipelined_backprop as lab
from pipelines.labs.desk import Desk
from pipelines.labs.pipelined_backprop import LAB, LAYERS, Params, Result
from tests.labs.contract import Contract, about
from tests.labs.planted_training import curve


def planted(pair=0.5, loss=2.0, noise=0.001, four=0.28, devices=2):
    forward = [[0.01] * 5] * LAYERS
    backward = [[0.02] * 5] * LAYERS
    return Result(
        batch=16,
        forward=forward,
        backward=backward,
        splits={1: [0], 2: [0, 4], 3: [0, 2, 4], 4: [0, 2, 4, 5]},
        curves=[
            curve("one worker", 1.0, 2.0, workers=1, noise=noise),
            curve("2 workers", pair, 2.0, noise=noise, delays={2: 9, 0: 1}),
            curve("4 workers", four, loss, workers=4, noise=noise, delays={6: 9, 1: 1}),
        ],
        spans=[],
        devices=devices,
    )


CONTRACT = Contract(
    LAB,
    planted,
    # Without a device each, four workers are not judged.
    in_part=[{}, {"devices": 3, "four": 0.5}],
    true=[{"devices": 4}],
    false=[{"pair": 0.8}, {"loss": 2.5}, {"devices": 4, "four": 0.5}],
    noisy=[{"pair": 1 / 1.9, "noise": 0.5}],
    figures={
        "speed_up_2": about(2.0),
        "delay_of_first": 6,
        "output_layer_share": about(1 / LAYERS),
        # Eight even layers: four each on two devices; of the four that are planted here one has three.
        "simulated_speed_up_2": about(2.0, rel=0.03),
        "simulated_speed_up_4": about(8 / 3, rel=0.05),
    },
    memory=(Params(most=2), Params(most=6)),
)


def test_a_small_run_measures_and_draws(small_training, monkeypatch):
    monkeypatch.setattr(lab, "HIDDEN", (8,) * 6)
    monkeypatch.setattr(lab, "BOTTLENECK", 6)
    found = LAB.measure(Params(most=3, batch=8, batches=8, rounds=3, cost_seconds=0.0), Desk())
    assert [c.workers for c in found.curves] == [1, 2, 3]
    assert len(found.forward) == len(found.backward) == LAYERS
    delays = [max(each.delays) for each in found.curves[-1].by_worker]
    assert delays == [4, 2, 0]
    assert {block.worker for block in found.spans} == {0, 1, 2}
    assert LAB.judge(found).why
    chart = LAB.picture(found)
    assert chart.y.categories == ("worker 1", "worker 2", "worker 3")
    assert len(chart.beside) == 3
