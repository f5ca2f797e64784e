"""Does a sound file hold all that its container promises?

libsndfile reads a WAV, AIFF, OGG or MP3 file that was cut in the middle without complaint and
returns what is left. Half a recording decodes to half the words, and nothing would say why; so the
container's own structure is walked here before decoding. (A cut FLAC makes the decoder fail.) An MP3
that does not note its length, or too short a one, is given a right note: libsndfile stops there.

Formats: RIFF/RF64 (EBU Tech 3306), AIFF, Ogg (RFC 3533), MPEG audio frames (ISO 11172-3, 13818-3).
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

UNKNOWN_SIZE = 0x7FFF_F000
"""Chunk sizes from here on are what programs that write into a pipe put for "not known yet"."""

_MP3_KBIT = {  # bit rates by (is MPEG-1, layer), ISO 11172-3 2.4.2.3 and 13818-3 2.4.2.3
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def shortfall(path: Path) -> str | None:
    """What is missing from the file, as the rest of a sentence, or None if nothing is.

    Formats that are not known here, and structures that make no sense, are left to the decoder.
    """
    with path.open("rb") as file:
        head = file.read(16)
        if len(head) < 16:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if head[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and head[8:12] == b"WAVE":
                return _chunks(data, b"data", "WAV", "big" if head[:4] == b"RIFX" else "little")
            if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
                return _chunks(data, b"SSND", "AIFF", "big")
            if head[:4] == b"OggS":
                return _ogg(data)
            if _is_mp3(head):
                return _mp3(data)
    return None


def _chunks(data: mmap.mmap, wanted: bytes, name: str, order: str) -> str | None:
    size_of_long_data = None
    at = 12
    while at + 8 <= len(data):
        kind = data[at : at + 4]
        size = struct.unpack_from("<I" if order == "little" else ">I", data, at + 4)[0]
        if kind == b"ds64" and at + 24 <= len(data):
            size_of_long_data = struct.unpack_from("<Q", data, at + 16)[0]
        if kind == wanted:
            if size == 0xFFFF_FFFF and size_of_long_data is not None:
                size = size_of_long_data
            elif size >= UNKNOWN_SIZE:
                return None
            there = len(data) - at - 8
            if there < size:
                return (
                    f"its {name} header promises {size} bytes of sound and only {there} are there"
                )
            return None
        at += 8 + size + (size & 1)
    return None


def _ogg(data: mmap.mmap) -> str | None:
    at, open_streams = 0, set()
    while at + 27 <= len(data) and data[at : at + 4] == b"OggS":
        flags, stream, n_segments = data[at + 5], data[at + 14 : at + 18], data[at + 26]
        body = at + 27 + n_segments
        end = body + sum(data[at + 27 : body])
        if end > len(data):
            return "its last Ogg page is incomplete"
        open_streams.add(stream)
        if flags & 4:  # end of stream
            open_streams.discard(stream)
        at = end
    return "it stops before the Ogg page that marks its end" if open_streams else None


def _is_mp3(head: bytes) -> bool:
    return head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


def _mp3(data: mmap.mmap) -> str | None:
    starts, end = _mp3_frames(data)
    if end > len(data):
        return f"its last MPEG frame is incomplete (frame {len(starts)})"
    promised = _xing_frames(data[starts[0] : starts[0] + 64]) if starts else None
    if promised is not None and len(starts) < promised:  # some encoders count the note itself
        return f"its header promises {promised} MPEG frames and only {len(starts)} are there"
    return None


def mp3_with_length(path: Path) -> bytes | None:
    """The MPEG frames of an MP3 that does not note their number, behind a frame that does.

    None for files that are no MP3 or note it themselves.
    """
    with path.open("rb") as file:
        if not _is_mp3(file.read(4)):
            return None
    data = path.read_bytes()
    starts, end = _mp3_frames(data)
    if starts and (noted := _xing_frames(data[starts[0] : starts[0] + 64])) is not None:
        if noted >= len(starts) - 1:
            return None
        del starts[0]  # joined files: the note is that of the first
    if not starts:
        return None
    first = data[starts[0] : starts[0] + 4]
    # The note is an otherwise silent frame at 128 kbit/s (large enough to hold it), without a CRC.
    mpeg1, mono = first[1] >> 3 & 3 == 3, first[3] >> 6 == 3
    rate = _MP3_KBIT[mpeg1, 3].index(128) + 1
    header = bytes([0xFF, first[1] | 1, rate << 4 | first[2] & 0x0C, first[3]])
    side_information = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}
    note = (
        header + bytes(side_information[mpeg1, mono]) + b"Xing" + struct.pack(">II", 1, len(starts))
    )
    length = _mp3_frame_bytes(header) or 0
    return note.ljust(length, b"\0") + data[starts[0] : end]


def _mp3_frames(data: mmap.mmap | bytes) -> tuple[list[int], int]:
    """Where the frames begin, and where the last one ends or should end."""
    at = 0
    if data[:3] == b"ID3" and len(data) >= 10:
        size = data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9]
        at = 10 + size + (10 if data[5] & 0x10 else 0)
    starts = []
    while at + 4 <= len(data):
        length = _mp3_frame_bytes(data[at : at + 4])
        if length is None:
            break  # a tag at the end, or not MPEG audio after all
        starts.append(at)
        at += length
    if starts and at < len(data) < at + 4 and data[at] == 0xFF:  # a header that was cut itself
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
