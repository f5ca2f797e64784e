"""One step of `bench device`, in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from profiler.errors import BadInput
from tests.bench.device_steps import checks, runs, throughput
from tests.bench.device_steps.found import Found, Task, write

STEPS = {
    "identity": checks.identity,
    "tests": checks.tests,
    "sanitizer": checks.sanitizer,
    "roofs": checks.roofs,
    "clock": checks.clock,
    "combinations": runs.combinations,
    "busy": throughput.busy,
    "graphs": throughput.graphs,
    "search": throughput.search,
    "scoring": throughput.scoring,
    "memory": checks.memory,
    "session": runs.session,
}
"""In the order in which they are taken."""


def main(step: str, task: Task, out: Path) -> None:
    """Take `step` and keep its row; what goes wrong is its answer."""
    try:
        found = STEPS[step](task)
    except (RuntimeError, BadInput, OSError, AssertionError, ValueError) as problem:
        lines = str(problem).strip().splitlines()
        found = Found(
            False, f"{type(problem).__name__}: {lines[0] if lines else 'no reason given'}"
        )
    write(out, step, found)


if __name__ == "__main__":
    name, device, folder, file, speech = sys.argv[1:]
    paths, transcripts = json.loads(speech)
    main(name, Task(device, Path(folder), tuple(paths), transcripts), Path(file))
