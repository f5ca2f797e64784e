"""The lines of a language model's text and their fields, plain or packed with gzip or bzip2, within bounds of size.

Files of other formats are known by what they begin with, so that the sentence can say what they are.
"""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from pipelines.models.language.ngram import LanguageModelError
from profiler.files import inputs
from profiler.plain import one_line

MAX_LINE = 4096
MAX_BYTES = 4 << 30  # of the text: 50 million trigrams of 40 characters are 2 GB
EXPANSION, SMALL_BYTES = 16, 8 << 20
"""Unpacked text may be this many times as large as its file, and this large in any case: n-grams pack to a third or a
tenth, repeated lines to a thousandth."""
MAX_IDLE_LINES = 10_000  # lines that say nothing: blank ones, and those before the counts
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 64
_OTHERS = (
    (4, b"Darpa Trigram LM", "a Sphinx DMP file: convert it with sphinx_lm_convert to ARPA"),
    (0, b"Trie Language Model", "a packed .lm.bin: unpack it first"),
    (0, b"mmap lm http", "a binary file of KenLM: name the ARPA file that it was made of"),
    (0, b"blmt", "a binary file of IRSTLM: convert it with compile-lm --text=yes to ARPA"),
    (0, b"\xd6\xfd\xb2\x7e", "an OpenFst file: name the ARPA file that it was made of"),
    (0, b"\xfd7zXZ", "packed with xz: unpack it first"),
    (0, b"PK\x03\x04", "a ZIP archive: unpack it first"),
    (0, b"\xff\xfe", "a text in UTF-16: save it as UTF-8"),
    (0, b"\xfe\xff", "a text in UTF-16: save it as UTF-8"),
)
"""Where a file of another format has which bytes, and what it is."""


class Lines(Iterator[str]):
    """The lines that are not blank, without the space around them; `number` is that of the latest, from 1."""

    def __init__(self, file: str, stream: BinaryIO, limit: int) -> None:
        self.file = file
        self.number = 0
        self._stream = stream
        self._left = limit
        self._blank = 0

    def __next__(self) -> str:
        while line := self._stream.readline(MAX_LINE + 1):
            self.number += 1
            if self.number == 1:
                self._name_other(line[:_HEAD_BYTES])
                line = line.removeprefix(_BOM)
            self._left -= len(line)
            if len(line) > MAX_LINE:
                raise self.problem(f"this is no ARPA file: the line is over {MAX_LINE} bytes")
            if self._left < 0:
                raise LanguageModelError(
                    f"{self.file} unpacks to more than {EXPANSION} times its size, which no n-grams do; "
                    "unpack it first."
                )
            try:
                text = line.strip().decode("utf-8")
            except UnicodeDecodeError:
                raise self.problem("the text is not UTF-8; save the file as UTF-8") from None
            if text:
                return text
            self._blank += 1
            if self._blank > MAX_IDLE_LINES:
                raise LanguageModelError(
                    f"{self.file} is not an ARPA file: more than {MAX_IDLE_LINES:,} lines of it are blank."
                )
        raise StopIteration

    def problem(self, what: str) -> LanguageModelError:
        """Return an error of one sentence on the latest line."""
        return LanguageModelError(f"{self.file}, line {self.number}: {what}.")

    def _name_other(self, head: bytes) -> None:
        for at, mark, what in _OTHERS:
            if head.startswith(mark, at):
                raise LanguageModelError(f"{self.file} is {what}.")
        if b"\0" in head:
            raise LanguageModelError(f"{self.file} is not an ARPA file, which is a text, but holds binary data.")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Lines]:
    """The lines of the file, unpacked where it is packed; LanguageModelError in one sentence."""
    name = one_line(os.fspath(path))
    packing = ""
    try:
        with inputs.open_input(path, "an ARPA file", MAX_BYTES) as raw:
            stream, limit = cast(BinaryIO, raw), MAX_BYTES
            begin = raw.read(3)
            raw.seek(0)
            if begin[:2] == b"\x1f\x8b":
                packing, stream = "gzip", cast(BinaryIO, gzip.GzipFile(fileobj=raw))
            elif begin == b"BZh":
                packing, stream = "bzip2", cast(BinaryIO, bz2.BZ2File(raw))
            if packing:
                limit = min(MAX_BYTES, max(SMALL_BYTES, EXPANSION * os.fstat(raw.fileno()).st_size))
            yield Lines(name, stream, limit)
    except inputs.InputError as error:
        raise LanguageModelError(f"The language model cannot be read: {error}") from None
    except (EOFError, zlib.error, OSError) as error:
        # What bz2 and gzip say of damage is an OSError without a number.
        if packing and not getattr(error, "errno", None):
            raise LanguageModelError(f"{name} is a damaged {packing} file: {error}.") from error
        reason = getattr(error, "strerror", None) or error
        raise LanguageModelError(f"{name} cannot be read: {reason}.") from error


_BLANKS = " \t\r\n\f\v"
_WIDE = {ord(blank): " " for blank in _BLANKS}


def fields(line: str) -> list[str]:
    """`line` cut at ASCII blanks alone, as pocketsphinx and KenLM do; any other is part of a word."""
    if line.isascii():
        return line.split()
    return [field for field in line.translate(_WIDE).split(" ") if field]
