"""Lab `consensus-admm`: its verdict on planted curves; a small run against the bytes that it must send."""

from __future__ import annotations

import pytest

from pipelines.labs.consensus_admm import LAB, RHOS, Params, Result
from pipelines.labs.desk import Desk
from tests.labs.contract import Contract, about
from tests.labs.planted_training import curve


def planted(losses=(2.6, 2.0, 2.3), sent=10, noise=0.01, workers=5):
    ours = [
        curve(
            f"ADMM {rho}", loss=loss, sent=sent, noise=noise, residuals=[(0.1, 0.2), (0.01, 0.02)]
        )
        for rho, loss in zip(RHOS, losses, strict=True)
    ]
    others = [
        curve("synchronous", loss=2.0, noise=noise),
        curve("asynchronous", loss=2.01, noise=noise, delays={1: 5, 3: 5}, ranks=3),
    ]
    return Result(
        workers=workers, rhos=list(RHOS), exchanges=1, parameters=10, curves=[*others, *ours]
    )


CONTRACT = Contract(
    LAB,
    planted,
    false=[{"losses": (2.6, 2.4, 2.5)}, {"sent": 2000}],
    noisy=[{"losses": (2.12, 2.12, 2.12), "noise": 0.9}],
    figures={
        "best_rho": RHOS[1],
        "bytes_asynchronous_over_admm": about(100),
        "staleness_of_asynchronous_updates": 2,
        "primal_residual": 0.01,
        "dual_residual": 0.02,
    },
    memory=(Params(workers=2), Params(workers=64)),
)


def test_it_is_not_tried_with_four_workers():
    assert LAB.judge(planted(workers=4)).verdict == "cannot be tried here"


def test_a_small_run_measures_and_draws(small_training):
    found = LAB.measure(Params(workers=2, batch=4, local=3, exchanges=2, rounds=2), Desk())
    synchronous, _, *ours = found.curves
    assert [curve.examples for curve in ours] == [[48, 48]] * 3
    assert synchronous.examples == [48, 48]
    assert [len(curve.residuals) for curve in ours] == [4] * 3
    # A round of ADMM shares z and two numbers twice, a step of synchronous SGD one gradient: 4 against 12 times.
    assert sum(synchronous.bytes) / sum(ours[0].bytes) == pytest.approx(12 / 4, rel=0.01)
    assert LAB.judge(found).why
    assert len(LAB.picture(found).beside) == 2
