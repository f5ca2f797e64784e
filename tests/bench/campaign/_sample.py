"""The sound session that attacks on the command line begin with."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Final

from tests.app.sample_session import write_sample

SESSION: Final = "s.asrs"


@functools.cache
def session() -> bytes:
    """Its file, 256 frames."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SESSION
        write_sample(path, frames=256)
        return path.read_bytes()
