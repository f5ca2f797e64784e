"""Spans of one lane as a proper hierarchy: the tile first, its leaves inside."""

from collections.abc import Iterator

import numpy as np

PIECE = 1 << 15


def in_order(spans: np.ndarray) -> np.ndarray:
    """Return `spans` by start; of those that start together the longest (the enclosing one) first.

    Spans that overlap without nesting, which no sound recording has, are shortened to fit: a viewer
    would otherwise drop them or put them on another track.
    """
    order = np.lexsort((-spans["duration_ns"], spans["start_ns"]))
    ordered = spans[order].copy()
    ends: list[int] = []
    starts = ordered["start_ns"]
    durations = ordered["duration_ns"]
    for i, (start, duration) in enumerate(zip(starts.tolist(), durations.tolist(), strict=True)):
        while ends and ends[-1] <= start:
            ends.pop()
        end = start + duration
        if ends and end > ends[-1]:
            end = ends[-1]
            durations[i] = end - start
        ends.append(end)
    return ordered


def pieces(spans: np.ndarray) -> Iterator[np.ndarray]:
    """Give `spans` in pieces small enough to turn into Python numbers."""
    for begin in range(0, len(spans), PIECE):
        yield spans[begin : begin + PIECE]
