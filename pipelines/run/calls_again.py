"""The calls that a run's laws name, timed again now and then between two of its blocks.

What a call takes is mostly what it waits for: code and small tables that other data have pushed out. Where they lie
then is decided by whoever shares the caches, and differs from hour to hour by half and more, and a loop that does
nothing else finds them nearer than a run does. So what was measured before is only where a run begins: its calls are
timed on, each after as much was read as its roof says, outside the wall time and for at most `share` of it. The middle
of what was found takes the place of the roof in the session. Loops of kernels are left as they are: their data fit the
first cache, and one made for a run may lie at addresses where it takes twice as long as the one that the run has.

A roof is what the machine sustains at the speed that its probes have as roofs: what was timed while the probe of
arithmetic ran slower counts as that much faster, as readers take it for slower again (`conditions.Speed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from statistics import quantiles
from typing import Final

from pipelines.kernel_roofs import work_of
from profiler.costs import CALL, Term
from profiler.machine.roofs.probe import Probe
from profiler.machine.roofs.table import KERNEL, PROBES, Key, Roof, RoofTable
from profiler.machine.roofs.terms import GENERAL_CALLS, call_key
from profiler.machine.roofs.timing import MOST_REPEATS, PIECE_SECONDS, UNITS, Task, counted
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, Recorder

NS: Final = 1e9
STAGE: Final = "setup.calls again"
AT_FIRST_NS: Final = 60_000_000
"""So long may be spent whatever the share, that short runs have them as well: making what is timed, and LEAST of it."""
APART_NS: Final = 8_000_000
"""At least so far apart, as each puts something out of the caches that the next block has to fetch again."""
AT_ONCE: Final = 2
"""Calls timed between the same two blocks, some milliseconds with what is read before each."""
LEAST: Final = 3
"""Timings of each call before any of them is believed; told again whenever there are twice as many."""
MOST: Final = 64
"""Timings of a call that are kept: the latest."""


@dataclass
class _Timed:
    """A call with the work behind it, and ns per call found so far."""

    key: Key
    task: Task
    repeats: int
    units: float
    ns: list[float] = field(default_factory=list)


class CallsAgain:
    """Made and used on the thread that decodes."""

    def __init__(
        self, recorder: Recorder, lane: Lane, journal: SessionWriter, probe: Probe, share: float
    ) -> None:
        """`share`: of the time of the blocks, that may go into it, 0…1; none: nothing is timed."""
        self._clock, self._lane, self._journal = recorder.clock, lane, journal
        self._probe, self._share = probe, share
        self._stage = recorder.stage(STAGE, "setup")
        self._pace: Roof | None = None
        self._timed: dict[Key, _Timed] = {}
        self._waiting: list[Key] = []
        self._turn = 0
        self._spent = 0
        self.due_ns = 0
        """When the next may be timed."""
        self._told = 0

    def need(self, terms: Iterable[tuple[Term, int]], roof_table: RoofTable) -> None:
        """Time from now on the calls among these terms, as far as `roof_table` knows them."""
        if not self._share:
            return
        known = {roof.key: roof for roof in roof_table.roofs}
        self._pace = known.get(Key(KERNEL, PROBES[0]))
        keys = dict.fromkeys(
            call_key(term)
            for term, _ in terms
            if term.kind == CALL and term.roof not in GENERAL_CALLS
        )
        # What they need is made between later blocks, one at a time: what was changed live acts at once.
        self._timed = {key: self._timed[key] for key in keys if key in self._timed}
        self._waiting = [key for key in keys if key in known and key not in self._timed]
        self._turn = self._told = 0

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

    def take(self, now: int, frame: int, decoded_ns: int) -> int:
        """A block has ended `now`: time the next few, if there is time for it; returns when that was done, or `now`.

        `decoded_ns`: what all blocks of the run have taken, of which this may take its share.
        """
        if now < self.due_ns:
            return now
        allowed = max(AT_FIRST_NS, self._share * decoded_ns)
        if not (self._timed or self._waiting) or self._spent > allowed:
            self.due_ns = now + APART_NS
            return now
        if self._waiting:
            key = self._waiting.pop(0)
            self._timed[key] = self._begun(key)
        else:
            self._time_some()
        end = self._clock()
        self._lane.put(self._stage, now, end, frame, 0)
        self._spent += end - now
        self.due_ns = end + APART_NS
        return end

    def _time_some(self) -> None:
        slowness = self._probe.slowness(self._pace)
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

    def tell(self, *, anew: bool = False) -> None:
        """Write what was found so far into the session, where there is enough of it; `anew` if others were written."""
        fewest = min((len(one.ns) for one in self._timed.values()), default=0)
        if self._waiting or fewest < LEAST or (fewest == self._told and not anew):
            return
        self._told = fewest
        self._journal.calibration(RoofTable(tuple(map(_roof, self._timed.values()))).rows())


def _roof(one: _Timed) -> Roof:
    """What a call needs may be in a cache or not, so that they differ more than loops do: the fastest counts."""
    _, median, high = quantiles(one.ns, n=4, method="inclusive")
    return Roof(*one.key, median, min(one.ns), high, UNITS[one.key.kind])
