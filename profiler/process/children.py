"""The only way to start another Python process of this program: nothing in the current folder is ever imported.

`python -m` puts the current folder first on the module path; `-P` (Python 3.11) leaves it out, and the environment does
so for grandchildren. The child finds this very copy of the program, wherever it is started.
"""

import argparse
import contextlib
import math
import os
import queue
import re
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from profiler.errors import Cancelled
from profiler.files.inputs import MIB, InputError, read_bytes
from profiler.plain import one_line

ROOT = Path(__file__).resolve().parents[2]  # The folder of `app`, `pipelines` and `profiler`

OURS: Final = {
    "PYTHONSAFEPATH": "1",
    # We read the output of children, whatever the encoding of the user's terminal.
    "PYTHONIOENCODING": "utf-8:backslashreplace",
    # The same as PYTHONSAFEPATH for programs, where the system looks in the current folder first (Windows).
    "NoDefaultCurrentDirectoryInExePath": "1",
}

_CRASH: Final = re.compile(r"^(?:Fatal Python error|Windows fatal exception): (?P<what>.+)$", re.MULTILINE)
# Its second line may say that garbage was being collected. A thread of a library's own is never the current one.
_CURRENT: Final = re.compile(
    r"^Current thread .*\n(?:  Garbage-collecting\n)?"
    r"  File \"(?P<file>.+)\", line (?P<line>\d+) in (?P<function>.+)$",
    re.MULTILINE,
)


def python(*arguments: str) -> list[str]:
    """Return a child's command for `environment()`; crashes of compiled code leave their stack on standard error."""
    return [sys.executable, "-P", "-X", "faulthandler", *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with `extra`, PYTHONPATH without entries for the current folder."""
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    if not _installed():
        path = [str(ROOT), *(entry for entry in path if entry != str(ROOT))]
    made = {**os.environ, **OURS}
    made.pop("PYTHONPATH", None)
    if path:
        made["PYTHONPATH"] = os.pathsep.join(path)
    return {**made, **(extra or {})}


def end_with_parent() -> None:
    """Called by a child: a thread ends it, with status 3, when its input closes; leave earlier by `os._exit`."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


LONGEST_COMPLAINTS: Final = 16 * MIB
LONGEST_LINE: Final = MIB
POLL_S: Final = 0.05


def listen(
    command: Sequence[str],
    hear: Callable[[bytes], object],
    cancelled: Callable[[], bool] | None = None,
    *,
    extra: Mapping[str, str] | None = None,
    silence_s: float = math.inf,
    complains: bool = True,
) -> tuple[int, str]:
    """Run a child and give each line that it prints to `hear`; returns its status and what is on its standard error.

    It is in a session of its own, because Ctrl+C must reach this process alone; it ends, or is ended, before this
    returns: also where `hear` returns something true. Its standard input lasts as long. Raises Cancelled as soon as
    `cancelled()`, and TimeoutError where it is silent for `silence_s`. `complains`: whether its standard error is kept.
    """
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints if complains else subprocess.DEVNULL,
            start_new_session=True,
            env=environment(extra),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        out = child.stdout

        def read() -> None:
            while line := out.readline(LONGEST_LINE):
                lines.put(line)
            lines.put(b"")

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        heard = time.monotonic()
        try:
            while True:
                if cancelled is not None and cancelled():
                    raise Cancelled
                try:
                    line = lines.get(timeout=POLL_S)
                except queue.Empty:
                    if time.monotonic() - heard > silence_s:
                        raise TimeoutError from None
                    continue
                heard = time.monotonic()
                if not line:
                    child.wait()
                if not line or hear(line):
                    break
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            with contextlib.suppress(OSError):
                child.stdin.close()
            reader.join()
            out.close()
        complaints.seek(0)
        return child.returncode, complaints.read(LONGEST_COMPLAINTS).decode("utf-8", "replace")


def complaints(file: Path) -> str:
    """Return what a child has written to its standard error, which went to `file`; "" where that cannot be read."""
    try:
        return read_bytes(file, "the messages of a program", LONGEST_COMPLAINTS).decode("utf-8", "replace")
    except InputError:
        return ""


def last_words(complaints: str, status: int) -> str:
    """Return in half a sentence why a child ended, from its standard error and exit status (-N: signal N)."""
    crash, place = _CRASH.search(complaints), _CURRENT.search(complaints)
    if crash:
        what = f"it crashed ({one_line(crash['what']).lower()})"
        if not place:
            return f"{what} outside Python code"
        file = Path(place["file"]).name
        return f"{what} in {one_line(place['function'])}, {one_line(file)} line {place['line']}"
    if status < 0:
        name = signal.Signals(-status).name if -status in {*signal.Signals} else str(-status)
        return f"it was ended by signal {name}"
    lines = [line for line in complaints.splitlines() if line.strip()]
    return one_line(lines[-1].strip().removeprefix("asrscope: ").rstrip(".")) if lines else f"exit status {status}"


def _installed() -> bool:
    """Whether this copy is on Python's default path; placed first on the path it could hide modules."""
    places = [*site.getsitepackages(), site.getusersitepackages()]
    return str(ROOT) in {str(Path(place).resolve()) for place in places}


def read_arguments(module: str, purpose: str | None, *names: str, arguments: Sequence[str] | None = None) -> list[str]:
    """Return the values of `names` in `arguments` (None: the command line's), one after the other.

    A name that ends with "?" may be left out, one with "+" may have several values. `--help` prints `purpose`, the
    module's docstring, and ends the process (SystemExit), as does any unknown argument (status 2).
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in names:
        plain = name.rstrip("?+")
        parser.add_argument(plain, nargs=name[len(plain) :] or 1)
    found = vars(parser.parse_args(sys.argv[1:] if arguments is None else arguments))
    return [value for values in found.values() for value in ([values] if isinstance(values, str) else values or [])]
