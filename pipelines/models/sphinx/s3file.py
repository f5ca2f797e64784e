"""The container of SphinxTrain's parameter files (`s3`): text header, byte-order word, checksum.

`s3\\n`, lines `key value` up to `endhdr`, the word 0x11223344 in the writer's byte order, the
payload in 32-bit words, and, when the header has `chksum0`, the checksum of the payload.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import Cursor, read_file
from profiler.arrays import Array

MAGIC = b"s3\n"
BYTE_ORDER = 0x11223344
END_OF_HEADER = b"endhdr"
MAX_HEADER_BYTES = 65_536
AT_ONCE = 1 << 16  # words that are Python's integers at a time, of 32 bytes each
CHECKSUM_ROTATION = 20  # bits, SphinxBase's bio format


def checksum(words: Array) -> int:
    """Rolling 32-bit sum of uint32 `words`: rotate left by 20 bits, add the word."""
    total = 0
    back = 32 - CHECKSUM_ROTATION
    for first in range(0, len(words), AT_ONCE):
        for word in words[first : first + AT_ONCE].tolist():
            total = ((total << CHECKSUM_ROTATION | total >> back) + word) & 0xFFFFFFFF
    return total


def open_payload(path: Path, what: str) -> Cursor:
    """A cursor over the payload of `path` with the checksum verified and cut off.

    `what` is the name of the contents for the message about a foreign file.
    """
    data = read_file(path)
    if not data.startswith(MAGIC):
        raise ModelError(f"{path} is not a {what} file: it does not begin with the line s3")
    at = len(MAGIC)
    has_checksum = False
    while True:
        end = data.find(b"\n", at, MAX_HEADER_BYTES)
        if end < 0:
            raise ModelError(f"{path} is cut short or corrupt: its header has no line endhdr")
        line = data[at:end].strip()
        at = end + 1
        if line == END_OF_HEADER:
            break
        has_checksum = has_checksum or line.split()[:1] == [b"chksum0"]
    word = data[at : at + 4]
    orders = {BYTE_ORDER.to_bytes(4, "little"): False, BYTE_ORDER.to_bytes(4, "big"): True}
    if word not in orders:
        raise ModelError(f"{path}: the byte-order word after the header is {word.hex() or 'gone'}")
    cursor = Cursor(data, path, big_endian=orders[word])
    cursor.at = at + 4
    if cursor.left % 4:
        raise ModelError(f"{path} is cut short: its payload is not a whole number of 32-bit words")
    if has_checksum:
        if not cursor.left:
            raise ModelError(f"{path} is cut short: the checksum is missing")
        words = np.frombuffer(data, cursor.order + "u4", offset=cursor.at)
        found = checksum(words[:-1])
        if found != int(words[-1]):
            raise ModelError(
                f"{path}: the checksum is {int(words[-1]):08x}, the contents give {found:08x}; "
                "the file is cut short or corrupt"
            )
        cursor.end -= 4
    return cursor
