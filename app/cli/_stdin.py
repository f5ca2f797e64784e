"""Sound on standard input (`--audio -`): kept in a file of its own for as long as the command runs."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from profiler.errors import BadInput

STANDARD_INPUT: Final = "-"
MOST: Final = 4 << 30
"""Bytes that are taken: two hours of stereo at 48 kHz in 32 bits are 2.8 GB. What never ends would fill the disk."""
PIECE: Final = 1 << 20


def spooled(paths: Sequence[str], raw: str) -> list[str]:
    """`paths` with the name of a file in place of `-`, which holds what stands on standard input.

    `raw`: the setting `audio.raw`; with it, sound without a header is taken for what it says. BadInput when there is
    nothing to read.
    """
    if STANDARD_INPUT not in paths:
        return list(paths)
    if paths.count(STANDARD_INPUT) > 1:
        raise BadInput("--audio names standard input (-) twice; it can be read once.")
    stream = None if sys.stdin is None else sys.stdin.buffer
    if stream is None or sys.stdin.isatty():
        raise BadInput(
            "--audio - reads sound from standard input, which is no pipe and no file here; "
            "for example: ffmpeg -i talk.m4a -f wav - | asrscope run --audio -."
        )
    folder = Path(tempfile.mkdtemp(prefix="asrscope-stdin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / ("stdin.raw" if raw else "stdin")
    taken = 0
    with file.open("wb") as kept:
        while piece := stream.read(PIECE):
            taken += len(piece)
            if taken > MOST:
                raise BadInput(f"Standard input holds more than {MOST:,} bytes; cut it into parts.")
            kept.write(piece)
    if not taken:
        raise BadInput("Standard input is empty (0 bytes); sound is needed there.")
    return [str(file) if path == STANDARD_INPUT else path for path in paths]
