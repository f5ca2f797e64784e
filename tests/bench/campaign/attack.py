"""One hostile input: the files that make it, and the commands that are to survive it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    """What is done to the program, in a new folder of its own.

    `make` writes the files; each of `commands` is then given to `asrscope` with the folder as the current one. The
    exit status must be 0 or 2 (1 where `may_fail`), without a traceback, within the driver's limits of time and memory.
    `check` is given what the commands said on standard output, if all succeeded, and returns what is wrong with it.
    """

    name: str
    make: Callable[[Path], None]
    commands: tuple[tuple[str, ...], ...]
    window: str = ""
    """A session in the folder that the real window is to open as well, every view shown."""
    environment: Mapping[str, str] = field(default_factory=dict)
    may_fail: bool = False
    patience: float = 1.0
    """How many times the driver's limit of time the commands may take."""
    memory_bytes: int = 0
    """What they may take instead of the driver's limit, where that is more."""
    check: Callable[[list[bytes]], str | None] | None = None
