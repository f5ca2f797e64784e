"""The fields of a line of a dictionary or an ARPA file."""

from __future__ import annotations

_BLANKS = " \t\r\n\f\v"
_WIDE = {ord(blank): " " for blank in _BLANKS}


def fields(line: str) -> list[str]:
    """`line` cut at ASCII blanks alone, as pocketsphinx and KenLM do; any other is part of a word."""
    if line.isascii():
        return line.split()
    return [field for field in line.translate(_WIDE).split(" ") if field]
