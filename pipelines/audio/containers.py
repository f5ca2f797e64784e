"""The structure of a sound file: one recording or several joined ones, complete or cut.

libsndfile reads a truncated file without complaint, and only the first of joined files. So the container is walked here
before decoding. Each recording becomes a `Link`, which is decoded as a file of its own; notes say what is not decoded.
(A cut FLAC makes the decoder fail.) A walk reads a few bytes at each place and takes a bounded number of steps,
whatever the file says. Nothing is mapped into memory: a mapped file that shrinks kills the process.

Formats: RIFF/RF64 (EBU Tech 3306), Wave64, AIFF, CAF, AU, NIST SPHERE, Ogg (RFC 3533), FLAC (RFC 9639), MPEG audio
(`pipelines.audio.mpeg`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import BinaryIO, Final, NamedTuple

from pipelines.audio import foreign, mpeg
from pipelines.audio.links import Content, Contents, Fault, Link

UNKNOWN_SIZE = 0x7FFF_F000
"""Chunk sizes from here on are placeholders of programs that write into a pipe."""
MAX_CHUNKS = 10_000
"""Maximum chunks before the sound; editors that write a chunk for every marker write a few hundred."""
MAX_PAGES = 5_000_000
"""Ogg pages: three hours of the shortest Opus packets (2.5 ms), each on its own page, are 4.3 million."""
MAX_LINKS = 12_000
"""Recordings joined in one file: three hours of pieces of a second are 10,800."""
TOLERATED = 512
"""Bytes by which a header may promise too much: programs count headers and chunks in (44 bytes, 28, 16 …)."""
LEAST_UNREAD = 1024
"""Least number of bytes after the sound that is reported; fewer are 30 ms of sound at most, or padding."""
SCAN = 1 << 20  # bytes searched at once
MOST_SCANNED = 4 << 30
"""Bytes that are searched for another FLAC stream: as many take seconds, and two hours of a CD 1.3 GB at most."""

_WAV_CHUNKS: Final = frozenset(
    b"fmt |data|fact|LIST|list|bext|iXML|axml|cue |plst|smpl|inst|acid|PEAK|peak|levl|cart|JUNK|junk|PAD |FLLR|"
    b"FAKE|id3 |ID3 |_PMX|umid|minf|elm1|elmo|regn|afsp|DISP|wavl|slnt|labl|note|ltxt|AFAn|SAUR|ResU|chna|ds64".split(
        b"|"
    )
)
"""Names of WAV's chunks, to find the next one behind a chunk of odd length that was not padded."""


class _Form(NamedTuple):
    """How the chunks of a container are written."""

    name: str
    head: int
    """Bytes before the first chunk."""
    sound: bytes
    """Name of the chunk that holds the sound."""
    size: struct.Struct
    size_at: int
    """Place of the size in a chunk's head."""
    chunk_head: int
    counts_head: bool = False
    align: int = 2


_WAV = _Form("WAV", 12, b"data", struct.Struct("<I"), 4, 8)
_FORMS: Final = {
    b"RIFF": _WAV,
    b"RF64": _WAV,
    b"BW64": _WAV,
    b"RIFX": _WAV._replace(size=struct.Struct(">I")),
    b"FORM": _Form("AIFF", 12, b"SSND", struct.Struct(">I"), 4, 8),
    b"riff": _Form("Wave64", 40, b"data", struct.Struct("<Q"), 16, 24, True, 8),
    b"caff": _Form("CAF", 8, b"data", struct.Struct(">Q"), 4, 12, align=1),
}


def contents(file: BinaryIO) -> Contents:
    """The recordings in a sound file, and notes on it; Fault says what is wrong with the file.

    Formats that are not known here, and structures that make no sense, are left to the decoder.
    """
    data = Content(file)
    result = Contents()
    at = mpeg.behind_tags(data, 0)
    while at < data.size:
        read = _reader(data, at, first=not result.links)
        if read is None:
            break
        begin, at = at, mpeg.behind_tags(data, read(data, at, result))
        if at <= begin:  # lengths that make no sense
            break
        if len(result.links) > MAX_LINKS:
            raise Fault(f"has more than {MAX_LINKS:,} recordings joined in it")
    if not result.links:
        if what := foreign.format_of(data):
            raise Fault(what)
        return Contents([Link(((0, data.size),), mpeg=True)])
    if len(result.links) > 1:
        result.notes.insert(0, f"{len(result.links)} recordings joined in one file")
    unread = data.size - at
    if unread >= LEAST_UNREAD:
        result.notes.append(_not_read(unread, result.bytes_per_s))
    return result


def read_headerless(file: BinaryIO) -> Contents:
    """Read a file without a header as one recording."""
    return Contents([Link(((0, Content(file).size),))])


def has_header(file: BinaryIO) -> bool:
    """Whether the file begins as one of the formats known here."""
    return _reader(Content(file), 0, first=False) is not None


Reader = Callable[[Content, int, Contents], int]
"""Adds the recording at a place to the contents and returns where it ends."""


def _reader(data: Content, at: int, *, first: bool) -> Reader | None:
    """Return the function that reads the recording at this offset of the file."""
    head = data.read_at(at, 16)
    kind, inner = head[:4], head[8:12]
    if kind in (b"RIFF", b"RF64", b"BW64", b"RIFX"):
        return _chunks if inner == b"WAVE" else None
    if kind == b"FORM":
        return _chunks if inner in (b"AIFF", b"AIFC") else None
    if kind in (b"riff", b"caff"):
        return _chunks
    if kind == b"OggS":
        return _ogg
    if kind == b"fLaC":
        return _flac
    if kind in (b".snd", b"dns."):
        return _au
    if head[:8] == foreign.NIST:
        return _nist
    if mpeg.begins(data, at, least=1 if first else 3):
        return mpeg.recordings
    return None


def _not_read(n: int, bytes_per_s: int) -> str:
    how_long = f" ({n / bytes_per_s:.2f} s)" if bytes_per_s else ""
    return f"{n:,} bytes{how_long} behind its sound are not read"


def _chunks(data: Content, at: int, result: Contents) -> int:
    form = _FORMS[data.read_at(at, 4)]
    first, start = not result.links, at
    size_of_long_data = None
    heads: dict[bytes, bytes] = {}  # `fmt ` and `fact`, to write the header again
    unpadded = False
    at += form.head
    for _ in range(MAX_CHUNKS):
        head = data.read_at(at, max(24, form.chunk_head))
        if len(head) < form.chunk_head:
            return _as_it_is(data, start, result)
        kind = head[:4]
        size: int = form.size.unpack_from(head, form.size_at)[0]
        if form.counts_head:
            size -= form.chunk_head
        if size < 0:
            return _as_it_is(data, start, result)
        if kind == b"ds64" and len(head) == 24:
            size_of_long_data = struct.unpack_from("<Q", head, 16)[0]
        begin = at + form.chunk_head
        if kind == form.sound:
            break
        if form.name == "WAV" and kind in (b"fmt ", b"fact") and size <= 4096:
            heads[kind] = data.read_at(begin, size)
        at = begin + -(-size // form.align) * form.align
        if form.name == "WAV" and size & 1 and _unpadded(data, at):
            unpadded, at = True, at - 1
    else:
        raise Fault(f"has more than {MAX_CHUNKS:,} chunks before its sound, as no {form.name} recording has")
    is_mpeg = False
    if form.name == "WAV":
        result.bytes_per_s, is_mpeg = _codec(heads.get(b"fmt ", b""), form)
    there = data.size - begin
    promised = size
    if size == 0xFFFF_FFFF and size_of_long_data is not None:
        promised = size_of_long_data
    elif UNKNOWN_SIZE <= size <= 0xFFFF_FFFF or size >= 1 << 62:
        return _as_it_is(data, start, result, is_mpeg)
    if promised == 0 and there and not _is_chunk(data, begin, form):
        _zero(form.name, there, result)
        if form.name == "WAV":
            result.links.append(_rewritten(data, begin, there, form, heads))
        else:
            before = data.read_at(start, at - start + form.size_at)
            said = there + form.chunk_head * form.counts_head
            result.links.append(Link(((begin, data.size),), before + form.size.pack(said)))
        return data.size
    _check_length(form.name, promised, there, result)
    sound = min(promised, there)
    end = begin + -(-sound // form.align) * form.align
    for _ in range(MAX_CHUNKS):
        if not _is_chunk(data, end, form):
            break
        size = form.size.unpack_from(data.read_at(end, form.chunk_head), form.size_at)[0]
        size += 0 if form.counts_head else form.chunk_head
        end += -(-size // form.align) * form.align
    end = min(end, data.size)
    inner = data.up_to(begin + sound)
    if is_mpeg and mpeg.begins(inner, begin, least=1):
        mpeg.recordings(inner, begin, result)
    elif unpadded:
        result.links.append(_rewritten(data, begin, sound, form, heads))
    elif first and end >= data.size - LEAST_UNREAD:
        return _as_it_is(data, start, result, is_mpeg)
    else:
        result.links.append(Link(((start, end),), mpeg=is_mpeg))
    return end


def _as_it_is(data: Content, start: int, result: Contents, is_mpeg: bool = False) -> int:
    """Pass everything from `start` on to the decoder."""
    result.links.append(Link(((start, data.size),), mpeg=is_mpeg))
    return data.size


def _zero(name: str, there: int, result: Contents) -> None:
    """Add a note on a header that says 0; raise Fault for those that also state the number of samples elsewhere."""
    if name in ("AIFF", "NIST"):
        raise Fault(
            f"has an {name} header that says 0 bytes of sound, though {there:,} bytes lie behind it; repair the header"
        )
    result.notes.append(f"its header says 0 bytes of sound; the {there:,} bytes behind it are read")


def _unpadded(data: Content, at: int) -> bool:
    """Whether the chunk behind one of odd length begins a byte before `at`, where it should."""
    near = data.read_at(at - 1, 5)
    return near[:4] in _WAV_CHUNKS and near[1:] not in _WAV_CHUNKS


def _is_chunk(data: Content, at: int, form: _Form) -> bool:
    """Whether a chunk lies at a place, as far as its name and length tell."""
    head = data.read_at(at, form.chunk_head)
    if len(head) < form.chunk_head or head[:4] in _FORMS:
        return False
    size = form.size.unpack_from(head, form.size_at)[0]
    read_headerless = at + size + (0 if form.counts_head else form.chunk_head)
    name = head[:4]
    return all(0x20 <= c < 0x7F for c in name) and at < read_headerless <= data.size + 1


def _check_length(name: str, promised: int, there: int, result: Contents) -> None:
    """Raise Fault if the header promises more sound than there is; add a note if that is hardly any."""
    missing = promised - there
    if missing <= 0:
        return
    if missing > TOLERATED or there <= 0:
        raise Fault(
            f"is cut short: its {name} header promises {promised} bytes of sound, but only {max(there, 0)} are there"
        )
    per_s = result.bytes_per_s
    how_long = f" ({1000 * missing / per_s:.1f} ms)" if per_s else ""
    result.notes.append(f"its header promises {missing} bytes{how_long} more sound than there are")


def _codec(fmt: bytes, form: _Form) -> tuple[int, bool]:
    """Bytes of sound per second of a WAV, and whether they are MPEG frames; Fault for a codec that is not read."""
    if len(fmt) < 16:
        return 0, False
    order = form.size.format[0]
    tag, _, _, per_s = struct.unpack_from(f"{order}HHII", fmt)
    if tag == 0xFFFE and len(fmt) >= 26:
        (tag,) = struct.unpack_from(f"{order}H", fmt, 24)
    if what := foreign.codec_of_wav(tag):
        raise Fault(what)
    return int(per_s), tag == foreign.MP3_IN_WAV


def _rewritten(data: Content, begin: int, n: int, form: _Form, heads: dict[bytes, bytes]) -> Link:
    """The `n` bytes of sound from `begin` on behind a WAV header that says so."""
    order = form.size.format[0]
    body = b"WAVE"
    for kind in (b"fmt ", b"fact"):
        if kind in heads:
            chunk = heads[kind]
            body += kind + struct.pack(f"{order}I", len(chunk)) + chunk + b"\0" * (len(chunk) & 1)
    long = 0xFFFF_FFFF
    body += b"data" + struct.pack(f"{order}I", min(n, long))
    name = b"RIFF" if order == "<" else b"RIFX"
    head = name + struct.pack(f"{order}I", min(len(body) + n, long)) + body
    return Link(((begin, begin + n),), head)


def _au(data: Content, at: int, result: Contents) -> int:
    head = data.read_at(at, 24)
    if len(head) < 24:
        return _as_it_is(data, at, result)
    order = ">" if head[:4] == b".snd" else "<"
    begin, size = struct.unpack_from(f"{order}II", head, 4)
    if size >= UNKNOWN_SIZE:
        return _as_it_is(data, at, result)
    there = data.size - at - begin
    if size == 0 and there > 0:
        _zero("AU", there, result)
        unknown = head[:8] + b"\xff" * 4 + head[12:]
        result.links.append(Link(((at + 24, data.size),), unknown))
        return data.size
    _check_length("AU", size, there, result)
    return _up_to(data, at, at + begin + size, result)


def _up_to(data: Content, at: int, end: int, result: Contents) -> int:
    end = min(end, data.size)
    result.links.append(Link(((at, end),)))
    return end


def _nist(data: Content, at: int, result: Contents) -> int:
    head = data.read_at(at, 1 << 14)
    if what := foreign.codec_of_nist(head):
        raise Fault(what)
    fields = dict(re.findall(rb"(\w+) -i (\d{1,18})", head.partition(b"end_head")[0]))
    try:
        begin = max(int(head[8:16]), 0)
        size = int(fields[b"sample_count"]) * int(fields[b"sample_n_bytes"])
        size *= int(fields[b"channel_count"])
    except (ValueError, KeyError):
        return _as_it_is(data, at, result)
    there = data.size - at - begin
    if size == 0 and there > 0:
        _zero("NIST", there, result)
    _check_length("NIST", size, there, result)
    return _up_to(data, at, at + begin + size, result)


def _ogg(data: Content, at: int, result: Contents) -> int:
    start, begun = at, False
    open_streams: set[bytes] = set()
    while True:
        head = data.read_at(at, 27 + 255)
        if len(head) < 27 or head[:4] != b"OggS":
            if open_streams:
                raise Fault("is cut short: it stops before the Ogg page that marks its end")
            break
        flags, stream, n_segments = head[5], head[14:18], head[26]
        if flags & 2:  # a stream begins
            if begun:  # RFC 3533: behind another recording
                break
        else:
            begun = True
        segments = head[27 : 27 + n_segments]
        end = at + 27 + n_segments + sum(segments)
        if len(segments) < n_segments or end > data.size:
            raise Fault("is cut short: its last Ogg page is incomplete")
        open_streams.add(stream)
        if flags & 4:  # end of stream
            open_streams.discard(stream)
        at = end
        result.steps += 1
        if result.steps > MAX_PAGES:
            raise Fault(f"has more than {MAX_PAGES:,} Ogg pages, as no recording has that can be decoded")
    if at == start:
        return _as_it_is(data, start, result)
    result.links.append(Link(((start, at),)))
    if open_streams:
        result.notes.append(f"recording {len(result.links)} in it stops before its end")
    return at


def _flac(data: Content, at: int, result: Contents) -> int:
    """Add a FLAC stream, which does not state its length in bytes: it ends where another begins, if any does."""
    start, last = at, False
    at += 4
    for _ in range(MAX_CHUNKS):
        block = data.read_at(at, 4)
        if last or len(block) < 4:
            break
        last = bool(block[0] & 0x80)
        at += 4 + int.from_bytes(block[1:4], "big")
    end = data.size
    mark = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")  # with the head of its first block
    furthest = min(end, at + _most_of_flac(data.read_at(start + 18, 8)))
    while at < furthest:
        piece = data.read_at(at, SCAN + 7)
        if other := mark.search(piece):
            end = at + other.start()
            break
        at += SCAN
    result.links.append(Link(((start, end),)))
    return end


def _most_of_flac(about: bytes) -> int:
    """Bytes that the frames of a FLAC stream take at most, by its rate, channels, bits and number of samples."""
    word = int.from_bytes(about, "big")
    samples, bits, channels = word & ((1 << 36) - 1), (word >> 36 & 31) + 1, (word >> 41 & 7) + 1
    return min(samples * channels * bits // 4 + SCAN, MOST_SCANNED) if samples else MOST_SCANNED
