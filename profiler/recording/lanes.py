"""Lanes: where a thread's spans go, without a lock and in less than a microsecond apiece.

A lane is a ring with one producer (the thread that owns the lane) and one consumer (the session writer). `put` and
`lap` record from Python; `lend` hands the ring to a compiled kernel, which records through `kernel_spans.put`
until `settle` takes it back. A full ring drops the span and counts it. The consumer fills in what the lane knows: its
number, the configuration epoch (kept as the record number from which it holds) and durations from two times.

Why no lock is needed. `_at` is written by the producer alone, `_taken` by the consumer alone, and each reads the
other's once per decision. The producer moves `_at` after the record's bytes are there; the consumer copies only records
before the `_at` it has read and moves `_taken` after the copy; the producer writes only records not before the `_taken`
it has read, and one slot stays free so that full and empty differ. All four are Python loads and stores under the
interpreter lock, whose hand-over orders memory between threads. A kernel runs without that lock, but writes only slots
that were free when it was lent the ring, and `settle` makes them visible under the lock again. (It does not hold for a
free-threaded interpreter.)
"""

import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from profiler.arrays import Array
from profiler.clock import now_ns
from profiler.recording.layout import (
    AT,
    DROPPED,
    LEFT,
    N_LENT,
    OPEN,
    SLOT,
    SLOT_BYTES,
    SLOT_COUNTS,
    SPAN,
    SPAN_COUNTS,
    Lent,
)

RING_RECORDS: Final = 1 << 16
"""Spans a lane holds before it drops: over a second at 50 000 spans/s, emptied every 50 ms."""

MIN_OUTGOING: Final = 256  # Spans that the consumer has room for at first: what a decode records in 50 ms

_LIMIT_16: Final = 1 << 16
# `struct` converts C longs faster than long longs; on Windows they are short.
_END: Final = SLOT.fields["end_ns"][1] if SLOT.fields else 0
_NATIVE: Final = sys.byteorder == "little" and struct.calcsize("l") == 8
_pack_put = struct.Struct("llIIIIIHxx" if _NATIVE else "<qqIIIIIHxx").pack_into
_pack_lap = struct.Struct("llLIIIHxx" if _NATIVE else "<qqQIIIHxx").pack_into
_pack_end = struct.Struct("l" if _NATIVE else "<q").pack_into


class Lane:
    """One thread of work (or device stream) and its ring of spans. Made by `Recorder.lane`.

    Frames and work counts are unsigned 32 bit: `put`, `begin` and `lap` raise struct.error when one
    does not fit.
    """

    __slots__ = (
        "_at",
        "_block",
        "_clock",
        "_dropped",
        "_end",
        "_epoch",
        "_epochs",
        "_lent",
        "_lent_state",
        "_mark",
        "_outgoing",
        "_records",
        "_ring",
        "_slots",
        "_stop",
        "_taken",
        "_taken_epoch",
        "decode",
        "id",
        "kind",
        "name",
    )

    def __init__(
        self,
        lane_id: int,
        name: str,
        kind: str,
        decode: bool,
        capacity: int = RING_RECORDS,
        clock: Callable[[], int] = now_ns,
    ) -> None:
        self.id = lane_id
        self.name = name
        self.kind = kind
        self.decode = decode
        self._clock = clock
        self._slots = capacity + 1
        self._end = self._slots * SLOT_BYTES
        self._ring = bytearray(self._end)
        self._records = np.frombuffer(self._ring, SLOT)
        counters = np.zeros(N_LENT, np.int64)
        counters[OPEN] = -1
        self._lent: Lent = self._records, counters
        self._lent_state = counters.data
        self._dropped = 0
        # Producer: where the next span goes and where to look for room again. Consumer: spans taken.
        self._at = 0
        self._stop = capacity * SLOT_BYTES
        self._taken = 0
        self._outgoing = _Outgoing(self._records, 0, lane_id)
        self._mark = self._block = 0
        self._epoch = self._taken_epoch = 0
        self._epochs: deque[tuple[int, int]] = deque()

    def put(
        self,
        stage: int,
        start_ns: int,
        end_ns: int,
        first_frame: int = 0,
        frames: int = 0,
        work0: int = 0,
        work1: int = 0,
        work2: int = 0,
    ) -> None:
        """Record one span; drop and count it when the ring is full."""
        at = self._at
        if at == self._stop:
            at = self._room()
            if at < 0:
                return
        _pack_put(self._ring, at, start_ns, end_ns, frames, first_frame, work0, work1, work2, stage)
        self._at = at + 40

    def begin(self, first_frame: int, frames: int) -> None:
        """The spans that `lap` will record cover these frames, and the first of them starts now."""
        if first_frame >> 32 or frames >> 32:
            raise struct.error(f"frames {first_frame} and {frames} do not fit 32 bits")
        self._block = frames | first_frame << 32
        self._mark = self._clock()

    def lap(self, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Record that `stage` ran from `begin` or the last lap until now: one clock reading per span."""
        clock = self._clock  # two steps: CPython 3.11 looks up a slot's method slowly
        end = clock()
        at = self._at
        if at == self._stop:
            at = self._room()
            if at < 0:
                self._mark = end
                return
        _pack_lap(self._ring, at, self._mark, end, self._block, work0, work1, work2, stage)
        self._mark = end
        self._at = at + 40

    def lap_before(self, later_ns: int, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """A lap that ended `later_ns` ago: what came after belongs to the laps that follow.

        For a kernel whose stages take turns too quickly for a span each, and which adds up their times.
        """
        end = max(self._clock() - later_ns, self._mark)
        frames, first_frame = self._block & 0xFFFF_FFFF, self._block >> 32
        self.put(stage, self._mark, end, first_frame, frames, work0, work1, work2)
        self._mark = end

    def lend(self) -> Lent:
        """Hand the ring to a kernel, for `kernel_spans.put`; no `put` or `lap` until `settle`.

        A kernel that records more than the ring has room for now drops the rest, and counts it.
        """
        at = self._at // SLOT_BYTES % self._slots
        state = self._lent_state
        state[AT] = at
        state[LEFT] = (self._taken - at - 1) % self._slots
        return self._lent

    def settle(self, end_ns: int = 0) -> None:
        """Take the ring back: what the kernel recorded can now be taken by the consumer.

        `end_ns`: when the span ended that the kernel left open; 0 where it left none.
        """
        state = self._lent_state
        opened = state[OPEN]
        if opened >= 0:
            if end_ns:
                _pack_end(self._ring, opened * SLOT_BYTES + _END, end_ns)
            state[OPEN] = -1
        at = state[AT] * SLOT_BYTES
        if not self._at <= at <= self._stop:
            self._stop = at
        self._at = at

    @property
    def epoch(self) -> int:
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        if not 0 <= epoch < _LIMIT_16:
            raise ValueError(f"lane {self.name!r}: epoch {epoch} is not within 0…65535")
        self._epoch = epoch
        change = self.recorded, epoch
        # The consumer pops changes before records it takes, and so never this one.
        if self._epochs and self._epochs[-1][0] == change[0]:
            self._epochs[-1] = change
        else:
            self._epochs.append(change)

    def _room(self) -> int:
        """Where the next span goes, or -1 (counted) when the ring is full."""
        at = 0 if self._at == self._end else self._at
        oldest = self._taken % self._slots * SLOT_BYTES
        # One slot before the oldest stays free; where that is the ring's first, its last one does.
        if oldest > at:
            self._stop = oldest - SLOT_BYTES
        else:
            self._stop = self._end if oldest else self._end - SLOT_BYTES
        self._at = at
        if at == self._stop:
            self._dropped += 1
            return -1
        return at

    @property
    def recorded(self) -> int:
        taken = self._taken
        return taken + (self._at // SLOT_BYTES - taken) % self._slots

    @property
    def dropped(self) -> int:
        """Spans lost because the ring was full, or a kernel's counts did not fit."""
        return self._dropped + self._lent_state[DROPPED]

    @property
    def waiting(self) -> int:
        return (self._at // SLOT_BYTES - self._taken) % self._slots

    def latest(self, count: int) -> Array:
        """Copy the last `count` spans recorded, as far as there are any (dtype SLOT); for the producer only."""
        end = self._at // SLOT_BYTES
        count = min(count, self.recorded, self._slots - 1)
        return self._records[np.arange(end - count, end) % self._slots]

    def take(self, limit: int = RING_RECORDS) -> bytes:
        """Remove up to `limit` of the oldest spans, as an array of SPAN; for the one consumer only."""
        taken = self._taken
        count = min(self.waiting, limit)
        if count <= 0:
            return b""
        if self._outgoing.count < count:
            self._outgoing = _Outgoing(self._records, count, self.id, self._taken_epoch)
        out, done = self._outgoing, 0
        while done < count:
            # Twice where the spans go round the ring's end.
            first = (taken + done) % self._slots
            done += out.copy(first, min(count - done, self._slots - first), done)
        epoch, fresh = self._taken_epoch, bool(self._epochs)
        while self._epochs and self._epochs[0][0] < taken + count:
            since, epoch = self._epochs.popleft()
            out.epoch[max(since - taken, 0) :] = epoch
        self._taken_epoch = epoch
        spans = out.spans[:count].tobytes()
        if fresh:
            out.epoch[:] = epoch
        # Only after the copy may the producer write there again.
        self._taken = taken + count
        return spans


class _Outgoing:
    """Room for `count` spans of a session as the consumer makes them of slots, and the fields of both by view.

    A round of the writer takes some dozen spans with cold caches: looking up fields by name would take
    longer than copying them. `epoch` holds what spans have unless it changes among them.
    """

    __slots__ = ("_counts", "_duration", "_from", "_stage", "_start", "count", "epoch", "spans")

    def __init__(self, ring: Array, count: int, lane: int, epoch: int = 0) -> None:
        self.count = max(count, MIN_OUTGOING)
        self.spans = np.zeros(self.count, SPAN)
        self.spans["lane"] = lane
        self.epoch = self.spans["epoch"]
        self.epoch[:] = epoch
        self._start, self._duration = self.spans["start_ns"], self.spans["duration_ns"]
        self._stage, self._counts = self.spans["stage"], self.spans.view(SPAN_COUNTS)["c"]
        self._from = ring["start_ns"], ring["end_ns"], ring["stage"], ring.view(SLOT_COUNTS)["c"]

    def copy(self, first: int, count: int, to: int) -> int:
        """Make spans `to` … of `count` slots from `first` on, which do not go round; return `count`."""
        slots, spans = slice(first, first + count), slice(to, to + count)
        starts, ends, stages, counts = self._from
        start = starts[slots]
        self._start[spans] = start
        np.subtract(ends[slots], start, self._duration[spans])
        self._stage[spans] = stages[slots]
        self._counts[spans] = counts[slots]
        return count


class NullLane:
    """A lane that records nothing and reads no clock: the recorder switched off."""

    __slots__ = ("decode", "dropped", "epoch", "id", "kind", "name", "recorded")

    def __init__(self, name: str = "off", kind: str = "cpu", decode: bool = False) -> None:
        self.id = 0
        self.name = name
        self.kind = kind
        self.decode = decode
        self.epoch = 0
        self.recorded = 0
        self.dropped = 0

    def put(
        self,
        stage: int,
        start_ns: int,
        end_ns: int,
        first_frame: int = 0,
        frames: int = 0,
        work0: int = 0,
        work1: int = 0,
        work2: int = 0,
    ) -> None:
        """Do nothing."""

    def begin(self, first_frame: int, frames: int) -> None:
        """Do nothing."""

    def lap(self, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Do nothing."""

    def lap_before(self, later_ns: int, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Do nothing."""

    def lend(self) -> Lent:
        return _NOWHERE

    def settle(self, end_ns: int = 0) -> None:
        """Do nothing."""


_NOWHERE: Final[Lent] = (np.frombuffer(bytearray(SLOT_BYTES), SLOT), np.zeros(N_LENT, np.int64))

MEASURE_PUTS: Final = 1000
MEASURE_ROUNDS: Final = 7


def measure_ns_per_span(clock: Callable[[], int] = now_ns) -> dict[str, float]:
    """Measure what recording costs here and now, on a scratch lane (some 5 ms).

    Returns `ns_per_put` (the call alone), `ns_per_span` (two clock readings and the call) and
    `ns_per_lap` (a lap with its one clock reading), each the median of rounds, loop overhead taken off.
    """
    lane = Lane(0, "scratch", "cpu", False, capacity=MEASURE_PUTS, clock=clock)
    put, lap, rounds = lane.put, lane.lap, range(MEASURE_PUTS)
    puts, spans, laps = [], [], []
    for _ in range(MEASURE_ROUNDS):
        t0 = now_ns()
        for _ in rounds:
            put(3, 1_000_000_000, 1_000_010_000, 1234, 16, 5000, 900)
        t1 = now_ns()
        lane.take()
        t2 = now_ns()
        for _ in rounds:
            start = clock()
            put(3, start, clock(), 1234, 16, 5000, 900)
        t3 = now_ns()
        lane.take()
        lane.begin(1234, 16)
        t4 = now_ns()
        for _ in rounds:
            lap(3, 5000, 900)
        t5 = now_ns()
        lane.take()
        t6 = now_ns()
        for _ in rounds:
            pass
        loop = now_ns() - t6
        puts.append((t1 - t0 - loop) / MEASURE_PUTS)
        spans.append((t3 - t2 - loop) / MEASURE_PUTS)
        laps.append((t5 - t4 - loop) / MEASURE_PUTS)
    middle = MEASURE_ROUNDS // 2
    return {
        "ns_per_put": round(sorted(puts)[middle], 1),
        "ns_per_span": round(sorted(spans)[middle], 1),
        "ns_per_lap": round(sorted(laps)[middle], 1),
    }
