"""The only way to start another Python process of this program: nothing in the current folder is ever imported.

`python -m` puts the current folder first on the module path; `-P` (Python 3.11) leaves it out, and the environment does
so for grandchildren. The child finds this very copy of the program, wherever it is started.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import site
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from profiler.files.inputs import MIB, InputError, read_bytes
from profiler.plain import one_line

ROOT = Path(__file__).resolve().parents[2]
"""The folder of `app`, `pipelines` and `profiler`."""

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
    """Return the command of a child that runs `arguments` (`"-m", module, …` or `"-c", code`).

    To be started with `environment()`. A crash in compiled code leaves its stack on standard error.
    """
    return [sys.executable, "-P", "-X", "faulthandler", *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment for a child, with `extra` on top.

    Relative and empty entries of PYTHONPATH mean the current folder, and are dropped.
    """
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    if not _installed():
        path = [str(ROOT), *(entry for entry in path if entry != str(ROOT))]
    made = {**os.environ, **OURS}
    made.pop("PYTHONPATH", None)
    if path:
        made["PYTHONPATH"] = os.pathsep.join(path)
    return {**made, **(extra or {})}


def end_with_parent() -> None:
    """Called by a child: from now on it ends, with status 3, when its standard input closes.

    A thread then waits there: a child that ends earlier does so best by `os._exit`.
    """

    def wait() -> None:
        sys.stdin.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


LONGEST_COMPLAINTS: Final = 16 * MIB


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
    return one_line(lines[-1].strip()) if lines else f"exit status {status}"


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
        prog=f"python -m {module}",
        description=purpose,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in names:
        plain = name.rstrip("?+")
        parser.add_argument(plain, nargs=name[len(plain) :] or 1)
    found = vars(parser.parse_args(sys.argv[1:] if arguments is None else arguments))
    return [value for values in found.values() for value in ([values] if isinstance(values, str) else values or [])]
