"""Commands on another machine: `ssh HOST asrscope …`, and what follows a session there until it ends.

The run there is a process of its own (`asrscope record`), which no link keeps alive. `asrscope tail` follows it: rows
come on its output, and its input takes commands to the run. Where the link drops, the next one goes on from the
position of the file here.
"""

import contextlib
import io
import json
import math
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec

from profiler.errors import BadInput
from profiler.plain import one_line
from profiler.process import children
from profiler.remote.receive import Copy
from profiler.remote.wire import AS_HERE, PROTOCOL, Dropped, Position, Value, frames
from profiler.session.errors import Damaged, SessionError, plain
from profiler.session.format import rows, schema

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

OPTIONS: Final = (
    *("-T", "-a", "-x"),  # neither terminal nor agent nor display: the other machine gets nothing of this one
    *("-o", "BatchMode=yes"),  # nobody answers a question for a password when a link comes back
    *("-o", "ClearAllForwardings=yes", "-o", "ControlMaster=no"),  # no socket that listens
    *("-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
)

NO_CONNECTION: Final = 255
NO_COMMAND: Final = 127  # Exit statuses: of ssh without a connection, and of a shell without the command
PATIENCE_S: Final = 2.0  # For the last of a command that has ended: a process that it left may hold its output open
END_S: Final = 10.0  # For the end of a command that has closed its output
PIPE_BYTES: Final = 1 << 20  # What a pipe holds at most (Linux): more is not of a command that has ended
LOOK_S: Final = 0.2  # A silent command is checked so often for having ended

LINES_KEPT: Final = 20
LONGEST_LINE: Final = 1 << 16
LONGEST_ANSWER: Final = 1 << 16
LONGEST_SENTENCE: Final = 600
LONGEST_ID: Final = 200
WAITS_S: Final = (0.5, 1.0, 2.0, 5.0, *(10.0,) * 60)  # Before each try, ten minutes in all; a commit starts again


class LinkError(OSError):
    """A command on another machine failed; the message is one sentence."""


class Refused(LinkError):
    """The machine cannot be reached; trying again may help."""


@dataclass(frozen=True)
class Host:
    """Another machine. `prefix`: the words before a command, which is one word for a shell there."""

    name: str
    prefix: tuple[str, ...]

    def words(self, *command: str) -> list[str]:
        """The words that run `asrscope COMMAND…` there."""
        return [*self.prefix, shlex.join(("asrscope", *command))]


def ssh(name: str) -> Host:
    if not name or name.startswith("-") or not name.isprintable() or " " in name:
        raise BadInput(f"--on takes a name that ssh knows, such as gpu or me@gpu.example.org, not {one_line(name)!r}.")
    return Host(name, ("ssh", *OPTIONS, "--", name))


class Remote:
    """A command that runs on a host; its last lines of standard error are kept."""

    def __init__(self, host: Host, *command: str) -> None:
        self._host = host
        try:
            self._process = subprocess.Popen(
                host.words(*command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=children.environment(),
                # Ctrl+C reaches this process alone, which passes on a request to stop.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise LinkError(f"{host.name} cannot be reached: there is no {host.prefix[0]} here.") from None
        self.output: Final = io.BufferedReader(_Pipe(self._process, self._process.stdout))  # What it prints
        self._errors: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def send(self, command: Mapping[str, object]) -> None:
        """Write a command as a line to its input; a link that is gone takes none."""
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), json.dumps(command).encode("ascii") + b"\n")
        except (OSError, ValueError):
            return

    def end(self) -> None:
        """End it, and what it has started here."""
        self._kill()
        self._process.wait()
        self._reader.join()  # its pipe ends with the process
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def failure(self) -> LinkError | None:
        """Wait for its end; why it failed, None if it did not or a signal ended it."""
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._kill()
            status = self._process.wait()
        self._reader.join()
        lines = [line.decode("utf-8", "replace").strip() for line in self._errors]
        last = one_line(next((line for line in reversed(lines) if line), ""), LONGEST_SENTENCE)
        name = self._host.name
        if status == NO_CONNECTION:
            return Refused(f"{name} cannot be reached: {(last or 'ssh gave no reason').rstrip('.')}.")
        if status == NO_COMMAND:
            return LinkError(
                f"{name} has no asrscope on the PATH of commands over ssh ({last.rstrip('.')}); install it there, "
                "the same version as here."
            )
        if status > 0:
            said = last.removeprefix("asrscope: ").rstrip(".") or f"exit status {status}"
            return LinkError(f"{name}: {said}.")
        return None

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read_errors(self) -> None:
        errors = io.BufferedReader(_Pipe(self._process, self._process.stderr))
        while line := errors.readline(LONGEST_LINE):
            self._errors.append(line)


class _Pipe(io.RawIOBase):
    """A process's pipe, which ends PATIENCE_S after it, whoever holds it open; no lock is held while it waits."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._process, self._descriptor = process, pipe.fileno()
        self._until, self._left = math.inf, PIPE_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read what is there, at least a byte; 0 at the end."""
        while True:
            ended = self._process.poll() is not None
            if ended:
                self._until = min(self._until, time.monotonic() + PATIENCE_S)
            if select.select([self._descriptor], [], [], LOOK_S)[0]:
                count = os.readv(self._descriptor, [buffer])
                self._left -= count if ended else 0
                return count if self._left > 0 else 0
            if time.monotonic() > self._until:
                return 0


class Started(msgspec.Struct):
    """What `asrscope record --json` prints: the session's file there, for `asrscope tail`, and the process."""

    session: str
    pid: int


def record(host: Host, words: list[str]) -> Started:
    """Start a run there. LinkError or Damaged where that fails."""
    remote = Remote(host, "record", *words, f"--protocol={AS_HERE}", "--json")
    try:
        answer = remote.output.read(LONGEST_ANSWER)
        if len(answer) == LONGEST_ANSWER:
            raise LinkError(f"{host.name} sent no answer of asrscope: {plain(answer.decode('utf-8', 'replace'))}.")
        failed = remote.failure()
    finally:
        remote.end()
    if failed is not None and "unrecognized arguments" in str(failed):
        raise LinkError(f"{host.name} has an older asrscope, without `asrscope record`; install the same one there.")
    if failed is not None:
        raise failed
    try:
        started = msgspec.json.decode(answer, type=Started)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        shown = plain(answer.decode("utf-8", "replace").strip())
        raise LinkError(f"{host.name} sent no answer of asrscope: {shown}.") from None
    if not started.session.startswith("/") or len(started.session) > 4096 or not started.session.isprintable():
        raise LinkError(f"{host.name} sent no name of a session: {plain(started.session)}.")
    return started


class Steering:
    """Commands to the run that is followed, from any thread or a signal handler; a stop waits for a link."""

    def __init__(self) -> None:
        self.remote: Remote | None = None
        self.stopping = False

    def stop(self) -> None:
        self.stopping = True
        self.send({"do": "stop"})

    def send(self, command: Mapping[str, object]) -> None:
        if self.remote is not None:
            self.remote.send(command)


class Following:
    """Follows a session there into a file here.

    `session`: its file there. `out`: the file here, which is continued if `resume`; otherwise it is made (and an old
    session replaced, if `replace`). `message`: takes the messages of the run. `progress`: a sentence
    where the link drops. `made`: called when the file here is there.
    """

    def __init__(
        self,
        host: Host,
        session: str,
        out: Path,
        *,
        replace: bool = False,
        resume: bool = False,
        steering: Steering | None = None,
        message: Callable[[dict[str, object]], object] = lambda message: None,
        progress: Callable[[str], object] = lambda sentence: None,
        made: Callable[[], object] = lambda: None,
    ) -> None:
        self._host, self._session, self._out, self._replace = host, session, out, replace
        self._steering = steering or Steering()
        self._message, self._progress, self._made = message, progress, made
        self._copy = Copy.reopen(out) if resume else None
        self._tries, self._linked = 0, False

    def run(self) -> str:
        """Follow to the end and return the state; LinkError says what failed and how to fetch the rest; all stays."""
        problem = "Following the run was interrupted."
        try:
            while True:
                try:
                    return self._once()
                except (Dropped, Refused) as drop:
                    self._wait(drop)
        except (SessionError, LinkError, Damaged) as error:
            said = f"{self._host.name} cannot be followed: {error}" if isinstance(error, Damaged) else str(error)
            words = ("asrscope", "tail", self._session, "--on", self._host.name, "--out", str(self._out))
            problem = f"{said.rstrip('.')}. The session there stays; `{shlex.join(words)}` fetches the rest."
            raise LinkError(problem) from error
        finally:
            if self._copy is not None:
                self._copy.close(problem)

    def _wait(self, drop: Exception) -> None:
        if self._tries == len(WAITS_S) or (isinstance(drop, Refused) and not self._linked):
            raise LinkError(str(drop) or f"the link to {self._host.name} does not come back") from drop
        seconds = WAITS_S[self._tries]
        self._tries += 1
        if self._copy is not None:
            self._copy.roll_back()
        why = str(drop).rstrip(".") or f"the link to {self._host.name} dropped"
        self._progress(f"{why}; trying again")
        time.sleep(seconds)

    def _once(self) -> str:
        """Follow as long as one link lasts."""
        position = Position() if self._copy is None else self._copy.position
        remote = Remote(self._host, "tail", self._session, "--from", msgspec.json.encode(position).decode())
        self._steering.remote = remote
        try:
            if self._steering.stopping:
                self._steering.stop()
            stream = frames(remote.output)
            try:
                self._copy, self._linked = self._greeted(next(stream)), True
                while True:
                    values, blob = next(stream)
                    if values[:1] == ["log"]:
                        self._hear(self._copy, values)
                    elif self._copy.take(values, blob):
                        self._tries = 0
                        if self._copy.state != "recording":
                            return self._copy.state
            except Dropped:
                failed = remote.failure()
                if failed is not None:
                    raise failed from None
                raise
        finally:
            self._steering.remote = None
            remote.end()

    def _greeted(self, hello: tuple[list[Value], bytes]) -> Copy:
        """Take the first frame: the copy to go on with."""
        match hello[0]:
            case ["hello", int(protocol), int(version), str(program), str(session_id)]:
                pass
            case _:
                raise Damaged("its first frame is no greeting")
        rows.text(session_id, "session_id", LONGEST_ID)
        if (protocol, version) != (PROTOCOL, schema.VERSION):
            raise Damaged(
                f"asrscope {plain(program)} there sends sessions of format version {version} (protocol {protocol}), "
                f"this one reads {schema.VERSION} ({PROTOCOL}); install the same asrscope on both machines"
            )
        if self._copy is not None:
            if session_id != self._copy.session_id:
                raise SessionError(
                    f"{self._out}: this is another session than that on {self._host.name}; choose another name"
                )
            return self._copy
        copy = Copy.create(self._out, session_id, self._replace)
        self._made()
        return copy

    def _hear(self, copy: Copy, values: list[Value]) -> None:
        match values:
            case ["log", int(after), str(line)] if copy.position.log < after < 1 << 62:
                copy.position.log = after
            case _:
                raise Damaged("it sent a line of a log out of order")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict) and "event" in message:
            self._message(message)
