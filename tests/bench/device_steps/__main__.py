"""One step of `bench device`, in this process."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from tests.bench.device_steps import checks, runs, throughput
from tests.bench.device_steps.result import Result, Task, write

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
    """Take `step` and keep its row; an exception is its result."""
    try:
        result = STEPS[step](task)
    except Exception as problem:  # whatever it is, the row has all of it
        lines = str(problem).strip().splitlines()
        result = Result(
            False,
            f"{type(problem).__name__}: {lines[0] if lines else 'no reason given'}",
            {"traceback": traceback.format_exc()},
        )
    write(out, step, result)


if __name__ == "__main__":
    name, device, folder, file, speech = sys.argv[1:]
    paths, transcripts = json.loads(speech)
    main(name, Task(device, Path(folder), tuple(paths), transcripts), Path(file))
