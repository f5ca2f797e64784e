"""Lab `consensus-admm`: its verdict on planted curves; a small run against the bytes that it must send."""

from __future__ import annotations

import pytest

from pipelines.labs.consensus_admm import LAB, RHOS, Agreed, Alm
from pipelines.labs.desk import Desk
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
    return Agreed(
        workers=workers, rhos=list(RHOS), exchanges=1, parameters=10, curves=[*others, *ours]
    )


def test_it_holds_where_the_best_rho_is_no_worse_on_fewer_bytes():
    found = LAB.judge(planted())
    assert found.verdict == "holds here"
    assert found.figures["best_rho"] == RHOS[1]
    assert found.figures["bytes_asynchronous_over_admm"] == pytest.approx(100)
    assert found.figures["staleness_of_asynchronous_updates"] == 2
    assert (found.figures["primal_residual"], found.figures["dual_residual"]) == (0.01, 0.02)


@pytest.mark.parametrize("change", [{"losses": (2.6, 2.4, 2.5)}, {"sent": 2000}])
def test_it_does_not_where_it_is_worse_or_sends_more(change):
    assert LAB.judge(planted(**change)).verdict == "does not hold here"


def test_it_is_not_tried_with_four_workers():
    assert LAB.judge(planted(workers=4)).verdict == "cannot be tried here"


def test_noise_decides_nothing():
    assert LAB.judge(planted(losses=(2.12, 2.12, 2.12), noise=0.9)).verdict == "undecided"


def test_a_small_run_measures_and_draws(small_training):
    found = LAB.measure(Alm(workers=2, batch=4, local=3, exchanges=2, rounds=2), Desk())
    synchronous, _, *ours = found.curves
    assert [curve.examples for curve in ours] == [[48, 48]] * 3
    assert synchronous.examples == [48, 48]
    assert [len(curve.residuals) for curve in ours] == [4] * 3
    # A round of ADMM shares z and two numbers twice, a step of synchronous SGD one gradient: 4 against 12 times.
    assert sum(synchronous.bytes) / sum(ours[0].bytes) == pytest.approx(12 / 4, rel=0.01)
    assert LAB.judge(found).why
    assert len(LAB.picture(found).beside) == 2


def test_the_memory_grows_with_the_workers():
    assert LAB.bytes_needed(Alm(workers=64)) > 8 * LAB.bytes_needed(Alm(workers=2))
