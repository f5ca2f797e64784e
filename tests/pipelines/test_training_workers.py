"""Workers as processes: torchrun starts them, one that dies is named, and none is ever left behind."""

import dataclasses
import os
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from pipelines import labs
from pipelines.labs import _training, asynchronous_sgd, running
from pipelines.labs.desk import Desk
from pipelines.training.parallel import launch
from pipelines.training.parallel.job import Job, Task
from profiler.session.reader import Session
from tests.pipelines.refusing import refusal
from tests.pipelines.workers_in_threads import labelled_shard


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled_shard(tmp_path_factory.mktemp("data"))


def job(folder: Path, batches: int, rounds: int = 2) -> Job:
    """A pipeline and a parameter server, which between them need three processes."""
    tasks = [
        Task(name="piped", method="pipelined", workers=2, batch=8, batches=batches, rate=0.01, split=(0, 1)),
        Task(name="served", method="asynchronous", workers=2, batch=8, batches=batches, rate=0.01),
    ]
    return Job(tasks=tasks, data=str(folder), rounds=rounds, widths=(8,), context=1)


def workers() -> list[psutil.Process]:
    """Those that descend from this process now."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            command = process.cmdline()
            if "torch.distributed.run" not in command and "pipelines.training.parallel" in command:
                found.append(process)
    return found


@pytest.mark.slow
def test_torchrun_does_the_job_and_leaves_nobody(folder):
    running = launch.pieces(job(folder, 6), 3, lambda: False)
    pieces = [next(running)]
    lived = workers()
    pieces += running
    assert sorted((p.task, p.round) for p in pieces) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    piped = next(p for p in pieces if (p.task, p.round) == (0, 1))
    assert piped.examples == 48
    assert [r.delays for r in piped.reports] == [{0: 1, 1: 1, 2: 4}, {0: 6}]
    assert {span.kind for span in piped.reports[0].spans} >= {"forward", "backward", "wait"}
    assert len(lived) == 3
    assert not any(process.is_running() for process in lived)


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_lab_with_its_name_and_a_valid_session(folder, tmp_path, monkeypatch):
    lived: list[psutil.Process] = []

    def measure(parameters: asynchronous_sgd.Params, desk: Desk) -> None:
        def progress(what: str, share: float | None) -> None:
            if share is not None and not lived:
                lived.extend(workers())
                victim = next(p for p in lived if p.environ()["RANK"] == "1")
                os.kill(victim.pid, signal.SIGKILL)

        monkeypatch.setattr(desk, "progress", progress)
        endless = job(folder, 4, rounds=100_000)
        # The pipeline alone, of two processes: each of them takes seconds to load torch.
        _training.trained(desk, msgspec.structs.replace(endless, tasks=endless.tasks[:1]), _training.Workers())

    monkeypatch.setattr(_training, "data", lambda desk: folder)
    planted = dataclasses.replace(asynchronous_sgd.LAB, steps=(measure, *asynchronous_sgd.LAB.steps[1:]))
    monkeypatch.setattr(labs, "load", lambda name: planted)
    out = tmp_path / "died.asrs"
    outcome = running.execute(running.Request("asynchronous-sgd", {}, out))
    assert outcome.problem.startswith("Worker 1 ended before its work did: it was ended by signal SIGKILL")
    with closing(Session.open(out)) as session:
        assert outcome.state == session.state == "failed"
        assert session.meta["lab"]["problem"] == outcome.problem
    assert len(lived) == 2
    assert not any(process.is_running() for process in lived)


STANDING = """
import subprocess, sys
both = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
both[0].wait()
"""


def test_workers_that_stand_still_end_with_an_error(folder, monkeypatch):
    monkeypatch.setattr(launch.children, "python", lambda *rest: [sys.executable, "-c", STANDING])
    monkeypatch.setattr(launch, "LOOKS_EVERY_S", launch.POLLED_EVERY_S)
    monkeypatch.setattr(launch, "LOOKS", 5)
    monkeypatch.setattr(launch, "GRACE_S", 0.5)
    # Of a tenth of a second the ticks of processor time are too coarse a share.
    monkeypatch.setattr(launch, "IDLE", 0.5)
    with pytest.raises(launch.WorkerDied, match="wait for each other: for 30 seconds none"):
        list(launch.pieces(job(folder, 4), 2, lambda: False))
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one that has ended and was not asked for its status yet
            assert STANDING not in process.cmdline()


def test_a_worker_that_works_is_no_standstill(monkeypatch):
    """Processor times by look; the second worker works now and then, one look shows nothing."""
    times = [(0.0, 1.0), (0.0, 1.0), (0.01, 1.0), (0.01, 2.0), (0.01, 2.0), (0.02, 2.01)]
    still = launch.Standstill()
    monkeypatch.setattr(launch, "LOOKS", 2)
    assert [still.look(taken) for taken in times] == [False, False, True, False, False, True]


ROOT_CAUSE = """
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  rank      : 1 (local_rank: 1)
  exitcode  : 2 (pid: 4711)
"""


def test_a_dead_worker_is_named_with_its_own_last_words(tmp_path):
    own = tmp_path / "none_run" / "attempt_0" / "1" / "stderr.log"
    own.parent.mkdir(parents=True)
    own.write_text("a warning\nA minibatch of 301 is too large.\n")
    (tmp_path / "torchrun.log").write_text(ROOT_CAUSE)
    died = launch._died(tmp_path, 1)
    assert str(died) == "Worker 1 ended before its work did: A minibatch of 301 is too large."
    (tmp_path / "torchrun.log").write_text("ModuleNotFoundError: No module named 'torch'\n")
    assert "could not be started: ModuleNotFoundError" in str(launch._died(tmp_path, 1))


def test_several_machines_need_an_address():
    refusal("HOST:PORT", launch.Machines(2, "").arguments, 4)
    said = " ".join(launch.Machines(2, "here:29500").arguments(5))
    assert said == "--nnodes=2 --node-rank=0 --master-addr=here --master-port=29500 --nproc-per-node=3"
