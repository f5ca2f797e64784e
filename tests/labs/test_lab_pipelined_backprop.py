"""Lab `pipelined-backprop`: its verdict on planted times and losses, its simulation against what they must give."""

from __future__ import annotations

import pytest

from pipelines.labs import pipelined_backprop as lab
from pipelines.labs.desk import Desk
from pipelines.labs.pipelined_backprop import LAB, LAYERS, Pipe, Piped
from tests.labs.planted_training import curve


def planted(pair=0.5, loss=2.0, noise=0.001, four=0.28, devices=2):
    forward = [[0.01] * 5] * LAYERS
    backward = [[0.02] * 5] * LAYERS
    return Piped(
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


def test_it_holds_where_two_are_nearly_twice_as_fast_and_the_loss_is_the_same():
    found = LAB.judge(planted())
    assert found.verdict == "holds in part"  # four have not a device each
    assert found.figures["speed_up_2"] == pytest.approx(2.0, rel=0.01)
    assert found.figures["delay_of_first"] == 6
    assert found.figures["output_layer_share"] == pytest.approx(1 / LAYERS)
    # Eight even layers: four each on two devices; of the four that are planted here one has three.
    assert found.figures["simulated_speed_up_2"] == pytest.approx(2.0, rel=0.03)
    assert found.figures["simulated_speed_up_4"] == pytest.approx(8 / 3, rel=0.05)


@pytest.mark.parametrize("change", [{"pair": 0.8}, {"loss": 2.5}])
def test_it_does_not_where_it_is_slow_or_late_gradients_cost(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


@pytest.mark.parametrize(
    ("devices", "four", "verdict"),
    [(4, 0.28, "holds here"), (4, 0.5, "does not hold here"), (3, 0.5, "holds in part")],
)
def test_four_workers_are_judged_where_each_has_a_device(devices, four, verdict):
    assert LAB.judge(planted(four=four, devices=devices)).verdict == verdict


def test_noise_decides_nothing():
    assert LAB.judge(planted(pair=1 / 1.9, noise=0.5)).verdict == "undecided"


def test_a_small_run_measures_and_draws(small_training, monkeypatch):
    monkeypatch.setattr(lab, "HIDDEN", (8,) * 6)
    monkeypatch.setattr(lab, "BOTTLENECK", 6)
    found = LAB.measure(Pipe(most=3, batch=8, batches=8, rounds=3, cost_seconds=0.0), Desk())
    assert [c.workers for c in found.curves] == [1, 2, 3]
    assert len(found.forward) == len(found.backward) == LAYERS
    delays = [max(each.delays) for each in found.curves[-1].by_worker]
    assert delays == [4, 2, 0]
    assert {block.worker for block in found.spans} == {0, 1, 2}
    assert LAB.judge(found).why
    chart = LAB.picture(found)
    assert chart.y.categories == ("worker 1", "worker 2", "worker 3")
    assert len(chart.beside) == 3


def test_the_memory_grows_with_the_workers():
    assert LAB.bytes_needed(Pipe(most=6)) > LAB.bytes_needed(Pipe(most=2))
