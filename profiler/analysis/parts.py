"""The parts that a stage's time consists of, from its cost law at the machine's roofs and what was measured beside.

Arithmetic at peak, instructions beyond it, memory bandwidth, memory latency and calls come from the law; other
programs from the time that the thread was ready and did not run. None of them is a remainder: what they do not
account for is *not attributed*, and where they account for more than the time there was, they are taken at less, down
to the least that they may be.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.categories import (
    LAW_PARTS,
    MEASURED_PARTS,
    NOT_ATTRIBUTED,
    PARTS,
)
from profiler.analysis.law import law_of_cached
from profiler.analysis.waiting import Waited
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable

COMPUTE_PARTS: Final = ("arithmetic", "instructions", "calls")
MEMORY_PARTS: Final = ("bandwidth", "latency")
_MEMORY: Final = [LAW_PARTS.index(name) for name in MEMORY_PARTS]
_BANDWIDTH: Final = LAW_PARTS.index("bandwidth")
_CALLS: Final = LAW_PARTS.index("calls")


TOLD_FROM: Final = 0.02
"""A part below this share of the time is left out of a sentence."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Time by part in ns: the likely figures, which add up to the stage's time, and the ends of their intervals."""

    likely: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @property
    def time_ns(self) -> float:
        """Of all parts together."""
        return sum(self.likely.values())

    def share(self, name: str) -> float:
        """The likely part of the time, 0…1."""
        time = self.time_ns
        return self.likely[name] / time if time else 0.0

    def ends(self, name: str) -> tuple[float, float]:
        """The interval of `share`, 0…1."""
        time = self.time_ns
        return (self.low[name] / time, self.high[name] / time) if time else (0.0, 0.0)

    @property
    def told(self) -> list[str]:
        """The parts worth telling a person, largest first."""
        order = sorted(PARTS, key=lambda name: -self.likely[name])
        return [name for name in order if self.share(name) >= TOLD_FROM]


class Split(NamedTuple):
    """Times of spans in ns: MEASURED_PARTS as they add up within the spans' time, float64 [6, n], and what the law
    says of LAW_PARTS before any of it is fitted to the time, [5, n]: least, likely, most."""

    parts: Array
    least: Array
    likely: Array
    most: Array


def split(
    spans: Array,
    cost: Cost | None,
    roof_table: RoofTable,
    other: Array | None = None,
    slowness: Array | None = None,
    waiting: Waited | None = None,
) -> Split:
    """Return what the time of each span consists of; what is left of it is not attributed.

    `other`: ns of each span in which other programs had its processor. `slowness` [2, n]: how much slower than
    its roofs the machine's arithmetic and its memory were at that time. `waiting`: which part of its time it
    waited for data, by hot replay; memory is at least that, but for branches that were learned meanwhile and for what
    calls waited, and what streams take of the hot time. The law has its data come from as far as in a run, so it may
    have counted all of it.
    The arithmetic is done span by span, so the result does not depend on how many are given at once.
    """
    time = spans["duration_ns"].astype(np.float64)
    parts = np.zeros((len(MEASURED_PARTS), len(spans)))
    if other is not None:
        parts[-1] = np.minimum(other, time)
    if cost is None or not roof_table or cost.unmodelled:
        nothing = np.zeros((len(LAW_PARTS), len(spans)))
        return Split(parts, nothing, nothing, nothing)
    own = time - parts[-1]
    if cost.device:
        slowness = None  # it is the processor's
    law_ns = law_of_cached(cost, roof_table)
    least, likely, most = law_ns.times(lambda law: law.of(spans))
    if slowness is not None:
        # A probe is a moment: the roofs themselves stay the least, or the most, that is possible.
        least = slowed(least, np.minimum(slowness, 1.0))
        likely, most = slowed(likely, slowness), slowed(most, np.maximum(slowness, 1.0))
    # A span that took less than its data from as far as they may come from has found some of them in a cache: how many,
    # only a replay can tell.
    nearer = np.minimum(law_ns.kept.of(spans), least[_BANDWIDTH])
    least[_BANDWIDTH] -= np.where(least.sum(axis=0) > own, nearer, 0.0)
    if waiting is not None:
        low, mid, high = (share * own for share in waiting)
        # A replay was also spared what the processor had learned of the branches, which is no waiting for data.
        learned = np.maximum(law_ns.by_heart.of(spans), 0.0)
        low, mid = np.maximum(low - learned, 0.0), np.maximum(mid - learned / 2, 0.0)
        law = likely
        ends = least, likely, most
        # Where the law's other end leaves the hot time least, or most, room beside the kernel's own instructions.
        hot = [
            _streamed_hot(end, own - waited, other)
            for end, waited, other in zip(ends, (high, mid, low), ends[::-1], strict=True)
        ]
        # What a call waited for is in the law as calls. It comes off all ends alike: where it is more, memory is less,
        # so that both together are as uncertain as the calls alone.
        calls = law_ns.calls.mid.of(spans)
        late = np.clip(law_ns.after_others.of(spans), 0.0, np.maximum(calls, 0.0))
        late = np.divide(late, calls, out=np.zeros_like(own), where=calls > 0)
        spared = _spared_calls(law, own - mid, late)
        sure = _sure_of_calls(law[_CALLS], most, spared, low, own - high)
        least[_CALLS] = np.maximum(least[_CALLS], sure)
        # How much was pushed out that a call needs, its law does not know: where it says more than the time, less was.
        excess = np.maximum(least.sum(axis=0) - own, 0.0)
        least[_CALLS] -= np.minimum(excess, _spared_calls(least, own - mid, late))
        low, mid, high = (np.maximum(waited - spared, 0.0) for waited in (low, mid, high))
        likely = at_least_waiting(likely, mid + hot[1], law)
        most = at_least_waiting(most, high + hot[2], law)
        # What instructions take at least is never taken from them.
        rest = own - least.sum(axis=0) + least[_MEMORY].sum(axis=0)
        least = at_least_waiting(least, np.clip(low + hot[0], 0.0, np.maximum(rest, 0.0)), law)
    parts[:-1] = fitted(least, likely, own)
    return Split(parts, least, likely, most)


def _streamed_hot(times: Array, hot: Array, other: Array) -> Array:
    """Return what streams take of the `hot` time [...] that a replay took: data that fit no near cache come again.

    As much as the law's `times` [5, …] say, and what the instructions of `other` leave of it; scattered accesses find
    their lines where the pass before left them.
    """
    core = other.sum(axis=0) - other[_MEMORY].sum(axis=0)
    streamed: Array = np.minimum(times[_BANDWIDTH], np.maximum(hot - core, 0.0))
    return streamed


def _spared_calls(times: Array, hot: Array, late: Array) -> Array:
    """Return what of the calls of the law's `times` [5, …] a replay did not take, as it found what they need at hand.

    That is as much as the `hot` time [...] has no room for beside the kernel's own instructions, and at most the part
    `late` [...] of the calls, 0…1, which come after other data.
    """
    core = times.sum(axis=0) - times[_MEMORY].sum(axis=0)
    spared: Array = np.clip(core - hot, 0.0, late * times[_CALLS])
    return spared


def _sure_of_calls(calls: Array, most: Array, spared: Array, waited: Array, hot: Array) -> Array:
    """Return what calls took at least by a replay, whatever their roof is off by; 0 where it tells nothing of them.

    That is the `waited` time [...] that it is sure of, as far as it is theirs (`spared`), and what instructions at
    their `most` [5, …] leave of its least `hot` time. `calls`: those of the law.
    """
    instructions = most.sum(axis=0) - most[_MEMORY].sum(axis=0) - most[_CALLS]
    hot_calls = np.clip(hot - instructions, 0.0, np.maximum(calls - spared, 0.0))
    sure: Array = np.where(spared > 0.0, hot_calls + np.minimum(waited, spared), 0.0)
    return sure


def at_least_waiting(times: Array, waited: Array, law: Array) -> Array:
    """Return `times` [5, …] of LAW_PARTS with memory raised to `waited` [...] where there is less.

    It goes to bandwidth and latency as the `law` [5, …] shares them out; where it knows of neither, to latency.
    """
    total = law[_MEMORY].sum(axis=0)
    share = np.divide(law[_MEMORY], total, out=np.zeros_like(law[_MEMORY]), where=total > 0)
    share[-1] = np.where(total > 0, share[-1], 1.0)
    out = times.copy()
    out[_MEMORY] += np.maximum(waited - times[_MEMORY].sum(axis=0), 0.0) * share
    return out


def by_category(parts: Array) -> tuple[Array, Array, Array]:
    """Return (compute, memory, other programs) of MEASURED_PARTS [6, …]."""
    compute = sum(parts[MEASURED_PARTS.index(name)] for name in COMPUTE_PARTS)
    memory = sum(parts[MEASURED_PARTS.index(name)] for name in MEMORY_PARTS)
    return np.asarray(compute), np.asarray(memory), np.asarray(parts[-1])


def slowed(times: Array, slowness: Array) -> Array:
    """Return `times` [5, …] of LAW_PARTS on a machine that is slower than its roofs by `slowness` [2, …]."""
    factors = np.array([slowness[int(name in MEMORY_PARTS)] for name in LAW_PARTS])
    slower: Array = times * factors
    return slower


def fitted(least: Array, likely: Array, time: Array) -> Array:
    """Return `likely` [k, n] where its sum is within `time` [n]; else taken back as far as needed, evenly.

    Where even the `least` exceed the time, they share it in proportion.
    """
    whole, lowest = likely.sum(axis=0), least.sum(axis=0)
    room = whole - lowest
    # Only there the quotient is wanted, and below 1.
    between = (lowest < time) & (time < whole)
    back = np.divide(time - lowest, room, out=np.zeros_like(room), where=between)
    shrunk = least + (likely - least) * back
    over = np.divide(time, lowest, out=np.ones_like(lowest), where=lowest > time)
    return np.asarray(np.where(whole <= time, likely, shrunk * np.minimum(over, 1.0)))


def intervals(
    likely: Sequence[float], low: Sequence[float], high: Sequence[float], time: float
) -> Parts:
    """Return the parts of a stage that took `time` ns, with intervals that the others leave room for.

    `likely`: MEASURED_PARTS as they add up over the spans. `low`, `high`: the ends of the same parts in sum.
    What is not attributed is as uncertain as their sum. They were measured apart, so that it is off by the root of the
    sum of squares of what each may be off, and not as if all were off at once the same way (GUM, JCGM 100:2008, 5.1).
    """
    names = (*MEASURED_PARTS, NOT_ATTRIBUTED)
    shares = [*likely, max(time - sum(likely), 0.0)]
    least = sum(low)
    ends_low, ends_high = [], []
    for i, value in enumerate(likely):
        # A part may be as large as the others leave room for, and must be as large as they leave it to be.
        top = min(high[i], max(time - (least - low[i]), 0.0))
        ends_low.append(min(low[i], value))
        ends_high.append(max(top, value))
    rest = shares[-1]
    fewer = math.hypot(*(value - end for value, end in zip(likely, ends_low, strict=True)))
    more = math.hypot(*(max(end - value, 0.0) for value, end in zip(likely, high, strict=True)))
    ends_low.append(max(rest - more, 0.0))
    ends_high.append(max(min(rest + fewer, time), rest))
    return Parts(
        dict(zip(names, shares, strict=True)),
        dict(zip(names, ends_low, strict=True)),
        dict(zip(names, ends_high, strict=True)),
    )


def together(stages: Iterable[tuple[float, Parts | None]]) -> Parts | None:
    """Return the parts of several stages as one, of (time in ns, parts); None where none of them has any.

    The whole time of a stage without parts is not attributed.
    """
    rows = list(stages)
    if not any(parts is not None for _, parts in rows):
        return None
    sums = [dict.fromkeys(PARTS, 0.0) for _ in range(3)]
    for time, parts in rows:
        if parts is None:
            for each in sums:
                each[NOT_ATTRIBUTED] += time
            continue
        for each, values in zip(sums, (parts.likely, parts.low, parts.high), strict=True):
            for name in PARTS:
                each[name] += values[name]
    return Parts(*sums)
