"""The roofs that a run's laws name, timed again now and then between two of its blocks.

A machine that others use is faster at one minute and slower at the next, and a kernel that follows other code does not
run as it does in a loop of its own. So what was measured before, perhaps an hour ago, is only where a run begins: the
kernels' own loops with their data in the caches, and the calls, are timed on, a piece at a time, outside the wall time
and for at most `share` of it. The middle of what was found takes the place of the roof in the session.

A roof is what the machine sustains at the speed that its probes have as roofs: what was timed while the probe of
arithmetic ran slower counts as that much faster, as readers take it for slower again (`conditions.Speed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import quantiles
from typing import Final

from pipelines.kernel_roofs import work_of
from profiler.costs import CALL, Term
from profiler.machine.roofs.probe import Probe
from profiler.machine.roofs.table import KERNEL, OVERHEAD, PROBES, Key, Roof, RoofTable
from profiler.machine.roofs.terms import GENERAL_CALLS, call_key
from profiler.machine.roofs.timing import MOST_REPEATS, PIECE_SECONDS, UNITS, Task, counted
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, Recorder

NS: Final = 1e9
AT_FIRST_NS: Final = 40_000_000
"""So long may be spent before the share counts, that short runs have them as well."""
APART_NS: Final = 8_000_000
"""At least so far apart, as each puts something out of the caches that the next block has to fetch again."""
AT_ONCE: Final = 4
"""Roofs timed between the same two blocks."""
LEAST: Final = 3
"""Timings of each roof before any of them is believed; told again whenever there are twice as many."""
MOST: Final = 64
"""Timings of a roof that are kept: the latest."""


@dataclass
class _Timed:
    """A roof with the work behind it, and ns per unit found so far."""

    key: Key
    task: Task
    repeats: int
    units: float
    ns: list[float] = field(default_factory=list)


class RoofsAgain:
    """Made and used on the thread that decodes."""

    def __init__(
        self, recorder: Recorder, lane: Lane, journal: SessionWriter, probe: Probe, share: float
    ) -> None:
        """`share`: of the time that may go into it, 0…1; none: nothing is timed."""
        self._clock, self._lane, self._journal = recorder.clock, lane, journal
        self._probe, self._share = probe, share
        self._stage = recorder.stage("setup.roofs again", "setup")
        self._known: dict[Key, Roof] = {}
        self._timed: dict[Key, _Timed] = {}
        self._waiting: list[Key] = []
        self._turn = 0
        self._began = self._clock()
        self._spent = 0
        self.due_ns = 0
        """When the next may be timed."""
        self._told = 0

    def need(self, terms: Iterable[tuple[Term, int]], roof_table: RoofTable) -> None:
        """Time from now on what these terms name on one thread, as far as `roof_table` knows it."""
        if not self._share:
            return
        self._known = {roof.key: roof for roof in roof_table.roofs}
        keys = dict.fromkeys(
            _key(term) for term, threads in terms if threads == 1 and term.roof not in GENERAL_CALLS
        )
        # Their data are made between later blocks, one kernel's at a time: what was changed live acts at once.
        self._timed = {key: self._timed[key] for key in keys if key in self._timed}
        self._waiting = [key for key in keys if key in self._known and key not in self._timed]
        self._turn = self._told = 0

    def known(self, roof_table: RoofTable) -> None:
        """Other roofs are known of what is timed: what it takes over more data follows from these."""
        self._known = {roof.key: roof for roof in roof_table.roofs}
        self._told = 0

    def _begun(self, key: Key) -> _Timed:
        """With as many repeats as take PIECE_SECONDS."""
        work = work_of(key.name, key.bytes)
        task = work.make()
        task(1)
        repeats = 1
        while repeats < MOST_REPEATS:
            start = self._clock()
            task(repeats)
            if self._clock() - start >= PIECE_SECONDS * NS:
                break
            repeats *= 2
        return _Timed(key, task, repeats, work.operations)

    def take(self, now: int, frame: int) -> int:
        """A block has ended `now`: time the next few, if there is time for it; returns when that was done, or `now`."""
        if now < self.due_ns:
            return now
        if self._waiting:
            key = self._waiting.pop(0)
            self._timed[key] = self._begun(key)
            return self._done(now, frame)
        allowed = AT_FIRST_NS + self._share * (now - self._began)
        if not self._timed or self._spent > allowed:
            self.due_ns = now + APART_NS
            return now
        slowness = self._probe.slowness(self._known.get(Key(KERNEL, PROBES[0])))
        order = list(self._timed.values())
        for one in islice(order[self._turn :] + order, min(AT_ONCE, len(order))):
            # What the block has put out of the caches comes back first.
            one.task(1)
            start = self._clock()
            told = one.task(one.repeats)
            ns = counted(told, (self._clock() - start) / NS) * NS / (one.repeats * one.units)
            one.ns = [*one.ns[-MOST + 1 :], ns / slowness]
        self._turn = (self._turn + AT_ONCE) % len(order)
        if min(len(one.ns) for one in order) >= max(LEAST, 2 * self._told):
            self.tell()
        end = self._done(now, frame)
        self._spent += end - now
        return end

    def _done(self, began: int, frame: int) -> int:
        """It is over for now; returns when."""
        end = self._clock()
        self._lane.put(self._stage, began, end, frame, 0)
        self.due_ns = end + APART_NS
        return end

    def tell(self) -> None:
        """Write what was found so far into the session, where there is enough of it."""
        fewest = min((len(one.ns) for one in self._timed.values()), default=0)
        if self._waiting or fewest < LEAST or fewest == self._told:
            return
        self._told = fewest
        found: list[Roof] = []
        for one in self._timed.values():
            roof = _roof(one)
            found += [roof, *_further(roof, self._known[one.key], self._known.values())]
        self._journal.calibration(RoofTable(tuple(found)).rows())


def _key(term: Term) -> Key:
    return call_key(term) if term.kind == CALL else Key(KERNEL, term.roof)


def _roof(one: _Timed) -> Roof:
    low, median, high = quantiles(one.ns, n=4, method="inclusive")
    if one.key.kind == OVERHEAD:
        # What a call needs may be in a cache or not, so that single ones differ more than loops do: the fastest counts.
        low = min(one.ns)
    if one.key.kind == KERNEL:
        low, median, high = NS / high, NS / median, NS / low
    return Roof(*one.key, median, low, high, UNITS[one.key.kind])


def _further(near: Roof, before: Roof, known: Iterable[Roof]) -> list[Roof]:
    """The same kernel over more data: what that took longer than `before`, it takes longer than `near`."""
    found = []
    for far in known:
        same = (far.kind, far.name, far.threads) == (near.kind, near.name, near.threads)
        if same and near.kind == KERNEL and far.bytes:
            longer = max(NS / far.median - NS / before.median, 0.0)
            median = NS / (NS / near.median + longer)
            low, high = (median * end / far.median for end in (far.low, far.high))
            found.append(replace(far, median=median, low=low, high=high))
    return found
