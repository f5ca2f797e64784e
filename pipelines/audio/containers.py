"""Where the recordings of a sound file begin and end, whatever its headers say of their length.

libsndfile believes headers: where their lengths are not the file's, the decoder is given a header that says what is
there (`Link.head`); in FLAC it reads on to the end. Recordings behind each other are found one after another.

Formats: RIFF/RF64 (EBU Tech 3306), Wave64, AIFF, CAF, AU, NIST SPHERE, Ogg (RFC 3533), FLAC (RFC 9639), ID3, APE tags.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pipelines.audio import formats
from pipelines.audio.link_file import Content, Fault

UNKNOWN_SIZE: Final = 0x7FFF_F000
"""32-bit sizes from here on are placeholders of programs that write into a pipe; so are sizes of a terabyte."""
MAX_CHUNKS: Final = 10_000  # editors that write a chunk for every marker write a few hundred before the sound
MAX_PAGES: Final = 5_000_000
"""Ogg pages: three hours of the shortest Opus packets (2.5 ms), each on its own page, are 4.3 million."""
MAX_TAGS: Final = 100  # one behind the other
TOLERATED: Final = 512
"""Bytes by which a header may promise too much: programs count headers and chunks in (44 bytes, 28, 16 …)."""
TOLERATED_SAMPLES: Final = 256  # the same of a header that counts samples: 512 bytes of 16 bits
MPEG_FRAME: Final = 1152  # samples: some encoders count the frame that bears their note
LEAST_UNREAD: Final = 1024
"""Least number of bytes after the sound that is reported; fewer are 30 ms of sound at most, or padding."""
LOOKED_BACK: Final = 1 << 16  # bytes that a decoder of FLAC may have read beyond the end of a recording


@dataclass
class Link:
    """One recording of a file: `head`, and behind it the bytes [begin, end) of each of `pieces`.

    `end`: where it ends in the file; None: where its decoder stops. `promised`: samples that a header promises and the
    decoder does not know of; 0: none. `mpeg`: mpg123 decodes it, or may, which writes lines of its own to stderr.
    `counted`: the decoder knows how many samples there are. `bytes_per_s`: of the sound, 0 where that is not known.
    """

    pieces: tuple[tuple[int, int], ...]
    head: bytes = b""
    end: int | None = None
    promised: int | None = None
    mpeg: bool = False
    counted: bool = True
    bytes_per_s: int = 0
    notes: list[str] = field(default_factory=list)


def recording(data: Content, at: int) -> Link:
    """The recording at an offset; Fault says what is wrong with it.

    Formats that are not known here, and structures that make no sense, are left to the decoder.
    """
    at = behind_tags(data, at)
    if read := _reader(data, at):
        return read(data, at) or Link(((at, data.size),), end=data.size)
    if at == 0 and (what := formats.format_of(data.read_at(0, 512))):
        raise Fault(what)
    return Link(((at, data.size),), mpeg=True)


def following(data: Content, link: Link, stands: int) -> int | None:
    """Where the next recording begins, if there is one; adds a note on what else lies behind `link`.

    `stands`: how far its decoder has read.
    """
    if link.promised is not None:
        return data.find(_FLAC, max(link.pieces[0][0], stands - LOOKED_BACK))
    at = behind_tags(data, stands if link.end is None else link.end)
    unread, begin = data.size - at, data.read_at(at, 8 * LEAST_UNREAD)
    few = link.mpeg and begin.count(begin[:2]) < 3  # a frame or two of silence may be left
    if unread > 0 and not few and _reader(data, at):
        return at
    if unread >= LEAST_UNREAD * (4 if link.mpeg else 1):
        how_long = f" ({unread / link.bytes_per_s:.2f} s)" if link.bytes_per_s else ""
        link.notes.append(f"{unread:,} bytes{how_long} behind its sound are not read")
    return None


def has_header(data: Content) -> bool:
    """Whether the file begins as one of the formats known here; two bytes as MPEG's begin samples, too."""
    return _reader(data, 0) not in (None, _mpeg)


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


def _reader(data: Content, at: int) -> Callable[[Content, int], Link | None] | None:
    """Return what reads the recording at an offset; it returns None where the decoder is to judge."""
    head = data.read_at(at, 12)
    kind, inner = head[:4], head[8:]
    if kind in _FORMS:
        return _chunked if inner in _INNER.get(kind, (inner,)) else None
    if kind in (b".snd", b"dns."):
        return _au
    if head[:8] == formats.NIST:
        return _nist
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0xF6 != 0xF0:  # as ADTS has it
        return _mpeg
    return {b"OggS": _ogg, b"fLaC": _flac}.get(kind)


def _length(link: Link, name: str, promised: int, there: int, *, empty: bool = False) -> int:
    """Bytes of sound where a header promises some; notes what differs. `empty`: it has none, and says so truly."""
    if UNKNOWN_SIZE <= promised <= 0xFFFF_FFFF or promised >= 1 << 40:
        link.notes.append("its header leaves its length open: it is read to its end")
        return there
    if promised <= 0 < there and not empty:
        link.notes.append(f"its header says 0 bytes of sound; the {there:,} bytes behind it are read")
        return there
    missing = promised - there
    if missing > TOLERATED or (there <= 0 < promised):
        raise Fault(
            f"is cut short: its {name} header promises {promised} bytes of sound, but only {max(there, 0)} are there"
        )
    if missing > 0:
        how_long = f" ({1000 * missing / link.bytes_per_s:.1f} ms)" if link.bytes_per_s else ""
        link.notes.append(f"its header promises {missing} bytes{how_long} more sound than there are")
    return max(min(promised, there), 0)


class _Form(NamedTuple):
    """How the chunks of a container are written."""

    name: str
    head: int  # bytes before the first chunk
    sound: bytes  # name of the chunk that holds the sound
    size: struct.Struct
    size_at: int  # place of the size in a chunk's head
    chunk_head: int
    before: int = 0  # bytes in the sound's chunk before the samples
    counts_head: bool = False
    align: int = 2

    def chunk(self, data: Content, at: int) -> tuple[bytes, int] | None:
        """Name and size of the chunk at a place; None where there is none, or none that fits into the file."""
        head = data.read_at(at, self.chunk_head)
        if len(head) < self.chunk_head or head[:4] in _FORMS or not all(0x20 <= c < 0x7F for c in head[:4]):
            return None
        size = self.size.unpack_from(head, self.size_at)[0] - self.counts_head * self.chunk_head
        fits = at + self.chunk_head + size <= data.size + 1  # the pad byte of the last may lack
        return (head[:4], size) if fits or head[:4] == self.sound else None


_WAV = _Form("WAV", 12, b"data", struct.Struct("<I"), 4, 8)
_FORMS: Final = {
    b"RIFF": _WAV,
    b"RF64": _WAV,
    b"BW64": _WAV,
    b"RIFX": _WAV._replace(size=struct.Struct(">I")),
    b"FORM": _Form("AIFF", 12, b"SSND", struct.Struct(">I"), 4, 8, 8),
    b"riff": _Form("Wave64", 40, b"data", struct.Struct("<Q"), 16, 24, counts_head=True, align=8),
    b"caff": _Form("CAF", 8, b"data", struct.Struct(">Q"), 4, 12, 4, align=1),
}
_INNER: Final = {b"FORM": (b"AIFF", b"AIFC")} | dict.fromkeys((b"RIFF", b"RF64", b"BW64", b"RIFX"), (b"WAVE",))


def _chunked(data: Content, start: int) -> Link | None:
    form = _FORMS[data.read_at(start, 4)]
    link, about = Link(()), dict[bytes, bytes]()
    sound: list[tuple[int, int]] = []
    at, odd = start + form.head, False
    for _ in range(MAX_CHUNKS):
        chunk = form.chunk(data, at)
        if chunk is None:
            break
        (name, size), begin = chunk, at + form.chunk_head
        if name == form.sound:
            if size == 0xFFFF_FFFF and b"ds64" in about:
                size = int.from_bytes(about[b"ds64"][8:16], "little")
            if form.name == "WAV" and len(fmt := about.get(b"fmt ", b"")) >= 16:
                link.bytes_per_s = int(struct.unpack_from(form.size.format, fmt, 8)[0])
            there = data.size - begin
            empty = size == form.before and form.chunk(data, begin + size) is not None
            length = _length(link, form.name, size - form.before, there - form.before, empty=empty) + form.before
            odd |= length != size or len(sound) > 0 or (form.name == "WAV" and b"fmt " not in about)
            sound.append((begin, begin + length))
            size = length
        elif form.name == "WAV" and name in (b"fmt ", b"fact", b"ds64") and name not in about:
            about[name] = data.read_at(begin, min(size, 4096))
        at = begin + -(-size // form.align) * form.align
        if size & 1 and form is _WAV and not form.chunk(data, at) and form.chunk(data, at - 1):
            at, odd = at - 1, True  # a recorder that does not pad
    if not sound and chunk is not None:
        raise Fault(f"has more than {MAX_CHUNKS:,} chunks before its sound, as no {form.name} recording has")
    if not sound:
        return None
    link.pieces, link.end = ((start, min(at, data.size)),), at
    if len(sound) > 1:
        link.notes.append(f"its {len(sound)} chunks of sound are read one after the other")
    begin, end = sound[0]
    if form.name == "WAV" and len(fmt := about.get(b"fmt ", b"")) >= 16:
        at = 24 if fmt[:2] in (b"\xfe\xff", b"\xff\xfe") and len(fmt) >= 26 else 0  # WAVE_FORMAT_EXTENSIBLE
        tag = int(struct.unpack_from(f"{form.size.format[0]}H", fmt, at)[0])
        if what := formats.codec_of_wav(tag):
            raise Fault(what)
        if tag == formats.MP3_IN_WAV:
            return _mpeg(data, begin, tuple(sound), link)
        if odd:
            link.pieces, link.head = tuple(sound), _wav_head(sum(b - a for a, b in sound), form, about)
    elif odd:
        head = bytearray(data.read_at(start, begin - start))
        form.size.pack_into(head, len(head) - form.chunk_head + form.size_at, end - begin + form.counts_head * 24)
        if form.counts_head:  # Wave64 says it a second time, and is refused where that makes no sense
            form.size.pack_into(head, 16, end - start)
        link.pieces, link.head = ((begin, end),), bytes(head)
    return link


def _wav_head(n: int, form: _Form, about: dict[bytes, bytes]) -> bytes:
    order, most = form.size.format[0], 0xFFFF_FFFF
    body = b"WAVE"
    for kind in (b"fmt ", b"fact"):
        if chunk := about.get(kind):
            body += kind + struct.pack(f"{order}I", len(chunk)) + chunk + b"\0" * (len(chunk) & 1)
    body += b"data" + struct.pack(f"{order}I", min(n, most))
    return (b"RIFF" if order == "<" else b"RIFX") + struct.pack(f"{order}I", min(len(body) + n, most)) + body


def _au(data: Content, at: int) -> Link | None:
    head = data.read_at(at, 24)
    if len(head) < 24:
        return None
    order = ">" if head[:4] == b".snd" else "<"
    first, promised = struct.unpack_from(f"{order}II", head, 4)
    link = Link(())
    length = _length(link, "AU", promised, data.size - at - first)
    link.end = at + first + length
    link.pieces = ((at + 12, link.end),)
    link.head = head[:8] + struct.pack(f"{order}I", min(length, 0xFFFF_FFFF))
    return link


def _nist(data: Content, at: int) -> Link | None:
    head = data.read_at(at, 1 << 14).partition(b"end_head")[0]
    if b"shorten" in head.lower():
        raise Fault(formats.SHORTEN)
    fields = dict(re.findall(rb"(\w+) -i (\d{1,18})", head))
    try:
        first = max(int(head[8:16]), 0)
        frame = int(fields[b"sample_n_bytes"]) * int(fields[b"channel_count"])
    except (ValueError, KeyError):
        return None
    link = Link(())
    link.end = at + first + _length(link, "NIST", int(fields.get(b"sample_count", 0)) * frame, data.size - at - first)
    link.pieces = ((at, link.end),)
    return link


def _ogg(data: Content, start: int) -> Link | None:
    at, begun = start, False
    open_streams: set[bytes] = set()
    for _ in range(MAX_PAGES):
        head = data.read_at(at, 27 + 255)
        if len(head) < 27 or head[:4] != b"OggS":
            if open_streams:
                raise Fault("is cut short: it stops before the Ogg page that marks its end")
            break
        flags, stream, segments = head[5], head[14:18], head[27 : 27 + head[26]]
        if flags & 2 and begun:  # a stream begins behind another recording (RFC 3533)
            break
        begun |= not flags & 2
        end = at + 27 + head[26] + sum(segments)
        if len(segments) < head[26] or end > data.size:
            raise Fault("is cut short: its last Ogg page is incomplete")
        open_streams.add(stream)
        if flags & 4:  # end of stream
            open_streams.discard(stream)
        at = end
    else:
        raise Fault(f"has more than {MAX_PAGES:,} Ogg pages, as no recording has that can be decoded")
    note = ["a recording in it stops before its end"] * bool(open_streams)
    return Link(((start, at),), end=at, notes=note) if at > start else None


_FLAC: Final = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")  # with the head of its first block
_COUNT: Final = (1 << 36) - 1  # of samples, in the last bits of these 26 bytes


def _flac(data: Content, at: int) -> Link | None:
    head = data.read_at(at, 26)
    if not _FLAC.match(head) or len(head) < 26:
        return None
    about = int.from_bytes(head[18:], "big")
    unknown = head[:18] + (about & ~_COUNT).to_bytes(8, "big")
    return Link(((at + 26, data.size),), unknown, promised=about & _COUNT)


_NOTED: Final = re.compile(rb"\xff.{3,38}(?:Xing|Info)...[\x01\x03\x05\x07\x09\x0b\x0d\x0f]", re.DOTALL)


def _mpeg(data: Content, at: int, pieces: tuple[tuple[int, int], ...] = (), link: Link | None = None) -> Link:
    """MPEG frames; how many samples there are is known where an encoder noted it, else guessed by the decoder."""
    link = Link(()) if link is None else link
    link.pieces, link.mpeg = pieces or ((at, data.size),), True
    link.counted = _NOTED.match(data.read_at(at, 64)) is not None
    return link
