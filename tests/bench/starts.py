"""How often the worker dies as it starts: each preset again and again, every array next to a page without rights.

A read past an array mostly finds something there, so such a mistake shows once in many starts. With walls
(`tests.walls`) it shows in the first. A turn is a process of its own, which gets the window's commands to its worker:
to build and warm up the recogniser of a preset, to decode an utterance, and to quit. The walls lie behind the arrays
and before them by turns. Compiled kernels are those on disk: run any tests of scoring first, or wait.

    python -m tests.bench.starts --each 20                  # 20 of each preset
    python -m tests.bench.starts --each 1 --preset gmm      # of one
    python -m tests.bench.starts --each 20 --plain          # `python -m pipelines.worker` as it is, no walls

Ends with 1 where any died or failed; stacks go to stderr.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

import msgspec

import assets
from pipelines import worker
from pipelines.config import presets
from profiler.process.children import environment, python
from tests.fences import Side
from tests.walls import wall

SIDES: tuple[Side, ...] = ("behind", "before")
SPEECH = "speech/08-kal16-short.flac"
LIMIT_S = 600.0
FREED = {"MALLOC_PERTURB_": "165"}
"""Memory outside numpy: freed or new, it holds a pattern (glibc)."""


def turn(preset: str, side: Side | None, speech: Path) -> str:
    """The problems of one start, or ""."""
    command = ("-m", "tests.bench.starts", "--be", side) if side else ("-m", "pipelines.worker")
    with (
        tempfile.TemporaryDirectory() as folder,
        (Path(folder) / "stderr").open("w+", encoding="utf-8") as stderr,
        subprocess.Popen(
            python(*command),
            env=environment(FREED),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as child,
    ):
        stop = threading.Timer(LIMIT_S, child.kill)
        stop.start()
        problems = _run(child, preset, speech, Path(folder) / "a.asrs")
        code = child.wait()
        stop.cancel()
        stderr.seek(0)
        stack = stderr.read()
    if code < 0:
        problems = [f"died of {signal.Signals(-code).name}", *problems]
    elif code:
        problems = [f"ended with {code}", *problems]
    return "\n".join([*problems, stack]) if problems else ""


def _run(child: subprocess.Popen[str], preset: str, speech: Path, out: Path) -> list[str]:
    """Have `child` decode `speech` and quit; its answers that are errors."""
    start: dict[str, Any] = {
        "do": "start",
        "config": msgspec.to_builtins(presets.load(preset).config),
        "preset": preset,
        "audio": [str(speech)],
        "out": str(out),
    }
    problems = []
    try:
        _send(child.stdin, start)
        assert child.stdout is not None
        for line in child.stdout:
            answer = json.loads(line)
            if answer["event"] in ("error", "refused"):
                problems.append(f"{answer['event']}: {answer['message']}")
            if answer["event"] in ("error", "refused", "finished"):
                break
        else:
            problems.append("ended before the run did")
        _send(child.stdin, {"do": "quit"})
    except BrokenPipeError:
        problems.append("is gone")
    return problems


def _send(stream: IO[str] | None, command: dict[str, Any]) -> None:
    assert stream is not None
    stream.write(json.dumps(command) + "\n")
    stream.flush()


def main() -> int:
    """Count the starts and deaths by preset."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.starts")
    parser.add_argument("--each", type=int, default=20, help="starts of each preset (20)")
    parser.add_argument("--preset", action="append", choices=presets.names())
    parser.add_argument("--plain", action="store_true", help="without walls")
    parser.add_argument("--be", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.be:
        wall(options.be)
        return worker.main()
    failed: dict[str, int] = {}
    speech = assets.path(SPEECH)
    for preset in options.preset or presets.names():
        bad = 0
        for i in range(options.each):
            side = None if options.plain else SIDES[i % len(SIDES)]
            if problem := turn(preset, side, speech):
                bad += 1
                sys.stderr.write(f"{preset}, start {i + 1}, walls {side}: {problem}\n")
        out = sys.stderr if options.json else sys.stdout
        out.write(f"{preset:24} {options.each} starts, {bad} failed\n")
        out.flush()
        failed[preset] = bad
    if options.json:
        print(json.dumps({"schema": 1, "each": options.each, "failed": failed}))
    return int(any(failed.values()))


if __name__ == "__main__":
    raise SystemExit(main())
