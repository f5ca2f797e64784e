"""Does a sound file contain everything that its container declares?

libsndfile reads a WAV, AIFF, OGG or MP3 file that was cut in the middle without complaint and
returns what is left. Half a recording decodes to half the words, and nothing would say why; so the
container's own structure is walked here before decoding. (A cut FLAC makes the decoder fail.) An MP3
that does not note its length, or too short a one, is given a right note: libsndfile stops there.

A walk reads a few bytes at each place and takes a bounded number of steps, whatever the file says. (Nothing is
mapped into memory: a mapped file that shrinks kills the process.)

Formats: RIFF/RF64 (EBU Tech 3306), AIFF, Ogg (RFC 3533), MPEG audio frames (ISO 11172-3, 13818-3).
"""

from __future__ import annotations

import io
import os
import struct
from typing import BinaryIO

UNKNOWN_SIZE = 0x7FFF_F000
"""Chunk sizes from here on are placeholders of programs that write into a pipe."""
MAX_CHUNKS = 10_000
"""Maximum chunks before the sound; editors that write a chunk for every marker write a few hundred."""
MAX_PAGES = 5_000_000
"""Ogg pages: three hours of the shortest Opus packets (2.5 ms), each on its own page, are 4.3 million."""
MAX_MPEG_FRAMES = 1_500_000
"""Three hours of the shortest MPEG frames (8 ms, layer I at 48 kHz) are 1.35 million."""

_MP3_KBIT = {  # bit rates by (is MPEG-1, layer), ISO 11172-3 2.4.2.3 and 13818-3 2.4.2.3
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


class _Content:
    """The bytes of a file by offset, a few at a time."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size

    def at(self, place: int, n: int) -> bytes:
        """`n` bytes from offset `place`, fewer at the end of the file."""
        self._file.seek(place)
        return self._file.read(n)


def fault(file: BinaryIO) -> str | None:
    """What is wrong with the sound file, as the rest of a sentence that begins with its name, or None.

    Formats that are not known here, and structures that make no sense, are left to the decoder.
    """
    data = _Content(file)
    head = data.at(0, 16)
    if len(head) < 16:
        return None
    if head[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and head[8:12] == b"WAVE":
        return _chunks(data, b"data", "WAV", "big" if head[:4] == b"RIFX" else "little")
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return _chunks(data, b"SSND", "AIFF", "big")
    if head[:4] == b"OggS":
        return _ogg(data)
    if _is_mp3(head):
        return _mp3(data)
    return None


def _chunks(data: _Content, wanted: bytes, name: str, order: str) -> str | None:
    size_of_long_data = None
    at = 12
    for _ in range(MAX_CHUNKS):
        head = data.at(at, 24)
        if len(head) < 8:
            return None
        kind = head[:4]
        size: int = struct.unpack_from("<I" if order == "little" else ">I", head, 4)[0]
        if kind == b"ds64" and len(head) == 24:
            size_of_long_data = struct.unpack_from("<Q", head, 16)[0]
        if kind == wanted:
            if size == 0xFFFF_FFFF and size_of_long_data is not None:
                size = size_of_long_data
            elif size >= UNKNOWN_SIZE:
                return None
            there = data.size - at - 8
            if there < size:
                return f"is cut short: its {name} header promises {size} bytes of sound, but only {there} are there"
            return None
        at += 8 + size + (size & 1)
    return f"has more than {MAX_CHUNKS:,} chunks before its sound, as no {name} recording has"


def _ogg(data: _Content) -> str | None:
    at, open_streams = 0, set()
    for _ in range(MAX_PAGES):
        head = data.at(at, 27 + 255)
        if len(head) < 27 or head[:4] != b"OggS":
            break
        flags, stream, n_segments = head[5], head[14:18], head[26]
        segments = head[27 : 27 + n_segments]
        end = at + 27 + n_segments + sum(segments)
        if len(segments) < n_segments or end > data.size:
            return "is cut short: its last Ogg page is incomplete"
        open_streams.add(stream)
        if flags & 4:  # end of stream
            open_streams.discard(stream)
        at = end
    else:
        return f"has more than {MAX_PAGES:,} Ogg pages, as no recording has that can be decoded"
    return "is cut short: it stops before the Ogg page that marks its end" if open_streams else None


def _is_mp3(head: bytes) -> bool:
    return head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


def _mp3(data: _Content) -> str | None:
    starts, end = _mp3_frames(data)
    if len(starts) > MAX_MPEG_FRAMES:
        return f"has more than {MAX_MPEG_FRAMES:,} MPEG frames, as no recording has that can be decoded"
    if end > data.size:
        return f"is cut short: its last MPEG frame is incomplete (frame {len(starts)})"
    promised = _xing_frames(data.at(starts[0], 64)) if starts else None
    if promised is not None and len(starts) < promised:  # some encoders count the info frame itself
        return f"is cut short: its header promises {promised} MPEG frames, but only {len(starts)} are there"
    return None


def mp3_with_length(file: BinaryIO) -> BinaryIO | None:
    """The MPEG frames of an MP3 that does not note their number, behind a frame that does, as a file to read.

    None for files that are no MP3 or note it themselves. It reads from `file`, which has to stay open.
    """
    data = _Content(file)
    if not _is_mp3(data.at(0, 4)):
        return None
    starts, end = _mp3_frames(data)
    if starts and (noted := _xing_frames(data.at(starts[0], 64))) is not None:
        if noted >= len(starts) - 1:
            return None
        del starts[0]  # joined files: the note is that of the first
    if not starts:
        return None
    first = data.at(starts[0], 4)
    # The note is an otherwise silent frame at 128 kbit/s (large enough to hold it), without a CRC.
    mpeg1, mono = first[1] >> 3 & 3 == 3, first[3] >> 6 == 3
    rate = _MP3_KBIT[mpeg1, 3].index(128) + 1
    header = bytes([0xFF, first[1] | 1, rate << 4 | first[2] & 0x0C, first[3]])
    side_information = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}
    note = (
        header + bytes(side_information[mpeg1, mono]) + b"Xing" + struct.pack(">II", 1, len(starts))
    )
    length = _mp3_frame_bytes(header) or 0
    return io.BufferedReader(_Behind(note.ljust(length, b"\0"), file, starts[0], end))


class _Behind(io.RawIOBase):
    """`head` and behind it the bytes [begin, end) of `file`, as one file to read."""

    def __init__(self, head: bytes, file: BinaryIO, begin: int, end: int) -> None:
        self._head, self._file, self._begin = head, file, begin
        self._size = len(head) + end - begin
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = max(min(len(buffer), self._size - self._at), 0)
        if self._at < len(self._head):
            part = self._head[self._at : self._at + wanted]
        else:
            self._file.seek(self._begin + self._at - len(self._head))
            part = self._file.read(wanted)
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def _mp3_frames(data: _Content) -> tuple[list[int], int]:
    """Where the frames begin (of the first MAX_MPEG_FRAMES + 1), and where the last one ends or should end."""
    at = 0
    tag = data.at(0, 10)
    if tag[:3] == b"ID3" and len(tag) == 10:
        size = tag[6] << 21 | tag[7] << 14 | tag[8] << 7 | tag[9]
        at = 10 + size + (10 if tag[5] & 0x10 else 0)
    starts: list[int] = []
    header = data.at(at, 4)
    while len(header) == 4 and len(starts) <= MAX_MPEG_FRAMES:
        length = _mp3_frame_bytes(header)
        if length is None:
            break  # a tag at the end, or not MPEG audio after all
        starts.append(at)
        at += length
        header = data.at(at, 4)
    if starts and 0 < len(header) < 4 and header[0] == 0xFF:  # a header that was cut itself
        starts.append(at)
        at += 4
    return starts, at


def _mp3_frame_bytes(header: bytes) -> int | None:
    """Length of the MPEG audio frame that starts with these four bytes, None if none does."""
    if header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, 4 - (header[1] >> 1 & 3)
    bit_rate, rate, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer == 4 or bit_rate in (0, 15) or rate == 3:
        return None
    bits = 1000 * _MP3_KBIT[version == 3, layer][bit_rate - 1]
    hertz = _MP3_RATES[version][rate]
    if layer == 1:
        return (12 * bits // hertz + padding) * 4
    samples = 576 if layer == 3 and version != 3 else 1152
    return samples // 8 * bits // hertz + padding


def _xing_frames(frame: bytes) -> int | None:
    """Number of frames after this one that an encoder noted in its first frame, if it did."""
    for mark in (b"Xing", b"Info"):
        at = frame.find(mark, 4, 40 + len(mark))
        if at >= 0 and len(frame) >= at + 12 and frame[at + 7] & 1:
            return int.from_bytes(frame[at + 8 : at + 12], "big")
    return None
