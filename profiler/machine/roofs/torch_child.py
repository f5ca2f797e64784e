"""Measures the roofs that need torch in a separate process, so that this one never loads torch.

The child is `python -m profiler.machine.roofs.torch`; it answers in JSON lines. It starts in a session of
its own, because Ctrl+C must reach this process alone, and ends with it. Whatever goes wrong there becomes
a reason why a roof is unavailable, never a failure of the calibration.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from profiler.errors import Cancelled as Stopped
from profiler.machine.roofs.table import Cancelled, Progress, Roof, RoofTable
from profiler.process import children

MODULE: Final = "profiler.machine.roofs.torch"
DEVICE: Final = "device"

SILENCE_SECONDS: Final = 120.0
"""Importing torch from a cold disk takes up to a minute; a step, seconds."""


class Missing(NamedTuple):
    """What has no roof on this machine, and why."""

    name: str
    reason: str


@dataclass
class Answer:
    """What came back, by part of the calibration."""

    roofs: dict[str, list[Roof]] = field(default_factory=dict)
    missing: dict[str, list[Missing]] = field(default_factory=dict)


def part(threads: int) -> str:
    """Return the name of torch's part for this number of processor threads."""
    return f"torch on {threads}"


def measure(
    parts: Sequence[str],
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    command: Sequence[str] = tuple(children.python("-m", MODULE)),
) -> Answer:
    """Measure `parts` ("device" and what `part` names) in a child process.

    Raises profiler.errors.Cancelled as soon as `cancelled()`; the child is ended then, and always.
    """
    answer, whole = Answer(), False

    def hear(line: bytes) -> bool:
        nonlocal whole
        try:
            message = json.loads(line)
        except ValueError:
            return False  # a library's own remark on stdout
        if isinstance(message, dict):
            whole = bool(message.get("done"))
            _take(message, answer, progress)
        return whole

    try:
        listened = children.listen(
            [*command, *parts], hear, cancelled, extra={"PYTHONUNBUFFERED": "1"}, silence_s=SILENCE_SECONDS
        )
        reason = f"(status {listened[0]}): {children.last_words(listened[1], listened[0])}"
    except TimeoutError:
        reason = f"(silent for {SILENCE_SECONDS:.0f} s)"
    except Stopped:
        raise Stopped("The calibration was cancelled.") from None
    if not whole:
        for name in parts:
            if name not in answer.missing:
                answer.missing[name] = [Missing(name, f"the process that measures with torch ended early {reason}")]
    return answer


def _take(message: dict[str, Any], answer: Answer, progress: Progress | None) -> None:
    if "progress" in message and progress is not None:
        progress(str(message["progress"]), float(message["fraction"]))
    if "part" in message:
        name = message["part"]
        answer.roofs.setdefault(name, []).extend(RoofTable.from_rows(message["roofs"]).roofs)
        answer.missing.setdefault(name, []).extend(Missing(*pair) for pair in message["missing"])
