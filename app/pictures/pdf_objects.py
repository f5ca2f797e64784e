"""The objects of a PDF in an order that its content alone decides.

Qt embeds fonts in the order of a hash table whose keys are random; object numbers, and the tags in the names of
embedded fonts, follow from it. Here objects are numbered as they are met from the trailer on (ISO 32000-1, 7.3.10,
7.5), and the tags by their first use.
"""

from __future__ import annotations

import re
from typing import Final

_START: Final = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*$")
_ENTRY: Final = re.compile(rb"(\d{10}) \d{5} n")
_HEAD: Final = re.compile(rb"(\d+) 0 obj\b")
_TAG: Final = re.compile(rb"/Q([A-Z]{5})\+")

_REFERENCE: Final = re.compile(
    rb"\((?:\\.|[^\\()])*\)|<[0-9A-Fa-f\s]*>|(?<![\d.])(?P<number>\d+) 0 R\b", re.DOTALL
)
"""A string, which may look like anything, or a reference to an object."""


def in_order(file: bytes) -> bytes:
    """Return the file with its objects renumbered; one of an unknown form is returned as it is."""
    start = _START.search(file)
    if start is None:
        return file
    table, _, trailer = file[int(start[1]) : start.start()].partition(b"trailer")
    trailer = b"trailer" + trailer
    places = [int(found[1]) for found in _ENTRY.finditer(table)]
    objects = _objects(file, places, int(start[1]))
    order: list[int] = []
    for number in _references(trailer):
        _visit(number, objects, order)
    numbers = {old: new for new, old in enumerate(order, start=1)}
    parts = [file[: min(places)]]
    at = len(parts[0])
    places = []
    tags: dict[bytes, bytes] = {}
    for old in order:
        head, body = _split(objects[old])
        head = _TAG.sub(
            lambda found: b"/Q" + _tag(found[1], tags) + b"+", _renumbered(head, numbers)
        )
        places.append(at)
        parts.append(b"%d 0 obj%s%s" % (numbers[old], head, body))
        at += len(parts[-1])
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % (len(order) + 1))
    parts += [b"%010d 00000 n \n" % place for place in places]
    size = re.sub(rb"/Size \d+", b"/Size %d" % (len(order) + 1), _renumbered(trailer, numbers))
    return b"".join([*parts, size, b"startxref\n%d\n%%%%EOF\n" % at])


def _objects(file: bytes, places: list[int], end: int) -> dict[int, bytes]:
    """What follows `N 0 obj` of each object, up to the next one; they begin at `places` and end at `end`."""
    found = {}
    starts = sorted(places)
    for place, following in zip(starts, [*starts[1:], end], strict=True):
        head = _HEAD.match(file, place)
        if head is not None:
            found[int(head[1])] = file[head.end() : following]
    return found


def _split(data: bytes) -> tuple[bytes, bytes]:
    """An object's dictionary and the stream after it."""
    head, stream, body = data.partition(b"stream\n")
    return head, stream + body


def _references(head: bytes) -> list[int]:
    return [int(found["number"]) for found in _REFERENCE.finditer(head) if found["number"]]


def _visit(number: int, objects: dict[int, bytes], order: list[int]) -> None:
    waiting = [number]
    while waiting:
        here = waiting.pop()
        if here in objects and here not in order:
            order.append(here)
            waiting += reversed(_references(_split(objects[here])[0]))


def _renumbered(head: bytes, numbers: dict[int, int]) -> bytes:
    def renamed(found: re.Match[bytes]) -> bytes:
        if found["number"] is None or int(found["number"]) not in numbers:
            return found[0]
        return b"%d 0 R" % numbers[int(found["number"])]

    return _REFERENCE.sub(renamed, head)


def _tag(old: bytes, tags: dict[bytes, bytes]) -> bytes:
    """Five letters for a font, by the order of first use."""
    if old not in tags:
        number = len(tags)
        tags[old] = bytes(ord("A") + number // 26**place % 26 for place in range(5))
    return tags[old]
