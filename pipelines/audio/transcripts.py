"""Reads the transcripts of sound files."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.audio.loading import AudioError, shown
from profiler.files import inputs

TABLE_HEADER = ["file", "transcript"]
MAX_TABLE_BYTES = 64 << 20
"""The transcripts of the thousand hours of LibriSpeech have 60 MB."""
MAX_TABLE_LINES = 500_000
MAX_TRANSCRIPT = 250_000
"""Characters said in one file: two hours at four words a second are some 170 000."""


def read_transcripts(table: str | Path) -> dict[Path, str]:
    """What is said in each file: resolved path to transcript, in the table's order.

    The table is UTF-8, tab-separated, with the header `file<TAB>transcript`; paths are relative to
    it. An empty transcript means: decode, but do not score. Files that do not exist are left in
    (a table may describe more than what lies here), unless none of them exists.
    """
    name = shown(table)
    try:
        lines = inputs.read_text(table, "a table of transcripts", MAX_TABLE_BYTES).splitlines()
    except inputs.InputError as error:
        raise AudioError(f"The transcripts cannot be read: {error}") from None
    if not lines or lines[0].split("\t") != TABLE_HEADER:
        found = repr(lines[0][:60]) if lines else "an empty file"
        raise AudioError(
            f"The transcripts {name} must begin with the line file<TAB>transcript, found {found}."
        )
    if len(lines) > MAX_TABLE_LINES:
        raise AudioError(
            f"The transcripts {name} have {len(lines):,} lines; more than {MAX_TABLE_LINES:,} are not read."
        )
    transcripts: dict[Path, str] = {}
    place = _Places(table)
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        where = f"The transcripts {name}, line {number}"
        columns = line.split("\t")
        if len(columns) != 2 or not columns[0].strip():
            raise AudioError(
                f"{where}: a file and its transcript separated by "
                f"one tab are needed, found {len(columns)} column{'s' * (len(columns) != 1)}."
            )
        file, text = columns[0].strip(), columns[1].strip()
        if "\0" in line:
            raise AudioError(f"{where}: a NUL character stands there.")
        if len(text) > MAX_TRANSCRIPT:
            raise AudioError(
                f"{where}: a transcript of {len(text):,} characters; one file says at most {MAX_TRANSCRIPT:,}."
            )
        if transcripts.setdefault(place.of(file), text) != text:
            raise AudioError(f"{where}: {shown(file)} has two different transcripts.")
    if not transcripts:
        raise AudioError(f"The transcripts {name} name no file below their header.")
    if not any(os.path.exists(path) for path in transcripts):
        raise AudioError(
            f"The transcripts {name} name {len(transcripts)} file(s) of which none exists; "
            "paths are relative to the table."
        )
    return transcripts


class _Places:
    """Where the files that a table names are: each folder's real path is found out once."""

    def __init__(self, table: str | Path) -> None:
        self._folder = os.path.dirname(os.path.abspath(table))
        self._real: dict[str, str] = {}

    def of(self, file: str) -> Path:
        """The resolved path of `file`, which is relative to the table."""
        folder, name = os.path.split(os.path.join(self._folder, file))
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        path = os.path.join(self._real[folder], name)
        direct = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
        return Path(path if direct else os.path.realpath(path))
