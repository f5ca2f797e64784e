"""A file of transcripts in lines, the rows that it says, and how times, channels and files are written in it."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.audio.loading import WHOLE, AudioError, Part, printable
from profiler.files import inputs
from profiler.plain import one_line

WHAT = "a file of transcripts"
MAX_TABLE_BYTES = 64 << 20  # the transcripts of the thousand hours of LibriSpeech have 60 MB
MAX_TABLE_LINES = 500_000
CHANNELS = {"a": 0, "b": 1, "left": 0, "right": 1, "l": 0, "r": 1}
PACKED = b"\x1f\x8b"  # how a file packed with gzip begins


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """What is said in one utterance.

    `file`: a sound file, or the name of one, as written; `place`: where it is, resolved, None where there is a name
    alone. `text`: empty where nothing is known or nothing is to be scored. `name`: of the utterance, if it has one.
    `speaker`: where that is said, tells utterances of one place from each other.
    """

    file: str
    text: str
    line: int
    place: str | None = None
    part: Part = WHOLE
    name: str = ""
    speaker: str = ""


@dataclass
class TextFile:
    """A file of transcripts, in lines. `plain`: commands of a `wav.scp` would be needed, and are refused."""

    path: Path
    lines: list[str]
    plain: bool = False
    _real: dict[str, str] = field(default_factory=dict)

    def error(self, line: int, what: str) -> AudioError:
        return AudioError(f"The transcripts {printable(self.path)}, line {line}: {what}")

    def sibling(self, name: str) -> TextFile | None:
        path = self.path.parent / name
        return opened(path, self.plain) if inputs.regular(path) else None

    def place_of(self, file: str) -> str:
        """The resolved path of `file`, which is relative to this one; the path of each folder is resolved once."""
        folder, name = os.path.split(os.path.join(os.path.dirname(os.path.abspath(self.path)), file))
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        path = os.path.join(self._real[folder], name)
        direct = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
        return path if direct else os.path.realpath(path)

    def existing(self, file: str) -> str:
        """As `place_of`; what is not there is relative to the current folder."""
        place = self.place_of(file)
        return place if os.path.exists(place) else os.path.realpath(file)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Lines that are neither empty nor a comment (`;;`), with their numbers."""
        for number, line in enumerate(self.lines, start=1):
            if line.strip() and not line.startswith(";;"):
                yield number, line


def _unpacked(path: Path) -> str:
    packed = inputs.read_bytes(path, WHAT, MAX_TABLE_BYTES)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = unpacking.decompress(packed, MAX_TABLE_BYTES).decode("utf-8-sig")
    except (zlib.error, UnicodeDecodeError):
        raise AudioError(f"{printable(path)}, packed with gzip, is damaged or no UTF-8 text.") from None
    if not unpacking.eof:
        raise AudioError(f"{printable(path)} is cut short, or has more than {MAX_TABLE_BYTES:,} bytes unpacked.")
    return content


def opened(path: Path, plain: bool) -> TextFile:
    """Read a file of transcripts, plain or packed with gzip."""
    try:
        with inputs.open_input(path, WHAT, MAX_TABLE_BYTES) as file:
            packed = file.read(len(PACKED)) == PACKED
        text = _unpacked(path) if packed else inputs.read_text(path, WHAT, MAX_TABLE_BYTES)
    except inputs.InputError as error:
        raise AudioError(f"The transcripts cannot be read: {error}") from None
    found = TextFile(path, inputs.lines_of(text), plain)
    if len(found.lines) > MAX_TABLE_LINES:
        raise AudioError(
            f"The transcripts {printable(path)} have {len(found.lines):,} lines; more than {MAX_TABLE_LINES:,} "
            "are not read."
        )
    if (at := text.find("\0")) >= 0:
        raise found.error(text.count("\n", 0, at) + 1, "a NUL character stands there.")
    return found


def seconds(text: TextFile, line: int, word: str) -> float:
    """A time, 0 or later."""
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise text.error(line, f"a time in seconds is needed, found {one_line(word)!r}.")
    return found


def part(text: TextFile, line: int, begin: str, end: str, channel: int | None = None) -> Part:
    """Part of a file from `begin` to `end`, of which -1 is the end of the file."""
    first = seconds(text, line, begin)
    last = None if end.strip().startswith("-1") else seconds(text, line, end)
    if last is not None and last <= first:
        raise text.error(line, f"it ends at {end} s and so not after its begin, {begin} s.")
    return Part(channel, first, last)


def channel_of(text: TextFile, line: int, word: str) -> int:
    """From 0: they are called A and B, or 1 and 2."""
    if word.lower() in CHANNELS:
        return CHANNELS[word.lower()]
    if not word.isdecimal() or not 1 <= int(word) <= 99:
        raise text.error(line, f"a channel is A, B, left, right or a number from 1, found {one_line(word)!r}.")
    return int(word) - 1
