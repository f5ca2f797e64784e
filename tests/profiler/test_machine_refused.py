"""Roofs of several threads that do not fit those of one are refused, with a message for every reader."""

from __future__ import annotations

from profiler_sessions import roof

from app.cli import calibrate
from app.cli._tiers import kinds_of_roofs
from profiler.analysis.machine_costs import MachineCosts
from profiler.machine.roofs import table
from profiler.machine.roofs.calibration import Calibration
from profiler.machine.roofs.table import LEAST_GAIN, MOST_GAIN, RATE, RoofTable
from tests.each import each

# What was once kept as steady: two threads of exponentials that did 3 500 times as much as one.
ABSURD = (roof(RATE, "exp.torch", 1166.0), roof(RATE, "exp.torch", 4.1e6, threads=2))


@each("kind", [RATE, table.KERNEL])
@each(
    "gain, accepted",
    [
        (0.99 * LEAST_GAIN, False),
        (1.01 * LEAST_GAIN, True),
        (2.0, True),
        (0.99 * MOST_GAIN * 2, True),
        (1.01 * MOST_GAIN * 2, False),
        (4.1e6 / 1166.0, False),
    ],
)
def test_two_threads_fit_one(kind: str, gain: float, accepted: bool) -> None:
    one, two = roof(kind, "gemm", 1e9), roof(kind, "gemm", gain * 1e9, threads=2)
    known = RoofTable((one, two))
    find = known.rate if kind == RATE else known.kernel
    assert find("gemm") == one
    assert find("gemm", 2) == (two if accepted else None)
    assert set(known.refused) == (set() if accepted else {two})


def test_what_a_refused_roof_would_bound_is_not_attributed_and_named() -> None:
    costs = MachineCosts(RoofTable((ABSURD[0], ABSURD[1], roof(RATE, "fma", 1e9))))
    assert costs.operation_ns("exp", 2) is None
    assert list(costs.missing) == ["exp"]
    assert costs.operation_ns("exp", 1) is not None


def test_calibration_and_doctor_say_which_and_why() -> None:
    known = Calibration()
    known.add(ABSURD, "torch on 2", 0.0)
    sentence = (
        "exp.torch float32 on 2 threads is 3.52e+03 times what one thread does, which cannot be; "
        "`asrscope calibrate --fresh` measures it again."
    )
    assert f"* {sentence}" in calibrate.as_text(known).splitlines()
    (tier,) = (tier for tier in kinds_of_roofs(known) if tier.name == "roofs: threads")
    assert (tier.available, tier.reason) == (False, sentence)
    sound = Calibration()
    sound.add(ABSURD[:1], "torch on 1", 0.0)
    assert "cannot be" not in calibrate.as_text(sound)
    (tier,) = (tier for tier in kinds_of_roofs(sound) if tier.name == "roofs: threads")
    assert tier.available
