"""A device's clock and the host's: pairs of readings, and the map between the two.

A device measures time by events on its streams, with its own origin and rate. While it is idle, an event can
be bracketed by two readings of the host clock; repeated pairs give offset and drift. Waits of the host
are divided by what the device ran meanwhile: a copy that waits for arithmetic is not charged for it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, Protocol

PAIR_ROUNDS: Final = 5  # Readings per clock pair, of which the one with the narrowest bracket counts
EVENTS_TIMED: Final = 64  # Events that are recorded in a row to learn what one costs the host: some 0.2 ms
MIN_BASE_NS: Final = 100_000_000  # Over a shorter time, assuming equal rates is more accurate than estimating the ratio

Event = Any  # What `record` of a device returns; opaque to everything else


class DeviceClock(Protocol):
    """A device's events. Times have any origin and need not run at the host's rate.

    `host_time`: they are the host's own (a processor in the device's place), and need no map. `blocking`: `record`
    waits for all that was given, as the device has no times of its own.
    """

    host_time: bool
    blocking: bool

    def record(self, stream: int) -> Event:
        """Enqueue a timed event behind all that was given to `stream`; returns at once, unless `blocking`."""

    def mark(self, stream: int) -> Event:
        """Enqueue an event that only orders, and has no time."""

    def is_complete(self, event: Event) -> bool:
        """Whether the event has happened."""

    def wait(self, event: Event) -> None:
        """Block the host until the event has happened."""

    def time_ns(self, event: Event) -> int:
        """When a timed event that has happened did so, on the device's clock."""

    def rebase(self, event: Event) -> None:
        """Times may be counted from `event`: nobody asks for the time of an earlier one any more."""

    def recycle(self, event: Event) -> None:
        """Nobody asks for this timed event any more."""


@dataclass(frozen=True, slots=True)
class ClockPair:
    """The same moment on both clocks, known to within ± `uncertainty_ns` of the host's."""

    host_ns: int
    device_ns: int
    uncertainty_ns: int


def measure_pair(device: DeviceClock, host: Callable[[], int], stream: int = 0, rounds: int = PAIR_ROUNDS) -> ClockPair:
    """Read both clocks as simultaneously as possible; the stream must be idle."""
    pairs = []
    for _ in range(rounds):
        before = host()
        event = device.record(stream)
        device.wait(event)
        after = host()
        pairs.append(ClockPair((before + after) // 2, device.time_ns(event), (after - before + 1) // 2))
        device.recycle(event)
    return min(pairs, key=lambda pair: pair.uncertainty_ns)


def ns_per_event(device: DeviceClock, host: Callable[[], int], stream: int = 0) -> float:
    """Measure what recording a timed event takes the host, ns; the stream must be idle."""
    events = [device.record(stream)]
    start = host()
    events += [device.record(stream) for _ in range(EVENTS_TIMED)]
    spent = host() - start
    device.wait(events[-1])
    for event in events:
        device.recycle(event)
    return spent / EVENTS_TIMED


class ClockMap:
    """Device time to host time: linear between clock pairs, by the long-run rate beyond them."""

    def __init__(self) -> None:
        self.pairs: list[ClockPair] = []

    def add(self, pair: ClockPair) -> None:
        """Add a later pair; one that is not after the last on both clocks is ignored."""
        last = self.pairs[-1] if self.pairs else None
        if last is None or (pair.device_ns > last.device_ns and pair.host_ns > last.host_ns):
            self.pairs.append(pair)

    @property
    def rate(self) -> float:
        """Host nanoseconds per device nanosecond, 1.0 until it can be estimated."""
        first, last = self.pairs[0], self.pairs[-1]
        if last.device_ns - first.device_ns < MIN_BASE_NS:
            return 1.0
        return (last.host_ns - first.host_ns) / (last.device_ns - first.device_ns)

    def to_host(self, device_ns: int) -> int:
        """Return the host's time of a device time; ValueError before the first pair."""
        pairs = self.pairs
        if not pairs:
            raise ValueError("no clock pair has been measured, so no device time can be mapped")
        after = self._after(device_ns)
        if 0 < after < len(pairs):
            low, high = pairs[after - 1], pairs[after]
            rate = (high.host_ns - low.host_ns) / (high.device_ns - low.device_ns)
        else:
            low, rate = pairs[max(after - 1, 0)], self.rate
        return low.host_ns + round((device_ns - low.device_ns) * rate)

    def forget_before(self, device_ns: int) -> None:
        del self.pairs[1 : max(self._after(device_ns) - 1, 1)]

    def _after(self, device_ns: int) -> int:
        return bisect_right(self.pairs, device_ns, key=lambda pair: pair.device_ns)


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
    order = sorted(busy, key=lambda piece: piece.start_ns)
    # By when all pieces up to one have ended.
    reached = list(accumulate((piece.end_ns for piece in order), max))
    charges: list[Charge] = []
    for wait in waits:
        first = bisect_right(reached, wait.start_ns)
        last = bisect_left(order, wait.end_ns, key=lambda piece: piece.start_ns)
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
        ranks = {(p.stream != wait.stream, p.transfer, p.start_ns, p.stream): p for p in reversed(running)}
        chosen = ranks[min(ranks)] if ranks else None
        last = charges[-1] if charges else None
        if last is not None and last.busy == chosen and last.end_ns == start:
            charges[-1] = Charge(chosen, last.start_ns, end)
        else:
            charges.append(Charge(chosen, start, end))
