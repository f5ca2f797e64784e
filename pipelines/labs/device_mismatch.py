"""Lab `device-mismatch`: tensors that live on two devices, and what torch says of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import msgspec

from pipelines.labs.chart import Axis, Block, Chart, Gantt
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.desk import NONE, Desk
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, PART, Finding, all_of

if TYPE_CHECKING:
    from torch import Tensor

PLACES = ("both on the host", "both on the device", "one on each", "after .to(device)")
OPERATIONS = ("add", "matrix product", "linear layer", "concatenate", "compare", "add in place", "add a scalar tensor")
ALLOWED = "add a scalar tensor"  # What torch takes across devices: a tensor of no dimension counts as a number
RULES = "privateuseone:0"  # Torch's name for third-party devices: its rules can be queried without a device


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One operation with its tensors in one of PLACES: where the result lives, or the error's first line."""

    operation: str
    place: str
    lives: str = ""
    error: str = ""


class DeviceMismatchResult(Measured, frozen=True, kw_only=True):
    """All trials. `device`: its name in torch. `real`: whether it is present, or only its rules were queried."""

    device: str
    real: bool
    trials: list[Trial]
    to_numpy: str  # What a result of a real device says when numpy wants it


def measure(_: Parameters, desk: Desk) -> DeviceMismatchResult:
    """Every operation in every place; without an accelerator, by torch's own rules on tensors without memory."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    device, real = desk.device or RULES, desk.device is not None
    trials = []
    with nullcontext() if real else FakeTensorMode():
        for operation, place in product(OPERATIONS, PLACES):
            a = torch.ones((4, 4), device="cpu" if place == PLACES[0] else device)
            b = torch.ones((4, 4), device=device if place == PLACES[1] else "cpu")
            if place == PLACES[3]:
                b = b.to(device)
            stage = desk.stage(operation, "scoring")
            with desk.step() as number:
                begin = desk.recorder.clock()
                trials.append(_trial(operation, place, partial(_do, operation, a, b)))
                desk.lane.put(stage, begin, desk.recorder.clock(), number, 1)
        # Without memory every tensor is refused, for another reason.
        refused = _trial("numpy", PLACES[1], lambda: torch.ones(2, device=device).numpy()).error
    return DeviceMismatchResult(device=device, real=real, trials=trials, to_numpy=refused if real else "")


def _do(operation: str, a: Tensor, b: Tensor) -> Tensor:
    import torch

    operations: dict[str, Callable[[], Tensor]] = {
        "add": lambda: a + b,
        "matrix product": lambda: a @ b,
        "linear layer": lambda: torch.nn.functional.linear(b, a),
        "concatenate": lambda: torch.cat([a, b]),
        "compare": lambda: a > b,
        "add in place": lambda: a.add_(b),
        ALLOWED: lambda: a + torch.ones((), device=b.device),
    }
    return operations[operation]()


def _trial(operation: str, place: str, work: Callable[[], object]) -> Trial:
    from pipelines.device.base import first_line

    try:
        result = work()
    except (RuntimeError, TypeError, NotImplementedError) as problem:
        return Trial(operation=operation, place=place, error=first_line(problem))
    return Trial(operation=operation, place=place, lives=getattr(getattr(result, "device", None), "type", "cpu"))


def judge(result: DeviceMismatchResult) -> Finding:
    _, there, apart, moved = ([trial for trial in result.trials if trial.place == place] for place in PLACES)
    mixed = [trial for trial in apart if trial.operation != ALLOWED]
    raised = [trial for trial in mixed if trial.error]
    named = [trial for trial in raised if "device" in trial.error.lower() and result.device in trial.error]
    stays = [trial for trial in there if trial.lives and result.device.startswith(trial.lives)]
    refused = bool(result.to_numpy) or not result.real
    right = raised == mixed and stays == there and refused and not any(trial.error for trial in moved)
    example = raised[0].error if raised else "nothing"
    how = "" if result.real else f" {NONE}: torch's rules were asked with tensors without memory."
    why = (
        f"{len(raised)} of {len(mixed)} operations on tensors of two devices raise an error ({len(named)} name "
        f"the device; add says: {example}), none does after .to(device), and results of the device "
        f"stay there{': numpy is refused' if result.to_numpy else ''}.{how}"
    )
    figures: dict[str, float | None] = {
        "operations_refused": float(len(raised)),
        "operations_tried": float(len(mixed)),
        "operations_allowed_across": float(sum(not trial.error for trial in apart)),
        "results_on_device": float(len(stays)),
    }
    # The rules are torch's own; that a device keeps to them only a device can show.
    return Finding(all_of(HOLDS if right else FAILS, HOLDS if result.real else IMPOSSIBLE), why, figures)


def picture(result: DeviceMismatchResult) -> Chart:
    blocks = tuple(
        Block(
            OPERATIONS.index(trial.operation),
            PLACES.index(trial.place) - 0.45,
            PLACES.index(trial.place) + 0.45,
            "error" if trial.error else "works",
            "error" if trial.error else f"on the {'host' if trial.lives == 'cpu' else 'device'}",
        )
        for trial in result.trials
    )
    where = Axis("where the tensors live", categories=PLACES)
    return Chart(where, Axis("operation", categories=OPERATIONS), (Gantt(blocks),))


LAB = Lab(
    claim="There is no line that turns the GPU on: tensors live on the device or on the host, mixing them is "
    "an error, and results stay where they were computed.",
    source="note 2",
    group="device",
    wants_device=True,
    measured="Seven operations of torch with their tensors on the host, on the device, on both, and after a "
    "copy: the error message of torch, and the place of the result. A tensor without dimensions may cross, as a "
    "number. Without an accelerator torch checks the rules on tensors that have a device but no memory (fake "
    "tensors), as its compiler does.",
    bound="It holds if every operation that mixes devices raises an error and every result stays on its device, "
    "as the claim says. The only exception is torch's own rule for single numbers.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: 'Expected all tensors to be on the same device' means that one operand was never sent: "
        "send weights once with .to(device), each batch as it comes, and take back only what the host needs.",
        PART: "So: 'Expected all tensors to be on the same device' means that one operand was never sent; run it once "
        "where there is an accelerator, too.",
        FAILS: "So: this torch crosses devices silently somewhere: look for hidden copies in the timeline.",
    },
)
