"""One hostile input: the files that make it, and the commands that are to survive it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import assets
from tests.app.sample_session import write_sample

SPEECH: Final = str(assets.path("speech", "08-kal16-short.flac"))
SESSION: Final = "s.asrs"


@dataclass(frozen=True)
class Attack:
    """An input to the program, in a new folder of its own.

    `make` writes the files; each of `commands` is then given to `asrscope` with the folder as the current one. The
    exit status must be 0 or 2 (1 where `may_fail`), without a traceback, within the driver's limits of time and memory.
    `check` gets the standard outputs of the commands, if all succeeded, and returns the fault in them.
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
    """Their limit instead of the driver's, where it is higher."""
    check: Callable[[list[bytes]], str | None] | None = None


@functools.cache
def session() -> bytes:
    """The file of a sound session of 256 frames."""
    with tempfile.TemporaryDirectory() as folder:
        return write_sample(Path(folder) / SESSION, frames=256).read_bytes()


def no_constant(name: str) -> float:
    """For `json.loads(parse_constant=…)`: NaN and infinities are not JSON."""
    raise ValueError(f"{name} is not JSON")
