"""A device's clock and the host's: pairs of readings, and the map between the two.

A device measures time by events on its streams, with its own origin and rate. While it is idle, an event can
be bracketed by two readings of the host clock; repeated pairs give offset and drift.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

PAIR_ROUNDS: Final = 5
"""Readings per clock pair, of which the one with the narrowest bracket counts."""

MIN_BASE_NS: Final = 100_000_000
"""Over a shorter time, assuming equal rates is more accurate than estimating the ratio."""


Event = Any
"""What `record` of a device returns; opaque to everything else."""


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
    best: ClockPair | None = None
    for _ in range(rounds):
        before = host()
        event = device.record(stream)
        device.wait(event)
        after = host()
        uncertainty = (after - before + 1) // 2
        if best is None or uncertainty < best.uncertainty_ns:
            best = ClockPair((before + after) // 2, device.time_ns(event), uncertainty)
        device.recycle(event)
    assert best is not None
    return best


class ClockMap:
    """Device time to host time: linear between clock pairs, by the long-run rate beyond them."""

    def __init__(self) -> None:
        self.pairs: list[ClockPair] = []
        self._device: list[int] = []

    def add(self, pair: ClockPair) -> None:
        """Add a later pair; one that is not after the last on both clocks is ignored."""
        if self.pairs:
            last = self.pairs[-1]
            if pair.device_ns <= last.device_ns or pair.host_ns <= last.host_ns:
                return
        self.pairs.append(pair)
        self._device.append(pair.device_ns)

    @property
    def rate(self) -> float:
        """Host nanoseconds per device nanosecond, 1.0 until it can be estimated."""
        if len(self.pairs) < 2:
            return 1.0
        first, last = self.pairs[0], self.pairs[-1]
        if last.device_ns - first.device_ns < MIN_BASE_NS:
            return 1.0
        return (last.host_ns - first.host_ns) / (last.device_ns - first.device_ns)

    @property
    def uncertainty_ns(self) -> int:
        return max(pair.uncertainty_ns for pair in self._known())

    def to_host(self, device_ns: int) -> int:
        """Return the host's time of a device time; ValueError before the first pair."""
        pairs = self._known()
        after = bisect_right(self._device, device_ns)
        if 0 < after < len(pairs):
            low, high = pairs[after - 1], pairs[after]
            rate = (high.host_ns - low.host_ns) / (high.device_ns - low.device_ns)
        else:
            low, rate = pairs[max(after - 1, 0)], self.rate
        return low.host_ns + round((device_ns - low.device_ns) * rate)

    def forget_before(self, device_ns: int) -> None:
        keep = max(bisect_right(self._device, device_ns) - 1, 1)
        if keep > 1:
            del self.pairs[1:keep], self._device[1:keep]

    def _known(self) -> list[ClockPair]:
        if not self.pairs:
            raise ValueError("no clock pair has been measured, so no device time can be mapped")
        return self.pairs
