"""Every check of a device, in one go.

    asrscope bench device --require cuda --json       (make gpu)
    asrscope bench device --require torch-cpu --json  the same with the processor in a device's place

Each step is a process of its own and leaves its row in build/bench/device before the next begins, whatever it breaks.
A row has `proved` (true, false, or null: it cannot be, on this device), `why`, and figures. The last step leaves a
session of at most 2 MB and a table for docs/measurements.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipelines import availability
from pipelines.device import HOST
from profiler.errors import BadInput
from tests.bench.device_steps.__main__ import STEPS
from tests.bench.device_steps.result import Result, write

FOLDER = Path("build") / "bench" / "device"
LIMIT_S = 1800.0
"""Of a step: one that hangs is ended."""
ACCELERATORS = ("cuda", "xpu", "mps")


def run(
    paths: Sequence[str],
    transcripts: str | None,
    repeat: int,
    progress: Callable[[str, float | None], None],
    require: str | None = None,
) -> dict[str, Any]:
    """Take every step on the device that is required; BadInput where it is not here.

    Without `require`: the first accelerator, or the processor in its place.
    """
    name = device(require)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in [*FOLDER.glob("*.json"), *FOLDER.glob("combination.asrs*")]:
        old.unlink()
    rows = []
    for i, step in enumerate(STEPS):
        progress(f"{name}: {step}", i / len(STEPS))
        rows.append(_taken(i, step, name, [list(paths), transcripts]))
    proved = {value: sum(row["proved"] is value for row in rows) for value in (True, False, None)}
    return {
        "peer": None,
        "ratio": None,
        "ratio_min": None,
        "ratio_max": None,
        "ratio_meaning": f"no peer; what could be proved on {name}, step by step",
        "figures": {
            "device": name,
            "proved": proved[True],
            "failed": proved[False],
            "cannot be proved here": proved[None],
            "seconds": sum(row["seconds"] for row in rows),
        },
        "agreement": {"rows": str(FOLDER)},
        "rows": rows,
    }


def device(require: str | None) -> str:
    """The device to check; BadInput where the required one is not here."""
    known = {each.name: each for each in availability.probe()}
    here = [name for name in ACCELERATORS if name in known and known[name].available]
    if require in (None, "any"):
        if here:
            return here[0]
        if require is None:
            return HOST
        reasons = "; ".join(f"{name}: {known[name].reason}" for name in ACCELERATORS if name in known)
        raise BadInput(f"bench device --require any needs an accelerator, and there is none ({reasons}).")
    assert require is not None
    if require not in known or not known[require].available:
        reason = known[require].reason if require in known else "unknown"
        raise BadInput(f"bench device --require {require}: there is none ({reason}).")
    return require


def _taken(i: int, step: str, name: str, speech: list[Any]) -> dict[str, Any]:
    """Take a step in a process of its own; its row, also kept in the folder."""
    file = FOLDER / f"{i + 1:02}-{step}.json"
    command = [sys.executable, "-m", "tests.bench.device_steps", step, name, str(FOLDER)]
    began = time.monotonic()
    why = ""
    try:
        child = subprocess.run(
            [*command, str(file), json.dumps(speech)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        why = f"its process ended with {child.returncode}: {child.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        why = f"it took more than {LIMIT_S:.0f} s"
    if not file.is_file():
        write(file, step, Result(False, why))
    row: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    row["seconds"] = round(time.monotonic() - began, 1)
    file.write_text(json.dumps(row, indent=1), encoding="utf-8")
    return row
