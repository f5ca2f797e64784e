"""However a lab of training ends (the window closes, Ctrl+C, it is killed), torchrun and its workers end with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from profiler.process import children
from tests.labelled_shard import labelled_shard
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

NAME = "asynchronous-sgd"
ENDLESS = {"batch": 4, "accumulate": 2, "batches": 16, "rounds": 100}
PATCHED = """
import sys
from contextlib import suppress
from pathlib import Path
from pipelines.labs import _training
folder, *words = sys.argv[1:]
_training.data = lambda desk: Path(folder)
"""
WINDOW = """
from pipelines import worker
from pipelines.labs.__main__ import LabWorker
raise SystemExit(worker.main(LabWorker))
"""
COMMAND = """
from app.cli.main import main

pytestmark = pytest.mark.slow
raise SystemExit(main(words))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few labelled frames in the place of the shipped voices."""
    return labelled_shard(tmp_path_factory.mktemp("data"))


def started(folder: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """The lab as a process of its own, as a terminal starts it: in a group of processes that Ctrl+C would reach."""
    return subprocess.Popen(
        children.python("-c", PATCHED + code, str(folder), *words),
        env=children.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def training(lab: subprocess.Popen[str]) -> list[psutil.Process]:
    """Torchrun, the server and two workers, once they are there and train; all that the lab has started by then."""
    found: list[psutil.Process] = []

    def there() -> bool:
        assert lab.poll() is None
        found[:] = psutil.Process(lab.pid).children(recursive=True)
        # A worker that has loaded torch holds more than a Python that has only begun.
        return sum(p.is_running() and p.memory_info().rss > 100 << 20 for p in found) >= 4

    wait_until(there)
    return found


def gone(family: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("ending", ["the window closes", "killed", "Ctrl+C"])
def test_no_worker_outlives_a_lab(folder: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / "a.asrs"
    if ending == "Ctrl+C":
        words = [word for k, v in ENDLESS.items() for word in ("--set", f"{k}={v}")]
        lab = started(folder, COMMAND, "lab", NAME, *words, "--out", str(out), "--json")
    else:
        lab = started(folder, WINDOW)
        start = {"do": "start", "preset": NAME, "config": ENDLESS, "out": str(out)}
        assert lab.stdin is not None
        lab.stdin.write(json.dumps(start) + "\n")
        lab.stdin.flush()
    family: list[psutil.Process] = []
    try:
        family += training(lab)
        if ending == "Ctrl+C":
            os.killpg(lab.pid, signal.SIGINT)
        elif ending == "killed":
            lab.kill()
        said, _ = lab.communicate(timeout=PATIENCE_S)
        wait_until(lambda: gone(family))
    finally:
        for process in (*family, lab):
            with suppress(psutil.Error):
                process.kill()
        lab.communicate()
    if ending == "Ctrl+C":
        assert lab.returncode == 130
        assert json.loads(said)["labs"][0]["state"] == "stopped"
    elif ending == "the window closes":
        assert lab.returncode == 0
        assert json.loads(said.splitlines()[-1])["state"] == "stopped"
