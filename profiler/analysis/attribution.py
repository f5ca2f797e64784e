"""Where the time of a stage went, measured first and modelled second.

time = other programs + waiting + hot; hot = arithmetic at peak + calls + streams that no near cache holds +
instructions (the measured rest); waiting = bandwidth + latency + first calls after other data.

Other programs (`conditions`) and the hot time (`replays`: blocks run again with their data in the caches) are measured.
The cost law and the roofs divide these: operations at the best library rate of their class; counted calls, between two
measured costs; bytes and scattered accesses by the ladders, in proportion to what each takes more from afar than near
by. What law and measurement cannot hold together is *not attributed*: arithmetic and calls beyond the hot time, waiting
beyond what all data could take from memory. Without replays the law alone says what a stage took at least.

The shares are those of all blocks under one law, so each frame, each stage and the whole have the same. Operations as
in the roofline model (Williams et al. 2009); instructions and traffic add up as in the execution-cache-memory model
(Treibig & Hager 2009).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from profiler.analysis.categories import LAW_PARTS, NOT_ATTRIBUTED
from profiler.analysis.machine_costs import FIRST_CACHE, MEMORY, Counts, MachineCosts, Sums, counted
from profiler.analysis.recorded import Recorded
from profiler.arrays import Array
from profiler.costs import BARRIER, CHASE, KERNEL_CALL, Cost
from profiler.machine.roofs.table import RoofTable

REPLAYED: Final = "replay."  # Prefix of stages of hot times; their count is the time of the same block before
LATEST: Final = 256  # Replays of a stage that are used together: more do not make the result more certain


class Pairs(NamedTuple):
    """Replays of a stage: what each took, and what its block had taken, float64 [n] in ns each."""

    hot: Array
    timed: Array

    def __len__(self) -> int:
        return len(self.hot)

    @property
    def ratio(self) -> float:
        return float(self.hot.sum() / self.timed.sum())

    @property
    def error(self) -> float:
        """The standard error of `ratio`, of two replays or more: of a ratio of sums (Cochran 1977, 2.11)."""
        n = len(self.hot)
        off = self.hot - self.ratio * self.timed
        return float(np.sqrt(n / (n - 1) * (off**2).sum()) / self.timed.sum())


class HotReplays:
    """Kept up with a session by `update`."""

    def __init__(self) -> None:
        self._consumed = 0
        self._found: dict[str, list[Array]] = {}

    def update(self, session: Recorded) -> None:
        """Take in the replays among the spans read since the last call."""
        fresh = session.spans[self._consumed :]
        self._consumed = len(session.spans)
        stages = np.ascontiguousarray(fresh["stage"])
        for number, stage in session.stages.items():
            if not stage.name.startswith(REPLAYED):
                continue
            mine = fresh[stages == number]
            mine = mine[mine["work0"] > 0]
            if len(mine):
                rows = np.stack([mine["duration_ns"], mine["work0"], mine["epoch"]], axis=1)
                found = self._found.setdefault(stage.name.removeprefix(REPLAYED), [])
                found.append(rows.astype(np.float64))

    def of(self, session: Recorded, number: int, epoch: int) -> Pairs:
        """The latest replays of a stage under the law that it has in `epoch`."""
        found = self._found.get(session.stages[number].name)
        if not found:
            return Pairs(np.zeros(0), np.zeros(0))
        if len(found) > 1:
            found[:] = [np.concatenate(found)]
        rows, law = found[0], session.costs.get((number, epoch))
        epochs = [each for each in np.unique(rows[:, 2]).tolist() if session.costs.get((number, int(each))) == law]
        hot, timed, _ = rows[np.isin(rows[:, 2], epochs)][-LATEST:].T
        return Pairs(hot, timed)


SHARES: Final = (*LAW_PARTS, NOT_ATTRIBUTED)  # What a stage's own time is shared out to
GROUPS: Final = ("scoring", "search")  # The groups whose stages are replayed
FEWEST: Final = 3  # Replays of a stage from which on they say how uncertain they are
DRAWS: Final = 400  # Values drawn for an interval: its ends are the tenth from either side
ENDS: Final = (0.025, 0.975)


class Shares(NamedTuple):
    """Shares of a stage's own time, 0…1 by SHARES: the likely ones, which add up to 1, and the ends of their intervals.

    `least`: what arithmetic and calls take at least, which may be more than 1. `replays`: how many it rests on; 0: the
    law alone. `missing`: names of roofs that were not measured. `unknown`: whether arithmetic is among them.
    """

    likely: Array
    low: Array
    high: Array
    least: float
    replays: int
    missing: tuple[str, ...] = ()
    unknown: bool = False


class Attribution:
    """The shares of a session's stages, kept up with it by `update`."""

    def __init__(self) -> None:
        self._replays = HotReplays()
        self._session: Recorded | None = None
        self._totals: Mapping[tuple[int, int], Sums] = {}
        self._around: dict[int, dict[str, float]] = {}  # Bytes between two uses of the same data, by epoch and group
        self._known: dict[tuple[int, int, int], tuple[object, Shares]] = {}

    def update(self, session: Recorded, totals: Mapping[tuple[int, int], Sums]) -> None:
        """Take in the replays that are new. `totals`: by stage and epoch, of all blocks decoded so far."""
        known = self._totals
        for epoch in {of for (stage, of), total in totals.items() if known.get((stage, of)) != total}:
            self._around.pop(epoch, None)
        self._session, self._totals = session, totals
        self._replays.update(session)

    def of(self, stage: int, epoch: int, draws: int = DRAWS) -> Shares | None:
        """The likely shares and, with `draws`, their intervals; None without law, roofs, or such a stage in a block."""
        session, total = self._session, self._totals.get((stage, epoch))
        if session is None or total is None:
            return None
        cost = session.costs.get((stage, epoch))
        if cost is None or not _has_law(cost, session.calibration):
            return None
        pairs = self._replays.of(session, stage, epoch)
        around = self._of_epoch(session, epoch)
        near = around.get(session.stages[stage].group, 0.0)
        # All that a block goes through, but no less than what the law itself says of it.
        far = max(sum(around.values()), cost.working_set_bytes)
        state = (total, cost, id(session.calibration), len(pairs), near, far)
        key = stage, epoch, draws
        if key not in self._known or self._known[key][0] != state:
            machine = MachineCosts(session.calibration, draws)
            counts = counted(cost, total)
            if len(pairs) < FEWEST or cost.device:
                found = _by_law(total.own, counts, machine, far)
            else:
                found = _measured(total.own, pairs, counts, machine, near, far, draws)
            self._known[key] = state, found
        return self._known[key][1]

    def _of_epoch(self, session: Recorded, epoch: int) -> dict[str, float]:
        """What a block goes through under the settings of an epoch: what all laws count, over the blocks."""
        if epoch not in self._around:
            touched = dict.fromkeys(GROUPS, 0.0)
            blocks = 1.0
            for (stage, of), total in self._totals.items():
                group, cost = session.stages[stage].group, session.costs.get((stage, of))
                if of != epoch or group not in GROUPS:
                    continue
                blocks = max(blocks, total.calls)
                if cost is not None and not cost.device:
                    touched[group] += counted(cost, total).touched
            self._around[epoch] = {group: size / blocks for group, size in touched.items()}
        return self._around[epoch]


def _has_law(cost: Cost, roof_table: RoofTable) -> bool:
    return bool(roof_table) and not cost.is_empty and not cost.unmodelled


def by_law(cost: Cost | None, sums: Sums, roof_table: RoofTable) -> Shares | None:
    """Return the shares of spans that nothing measured, by their law; None where there is none, or no roofs."""
    if cost is None or not _has_law(cost, roof_table):
        return None
    return _by_law(sums.own, counted(cost, sums), MachineCosts(roof_table, DRAWS), cost.working_set_bytes)


def _arithmetic(counts: Counts, machine: MachineCosts) -> tuple[Array, bool]:
    """ns of the operations at their peaks, and whether one of them has none."""
    found, unknown = np.zeros(1), False
    for name, count in counts.operations.items():
        each = machine.operation_ns(name, counts.threads)
        if each is None:
            unknown = True
        else:
            found = found + count * each
    return found, unknown


def _calls(counts: Counts, machine: MachineCosts) -> tuple[Array, Array]:
    """ns of the calls: at least, and at most. What each takes depends on its arguments, between two measured costs."""
    least, most = np.zeros(1), np.zeros(1)
    for kind, count in counts.calls.items():
        if not kind.startswith(f"{BARRIER}@"):
            # At least one without arrays and a span.
            least = least + count * machine.call_ns("numba" if kind == KERNEL_CALL else kind)
            most = most + count * machine.call_ns(kind)
    return np.minimum(least, most), most


def _over(amount: Array, whole: Array) -> Array:
    """The quotient; 0 where there is no whole."""
    shape = np.broadcast(amount, whole)
    with np.errstate(over="ignore"):  # the quotient of a whole next to nothing, which nobody uses
        return np.divide(amount, whole, out=np.zeros(shape.shape), where=np.broadcast_to(whole > 0, shape.shape))


def _measured(
    own: float, pairs: Pairs, counts: Counts, machine: MachineCosts, near: float, far: float, draws: int
) -> Shares:
    """The shares of `own` ns of a replayed stage; data come again after `near` (group) or `far` (block) bytes."""
    n = len(pairs)
    drawn = np.random.default_rng(n).standard_t(n - 1, draws) if draws else np.zeros(0)
    hot = own * np.clip(pairs.ratio + np.concatenate([[0.0], drawn]) * pairs.error, 0.0, 1.0)
    arithmetic, unknown = _arithmetic(counts, machine)
    fewest, most = _calls(counts, machine)
    least = arithmetic + fewest
    # Calls take as much of their interval as the hot time has room for.
    calls = np.clip(hot - arithmetic, fewest, most)
    excess = np.maximum(arithmetic + calls - hot, 0.0)
    # What is counted too much is a contradiction, and as much of the time is not attributed.
    lost = np.minimum(excess, hot)
    kept = np.where(excess > 0, _over(hot - lost, arithmetic + calls), 1.0)
    arithmetic, calls = arithmetic * kept, calls * kept
    rest = np.maximum(hot - lost - arithmetic - calls, 0.0)
    hot_streams, hot_scattered, later, at_all = _traffic(counts, machine, near, far)
    streams = np.minimum(hot_streams, rest)
    nearby = np.minimum(hot_scattered, rest - streams)
    # Even all from memory, each access waiting for the one before, data cannot take longer.
    longest = counts.most_streamed * machine.byte_ns(MEMORY, counts.threads)
    longest = longest + counts.scattered * machine.access_ns(CHASE, MEMORY)
    first = counts.first_calls * machine.first_call_ns()
    beyond = np.maximum(own - hot - longest - first, 0.0)
    waiting = own - hot - beyond
    # Calls take what was measured of one, and data the rest, however far away they were.
    called = np.minimum(first, waiting * _over(first, first + later.sum(axis=0)))
    data = waiting - called
    # Where neither takes more from afar, all that they take says how they share what was waited for.
    in_order, scattered = np.where(later.sum(axis=0) <= 0, at_all, later)
    bandwidth = _over(in_order, in_order + scattered)
    rows = np.broadcast_arrays(
        arithmetic,
        rest - streams - nearby,
        streams + data * bandwidth,
        nearby + data * (1.0 - bandwidth),
        calls + called,
        lost + beyond,
    )
    return _shares(np.array(rows) / max(own, 1.0), own, least, n, machine, unknown)


def _traffic(counts: Counts, machine: MachineCosts, near: float, far: float) -> tuple[Array, Array, Array, Array]:
    """What the data of a stage take, ns.

    First streams of hot data beyond the first cache, then scattered accesses to such data. Then what data in order, and
    scattered accesses, take more from afar than near by; and all that they take, [2, draws] each.

    What the stage before left comes from as far as it is large, parameters from as far as all of the block is. Data
    larger than what the group goes through come from as far as they are large.
    """
    size, threads = counts.own_bytes, counts.threads
    left = (size, size) if size < near else (near, max(far, size))
    first = machine.byte_ns(FIRST_CACHE, threads)
    hot, in_order, all_in_order = np.zeros(1), np.zeros(1), np.zeros(1)
    for amount, (here, there) in ((counts.parameters, (near, far)), (counts.streamed, left)):
        close, away = machine.byte_ns(here, threads), machine.byte_ns(there, threads)
        hot = hot + amount * np.maximum(close - first, 0.0)
        in_order = in_order + amount * np.maximum(away - close, 0.0)
        all_in_order = all_in_order + amount * away
    scattered, all_scattered, hot_scattered = np.zeros(1), np.zeros(1), np.zeros(1)
    for each, count in counts.accesses:
        close = machine.access_ns(each.pattern, FIRST_CACHE)
        away = machine.access_ns(each.pattern, each.bytes)
        nearby = machine.access_ns(each.pattern, min(each.bytes, near))
        scattered = scattered + count * np.maximum(away - nearby, 0.0)
        hot_scattered = hot_scattered + count * np.maximum(nearby - close, 0.0)
        all_scattered = all_scattered + count * away
    later, whole = (
        np.array(np.broadcast_arrays(*both)) for both in ((in_order, scattered), (all_in_order, all_scattered))
    )
    return hot, hot_scattered, later, whole


def _by_law(own: float, counts: Counts, machine: MachineCosts, far: float) -> Shares:
    """The shares of a stage without replays: what it took at least, one after the other within its time.

    On the host: arithmetic, calls and its parameters in order. On a device: all bytes, what a thread waits for one
    after the other (its accesses, and barriers of its block), and launches beyond that work.
    """
    arithmetic, unknown = _arithmetic(counts, machine)
    fewest, calls = _calls(counts, machine)
    latency = np.zeros(1)
    if counts.device:
        order: tuple[str, ...] = ("arithmetic", "bandwidth", "latency", "calls")
        least = arithmetic
        amount = counts.parameters + counts.streamed
        bandwidth = amount * machine.byte_ns(counts.own_bytes, counts.threads, counts.device)
        for each, count in counts.accesses:
            latency = latency + count * machine.access_ns(each.pattern, each.bytes, counts.device)
        barrier = f"{BARRIER}@{counts.device}"
        if barrier in counts.calls:
            latency = latency + counts.calls[barrier] * machine.call_ns(barrier)
        calls = np.maximum(calls - arithmetic - bandwidth, 0.0)
    else:
        order = ("arithmetic", "calls", "bandwidth")
        least = arithmetic + fewest
        first = machine.byte_ns(FIRST_CACHE, counts.threads)
        bandwidth = counts.parameters * np.maximum(machine.byte_ns(far, counts.threads) - first, 0.0)
    times = {"arithmetic": arithmetic, "bandwidth": bandwidth, "latency": latency, "calls": calls}
    found, left = dict.fromkeys(SHARES, np.zeros(1)), np.full(1, own)
    for name in order:
        found[name] = np.minimum(times[name], left)
        left = left - found[name]
    found[NOT_ATTRIBUTED] = left
    rows = np.broadcast_arrays(*found.values())
    shares = _shares(np.array(rows) / max(own, 1.0), own, least, 0, machine, unknown)
    if counts.device:
        return shares
    # What is not attributed may be any of the others.
    high = np.minimum(shares.high + shares.likely[-1], 1.0)
    high[-1] = shares.high[-1]
    return shares._replace(high=high)


def _shares(rows: Array, own: float, least: Array, replays: int, machine: MachineCosts, unknown: bool) -> Shares:
    """Of `rows` [SHARES, 1 + draws]: the first column, and the ends of the interval of all."""
    likely = low = high = rows[:, 0]
    if rows.shape[1] > 1:
        ends = np.quantile(rows[:, 1:], ENDS, axis=1)
        low, high = np.minimum(ends[0], likely), np.maximum(ends[1], likely)
    shortest = float(least.min()) / max(own, 1.0)
    return Shares(likely, low, high, shortest, replays, tuple(machine.missing), unknown)
