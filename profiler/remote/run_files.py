"""What lies next to a session that `asrscope record` records: the run's named pipe for commands, and its log.

NAME.asrs.control is there as long as the run is. NAME.asrs.log has what the recording process prints, a message of
pipelines.worker on each line; it stays. Both are their owner's alone.
"""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LONGEST_COMMAND: Final = 4096
"""Bytes of a command with its end of line: what two senders write at once does not mix up to this length (PIPE_BUF)."""

STEERING: Final = ("set", "mark", "compare", "stop")

LONGEST_LINE: Final = 1 << 14
"""Characters of a line of the log that are passed on."""

_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def control_of(session: Path) -> Path:
    """The named pipe of the run that records `session`."""
    return session.with_name(session.name + ".control")


def log_of(session: Path) -> Path:
    """The log of the run that records `session`."""
    return session.with_name(session.name + ".log")


class Commands:
    """The sending end of the named pipe."""

    def __init__(self, session: Path) -> None:
        self._path = control_of(session)

    @property
    def open(self) -> bool:
        return self._write(b"")

    def send(self, line: bytes) -> bool:
        """Pass on a command of pipelines.worker, a line without its end; whether somebody takes it.

        Only those that steer a run: none starts another or ends the process.
        """
        if len(line) >= LONGEST_COMMAND:
            return False
        try:
            steers = json.loads(line)["do"] in STEERING
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return steers and self._write(line + b"\n")

    def _write(self, line: bytes) -> bool:
        try:
            pipe = os.open(self._path, os.O_WRONLY | _FLAGS)
        except OSError:
            return False
        try:
            return stat.S_ISFIFO(os.fstat(pipe).st_mode) and os.write(pipe, line) == len(line)
        except OSError:
            return False
        finally:
            os.close(pipe)


class Log:
    """The lines of the log from byte `position` on."""

    def __init__(self, session: Path, position: int = 0) -> None:
        self._path, self._position = log_of(session), position

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give the whole lines that are new, each with the position after it."""
        with contextlib.suppress(OSError), open(os.open(self._path, os.O_RDONLY | _FLAGS), "rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield self._position, line.decode("utf-8", "replace").rstrip()[:LONGEST_LINE]
