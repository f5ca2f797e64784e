"""Every check of a device, in one go.

    asrscope bench device --require cuda --json       (make gpu)
    asrscope bench device --require torch-cpu --json  the same with the processor in a device's place
    asrscope bench device --only cuda-search lab      these steps, again (make gpu ONLY="cuda-search lab")

Each step is a process of its own and leaves its row in build/bench/device before the next begins, whatever it breaks.
A row has `proved` (true, false, or null: it cannot be, on this device), `why`, and figures. All takes eight minutes at
most: steps for which no time is left, and only these, are taken when it is called again for the same commit and device.
The step `session` leaves a session of at most 2 MB. table.md is for docs/measurements.md.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelines import availability
from pipelines.device import HOST
from profiler.errors import BadInput
from tests.bench._rounds import Progress, Tree, markdown, without_peer
from tests.bench.device_steps.__main__ import STEPS
from tests.bench.device_steps.result import Result, write

ROOT = Path(__file__).parents[2]
FOLDER = Path("build") / "bench" / "device"
BUDGET_S = 480.0  # of all steps together, but for those that --only names: a GPU may be lent for minutes
LEAST_S = 20.0  # that a step must have left, or it is left for the next call
ACCELERATORS = ("cuda", "xpu", "mps")


def run(
    paths: Sequence[str],
    transcripts: str | None,
    repeat: int,
    progress: Progress,
    require: str | None = None,
    only: Sequence[str] = (),
) -> Tree:
    """Take every step that has no row yet, or those of `only`, on the device that is required; BadInput where it is not
    here. Without `require`: the first accelerator, or the processor in its place."""
    if unknown := [step for step in only if step not in STEPS]:
        raise BadInput(f"bench device --only: there is no step {unknown[0]!r}; choose among {', '.join(STEPS)}.")
    name = device(require)
    FOLDER.mkdir(parents=True, exist_ok=True)
    made_of = {"commit": _commit(), "device": name}
    known: dict[str, Tree] = {}
    for step in STEPS:
        with suppress(OSError, ValueError):
            row = json.loads(_file(step).read_text(encoding="utf-8"))
            known |= {step: row} if made_of.items() <= row.items() else {}
    chosen = list(only) or [step for step in STEPS if step not in known]
    ends = math.inf if only else time.monotonic() + BUDGET_S
    for i, step in enumerate(chosen):
        left = ends - time.monotonic()
        if left < LEAST_S:
            break
        progress(f"{name}: {step}", i / len(chosen))
        taken = _taken(step, name, [list(paths), transcripts], left, made_of)
        known.pop(step, None)
        if taken is not None:
            known[step] = taken
    rows = [known[step] for step in STEPS if step in known]
    answers = {True: "yes", False: "no", None: "cannot be, here"}
    lines = [(row["step"], answers[row["proved"]], row["why"]) for row in rows]
    (FOLDER / "table.md").write_text(markdown(("step", "proved", "why"), lines), encoding="utf-8")
    proved = {value: sum(row["proved"] is value for row in rows) for value in (True, False, None)}
    figures = {"device": name, "proved": proved[True], "failed": proved[False], "cannot be proved here": proved[None]}
    agreement = {"rows": str(FOLDER), "left for another call": [step for step in STEPS if step not in known]}
    figures |= {"seconds": sum(row["seconds"] for row in rows)}
    return without_peer(f"; what could be proved on {name}, step by step", figures, agreement, rows)


def device(require: str | None) -> str:
    """The device to check; BadInput where the required one is not here."""
    known = {each.name: each for each in availability.probe()}
    if require not in (None, "any"):
        if require in known and known[require].available:
            return str(require)
        reason = known[require].reason if require in known else "unknown"
        raise BadInput(f"bench device --require {require}: there is none ({reason}).")
    accelerators = [known[name] for name in ACCELERATORS if name in known]
    here = next((each.name for each in accelerators if each.available), None if require else HOST)
    if here is None:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in accelerators)
        raise BadInput(f"bench device --require any needs an accelerator, and there is none ({reasons}).")
    return here


def _taken(step: str, name: str, speech: list[Any], left_s: float, made_of: dict[str, str]) -> Tree | None:
    """Take a step in a process of its own; its row, also kept in the folder. None: the time left was too short."""
    file = _file(step)
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.bench.device_steps", step, name, str(FOLDER.resolve())]
    began, limit_s = time.monotonic(), STEPS[step].limit_s
    try:
        child = subprocess.run(
            [*command, str(file.resolve()), json.dumps(speech)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=min(limit_s, left_s),
        )
        why = f"its process ended with {child.returncode}: {child.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        if left_s < limit_s:
            return None
        why = f"it took more than {limit_s:.0f} s"
    if not file.is_file():
        write(file, step, Result(False, why))
    row: Tree = json.loads(file.read_text(encoding="utf-8")) | made_of
    row["seconds"] = round(time.monotonic() - began, 1)
    file.write_text(json.dumps(row, indent=1), encoding="utf-8")
    return row


def _file(step: str) -> Path:
    return FOLDER / f"{list(STEPS).index(step) + 1:02}-{step}.json"


def _commit() -> str:
    """The commit of this checkout, with a mark where files have changed since; "" where git is missing."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
