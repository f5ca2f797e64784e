"""Reading protocol-buffer messages by hand: the wire format alone, without schemas or generated code.

After https://protobuf.dev/programming-guides/encoding: a message is a row of fields, each a number, a wire type
and a value. Who reads a message knows what its numbers mean. Nothing is copied: parts are views of the whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, PART, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10  # bytes, of 64 bits


class WireError(ValueError):
    """The bytes are no message."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its number, and its value as an unsigned integer or as a part of the message.

    Fixed-width numbers are parts of 4 or 8 bytes.
    """

    number: int
    value: int | memoryview

    @property
    def integer(self) -> int:
        """The value of a signed 64-bit or smaller integer."""
        if not isinstance(self.value, int):
            raise WireError(f"field {self.number} is no integer")
        return self.value - (1 << 64) if self.value >= 1 << 63 else self.value

    @property
    def part(self) -> memoryview:
        """The bytes of a message, string or fixed-width number."""
        if isinstance(self.value, int):
            raise WireError(f"field {self.number} is an integer")
        return self.value

    @property
    def text(self) -> str:
        """The value of a string; what is not UTF-8 is replaced."""
        return str(self.part, "utf-8", "replace")

    @property
    def float32(self) -> float:
        """The value of a single `float`."""
        if len(self.part) != 4:
            raise WireError(f"field {self.number} is no 32-bit number")
        return float(struct.unpack("<f", self.part)[0])

    def integers(self) -> list[int]:
        """Of a repeated integer: this one, or all that are packed in this field."""
        if isinstance(self.value, int):
            return [self.integer]
        found, at = [], 0
        while at < len(self.value):
            value, at = _varint(self.value, at)
            found.append(Field(self.number, value).integer)
        return found


def fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message in their order; WireError where it ends early or holds what does not exist."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield Field(number, value)
            continue
        if kind == PART:
            length, at = _varint(message, at)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"a field of the unknown kind {kind}")
        if length > len(message) - at:
            raise WireError(f"{length} bytes are announced where {len(message) - at} are left")
        yield Field(number, message[at : at + length])
        at += length


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """An integer in groups of seven bits, lowest first, and where the next thing begins."""
    value = 0
    for i, byte in enumerate(message[at : at + LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, at + i + 1
    raise WireError("an integer without an end")
