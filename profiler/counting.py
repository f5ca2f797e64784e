"""A lane that reads the counters whenever a span is put, and adds them up per stage.

Leaves follow each other, so what was counted since the reading before belongs to the span. Of several spans put after
one call (a kernel that times its own parts) only the first causes a reading, shared by time, and the source says so.
The hot thread only reads and remembers; `totals` adds up on another thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from profiler.arrays import Array
from profiler.clock import now_ns
from profiler.machine.counters import Group, read_cost_ns
from profiler.recording.lanes import RING_RECORDS, Lane, NullLane
from profiler.recording.layout import AT, Lent
from profiler.session.model import CounterTotal

if TYPE_CHECKING:
    from profiler.session.reader import Session
    from profiler.session.writer import Journal

COUNTED: Final = "counted_ns"  # Name of the total of the time between readings: what the other totals of a stage cover
SOURCE: Final = "perf_event"  # Counted exactly around the stage; anything less is said after a comma
MAX_WAITING: Final = RING_RECORDS  # Readings kept until added up: over a second's worth at one frame per block
MISSED: Final = "counters_missed"  # Key of a session's meta: spans whose counters were not read, for want of room
MIN_RUNNING: Final = 0.999  # Part of the time that counters ran; less: they were shared, values are scaled
_HEAD: Final = 3  # uint64 before the values: how many, enabled ns, running ns

Entry = tuple[int, int, int, int, bytes | None]


@dataclass(slots=True)
class _Total:
    counted_ns: float = 0.0
    enabled: float = 0.0
    running: float = 0.0
    shared: bool = False
    values: Array = field(default_factory=lambda: np.zeros(0))


def is_exact(source: str) -> bool:
    return source in (SOURCE, f"{SOURCE}, user mode")


class CountingLane(Lane):
    """A lane with counters, from `count` on; until then, and without events, it is a plain lane."""

    __slots__ = (
        "_group",
        "_held",
        "_last",
        "_lent_at",
        "_read",
        "_readings",
        "_results",
        "_sharing",
        "_threads",
        "_until",
        "missed",
    )

    def __init__(self, *about: Any, **more: Any) -> None:
        """As `Lane`."""
        super().__init__(*about, **more)
        self.missed = 0
        self._group: Group | None = None
        self._read: Callable[[], bytes] | None = None
        self._threads = 1
        self._until = self._lent_at = 0
        self._sharing = False
        self._readings: deque[Entry] = deque()
        self._held: list[Entry] = []
        self._results: dict[tuple[int, int], _Total] = {}
        self._last: tuple[int, Array] | None = None

    def count(self, group: Group, threads: int = 1) -> None:
        """Begin counting on this thread, which opened `group` and puts spans; `threads`: how many do the work."""
        if not group.events:
            return
        self._group, self._threads = group, threads
        data = group.read_raw()
        self._until = self._clock()
        self._last = (self._until, np.frombuffer(data, np.uint64).astype(np.int64))
        self._read = group.read_raw

    def stop(self) -> None:
        self._read = None

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
        Lane.put(self, stage, start_ns, end_ns, first_frame, frames, work0, work1, work2)
        if self._read is not None:
            self._account(stage, end_ns - start_ns, end_ns)

    def lap(self, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Record one span as Lane.lap does, and read the counters; the next begins after that."""
        start = self._mark
        Lane.lap(self, stage, work0, work1, work2)
        if self._read is not None:
            # The last stage of a call that timed its own parts shares the reading of the first.
            self._account(stage, self._mark - start, 0 if self._sharing else self._mark)
            self._sharing = False
            self._mark = self._clock()

    def lap_before(self, later_ns: int, stage: int, work0: int = 0, work1: int = 0, work2: int = 0) -> None:
        """Record one span as Lane.lap_before does; the laps up to the next `lap` share its reading."""
        Lane.lap_before(self, later_ns, stage, work0, work1, work2)
        self._sharing = self._read is not None

    def lend(self) -> Lent:
        lent = Lane.lend(self)
        self._lent_at = lent[1][AT]
        return lent

    def settle(self, end_ns: int = 0) -> None:
        """Take the ring back as Lane.settle does; what the kernel recorded shares one reading."""
        Lane.settle(self, end_ns)
        if self._read is None:
            return
        ring, state = self._lent
        begin, end = self._lent_at, int(state[AT])
        for slots in (ring[begin:end],) if end >= begin else (ring[begin:], ring[:end]):
            columns = (slots[name].tolist() for name in ("stage", "start_ns", "end_ns"))
            for stage, started, ended in zip(*columns, strict=True):
                self._account(stage, ended - started, ended)

    def _account(self, stage: int, spent_ns: int, end_ns: int) -> None:
        """Read the counters for a span, or let it share the last reading if that came after it."""
        if end_ns <= self._until:
            self._readings.append((stage, self._epoch, spent_ns, 0, None))
        elif len(self._readings) < MAX_WAITING and self._read is not None:
            data = self._read()
            self._until = now = self._clock()
            self._readings.append((stage, self._epoch, spent_ns, now, data))
        else:
            # Its counts go to the next span that is read; this says that it has happened.
            self.missed += 1

    def totals(self, final: bool = False) -> list[CounterTotal]:
        """Return changed totals, for one consumer; the last reading waits for spans that share it, unless `final`."""
        entries = self._held + [self._readings.popleft() for _ in range(len(self._readings))]
        last = max((i for i, entry in enumerate(entries) if entry[4] is not None), default=0)
        count = len(entries) if final else last
        entries, self._held = entries[:count], entries[count:]
        # A span that ended before counting began shares in no reading.
        while entries and entries[0][4] is None and not self._results:
            del entries[0]
        if not entries or self._last is None or self._group is None:
            return []
        changed = self._add_up(entries)
        return [total for key in sorted(changed) for total in self._rows(*key)]

    def _add_up(self, entries: list[Entry]) -> set[tuple[int, int]]:
        assert self._last is not None
        read = [entry for entry in entries if entry[4] is not None]
        before_ns, before = self._last
        times = np.array([before_ns, *(entry[3] for entry in read)], np.int64)
        joined = b"".join(entry[4] or b"" for entry in read)
        readings = np.frombuffer(joined, np.uint64).astype(np.int64).reshape(len(read), -1)
        deltas = np.diff(np.vstack([before[None], readings]), axis=0)
        elapsed = np.diff(times)
        if read:
            self._last = (int(times[-1]), readings[-1])

        # Which interval each span belongs to, and what part of it.
        interval = np.cumsum([entry[4] is not None for entry in entries]) - 1
        duration = np.array([max(entry[2], 1) for entry in entries], np.float64)
        spans_of = np.bincount(interval, minlength=len(read))
        part = duration / np.bincount(interval, duration)[interval]
        changed: dict[tuple[int, int], list[int]] = {}
        for i, entry in enumerate(entries):
            changed.setdefault(entry[:2], []).append(i)
        for key, chosen in changed.items():
            total = self._results.setdefault(key, _Total(values=np.zeros(deltas.shape[1] - _HEAD)))
            weight, where = part[chosen], interval[chosen]
            amounts = weight @ deltas[where]
            total.counted_ns += float(weight @ elapsed[where])
            total.enabled += float(amounts[1])
            total.running += float(amounts[2])
            total.values += amounts[_HEAD:]
            total.shared |= bool((spans_of[where] > 1).any())
        return set(changed)

    def _rows(self, stage: int, epoch: int) -> list[CounterTotal]:
        assert self._group is not None
        total = self._results[stage, epoch]
        source, scale = SOURCE, 1.0
        if total.running < MIN_RUNNING * total.enabled:
            if total.running <= 0:
                return []
            scale = total.enabled / total.running
            source += f", scaled up from {1 / scale:.0%} of the time"
        if total.shared:
            source += ", shared by time with the stages of the same call"
        if self._threads > 1:
            source += f", one thread of {self._threads}"
        user_only = {a.event.name for a in self._group.availability if a.user_only}
        rows = [CounterTotal(self.id, stage, epoch, COUNTED, round(total.counted_ns), source)]
        for event, value in zip(self._group.events, total.values, strict=True):
            how = source + (", user mode" if event.name in user_only else "")
            rows.append(CounterTotal(self.id, stage, epoch, event.name, round(value * scale), how))
        return rows


def about(group: Group) -> dict[str, Any]:
    """What meta `recorder` says: ns of a reading alone and of all that counting adds to a span, and absent counters."""
    return {
        "ns_per_counter_read": read_cost_ns(group),
        "ns_per_counted_span": added_cost_ns(group),
        "counters": [event.name for event in group.events],
        "counters_absent": {a.event.name: a.reason for a in group.availability if not a.available},
    }


def added_cost_ns(group: Group, rounds: int = 7, spans: int = 200) -> float | None:
    """Measure what counting adds to a span in ns, adding up included; None without events."""
    if not group.events:
        return None
    plain = Lane(0, "scratch", "cpu", False, capacity=spans)
    counted = CountingLane(0, "scratch", "cpu", False, capacity=spans)
    counted.count(group)

    def spent(lane: Lane) -> int:
        start = now_ns()
        for _ in range(spans):
            lane.put(1, start, now_ns())
        if lane is counted:
            counted.totals()
        end = now_ns()
        lane.take()
        return end - start

    return round(median(spent(counted) - spent(plain) for _ in range(rounds)) / spans, 1)


@contextmanager
def counting(
    lane: Lane | NullLane, group: Group | None, journal: Journal, threads: int = 1
) -> Iterator[Callable[[], None]]:
    """Count on `lane` for as long as the context lasts; it gives what is to be called now and then.

    That stores the totals so far, on whichever thread calls it (one alone). Without a group, or on a
    lane that cannot count, nothing happens.
    """
    if group is None or not isinstance(lane, CountingLane):
        yield lambda: None
        return
    reported = 0

    def report(final: bool = False) -> None:
        nonlocal reported
        if totals := lane.totals(final):
            journal.counters(totals)
        if lane.missed > reported:
            reported = lane.missed
            journal.meta(MISSED, reported)

    lane.count(group, threads)
    try:
        yield report
    finally:
        lane.stop()
        report(final=True)


@dataclass(slots=True)
class Counted:
    """What was counted for a stage on a lane over all epochs. `values`: by name; `exact`: nothing was
    shared with another stage, scaled, or seen on one thread of several (evidence grade A)."""

    values: dict[str, int] = field(default_factory=dict)
    exact: bool = True


def by_stage(session: Session) -> dict[tuple[str, str], Counted]:
    """Return what a session has counted by names of stage and lane; empty where nothing was."""
    found: dict[tuple[str, str], Counted] = {}
    for total in session.counters.values():
        stage, lane = session.stages.get(total.stage), session.lanes.get(total.lane)
        if stage is None or lane is None:
            continue
        counted = found.setdefault((stage.name, lane.name), Counted())
        counted.values[total.name] = counted.values.get(total.name, 0) + total.value
        counted.exact &= is_exact(total.source)
    return found
