"""The parts that sound files are taken to: bytes by offset, recordings within a file, a recording as a file to read."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import BinaryIO, NamedTuple


class Fault(Exception):
    """What is wrong with a sound file, as the rest of a sentence that begins with its name."""


class Content:
    """The bytes of a file by offset, a few at a time; as if it ended at `size`, if that is given."""

    def __init__(self, file: BinaryIO, size: int | None = None) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size if size is None else size

    def read_at(self, place: int, n: int) -> bytes:
        """Read `n` bytes from offset `place`: fewer at the end of the file and none behind it."""
        if place >= self.size:
            return b""
        self._file.seek(place)
        return self._file.read(min(n, self.size - place))

    def up_to(self, end: int) -> Content:
        """The same, ended at offset `end`."""
        return Content(self._file, end)


class Link(NamedTuple):
    """One recording of a file: `head`, and behind it the bytes [begin, end) of each of `pieces`."""

    pieces: tuple[tuple[int, int], ...]
    head: bytes = b""
    mpeg: bool = False
    """Whether mpg123 decodes it, or may, which writes lines of its own to stderr."""


@dataclass
class Contents:
    """The recordings of a sound file in their order, and notes on what is odd."""

    links: list[Link] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: int = 0
    """Pages or frames walked so far."""
    bytes_per_s: int = 0
    """Of the sound, 0 where that is not known."""


class LinkFile(io.RawIOBase):
    """A link of `file`, which has to stay open, as a file to read.

    An error is kept in `error` and ends the file: it would not pass through libsndfile.
    """

    def __init__(self, file: BinaryIO, link: Link) -> None:
        self._file, self._head, self._pieces = file, link.head, link.pieces
        lengths = [end - begin for begin, end in link.pieces]
        self._places = list(accumulate(lengths, initial=len(link.head)))  # of the pieces, and the end
        self._size = self._places[-1]
        self._at = 0
        self.error: OSError | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Return the read position."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as there are bytes."""
        done = 0
        while done < len(buffer):
            part = self._next(len(buffer) - done)
            if not part:
                break
            buffer[done : done + len(part)] = part
            done += len(part)
            self._at += len(part)
        return done

    def _next(self, n: int) -> bytes:
        """At most `n` bytes from where it is."""
        read_at = self._at
        if read_at < len(self._head):
            return self._head[read_at : read_at + n]
        if read_at >= self._size:
            return b""
        piece = bisect_right(self._places, read_at) - 1
        begin, end = self._pieces[piece]
        place = begin + read_at - self._places[piece]
        try:
            self._file.seek(place)
            return self._file.read(min(n, end - place))
        except OSError as error:
            self.error = error
            return b""
