"""What the user sees of an exception; for an unexpected one, a report is written to the cache folder."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from profiler.plain import one_line

FOLDER: Final = "crashes"
KEPT: Final = 20  # Maximum number of reports; the oldest are removed


def report(problem: BaseException, words: Sequence[str]) -> Path | None:
    """Write a report on `problem`, raised by the command line `words`; None if nothing can be written."""
    from profiler.machine.describe import own_version

    text = "\n".join(
        [
            f"asrscope {own_version()}, Python {platform.python_version()}, {platform.platform()}",
            time.strftime("%Y-%m-%d %H:%M:%S %z"),
            f"command: {' '.join(one_line(word) for word in words)}",
            "",
            "".join(traceback.format_exception(problem)),
        ]
    )
    for folder in (_folder, tempfile.gettempdir):
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder())
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return Path(name)
    return None


def _folder() -> Path:
    from profiler.files.paths import cache_dir

    folder = cache_dir(FOLDER)
    for old in sorted(folder.glob("*.txt"))[: -KEPT + 1]:
        with contextlib.suppress(OSError):
            old.unlink()
    return folder


def fault(problem: BaseException, words: Sequence[str]) -> str:
    """Return one sentence for the user: what happened, and where the details are."""
    said = f"A fault of the program: {type(problem).__name__}"
    if str(problem):
        said += f" ({one_line(str(problem)).rstrip('.')})"
    place = report(problem, words)
    where = f"the details are in {one_line(str(place))}" if place else "--debug shows the details"
    return f"{said}; {where}."
