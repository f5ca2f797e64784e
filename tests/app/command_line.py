"""`asrscope` run as other people's scripts run it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def asrscope(
    *words: str | Path, without: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line with `environment` added to this process's own and `without` taken from it."""
    kept = {k: v for k, v in os.environ.items() if k not in without}
    return subprocess.run(
        [sys.executable, "-m", "app.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**kept, **environment},
    )


def refused(*words: str | Path) -> str:
    """The one sentence on stderr that bad input gets, with exit status 2 and nothing on stdout."""
    done = asrscope(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert "Traceback" not in line
    return line
