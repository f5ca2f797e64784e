"""Lab `transfer-ledger`: its bytes against a count by hand, its verdict on planted ledgers."""

from __future__ import annotations

from pipelines.labs import transfer_ledger
from pipelines.labs.transfer_ledger import KINDS, LAB, Kind, Params, Result
from tests.labs.contract import Contract, NoDevice, about
from tests.pipelines.workers_in_threads import CLASSES, FEATURES


def planted(weights=1_000_000, batch=1000, heavy=1, step=0.02, real=True):
    counts = {"weights there": heavy, "batch there": 20, "loss back": 10, "weights back": 1}
    sizes = {"batch there": batch, "loss back": 4}
    kinds = {
        name: Kind(bytes=[sizes.get(name, weights)] * counts[name], seconds=[0.01] * counts[name])
        for name in KINDS
    }
    return Result(device="cuda", real=real, batch=256, kinds=kinds, step_seconds=[step] * 10)


CONTRACT = Contract(
    LAB,
    planted,
    in_part=[{"step": 10.0, "real": False}],
    false=[{"batch": 200_000}, {"heavy": 5}, {"step": 10.0}],
    figures={
        "heavy_over_light": 1000,
        "light_bytes_over_heavy_in_sum": about(20_040 / 2e6),
        "transfer_share_of_time": about(0.32 / 0.52),
        # 2 000 hours at 100 frames a second, in minibatches of 256 with three requests each.
        "light_requests_in_2000_h": about(7.2e8 / 256 * 3),
    },
    memory=(Params(batch=1), Params(batch=8192)),
)


def test_without_a_device_what_sending_costs_is_not_tried():
    """The card said "crossing takes 0.2 % of the time" beside "the cost is sending: holds here"."""
    assert "could not be tried" in LAB.judge(planted(step=10.0, real=False)).why


def test_a_small_run_has_every_byte_in_its_ledger(small_training, monkeypatch):
    monkeypatch.setattr(transfer_ledger, "HIDDEN", (8,))
    monkeypatch.setattr(transfer_ledger, "BOTTLENECK", 6)
    found = LAB.measure(Params(batch=16, steps=4), NoDevice())
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
