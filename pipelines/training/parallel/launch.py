"""Workers from the outside: torchrun starts them, their pieces come in as lines of a file, and none is left behind."""

import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import psutil

from pipelines.training.parallel.job import Job, Piece
from profiler.errors import BadInput, Cancelled
from profiler.process import children

POLLED_EVERY_S = 0.1
GRACE_S = 5.0  # For workers to end by themselves once their launcher has gone
LOOKS_EVERY_S: Final = 2.0
LOOKS: Final = 15
"""Without work until it is over: half a minute. The longest wait of a worker is for one minibatch of another."""

IDLE: Final = 0.03
"""Of a processor, up to which a worker only waits: gloo looks for messages about a hundred times a second, 0.8 %
measured. One that computes has its share even where thirty processes want the same core."""

_ROOT_CAUSE = re.compile(r"Root Cause.*?rank\s*:\s*(?P<rank>\d+).*?exitcode\s*:\s*(?P<status>-?\d+)", re.DOTALL)
_STILL = f"The workers wait for each other: for {LOOKS * LOOKS_EVERY_S:.0f} seconds none of them has computed anything."


class WorkerDied(BadInput):
    """A worker ended, or stood still, before its work was done; one sentence."""


class Standstill:
    """The workers of one job on this machine: do they wait for each other for ever?

    Seen from outside by the processor time that they no longer take. Time is counted in looks, not by a clock: while
    the machine sleeps, or everything on it is stopped, nobody looks.
    """

    def __init__(self) -> None:
        self._taken: Sequence[float] = ()
        self._looks = 0

    def look(self, taken: Sequence[float]) -> bool:
        """Whether no worker has worked for LOOKS looks; `taken`: processor seconds of each, none while they start."""
        since = zip(self._taken, taken, strict=True) if len(taken) == len(self._taken) else ()
        idle = [now - before < IDLE * LOOKS_EVERY_S for before, now in since]
        self._looks = self._looks + 1 if idle and all(idle) else 0
        self._taken = taken
        return self._looks >= LOOKS


def _processor_s(launcher: int, workers: int) -> list[float]:
    """Processor seconds of each child of the launcher; none until all workers have started."""
    try:
        children = psutil.Process(launcher).children()
        return [sum(child.cpu_times()[:2]) for child in children] if len(children) >= workers else []
    except psutil.Error:
        return []  # somebody ended, which the launcher says


@dataclass(frozen=True)
class Machines:
    """The machines, of which this is the first; `address`: its host and port as others reach it."""

    count: int = 1
    address: str = ""

    def arguments(self, workers: int) -> list[str]:
        """Arguments of torchrun, for `workers` workers in all."""
        each = [f"--nproc-per-node={-(-workers // self.count)}"]
        if self.count == 1:
            return ["--standalone", *each]
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal():
            raise BadInput(
                "Several machines need the address of this one as HOST:PORT, as the others reach it, "
                f"not {self.address!r}."
            )
        place = ["--node-rank=0", f"--master-addr={host}", f"--master-port={port}"]
        return [f"--nnodes={self.count}", *place, *each]


def pieces(
    job: Job, workers: int, stopping: Callable[[], bool], machines: Machines | None = None
) -> Generator[Piece, None, None]:
    """Do `job` with `workers` processes; yield each piece as it is done.

    Raises Cancelled when `stopping()`, and WorkerDied, also where workers wait for each other without end (on one
    machine; on several they give up after their own patience). However it ends, no process is left.
    """
    machines = machines or Machines()
    with tempfile.TemporaryDirectory(prefix="asrscope-workers-") as folder:
        place = Path(folder)
        results = place / "results.jsonl"
        results.touch()
        (place / "job.json").write_bytes(msgspec.json.encode(job))
        with _running(place, machines.arguments(workers), job.threads) as torchrun, results.open("rb") as file:
            still, looked, written = Standstill(), 0.0, b""
            while True:
                # Asked before reading: what a worker wrote before it ended is not missed.
                status = torchrun.poll()
                *lines, written = (written + file.read()).split(b"\n")
                yield from (msgspec.json.decode(line, type=Piece) for line in lines)
                if status is not None:
                    break
                if stopping():
                    raise Cancelled
                time.sleep(POLLED_EVERY_S)
                looked += POLLED_EVERY_S
                if machines.count == 1 and looked >= LOOKS_EVERY_S:
                    looked = 0.0
                    if still.look(_processor_s(torchrun.pid, workers)):
                        raise WorkerDied(_STILL)
            if status:
                raise _died(place, status)


@contextmanager
def _running(place: Path, arguments: list[str], threads: int) -> Iterator[subprocess.Popen[bytes]]:
    launcher = "-m", "torch.distributed.run", *arguments, f"--log-dir={place}", "--redirects=3"
    worker = "-m", "pipelines.training.parallel", str(place / "job.json"), str(place / "results.jsonl")
    # MKL would take all cores in each worker unless it is set otherwise.
    own = {"OMP_NUM_THREADS": str(threads), "PYTHONFAULTHANDLER": "1"}
    with (place / "torchrun.log").open("wb") as log:
        torchrun = subprocess.Popen(
            children.python(*launcher, *worker),
            stdin=subprocess.PIPE,  # which the workers inherit, and end with
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=children.environment(own),
            start_new_session=True,
        )
        try:
            yield torchrun
        finally:
            _end(torchrun)


def _end(torchrun: subprocess.Popen[bytes]) -> None:
    """End torchrun and its workers, which are in sessions of their own."""
    family: list[psutil.Process] = []
    with suppress(psutil.Error):
        family = psutil.Process(torchrun.pid).children(recursive=True)
    assert torchrun.stdin is not None
    with suppress(OSError):
        torchrun.stdin.close()
    if torchrun.poll() is None:
        torchrun.terminate()
        try:
            torchrun.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            torchrun.kill()
            torchrun.wait()
    _, left = psutil.wait_procs(family, GRACE_S)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, GRACE_S)


def _died(place: Path, status: int) -> WorkerDied:
    """Describe the first worker that ended, with its own last words, from torchrun's output."""
    words, who = children.complaints(place / "torchrun.log"), "The workers could not be started"
    if cause := _ROOT_CAUSE.search(words):
        rank, status = cause["rank"], int(cause["status"])
        logs = sorted(place.glob(f"*/attempt_0/{rank}/stderr.log"))
        words, who = children.complaints(logs[-1]) if logs else "", f"Worker {rank} ended before its work did"
    return WorkerDied(f"{who}: {children.last_words(words, status)}.")
