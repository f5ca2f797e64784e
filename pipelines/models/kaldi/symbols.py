"""Symbol tables: `phones.txt` and `words.txt`, a name and its number in each line (OpenFst's text form)."""

from __future__ import annotations

from pathlib import Path

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import read_file
from profiler.files.inputs import lines_of
from profiler.plain import one_line

LARGEST = 64 << 20
"""Bytes; a table of a million words has about fifteen."""
MOST = 4_000_000
"""The largest number of a symbol."""


def read(path: Path) -> list[str]:
    """The names by their numbers, "" where there is none; ModelError (one sentence) if `path` is no such table."""
    found: dict[int, str] = {}
    for number, line in enumerate(lines_of(read_file(path, LARGEST).decode("utf-8", "replace")), start=1):
        # At ASCII blanks alone: others are part of a name.
        fields = line.replace("\t", " ").split(" ")
        fields = [field for field in fields if field]
        if not fields:
            continue
        at = fields[-1]
        if len(fields) != 2 or not (at.isascii() and at.isdigit() and len(at) < 9 and int(at) <= MOST):
            raise ModelError(f"{path}: line {number:,} is not a symbol and its number: {one_line(line, 60)}")
        found[int(at)] = fields[0]
    if not found:
        raise ModelError(f"{path} has no symbols")
    return [found.get(number, "") for number in range(max(found) + 1)]
