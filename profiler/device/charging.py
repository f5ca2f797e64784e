"""Waits divided by what a device ran meanwhile: a copy that waits for arithmetic is not charged for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple


class Busy(NamedTuple):
    """A stream ran `stage` from start to end (host's clock). `key` tells one piece of work from another."""

    stream: int
    stage: int
    start_ns: int
    end_ns: int
    transfer: bool = False
    key: int = 0


class Wait(NamedTuple):
    """The host was blocked from start to end for `stream`, or for the whole device (None)."""

    stream: int | None
    start_ns: int
    end_ns: int


class Charge(NamedTuple):
    """A part of a wait and what ran in it; None where no stream ran anything."""

    busy: Busy | None
    start_ns: int
    end_ns: int


def charge(waits: Iterable[Wait], busy: Sequence[Busy]) -> list[Charge]:
    """Divide waits by what the device ran meanwhile; the charges of a wait tile it exactly.

    At each moment the stream waited for decides; where it ran nothing itself, what others ran counts, arithmetic before
    copies. The time grows with the pieces of work (a hundred in a block of 16 frames), not with their square.
    """
    order = sorted(busy, key=_start)
    starts = [_start(piece) for piece in order]
    # By when all pieces up to one have ended.
    reached = list(accumulate((piece.end_ns for piece in order), max))
    charges: list[Charge] = []
    for wait in waits:
        first = bisect_right(reached, wait.start_ns)
        last = bisect_left(starts, wait.end_ns)
        inside = [piece for piece in order[first:last] if piece.end_ns > wait.start_ns]
        _divide(wait, inside, charges)
    return charges


def _divide(wait: Wait, inside: Sequence[Busy], charges: list[Charge]) -> None:
    """Append the charges of a wait to `charges`; `inside`: what ran meanwhile, by its start."""
    cuts = {wait.start_ns, wait.end_ns}
    for piece in inside:
        cuts.add(max(piece.start_ns, wait.start_ns))
        cuts.add(min(piece.end_ns, wait.end_ns))
    running: list[Busy] = []
    begun = 0
    for start, end in pairwise(sorted(cuts)):
        while begun < len(inside) and inside[begun].start_ns <= start:
            running.append(inside[begun])
            begun += 1
        running = [piece for piece in running if piece.end_ns >= end]
        chosen = running[0] if running else None
        if len(running) > 1:
            chosen = min(running, key=lambda piece: _rank(piece, wait))
        last = charges[-1] if charges else None
        if last is not None and last.busy == chosen and last.end_ns == start:
            charges[-1] = Charge(chosen, last.start_ns, end)
        else:
            charges.append(Charge(chosen, start, end))


def _start(piece: Busy) -> int:
    return piece.start_ns


def _rank(busy: Busy, wait: Wait) -> tuple[bool, bool, int, int]:
    return busy.stream != wait.stream, busy.transfer, busy.start_ns, busy.stream
