"""The worker of a run that no link keeps alive (`asrscope record`): it ends with its run.

Its standard input is the named pipe PIPE, open for reading and writing, so that whoever sends commands may come and go.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pipelines import worker
from pipelines.run.control import Control
from profiler.process.children import read_arguments

QUIT: Final = b'{"do": "quit"}\n'


class Detached(worker.Worker):
    """Follows commands until its one run is over."""

    def _run(self, command: dict[str, object], control: Control) -> None:
        try:
            super()._run(command, control)
        finally:
            os.write(sys.__stdin__.fileno(), QUIT)  # type: ignore[union-attr]


def main(pipe: Path) -> int:
    """Run the worker, and remove its pipe; returns the exit status."""
    try:
        return worker.main(Detached)
    finally:
        pipe.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, read_arguments("pipelines.detached", __doc__, "PIPE"))))
