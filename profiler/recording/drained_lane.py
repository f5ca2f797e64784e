"""A lane without a consumer thread: its producer takes the spans out as the ring fills.

For measurements that are kept in no session. Taking out costs some 20 ns per span, between two spans.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from profiler.arrays import Array
from profiler.clock import now_ns
from profiler.recording.lanes import RING_RECORDS, Lane
from profiler.recording.layout import SPAN, Lent

PARTS: Final = 4  # A quarter of the ring is taken out at once, and found free by a kernel at least


class DrainedLane(Lane):
    """Holds any number of spans until `drain`."""

    __slots__ = ("_kept", "_part")

    def __init__(
        self,
        lane_id: int,
        name: str,
        kind: str,
        decode: bool,
        capacity: int = RING_RECORDS,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        super().__init__(lane_id, name, kind, decode, capacity, clock)
        self._part = -(-capacity // PARTS)
        self._kept: list[Array] = []

    def keep(self, spans: Array) -> None:
        self._kept.append(spans)

    def drain(self) -> Array:
        """All spans since the last call, dtype SPAN; what a subclass made of them is no longer here."""
        while self.waiting:
            self._pass_on()
        kept, self._kept = self._kept, []
        return np.concatenate(kept) if kept else np.empty(0, SPAN)

    def lend(self) -> Lent:
        """As `Lane.lend`, with a quarter of the ring free at least."""
        if self._slots - 1 - self.waiting < self._part:
            self._pass_on()
        return super().lend()

    def _room(self) -> int:
        if self.waiting >= self._slots - 1:
            self._pass_on()
        return super()._room()

    def _pass_on(self) -> None:
        self.keep(np.frombuffer(self.take(self._part), SPAN))
