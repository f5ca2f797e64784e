"""The stream in which rows of a session travel: `MAGIC`, then frames. The receiver trusts nothing in it.

A frame is the number of bytes that follow (uint64, little-endian, at most `MAX_FRAME`), the length of its JSON
(uint32), the JSON, and the bytes of a BLOB. The JSON is an array of single values; the first one names the frame:

    hello   PROTOCOL, format version of the session, version of asrscope, session id: the first frame
    TABLE   a row: the columns as in docs/session-format.md, a BLOB last and outside the JSON. clock has its rowid
            first; block and sample go without their id, which each file gives itself
    log     position after it, and a line that the recording process has printed: its messages as JSON
    commit  state of the session. What came since the last commit becomes visible together. One comes every second
            at least; the last one has another state than "recording"

Rows refer to nothing that comes after their commit. A link that drops before a commit loses nothing: the next stream
begins at the `Position` that the receiver's file has.
"""

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from profiler.session.errors import Damaged, plain
from profiler.session.files import MAX_VALUE_BYTES
from profiler.session.format import rows, schema

MAGIC: Final = b"ASRSTAIL"
PROTOCOL: Final = 1

AS_HERE: Final = f"{PROTOCOL}.{schema.VERSION}"  # What both ends must have in common: protocol and format version

HEAD: Final = struct.Struct("<QI")
_LENGTH: Final = 4  # Bytes of the second length, which the first one counts

MAX_JSON: Final = 4 * rows.MAX_JSON
MAX_FRAME: Final = MAX_VALUE_BYTES + MAX_JSON

PIECE: Final = 1 << 20  # Bytes read at once: a frame takes no more memory than came of it

Value = int | float | str | None
_ROW: Final = msgspec.json.Decoder(list[Value])

Number = Annotated[int, Meta(ge=-1, lt=1 << 62)]
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
Owner = Annotated[int, Meta(ge=0, lt=rows.MAX_IDS)]


class Position(msgspec.Struct, forbid_unknown_fields=True):
    """What the receiver has: the newest number of each table, and the records of each lane and sampled quantity.

    The number is that of the row; of `marker`, `utterance` and `counter` it is the revision. `log`: bytes.
    """

    clock: Number = 0
    stage: Number = -1
    cost: Number = 0
    config: Number = 0
    calibration: Number = 0
    sample_name: Number = -1
    peaks: Number = 0
    utterance: Number = 0
    marker: Number = 0
    counter: Number = 0
    block: dict[Owner, Count] = {}
    sample: dict[Owner, Count] = {}
    log: Count = 0


class Dropped(Exception):
    """The stream ended before its last commit."""


def frame(values: Sequence[Value], blob: bytes | memoryview = b"") -> bytes:
    text = msgspec.json.encode(values)
    return HEAD.pack(_LENGTH + len(text) + len(blob), len(text)) + text + blob


def frames(stream: io.BufferedIOBase) -> Iterator[tuple[list[Value], bytes]]:
    """Give the frames of a stream: (values, BLOB). Dropped where it ends, Damaged where it cannot be one of ours."""
    magic = stream.read(len(MAGIC))
    if magic != MAGIC[: len(magic)]:
        line = magic + stream.readline(PIECE)
        raise Damaged(f"it sent other text before the session: {plain(line.decode('utf-8', 'replace').strip())}")
    if len(magic) < len(MAGIC):
        raise Dropped
    while True:
        length, json_length = HEAD.unpack(_exactly(stream, HEAD.size))
        if not _LENGTH <= length <= MAX_FRAME or json_length > min(length - _LENGTH, MAX_JSON):
            raise Damaged(f"it sent a frame of {length:,} bytes, {json_length:,} of them JSON")
        text = _exactly(stream, json_length)
        blob = _exactly(stream, length - _LENGTH - json_length)
        try:
            values = _ROW.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Damaged(f"it sent a frame that is no row ({plain(str(error))})") from None
        yield values, blob


def _exactly(stream: io.BufferedIOBase, size: int) -> bytes:
    pieces = []
    while size:
        piece = stream.read(min(size, PIECE))
        if not piece:
            raise Dropped
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
