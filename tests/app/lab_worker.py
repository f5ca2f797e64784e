"""A scripted process of a lab: speaks the real one's lines and writes a session of `call-costs` with planted figures.

python lab_worker.py [fail] [slow] [lingers FILE]
"""

import json
import sys
import threading
import time
from pathlib import Path

from pipelines import labs
from pipelines.labs import record
from pipelines.labs.sweep import SweepResult, Timings
from profiler.session.writer import SessionWriter
from profiler.spans import Recorder

MODES = set(sys.argv[1:])
NAME = "call-costs"
ROUNDS = [1e-6, 1.1e-6, 1.2e-6]
PLANTED = SweepResult(
    timings=Timings(seconds={name: dict.fromkeys((1, 16, 256), ROUNDS) for name in ("numpy", "torch")})
)


def say(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


def write(path: Path) -> None:
    """The session of a run with the planted figures."""
    lab = labs.load(NAME)
    fact = record.stored(NAME, lab.parameters, PLANTED, lab.judge(PLANTED))
    SessionWriter(path, Recorder(), {record.KEY: fact}).close()


def run(command: dict, stopping: threading.Event) -> None:
    say("running", session=command["out"])
    say("progress", stage="sums of 16 numbers", fraction=0.5)
    if "fail" in MODES:
        say("error", message="The worker 1 died: out of cards.", session=command["out"])
        return
    if "slow" in MODES and stopping.wait(60):
        say("finished", session=command["out"], state="stopped")
        return
    write(Path(command["out"]))
    say("finished", session=command["out"], state="closed")


def main() -> None:
    say("ready")
    stopping = threading.Event()
    thread = None
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "start":
            thread = threading.Thread(target=run, args=(command, stopping))
            thread.start()
        elif command["do"] == "stop":
            stopping.set()
        elif command["do"] == "quit":
            break
    stopping.set()
    if thread is not None:
        thread.join()
    if "lingers" in MODES:  # until there is that file
        while not Path(sys.argv[-1]).exists():
            time.sleep(0.01)


if __name__ == "__main__":
    main()
