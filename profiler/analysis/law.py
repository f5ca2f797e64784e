"""What a cost law takes on a machine: its terms at the measured roofs, each as an interval.

The execution-cache-memory model (Treibig & Hager 2009): a kernel's own instructions, with their data in the first
cache, and what its data take to come there add up, as far as the processor does not overlap them. Instructions are
measured with the kernel itself at its tile shape (`Term.kind` kernel); arithmetic at peak is the part of them that
its operations would take at the best rate of their class. Streams count what they take beyond the first cache,
accesses what they take beyond a hit there.

All times are linear in a span's counts, so that sums over spans follow from the sums of their counts.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.categories import LAW_PARTS
from profiler.arrays import Array
from profiler.costs import ACCESS, CALL, KERNEL, STREAM, WORK_COUNTS, Cost, Linear, Term
from profiler.machine.roofs.table import LADDERS, Roof, RoofTable

NS: Final = 1e9

_OTHER_NUMBERS: Final = re.compile(r"\w+:\w+")
"""A class of operations with its type of numbers, of no certain library and no device."""

FIRST_CACHE: Final = 16 << 10
"""Bytes: the first rung of every ladder, which lies in the first cache of any processor in use."""


class Bounds(NamedTuple):
    """A time in ns: the least that it may be, the most likely, the most."""

    low: Linear
    mid: Linear
    high: Linear


class Law(NamedTuple):
    """A cost in ns at the machine's roofs. `core`: the kernel's own instructions, arithmetic among them.

    `streamed`: what streams take beyond the first cache; `overlaps`: whether they may hide behind instructions.
    `missing`: names of roofs that were not measured; what they would bound is not attributed. `launched`: calls give
    work to a device, which works meanwhile: they take what they take beyond it, and nothing where the host is ahead.
    `kept`: what the least of `beyond` may be less by, where a cache that is shared kept all that was gone through
    before the data come again. `by_heart`: what of `core` a pass over the same data at once again may lack.
    `after_others`: what of `calls` are calls that come after other data, and wait for what these have pushed out.
    """

    arithmetic: Bounds
    core: Bounds
    beyond: Bounds
    streamed: Bounds
    latency: Bounds
    calls: Bounds
    missing: tuple[str, ...]
    launched: bool = False
    kept: Linear = Linear()
    by_heart: Linear = Linear()
    after_others: Linear = Linear()

    @property
    def likely(self) -> Linear:
        """What a span most likely takes in all, in ns."""
        parts = (self.core, self.beyond, self.streamed, self.latency, self.calls)
        return _linear((each.mid, 1.0) for each in parts)

    def times(self, of: Callable[[Linear], Array]) -> tuple[Array, Array, Array]:
        """Return (least, likely, most) ns of LAW_PARTS, float64 [5, …], where `of` turns a law into an array [...].

        Instructions are what the kernel's own loop takes beyond arithmetic at peak. Streams take least when the
        processor fetches them behind instructions as far as there are any.
        """
        arithmetic, core, beyond, streamed, latency, calls = (
            np.maximum([of(each) for each in bounds], 0.0) for bounds in self[:6]
        )
        peak = np.minimum(arithmetic, core)
        hidden = np.maximum(streamed[0] - core[1], 0.0)
        least = peak[0], np.maximum(core[0] - peak[2], 0.0), beyond[0] + hidden
        likely = peak[1], core[1] - peak[1], beyond[1] + streamed[1]
        most = peak[2], np.maximum(core[2] - peak[0], 0.0), beyond[2] + streamed[2]
        ends = [
            np.array([*parts, latency[i], calls[i]])
            for i, parts in enumerate((least, likely, most))
        ]
        if self.launched:
            row = LAW_PARTS.index("calls")
            ends[0][row] = 0.0
            for end in ends[1:]:
                work = end.sum(axis=0) - end[row]
                end[row] = np.maximum(end[row] - work, 0.0)
        return ends[0], ends[1], ends[2]


class _Sum:
    """Adds up laws times factors."""

    def __init__(self) -> None:
        self._low: list[tuple[Linear, float]] = []
        self._mid: list[tuple[Linear, float]] = []
        self._high: list[tuple[Linear, float]] = []

    def add(self, count: Linear, each: tuple[float, float, float], most: Linear | None) -> None:
        """Add `count` units (`most` at most) of `each` ns: least, likely, most; negative counts take off.

        A difference, items less those that are counted elsewhere, is never below nothing and takes nothing off.
        """
        low, mid, high = each
        if min(count.as_list()) < 0 >= max(count.as_list()):
            # What comes off leaves least where it is most itself.
            low, high = high, low
        self._low.append((count, low))
        self._mid += [(count, mid)] if most is None else [(count, mid / 2), (most, mid / 2)]
        self._high.append((count if most is None else most, high))

    def bounds(self) -> Bounds:
        """The sums."""
        return Bounds(_linear(self._low), _linear(self._mid), _linear(self._high))


def law_of(cost: Cost, roof_table: RoofTable) -> Law:
    """Return what `cost` takes at the roofs of as many threads as share its work."""
    arithmetic, core, beyond, streamed, latency, calls = (_Sum() for _ in range(6))
    kept: list[tuple[Linear, float]] = []
    by_heart: list[tuple[Linear, float]] = []
    after_others: list[tuple[Linear, float]] = []
    missing: list[str] = []
    for name, law in cost.operations.items():
        roof = _peak(name, cost.threads, roof_table)
        if roof is None:
            missing.append(name)
            continue
        arithmetic.add(law, _per_unit(roof), None)
    for term in _terms(cost):
        if term.kind == KERNEL:
            roof = roof_table.kernel(term.roof, cost.threads)
            if roof is None:
                missing.append(term.roof)
                continue
            hot = _per_unit(roof)
            if term.bytes:
                large = roof_table.kernel(term.roof, cost.threads, term.bytes)
                if large is None:
                    core.add(term.count, hot, term.most)
                    missing.append(f"{term.roof} over {term.bytes:.0f} bytes")
                    continue
                whole = _per_unit(large)
                near = roof_table.kernel(term.roof, cost.threads, term.nearest)
                nearest = _per_unit(near) if term.nearest and near is not None else whole
                # A loop that was faster over all of its data has no instructions that take longer than that. They are
                # as uncertain as they were: that such a roof is wide is the cache's doing.
                faster = min(hot[1], nearest[1], whole[1]) / hot[1]
                hot = hot[0] * faster, hot[1] * faster, hot[2] * faster
                low, mid, high = _between(hot, whole)
                nearby = _between(hot, nearest)[0]
                # Data do not come sooner from far than from near by, where other programs have less to do with it.
                least = nearby if low < nearby < mid else low
                beyond.add(term.count, (least, mid, high), term.most)
                kept.append((term.count, max(low - nearby, 0.0)))
            core.add(term.count, hot, term.most)
            by_heart.append((term.most or term.count, term.by_heart * hot[1]))
        elif term.kind == STREAM:
            sizes = (FIRST_CACHE, max(term.bytes, FIRST_CACHE))
            rungs = [
                roof_table.bandwidth(size, cost.threads, term.roof, cost.device) for size in sizes
            ]
            near, far = rungs
            if near is None or far is None:
                missing.append(term.roof)
                continue
            # On a device every byte counts: nothing there is taken to be in a cache already.
            each = _per_unit(far) if cost.device else _between(_per_unit(near), _per_unit(far))
            streamed.add(term.count, each, term.most)
        elif term.kind == ACCESS:
            scattered = _scattered(term, cost.threads, roof_table)
            if scattered is None:
                missing.append(term.roof)
                continue
            latency.add(term.count, scattered, term.most)
        elif term.kind == CALL:
            roof = roof_table.call(term.roof, int(term.bytes))
            if roof is None:
                missing.append(term.roof)
                continue
            calls.add(term.count, _each(roof), term.most)
            if term.bytes:
                after_others.append((term.count, roof.median))
    peak = arithmetic.bounds()
    own = core.bounds() if _has_kernel(cost) else peak
    return Law(
        peak,
        own,
        beyond.bounds(),
        streamed.bounds(),
        latency.bounds(),
        calls.bounds(),
        tuple(dict.fromkeys(missing)),
        bool(cost.device),
        _linear(kept),
        _linear(by_heart),
        _linear(after_others),
    )


def _peak(operation: str, threads: int, roof_table: RoofTable) -> Roof | None:
    """The best rate of a class of operations: of the libraries that were measured and the workload's own kernel."""
    found = (roof_table.rate(operation, threads), roof_table.kernel(operation, threads))
    return max(filter(None, found), key=lambda roof: roof.median, default=None)


def _scattered(
    term: Term, threads: int, roof_table: RoofTable
) -> tuple[float, float, float] | None:
    """ns that an access, or a unit of a kernel, takes longer over the term's bytes than in the first cache."""
    if term.roof in LADDERS:
        sizes = (FIRST_CACHE, max(term.bytes, FIRST_CACHE))
        near, far = (roof_table.latency(size, term.roof) for size in sizes)
        return _between(_each(near), _each(far)) if near and far else None
    near = roof_table.kernel(term.roof, threads)
    far = roof_table.kernel(term.roof, threads, term.bytes)
    return _between(_per_unit(near), _per_unit(far)) if near and far else None


def needed(costs: Iterable[Cost]) -> list[tuple[Term, int]]:
    """Return the terms of `costs` that name a roof of their own, a kernel's or a call's, each with its threads.

    Among them is the best rate of numbers other than float32: a run's plan has it for none of these.
    """
    found: dict[tuple[str, str, float, int], tuple[Term, int]] = {}
    for cost in costs:
        for name, count in cost.operations.items():
            if _OTHER_NUMBERS.fullmatch(name):
                found[KERNEL, name, 0.0, cost.threads] = Term(KERNEL, name, count), cost.threads
        for term in cost.terms or ():
            # A device's roofs ("launch@cuda") come with its own part of the calibration.
            if (
                term.kind in (KERNEL, CALL, ACCESS)
                and term.roof not in LADDERS
                and "@" not in term.roof
            ):
                threads = 1 if term.kind == CALL else cost.threads
                found[term.kind, term.roof, term.bytes, threads] = term, threads
    return list(found.values())


def _has_kernel(cost: Cost) -> bool:
    return any(term.kind == KERNEL for term in cost.terms or ())


def _terms(cost: Cost) -> tuple[Term, ...]:
    """The terms of a cost; of one without, its bytes as one stream."""
    if cost.terms is not None:
        return cost.terms
    most = cost.bytes_max if cost.bytes_max != Linear() else None
    return (Term(STREAM, "read", cost.bytes_min, cost.working_set_bytes, most),)


def _per_unit(roof: Roof) -> tuple[float, float, float]:
    return NS / roof.high, NS / roof.median, NS / roof.low


def _each(roof: Roof) -> tuple[float, float, float]:
    return roof.low, roof.median, roof.high


def _between(
    near: tuple[float, float, float], far: tuple[float, float, float]
) -> tuple[float, float, float]:
    """What `far` takes longer than `near`; never less than nothing."""
    low, mid, high = far[0] - near[1], far[1] - near[1], far[2] - near[1]
    return max(low, 0.0), max(mid, 0.0), max(high, 0.0)


def _linear(terms: Iterable[tuple[Linear, float]]) -> Linear:
    fixed = per_frame = 0.0
    work = [0.0] * WORK_COUNTS
    for law, factor in terms:
        fixed += law.fixed * factor
        per_frame += law.per_frame * factor
        work = [w + f * factor for w, f in zip(work, law.per_work, strict=True)]
    return Linear(fixed, per_frame, (work[0], work[1], work[2]))


_LAWS: dict[int, tuple[Cost, RoofTable, Law]] = {}
_MOST_LAWS: Final = 512


def law_of_cached(cost: Cost, roof_table: RoofTable) -> Law:
    """Return `law_of(cost, roof_table)`: worked out once for a cost, as chunk after chunk of its spans asks for it."""
    known = _LAWS.get(id(cost))
    if known is None or known[0] is not cost or known[1] is not roof_table:
        if len(_LAWS) >= _MOST_LAWS:
            _LAWS.clear()
        known = _LAWS[id(cost)] = (cost, roof_table, law_of(cost, roof_table))
    return known[2]


def forget_laws() -> None:
    """Let go of all laws worked out so far: a session was closed, whose costs and roofs they hold."""
    _LAWS.clear()
