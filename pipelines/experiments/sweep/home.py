"""Where trials run: on this machine, one after the other, or on the workers of a running HyperQueue server.

The workers may be on any number of hosts that share the folder of the study. A trial asks for all processors of a
worker, so it runs there alone. Only programs are submitted: HyperQueue would send Python functions as pickles.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from pipelines.experiments.sweep import trial
from profiler.errors import BadInput, Cancelled
from profiler.files.inputs import InputError, read_struct
from profiler.plain import one_line
from profiler.process import children

POLL_S: Final = 0.1
PATIENCE_S: Final = 30.0  # Seconds that a run has to close its session


class Home:
    """One trial at a time, in a child that ends with this process."""

    slots = 1  # How many at once

    def __init__(self) -> None:
        self._folder = Path()
        self._child: subprocess.Popen[bytes] | None = None

    def submit(self, folder: Path) -> None:
        self._folder = folder
        self._child = subprocess.Popen(
            children.python("-m", trial.__name__, str(folder)),
            env=children.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def resume(self, folder: Path) -> bool:
        """Wait for a plan that an earlier process has submitted: here it ended with that."""
        return False

    def wait(self, cancelled: Callable[[], bool]) -> Path:
        """Wait for the trial that runs. Raises Cancelled, once it has ended."""
        assert self._child is not None
        while self._child.poll() is None:
            if cancelled():
                self.close()
                raise Cancelled
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(POLL_S)
        return self._folder

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


JOB: Final = "job.json"
SERVER: Final = Path("hq-current", "access.json")  # What a server leaves in its folder for its clients


class _Server(msgspec.Struct):
    server_uid: str


class _Job(msgspec.Struct):
    """A submitted trial: the server's identity and the number of the job there."""

    server: str
    number: int


class _OneEnded(Exception):
    """A job has ended, so waiting can end."""


class Cluster:
    """As many as `slots` trials at once, queued by the server in `folder`. BadInput where no server runs."""

    def __init__(self, folder: Path, slots: int) -> None:
        try:
            from hyperqueue import Client
        except ImportError as error:
            raise BadInput("--server needs the extra sweep: pip install 'asrscope[sweep]'.") from error
        self.slots = slots
        self._folder = folder
        self._running: dict[int, Path] = {}
        try:
            self._server = read_struct(folder / SERVER, _Server, "the address of a server").server_uid
            self._client = Client(str(folder))
        except (OSError, RuntimeError, InputError):
            raise BadInput(
                f"No HyperQueue server can be reached by {one_line(str(folder))}; --server takes the folder that "
                "`hq server start --server-dir FOLDER` was given."
            ) from None

    def submit(self, folder: Path) -> None:
        from hyperqueue import Job
        from hyperqueue.ffi.protocol import ResourceRequest

        environment = children.environment()
        job = Job(name=f"asrscope {folder.name}", max_fails=None)
        job.program(
            children.python("-m", trial.__name__, str(folder)),
            cwd=str(Path.cwd()),  # settings may name files from here
            env={key: environment[key] for key in (*children.OURS, "PYTHONPATH") if key in environment},
            stdout=str(folder / "task.out"),
            stderr=str(folder / "task.err"),
            resources=ResourceRequest(cpus="all"),
        )
        try:
            number = self._client.submit(job).id
        except Exception:  # HyperQueue raises nothing narrower
            self._gone()
        trial.write_json(folder / JOB, _Job(self._server, number))
        self._running[number] = folder

    def resume(self, folder: Path) -> bool:
        """Wait for the job of `folder` if this server has it."""
        with contextlib.suppress(InputError):
            job = read_struct(folder / JOB, _Job, "the job of a trial")
            if job.server == self._server:
                self._running[job.number] = folder
                return True
        return False

    def wait(self, cancelled: Callable[[], bool]) -> Path:
        """Wait for the next job that ends. Raises Cancelled; jobs then go on, and `resume` finds them."""
        ended: list[int] = []

        def look(jobs: Mapping[int, Mapping[str, object]]) -> None:
            if cancelled():
                raise Cancelled
            ended.extend(number for number in self._running if number not in jobs or jobs[number]["completed"])
            if ended:
                raise _OneEnded

        try:
            self._client.connection.wait_for_jobs(list(self._running), look)
            ended.extend(self._running)
        except _OneEnded:
            pass
        except Cancelled:
            raise
        except Exception:  # HyperQueue raises nothing narrower
            self._gone()
        return self._running.pop(ended[0])

    def close(self) -> None:
        """The server and its jobs go on without this process."""

    def _gone(self) -> NoReturn:
        raise BadInput(
            f"The HyperQueue server of {one_line(str(self._folder))} does not answer any more; the study is kept, "
            "and the same command goes on with it."
        ) from None


Engine = Home | Cluster
