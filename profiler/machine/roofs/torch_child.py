"""Measures the roofs that need torch in a separate process, so that this one never loads torch.

The child is `python -m profiler.machine.roofs.torch`; it answers in JSON lines. It starts in a session of
its own, because Ctrl+C must reach this process alone, and ends with it. Whatever goes wrong there becomes
a reason why a roof is unavailable, never a failure of the calibration.
"""

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final, NamedTuple

from profiler.errors import Cancelled as Stopped
from profiler.machine.roofs.table import Cancelled, Progress, Roof, RoofTable
from profiler.process import children

MODULE: Final = "profiler.machine.roofs.torch"
DEVICE: Final = "device"

SILENCE_SECONDS: Final = 120.0
"""Importing torch from a cold disk takes up to a minute; a step, seconds."""

POLL_SECONDS: Final = 0.1

LONGEST_COMPLAINT: Final = 1 << 20


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
    answer = Answer()
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            [*command, *parts],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
            env=children.environment({"PYTHONUNBUFFERED": "1"}),
        )
        try:
            whole = _listen(child, answer, progress, cancelled)
        finally:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        if not whole:
            reason = _reason(child.returncode, complaints)
            for name in parts:
                if name not in answer.missing:
                    answer.missing[name] = [Missing(name, reason)]
    return answer


def _listen(
    child: "subprocess.Popen[bytes]",
    answer: Answer,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> bool:
    """Take in what the child says; return whether it came to its end."""
    lines: queue.Queue[bytes] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    waited = 0.0
    while waited < SILENCE_SECONDS:
        if cancelled is not None and cancelled():
            raise Stopped("The calibration was cancelled.")
        try:
            line = lines.get(timeout=POLL_SECONDS)
        except queue.Empty:
            waited += POLL_SECONDS
            continue
        waited = 0.0
        if not line:
            return False
        try:
            message = json.loads(line)
        except ValueError:
            continue  # a library's own remark on stdout
        if not isinstance(message, dict):
            continue
        if message.get("done"):
            return True
        _take(message, answer, progress)
    return False


def _read(stream: IO[bytes], lines: "queue.Queue[bytes]") -> None:
    try:
        for line in stream:
            lines.put(line)
    except ValueError:
        pass  # closed while reading: the calibration was cancelled
    lines.put(b"")


def _take(message: dict[str, Any], answer: Answer, progress: Progress | None) -> None:
    if "progress" in message and progress is not None:
        progress(str(message["progress"]), float(message["fraction"]))
    if "part" in message:
        name = message["part"]
        answer.roofs.setdefault(name, []).extend(RoofTable.from_rows(message["roofs"]).roofs)
        answer.missing.setdefault(name, []).extend(Missing(*pair) for pair in message["missing"])


def _reason(status: int | None, complaints: IO[bytes]) -> str:
    complaints.seek(0)
    message = complaints.read(LONGEST_COMPLAINT).decode("utf-8", "replace")
    words = children.last_words(message, status or 0)
    return f"the process that measures with torch ended early (status {status}): {words}"
