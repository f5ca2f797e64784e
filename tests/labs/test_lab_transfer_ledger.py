"""Lab `transfer-ledger`: its bytes against a count by hand, its verdict on planted ledgers."""

from __future__ import annotations

import pytest

from pipelines.labs import transfer_ledger
from pipelines.labs.desk import Desk
from pipelines.labs.transfer_ledger import KINDS, LAB, Kind, Ledger, Sizes
from tests.pipelines.workers_in_threads import CLASSES, FEATURES


class NoDevice(Desk):
    device = None


def planted(weights=1_000_000, batch=1000, heavy=1, step=0.02, real=True):
    counts = {"weights there": heavy, "batch there": 20, "loss back": 10, "weights back": 1}
    sizes = {"batch there": batch, "loss back": 4}
    kinds = {
        name: Kind(bytes=[sizes.get(name, weights)] * counts[name], seconds=[0.01] * counts[name])
        for name in KINDS
    }
    return Ledger(device="cuda", real=real, batch=256, kinds=kinds, step_seconds=[step] * 10)


def test_it_holds_where_two_are_heavy_and_the_others_light():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["heavy_over_light"] == 1000
    assert found.figures["light_bytes_over_heavy_in_sum"] == pytest.approx(20_040 / 2e6)
    assert found.figures["transfer_share_of_time"] == pytest.approx(0.32 / 0.52)
    # 2 000 hours at 100 frames a second, in minibatches of 256 with three requests each.
    assert found.figures["light_requests_in_2000_h"] == pytest.approx(7.2e8 / 256 * 3)


def test_without_a_device_what_sending_costs_is_not_tried():
    """The card said "crossing takes 0.2 % of the time" beside "the cost is sending: holds here"."""
    found = LAB.judge(planted(step=10.0, real=False))
    assert found.verdict == "holds in part"
    assert "could not be tried" in found.why


@pytest.mark.parametrize("change", [{"batch": 200_000}, {"heavy": 5}, {"step": 10.0}])
def test_it_does_not_where_batches_are_heavy_or_weights_go_often_or_sending_is_quick(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_a_small_run_has_every_byte_in_its_ledger(small_training, monkeypatch):
    monkeypatch.setattr(transfer_ledger, "HIDDEN", (8,))
    monkeypatch.setattr(transfer_ledger, "BOTTLENECK", 6)
    found = LAB.measure(Sizes(batch=16, steps=4), NoDevice())
    inputs = 15 * FEATURES
    weights = 4 * ((inputs + 1) * 8 + 9 * 6 + 7 * CLASSES)
    assert {name: kind.bytes for name, kind in found.kinds.items()} == {
        "weights there": [weights],
        "batch there": [16 * inputs * 4, 16 * 8] * 4,
        "loss back": [4] * 4,
        "weights back": [weights],
    }
    assert LAB.judge(found).why
    assert LAB.picture(found).beside


def test_the_memory_grows_with_the_minibatch():
    assert LAB.bytes_needed(Sizes(batch=8192)) > LAB.bytes_needed(Sizes(batch=1))
