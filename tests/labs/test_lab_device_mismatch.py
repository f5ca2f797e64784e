"""Lab `device-mismatch`: what torch's rules say, and its verdict on planted trials."""

from __future__ import annotations

from pipelines.labs.declaration import Parameters
from pipelines.labs.device_mismatch import ALLOWED, LAB, OPERATIONS, PLACES, Result, Trial
from pipelines.labs.verdicts import PART
from tests.labs.contract import Contract, NoDevice


def test_the_rules_of_torch_hold_without_a_device():
    found = LAB.measure(Parameters(), NoDevice())
    assert not found.real
    by = {(t.operation, t.place): t for t in found.trials}
    assert len(by) == len(OPERATIONS) * len(PLACES)
    for operation in OPERATIONS:
        assert by[operation, "both on the host"].lives == "cpu"
        assert not by[operation, "after .to(device)"].error
        assert bool(by[operation, "one on each"].error) == (operation != ALLOWED)
    assert "cpu" in by["add", "one on each"].error
    judged = LAB.judge(found)
    assert judged.verdict == PART
    assert judged.figures["operations_refused"] == len(OPERATIONS) - 1
    assert "no accelerator" in judged.why
    assert len(LAB.picture(found).layers[0].blocks) == len(by)


def planted(**changed):
    trials = []
    for operation in OPERATIONS:
        for place in PLACES:
            refused = place == "one on each" and operation != ALLOWED
            what = {"lives": "" if refused else ("cpu" if place == "both on the host" else "cuda")}
            what["error"] = "found at least two devices, cuda:0 and cpu!" if refused else ""
            trials.append(
                Trial(operation=operation, place=place, **(what | changed.get(place, {})))
            )
    real, to_numpy = changed.get("real", True), changed.get("to_numpy", "no")
    return Result(device="cuda", real=real, trials=trials, to_numpy=to_numpy)


CONTRACT = Contract(
    LAB,
    planted,
    in_part=[{"real": False}],
    false=[
        {"one on each": {"error": "", "lives": "cuda"}},
        {"after .to(device)": {"error": "no"}},
        {"both on the device": {"lives": "cpu"}},
        {"to_numpy": ""},
    ],
    figures={"operations_refused": len(OPERATIONS) - 1, "operations_allowed_across": 1},
)
