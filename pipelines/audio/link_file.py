"""A recording within a sound file as a file of its own, for the decoder to read."""

from __future__ import annotations

import io
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, BinaryIO, Final

import soundfile

if TYPE_CHECKING:
    from pipelines.audio.containers import Link

SCAN: Final = 1 << 20  # bytes searched at once
STRETCH: Final = 64  # MPEG frames of one recording differ 40-fold in their length at most
BUFFER_BYTES: Final = 1 << 16  # read from a file at once
STDERR: Final = 2
TAG_BYTES: Final = 128  # an ID3v1 tag, at the end of a file


class Fault(Exception):
    """What is wrong with a sound file, as the rest of a sentence that begins with its name."""


class Content:
    """The bytes of a file by offset, a few at a time.

    Nothing is mapped into memory: a mapped file that shrinks kills the process.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size

    def read_at(self, place: int, n: int) -> bytes:
        """Read `n` bytes from offset `place`: fewer at the end of the file and none behind it."""
        if place >= self.size:
            return b""
        self._file.seek(place)
        return self._file.read(min(n, self.size - place))

    def find(self, mark: re.Pattern[bytes], at: int) -> int | None:
        """The first place from `at` on with `mark`, which has at most 64 bytes."""
        while at < self.size:
            if found := mark.search(self.read_at(at, SCAN + 64)):
                return at + found.start()
            at += SCAN
        return None


class LinkFile(io.RawIOBase):
    """A link of `content` as a file to read.

    An error is kept in `error` and ends the file: it would not pass through libsndfile. MPEG frames that nobody counted
    seem longer than they are, with zeros at their end: the decoder guesses the number of samples by the size.
    """

    def __init__(self, content: Content, link: Link) -> None:
        self._content, self._head, self._pieces = content, link.head, link.pieces
        lengths = [end - begin for begin, end in link.pieces]
        self._places = list(accumulate(lengths, initial=len(link.head)))  # of the pieces, and the end
        self._size = self._places[-1] * (1 if link.counted else STRETCH)
        self._at = 0
        self.error: OSError | None = None

    def readable(self) -> bool:
        return True

    seekable = readable

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        done = 0
        while done < len(buffer) and (part := self._next(len(buffer) - done)):
            buffer[done : done + len(part)] = part
            done += len(part)
            self._at += len(part)
        return done

    def place(self, at: int) -> int:
        piece = min(max(bisect_right(self._places, at) - 1, 0), len(self._pieces) - 1)
        return self._pieces[piece][0] + max(at - self._places[piece], 0)

    def _next(self, n: int) -> bytes:
        at = self._at
        if at < len(self._head):
            return self._head[at : at + n]
        if at >= self._places[-1]:
            return bytes(min(n, self._size - at)) if self._size - TAG_BYTES <= at < self._size else b""
        end = self._places[bisect_right(self._places, at)]
        try:
            return self._content.read_at(self.place(at), min(n, end - at))
        except OSError as error:
            self.error = error
            return b""


class _Reading(soundfile.SoundFile):
    """Read on from where it stands: python-soundfile would seek after each piece, to an end that may be wrong."""

    def seekable(self) -> bool:
        return False


@contextmanager
def decoding(
    content: Content, link: Link, raw: dict[str, int | str]
) -> Iterator[tuple[soundfile.SoundFile, Callable[[], int]]]:
    """Open a link with libsndfile; with it what says how far in `content` it was read.

    `raw`: how the samples lie in a file without a header. Raises LibsndfileError or OSError if it cannot be read.
    """
    bare = LinkFile(content, link)
    reader = io.BufferedReader(bare, BUFFER_BYTES)
    with quiet(link):
        file = _Reading(reader, **raw)
    with file:
        yield file, lambda: bare.place(reader.tell())
    if bare.error is not None:
        raise bare.error


_stderr = threading.Lock()


@contextmanager
def quiet(link: Link) -> Iterator[None]:
    """Without the lines that mpg123 writes to stderr itself, also of sound that it decodes well."""
    if not link.mpeg:
        yield
        return
    with _stderr, open(os.devnull, "wb") as nothing:
        try:
            kept = os.dup(STDERR)
        except OSError:  # there is none
            yield
            return
        try:
            os.dup2(nothing.fileno(), STDERR)
            yield
        finally:
            os.dup2(kept, STDERR)
            os.close(kept)
