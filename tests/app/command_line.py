"""`asrscope` as other people's scripts run it, in a process of its own, and in this one."""

import io
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from app.cli import main
from app.model.report import Tree
from tests.waiting import PATIENCE_S

MODULE = "app.cli.main"


def command(*words: str | Path) -> list[str]:
    """The command as it is installed, which puts nothing of the current folder on the module path."""
    script = Path(sys.executable).with_name("asrscope")
    installed = [str(script)] if script.exists() else [sys.executable, "-P", "-m", MODULE]
    return [*installed, *map(str, words)]


def asrscope(*words: str | Path, without: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with `environment` added to this process's own and `without` taken from it."""
    kept = {k: v for k, v in os.environ.items() if k not in without}
    return subprocess.run(
        [sys.executable, "-m", MODULE, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**kept, **environment},
    )


def python(code: str, folder: Path, **environment: str) -> str:
    """What a Python process prints that runs `code`, with settings and sessions of its own in `folder`."""
    own = {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    own["ASRSCOPE_SESSIONS"] = str(folder / "sessions")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, **own, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def decoding(
    *words: str | Path, before: tuple[str, ...] = (), until: str = "decoding"
) -> Iterator[subprocess.Popen[str]]:
    """A run that goes on until it is stopped, once it has printed `until`."""
    process = subprocess.Popen([*before, *command(*words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if until in line:
                break
        yield process
    finally:
        process.kill()
        process.communicate()


class Output(NamedTuple):
    """Exit status and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def here(*words: str | Path) -> Output:
    """`asrscope` in this process, which has loaded what takes most of the time of a process of its own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main.main([*map(str, words)])
        except SystemExit as ended:  # what `--help` does
            status = int(ended.code or 0)
    return Output(status, *(each.buffer.getvalue().decode() for each in (out, err)))


def printed(*words: str | Path) -> str:
    """What the command prints, which ends well."""
    done = here(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(*words: str | Path) -> Tree:
    """The JSON object that it prints with --json."""
    return json.loads(printed(*words, "--json"))


def refused(*words: str | Path) -> str:
    """The one sentence on stderr that bad input gets, with exit status 2 and nothing on stdout."""
    done = here(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert "Traceback" not in line
    return line
