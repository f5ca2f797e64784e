"""The program of one trial: runs the commands of a plan one after the other and leaves what they print.

    python -m pipelines.experiments.sweep.trial FOLDER

FOLDER/plan.json names the commands. Each leaves NAME.json (standard output) and NAME.txt (standard error);
result.json is written last, whole or not at all. The first command that fails ends the plan. When the parent dies (the
sweep, or a worker), all ends: the trial may begin again elsewhere.
"""

import argparse
import os
import platform
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Annotated, Final

import msgspec

from profiler.files import inputs, outputs
from profiler.process import children

PLAN: Final = "plan.json"
RESULT: Final = "result.json"
PARENT_S: Final = 0.2  # Seconds between two looks whether the parent lives


class TrialResult(msgspec.Struct, frozen=True):
    """What came of a plan: the host, the seconds it took, and the exit status of each command that was started."""

    host: str
    seconds: Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
    statuses: dict[str, int]


def write_json(path: Path, content: object) -> None:
    """Write `content` as JSON, whole or not at all. OutputError where it cannot be written."""
    with outputs.writing(path, "the trial") as draft:
        draft.write_bytes(msgspec.json.encode(content))


def run(folder: Path) -> None:
    """Run the plan of `folder`; leaves no result when it is terminated."""
    stopped = threading.Event()
    # It reaches the command as well, which closes its session.
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    _pin()
    commands = inputs.read_struct(folder / PLAN, dict[str, list[str]], "the plan of a trial")
    begun, statuses = time.monotonic(), dict[str, int]()
    for name, words in commands.items():
        with (folder / f"{name}.json").open("wb") as printed, (folder / f"{name}.txt").open("wb") as complaints:
            statuses[name] = subprocess.call(
                words, stdin=subprocess.DEVNULL, stdout=printed, stderr=complaints, env=children.environment()
            )
        if stopped.is_set():
            return
        if statuses[name]:
            break
    write_json(folder / RESULT, TrialResult(platform.node(), time.monotonic() - begun, statuses))


def _pin() -> None:
    """Stay on the processors that a HyperQueue worker has, where it names them."""
    named = os.environ.get("HQ_CPUS", "")
    if named and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, [int(number) for number in named.split(",")])
        except (ValueError, OSError):  # named in another way, or not of this machine
            return


def _end_with_parent() -> None:
    """End the process group, made ours alone, when the parent dies."""
    parent = os.getppid()
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_S)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description="Run the commands of a plan.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="with a plan.json; what comes of it is left there")
    folder = parser.parse_args(words).folder
    _end_with_parent()
    run(folder)


if __name__ == "__main__":
    main()
