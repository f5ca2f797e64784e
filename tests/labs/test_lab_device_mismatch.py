"""Lab `device-mismatch`: what torch's rules say, and its verdict on planted trials."""

from __future__ import annotations

import pytest

from pipelines.labs.declaration import Parameters
from pipelines.labs.desk import Desk
from pipelines.labs.device_mismatch import ALLOWED, LAB, OPERATIONS, PLACES, Trial, Trials


class NoDevice(Desk):
    device = None


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
    assert judged.verdict == "holds in part"
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
    return Trials(device="cuda", real=True, trials=trials, to_numpy=changed.get("to_numpy", "no"))


def test_it_holds_on_a_device_that_refuses():
    assert LAB.judge(planted()).verdict == "holds here"


@pytest.mark.parametrize(
    "changed",
    [
        {"one on each": {"error": "", "lives": "cuda"}},
        {"after .to(device)": {"error": "no"}},
        {"both on the device": {"lives": "cpu"}},
        {"to_numpy": ""},
    ],
)
def test_it_does_not_where_something_crosses_silently(changed):
    assert LAB.judge(planted(**changed)).verdict == "does not hold here"
