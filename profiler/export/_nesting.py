"""Spans of one lane as a proper hierarchy: the tile first, its leaves inside."""

from collections.abc import Iterator

import numpy as np

from profiler.arrays import Array

PIECE = 1 << 15
"""Spans copied and turned into Python numbers at once: an export of any length takes the same memory,
but for the order (8 bytes per span)."""


def in_order(spans: Array, chosen: Array | None = None) -> Iterator[Array]:
    """Give the spans `chosen` (a mask; None: all) by start, in pieces; of those that start together the longest first.

    Spans that overlap without nesting, which no sound recording has, are shortened to fit: a viewer
    would otherwise drop them or put them on another track.
    """
    ends: list[int] = []
    order = _order(spans, chosen)
    for begin in range(0, len(order), PIECE):
        piece = spans[order[begin : begin + PIECE]]
        durations = piece["duration_ns"]
        pairs = zip(piece["start_ns"].tolist(), durations.tolist(), strict=True)
        for i, (start, duration) in enumerate(pairs):
            while ends and ends[-1] <= start:
                ends.pop()
            end = start + duration
            if ends and end > ends[-1]:
                end = ends[-1]
                durations[i] = end - start
            # A span without length encloses nothing.
            if end > start:
                ends.append(end)
        yield piece


def _order(spans: Array, chosen: Array | None) -> Array:
    """Return the positions of the spans `chosen`, the enclosing ones first."""
    if chosen is None or chosen.all():
        return np.lexsort((-spans["duration_ns"], spans["start_ns"]))
    places = np.flatnonzero(chosen)
    return places[np.lexsort((-spans["duration_ns"][places], spans["start_ns"][places]))]
