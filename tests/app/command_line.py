"""`asrscope` run as other people's scripts run it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli import main

MODULE = "app.cli.main"


def command(*words: str | Path) -> list[str]:
    """The command as it is installed, which puts nothing of the current folder on the module path."""
    script = Path(sys.executable).with_name("asrscope")
    installed = [str(script)] if script.exists() else [sys.executable, "-P", "-m", MODULE]
    return [*installed, *map(str, words)]


def asrscope(
    *words: str | Path, without: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line with `environment` added to this process's own and `without` taken from it."""
    kept = {k: v for k, v in os.environ.items() if k not in without}
    return subprocess.run(
        [sys.executable, "-m", MODULE, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**kept, **environment},
    )


@contextmanager
def decoding(*words: str | Path, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """A run that goes on until it is stopped, once it decodes."""
    process = subprocess.Popen(
        [*before, *command(*words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "decoding" in line:
                break
        yield process
    finally:
        process.kill()
        process.communicate()


def refused(*words: str | Path) -> str:
    """The one sentence on stderr that bad input gets, with exit status 2 and nothing on stdout."""
    done = asrscope(*words)
    return _sentence(done.returncode, done.stdout, done.stderr)


def refused_here(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """As `refused`, in this process: a tenth of a start for each of many cases."""
    status = main.main([*map(str, words)])
    return _sentence(status, *capsys.readouterr())


def _sentence(status: int, out: str, err: str) -> str:
    assert status == 2
    assert out == ""
    (line,) = err.strip().splitlines()
    assert "Traceback" not in line
    return line
