"""Commands under limits of the system: one sentence that says what is short and how much it takes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

import pytest

from profiler.process import children, limits
from tests.waiting import PATIENCE_S

resource = pytest.importorskip("resource")

NOBODY = 65_534


def ended(words: Sequence[str], *limit: str) -> tuple[int, str]:
    """Exit status of `asrscope words` started with a `prlimit` option, and its standard error."""
    command = ["prlimit", *limit, *children.python("-m", "app.cli.main"), *words]
    done = subprocess.run(
        command, env=children.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="there is no prlimit")
@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (f"--as={600 << 20}", "address space of this process is limited to 629 MB"),
        (f"--stack={64 << 10}", "stack of this process is limited to 66 kB"),
    ],
)
def test_too_little_of_it_is_one_sentence(limit, says):
    status, said = ended(["run", "--preset", "gmm-quick", "--audio", "none.wav"], limit)
    assert status == 2
    assert said.startswith("asrscope: ")
    assert said.count("\n") == 1
    assert says in said
    assert "needs" in said


def test_too_few_threads_are_counted():
    """In a child: the limit is the user's, and root has none."""
    code = (
        "import threading, os, resource, sys, profiler.process.limits, profiler.errors\n"
        f"os.setuid({NOBODY}) if not os.getuid() else None\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))\n"
        "from profiler.process import limits\n"
        "from profiler.errors import BadInput\n"
        "try:\n    limits.check()\nexcept BadInput as problem:\n    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=children.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert "threads can be started" in done.stdout
    assert f"needs {limits.threads_needed()}" in done.stdout
    assert "ulimit -u, now 3" in done.stdout


def test_what_was_short_is_found_behind_other_errors():
    def raised(problem: Exception) -> Exception:
        try:
            try:
                raise problem
            except Exception as first:
                raise ValueError("something else") from first
        except ValueError as second:
            return second

    for problem, says in (
        (MemoryError("Unable to allocate 3.2 GiB"), "enough memory: Unable to allocate 3.2 GiB."),
        (OSError(12, os.strerror(12)), "enough memory"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "libtorch_cpu"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), "enough memory"),
        (RuntimeError("can't start new thread"), "No further thread"),
    ):
        said = limits.shortage(raised(problem))
        assert said is not None
        assert says in said
    assert limits.shortage(raised(RuntimeError("shape"))) is None
    assert limits.shortage(OSError(28, "No space left on device")) is None
