"""MPEG audio (MP3): finds the frames and which of them form a recording.

The decoder gets frames only, without tags or gaps, and a correct note of their number: otherwise it stops early and
writes to stderr.

Formats: MPEG audio frames (ISO 11172-3, 13818-3), the Xing and Info frames of encoders, ID3v1, ID3v2, APEv2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipelines.audio.links import Content, Contents, Fault, Link

MAX_FRAMES = 1_000_000
"""Two hours of the shortest MPEG frames (8 ms, layer I at 48 kHz) are 0.9 million."""
GAP = 1 << 20
"""Bytes that are no frames and no tag are looked through so far for the next frames."""
LEAST_SKIPPED = 1024
"""Least number of bytes between frames that is reported."""
MAX_TAGS = 100  # one behind the other

_KBIT = {  # bit rates by (is MPEG-1, layer), ISO 11172-3 2.4.2.3 and 13818-3 2.4.2.3
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_SIDE_INFORMATION = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}
"""Bytes of it in layer III, by (is MPEG-1, is mono)."""


def behind_tags(data: Content, at: int) -> int:
    """The place behind the tags (ID3v2, ID3v1, APEv2) that begin at a place."""
    for _ in range(MAX_TAGS):
        head = data.read_at(at, 32)
        if head[:3] == b"ID3" and len(head) > 10:
            size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
            at += 10 + size + (10 if head[5] & 0x10 else 0)
        elif head[:3] == b"TAG" and len(data.read_at(at, 128)) == 128:
            at += 128
        elif head[:8] == b"APETAGEX" and len(head) == 32:
            at += 32 + (int.from_bytes(head[12:16], "little") if head[23] & 0x20 else 0)
        else:
            break
    return at


def begins(data: Content, at: int, least: int) -> bool:
    """Whether at least this number of frames of one kind follow each other from a place on (fewer at the end)."""
    kind = None
    for n in range(least):
        header = data.read_at(at, 4)
        if n and not header:
            break
        length = _frame_bytes(header)
        if length is None or (n and _kind(header) != kind):
            return False
        kind = _kind(header)
        at += length
    return True


@dataclass
class _Recording:
    """Frames that belong together, with nothing between them."""

    first: bytes = b""
    """The beginning of the first frame."""
    frames: int = 0
    pieces: list[tuple[int, int]] = field(default_factory=list)

    def add(self, at: int, length: int, head: bytes) -> None:
        """Append the frame at a place."""
        self.first = self.first or head
        self.frames += 1
        if self.pieces and self.pieces[-1][1] == at:
            self.pieces[-1] = self.pieces[-1][0], at + length
        else:
            self.pieces.append((at, at + length))

    def link(self) -> Link:
        """The frames with a right note of their number before them; Fault when there are too few."""
        frames, pieces, first = self.frames, list(self.pieces), self.first
        noted = _noted(first)
        if noted is not None:
            if frames < noted:  # some encoders count the frame with the note
                raise Fault(f"is cut short: its header promises {noted} MPEG frames, but only {frames} are there")
            if noted >= frames - 1:
                return Link(tuple(pieces), mpeg=True)
            begin, end = pieces[0]
            pieces[0] = begin + (_frame_bytes(first) or 0), end
            frames -= 1
        return Link(tuple(pieces), _note(first, frames), mpeg=True)


def recordings(data: Content, at: int, result: Contents) -> int:
    """Add the recordings that the frames from a place on are, and return where they end."""
    one, tagged, skipped = _Recording(), False, 0
    while True:
        head = data.read_at(at, 64)
        length = _frame_bytes(head)
        if length is None:
            if 0 < len(head) < 4 and head[0] == 0xFF:  # a header that was cut itself
                raise _incomplete(one)
            behind = behind_tags(data, at)
            if behind == at:
                behind = _next_frames(data, at, result)
                skipped += behind - at
            if behind >= data.size or behind == at:
                break
            at, tagged = behind, True
            continue
        if one.frames and _new(one.first, head, tagged=tagged):
            result.links.append(one.link())
            one = _Recording()
        one.add(at, length, head)
        at, tagged = at + length, False
        result.steps += 1
        if result.steps > MAX_FRAMES:
            raise Fault(f"has more than {MAX_FRAMES:,} MPEG frames, as no recording has that can be decoded")
        if at > data.size:
            raise _incomplete(one)
    if one.frames:
        result.links.append(one.link())
    if skipped >= LEAST_SKIPPED:
        result.notes.append(f"{skipped:,} bytes between its MPEG frames are not read")
    return at


def _incomplete(one: _Recording) -> Fault:
    return Fault(f"is cut short: its last MPEG frame is incomplete (frame {one.frames})")


def _new(first: bytes, head: bytes, *, tagged: bool) -> bool:
    """Whether a recording of its own begins with the frame `head`, behind frames of the one that began with `first`."""
    if _kind(first) != _kind(head):
        return True
    layer3 = head[1] >> 1 & 3 == 1
    if layer3 and _noted_at(head, _side_information_end(head)) is not None:
        return True
    # A tag may also lie within a recording: frames behind it then take bits from the frames before it.
    return tagged and not (layer3 and _bits_from_before(head))


def _next_frames(data: Content, at: int, result: Contents) -> int:
    """The next place with frames; `at` itself if there is none near."""
    begin = 0
    for end in (1 << 12, 1 << 16, GAP):  # mostly it is near
        for sync in re.finditer(rb"\xff[\xe2-\xff]", data.read_at(at + begin, end - begin + 1)):
            result.steps += 1
            place = at + begin + sync.start()
            if begins(data, place, least=3):
                return place
        begin = end
    return at


def _kind(header: bytes) -> tuple[int, int, bool]:
    """Return what all frames of a recording share: version and layer, sample rate, and whether it is mono."""
    return header[1] & 0x1E, header[2] & 0x0C, header[3] >> 6 == 3


def _side_information_end(head: bytes) -> int:
    """Return where the side information of a layer III frame without a CRC ends."""
    return 4 + _SIDE_INFORMATION[head[1] >> 3 & 3 == 3, head[3] >> 6 == 3]


def _bits_from_before(head: bytes) -> bool:
    """Whether a layer III frame takes bits from frames before it (main_data_begin)."""
    at = 4 if head[1] & 1 else 6  # behind a CRC
    if head[1] >> 3 & 3 == 3:
        return bool(head[at] or head[at + 1] & 0x80)
    return bool(head[at])


def _note(first: bytes, frames: int) -> bytes:
    """A frame that notes how many there are, otherwise silent, at 128 kbit/s (large enough for it), without a CRC."""
    mpeg1, mono = first[1] >> 3 & 3 == 3, first[3] >> 6 == 3
    rate = _KBIT[mpeg1, 3].index(128) + 1
    header = bytes([0xFF, first[1] | 1, rate << 4 | first[2] & 0x0C, first[3]])
    note = header + bytes(_SIDE_INFORMATION[mpeg1, mono]) + b"Xing\0\0\0\1" + frames.to_bytes(4, "big")
    return note.ljust(_frame_bytes(header) or 0, b"\0")


def _frame_bytes(header: bytes) -> int | None:
    """Length of the MPEG audio frame that starts with these four bytes, None if none does."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, 4 - (header[1] >> 1 & 3)
    bit_rate, rate, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer == 4 or bit_rate in (0, 15) or rate == 3:
        return None
    bits = 1000 * _KBIT[version == 3, layer][bit_rate - 1]
    hertz = _RATES[version][rate]
    if layer == 1:
        return (12 * bits // hertz + padding) * 4
    samples = 576 if layer == 3 and version != 3 else 1152
    return samples // 8 * bits // hertz + padding


def _noted(frame: bytes) -> int | None:
    """Number of frames after this one that an encoder noted in its first frame, if it did."""
    for mark in (b"Xing", b"Info"):
        at = frame.find(mark, 4, 40 + len(mark))
        if at >= 0 and (noted := _noted_at(frame, at)) is not None:
            return noted
    return None


def _noted_at(frame: bytes, at: int) -> int | None:
    if frame[at : at + 4] in (b"Xing", b"Info") and len(frame) >= at + 12 and frame[at + 7] & 1:
        return int.from_bytes(frame[at + 8 : at + 12], "big")
    return None
