"""One step of `bench device`, in this process."""

import json
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench.device_steps import checks, runs, searches, throughput
from tests.bench.device_steps.result import Result, Task, write


class Step(NamedTuple):
    """What is done, and after how many seconds it is ended, as it hangs."""

    take: Callable[[Task], Result]
    limit_s: float


STEPS: dict[str, Step] = {
    "identity": Step(checks.identity, 30),
    "cuda-words": Step(partial(searches.search, kernel=True, quick=True), 90),
    "cuda-search": Step(partial(searches.search, kernel=True), 120),
    "cuda-scoring": Step(partial(searches.scoring, kernel=True), 120),
    "cuda-stamps": Step(searches.stamps, 45),
    "session": Step(runs.session, 60),
    "lab": Step(runs.lab, 90),
    "tests": Step(checks.tests, 120),
    "roofs": Step(checks.roofs, 60),
    "clock": Step(checks.clock, 90),
    "busy": Step(throughput.busy, 60),
    "graphs": Step(throughput.graphs, 60),
    "memory": Step(checks.memory, 60),
    "sanitizer": Step(checks.sanitizer, 120),
    "search": Step(searches.search, 120),
    "scoring": Step(searches.scoring, 120),
    "combinations": Step(runs.combinations, 600),
}
"""In the order in which they are taken: what is not known yet first, and what takes long last."""


def main(step: str, task: Task, out: Path) -> None:
    try:
        result = STEPS[step].take(task)
    except Exception as problem:  # whatever it is, the row has all of it
        reason = (str(problem).strip().splitlines() or ["no reason given"])[0]
        result = Result(False, f"{type(problem).__name__}: {reason}", {"traceback": traceback.format_exc()})
    write(out, step, result)


if __name__ == "__main__":
    name, device, folder, file, speech = sys.argv[1:]
    paths, transcripts = json.loads(speech)
    main(name, Task(device, Path(folder), tuple(paths), transcripts), Path(file))
