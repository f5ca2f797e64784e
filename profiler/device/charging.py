"""Waits divided by what a device ran meanwhile: a copy that waits for arithmetic is not charged for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Busy:
    """A stream ran `stage` from start to end (host's clock). `key` tells one piece of work from another."""

    stream: int
    stage: int
    start_ns: int
    end_ns: int
    transfer: bool = False
    key: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """The host was blocked from start to end for `stream`, or for the whole device (None)."""

    stream: int | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Charge:
    """A part of a wait and what ran in it; None where no stream ran anything."""

    busy: Busy | None
    start_ns: int
    end_ns: int


def charge(waits: Iterable[Wait], busy: Sequence[Busy]) -> list[Charge]:
    """Divide waits by what the device ran meanwhile; the charges of a wait tile it exactly.

    At each moment the stream waited for decides; where it ran nothing itself (it waits for another
    stream), what others ran counts, arithmetic before copies.
    """
    charges: list[Charge] = []
    for wait in waits:
        inside = [b for b in busy if b.start_ns < wait.end_ns and b.end_ns > wait.start_ns]
        cuts = {wait.start_ns, wait.end_ns}
        for piece in inside:
            cuts |= {max(piece.start_ns, wait.start_ns), min(piece.end_ns, wait.end_ns)}
        edges = sorted(cuts)
        for start, end in itertools.pairwise(edges):
            running = [b for b in inside if b.start_ns <= start and b.end_ns >= end]
            chosen = min(running, key=lambda b: _rank(b, wait), default=None)
            last = charges[-1] if charges else None
            if last is not None and last.busy == chosen and last.end_ns == start:
                charges[-1] = Charge(chosen, last.start_ns, end)
            else:
                charges.append(Charge(chosen, start, end))
    return charges


def _rank(busy: Busy, wait: Wait) -> tuple[bool, bool, int, int]:
    return busy.stream != wait.stream, busy.transfer, busy.start_ns, busy.stream
