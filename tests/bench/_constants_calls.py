"""Constants of `tests.bench.constants` about what single calls take: of compiled kernels, and of the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from pipelines.run.hot_replay import GAIN
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.dnn.products import simd
from pipelines.scoring.dnn.roofs._integers import panels
from pipelines.scoring.roofs_tasks import CHUNK, filled, read
from pipelines.scoring.simd.vector import LANES
from pipelines.search.kernels.intrinsics import arrays_in
from profiler.arrays import I64, Array
from profiler.machine import run_queue
from profiler.machine.roofs import calibration, probe, timing
from profiler.machine.roofs.cpu import GEMM_SIZE
from tests.bench._constants_products import row, seconds

SEVERAL = 10
OTHER = 32 << 20
"""Bytes that push everything else out of the caches near a core."""
MEANT = 10 << 20
"""Bytes of the work whose passes are compared."""
PASSES, TIMES = 8, 9
LEFT, LEFT_MS, LEFTS = 8 << 20, (0, 1, 2, 4, 8, 16), 61
WAITED, WAITED_GROUPS, WAITED_BYTES, WAIT_MS = 64, 64, 1296 << 10, 10
"""Frames, groups of inputs and bytes of weights of a product, as the last layer of a net; ms between two of them."""
FOR_A_MIDDLE = 4
"""Moments of a roof, at least, of which one is compared with the middle of the others."""
HOT_AFTER = 4
"""Passes after which data are in the caches."""


class Named(NamedTuple):
    """As many arrays as a kernel may take."""

    a: Array
    b: Array
    c: Array
    d: Array
    e: Array
    f: Array
    g: Array
    h: Array
    i: Array
    j: Array


def _first(arrays: tuple[Array, ...]) -> int:
    return len(arrays[0])


def _rows(arrays: tuple[Array, ...]) -> I64:
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64)


def _tabled() -> Callable[[I64], int]:
    """`_first` of arrays in a table."""
    arrays_at = arrays_in([[np.dtype(np.float32)] * SEVERAL])

    @numba.njit(_nrt=False)
    def first(table: I64) -> int:  # pragma: no cover - compiled
        return len(arrays_at(table)[0][0])

    return first  # type: ignore[no-any-return]


def calls() -> Iterator[dict[str, Any]]:
    """A compiled call with arrays in a tuple, in a table, with names, and with counted references."""
    arrays = tuple(np.zeros(1, np.float32) for _ in range(SEVERAL))
    free = numba.njit(_nrt=False)(_first)
    plain, named = (seconds(lambda given=given: free(given)) for given in (arrays, Named(*arrays)))
    counting = numba.njit(_first)
    counted = seconds(lambda: counting(arrays))
    where = "scoring/tied/kernels.py and others"
    each = (named - plain) / SEVERAL * 1e6
    yield row(where, "a name of a NamedTuple, each call", "", each, "µs")
    where = "search/kernels/calls.py"
    yield row(where, "a call with ten arrays in a tuple", "", plain * 1e6, "µs")
    yield row(where, "the same in a NamedTuple", "", named * 1e6, "µs")
    in_tuple, in_table = (partial(free, arrays), partial(_tabled(), _rows(arrays)))
    where = "search/kernels/table.py"
    yield row(where, "a call with ten arrays in a table", "", seconds(in_table) * 1e6, "µs")
    for what, once in (("in a tuple", in_tuple), ("in a table", in_table)):
        what = f"a call with ten arrays {what}, after other data had the caches"
        yield row(where, what, "", _after(OTHER, once), "µs")
    product = simd.Weights(filled((LANES, 2)), 1, 1)
    x, out = filled((2, 1)), filled((LANES, 1))
    where = "scoring/dnn/products/__init__.py bind"
    for what, once in (
        ("a small product of one frame, bound to its arrays before", product.bind(x, out)),
        ("the same, bound in every call", lambda: product.multiply(x, out)),
    ):
        yield row(where, what, "", seconds(once) * 1e6, "µs")
    where = "search/kernels/numba_flags.py"
    each = (counted - plain) * 1e6
    yield row(where, "references of ten arrays counted, each call", "", each, "µs")


def system() -> Iterator[dict[str, Any]]:
    """A reading of the run queue, data out of the caches or left in them, the size of a product, and the probes."""
    with run_queue.RunQueue() as queue:
        if queue.readable:
            where = "profiler/machine/run_queue.py LEAST_AWAY_NS"
            least = run_queue.LEAST_AWAY_NS / 1e3
            hot, cold = _after(0, queue._ready_ns), _after(OTHER, queue._ready_ns)
            yield row(where, "a reading, again at once", least, hot, "µs")
            yield row(where, "a reading, after other data had the caches", least, cold, "µs")
    first, *later = _passes()
    where = "pipelines/run/hot_replay.py GAIN"
    yield row(where, "the second pass takes less than the first by", GAIN, 1 - later[0] / first, "")
    gains = [1 - after / before for before, after in pairwise(later)]
    yield row(where, "each later pass than the one before", GAIN, float(np.median(gains)), "")
    where = "scoring/roofs_tasks.py after_others"
    at_once, *left = _left()
    for ms, ns in zip(LEFT_MS[1:], left, strict=True):
        what = f"data left for {ms} ms / read again at once, time to read them"
        yield row(where, what, "", ns / at_once, "")
    resting, reading = _after_a_wait()
    where = "scoring/roofs_tasks.py CHUNK"
    what = f"a product of {WAITED} frames after a wait without memory / after reading for as long"
    yield row(where, what, "", resting / reading, "")
    small, large = (_gemm(n) for n in (GEMM_SIZE, 2 * GEMM_SIZE))
    where = "profiler/machine/roofs/cpu.py"
    yield row(where, "rate of a product of 512³ / of 1024³", "", small / large, "")
    arithmetic, memory = (seconds(partial(make(), 1)) for make in probe.TASKS)
    where = "profiler/machine/roofs/probe.py PASSES"
    yield row(where, "the probe of arithmetic, once", "", arithmetic * 1e6, "µs")
    both = (1 + probe.TIMES) * (arithmetic + memory) * 1e9 / probe.EVERY_NS
    where = "profiler/machine/roofs/probe.py EVERY_NS"
    yield row(where, "part of a run that the probes take", "", both, "")
    apart = _moments_apart()
    if apart is not None:
        where = "profiler/machine/roofs/timing.py ONE_MOMENT"
        what = "of the roofs kept here, how far from the middle the furthest moments of 9 of 10 lie at most"
        yield row(where, what, timing.ONE_MOMENT, apart, "")
    within = _moments_within()
    if within is not None:
        where = "profiler/machine/roofs/timing.py STUDENT"
        what = "of the same roofs, the moments that lie where the others let them"
        yield row(where, what, 0.9, within, "")
    of_one, of_several = _better_moments()
    if of_one is not None:
        where = "profiler/machine/roofs/timing.py ONE_OWN_MOMENT"
        what = "of roofs of a core's own, how much better than the first the best moment of 19 of 20 is at most"
        yield row(where, what, timing.ONE_OWN_MOMENT, of_one, "")
    if of_several is not None:
        where = "profiler/machine/roofs/timing.py NEW_OWN_MOMENT"
        what = "of the same roofs, how much better than the best of the others 19 of 20 moments are at most"
        yield row(where, what, timing.NEW_OWN_MOMENT, of_several, "")


def _moments_apart() -> float | None:
    """How far, of ten roofs that runs took at several moments, the furthest moments of nine are from the middle one.

    As a part of it, faster or slower; None where no roof was.
    """
    found = []
    known = calibration.load(calibration.file())
    for moments in map(known.latest, known.moments):
        rates = np.array([roof.median for roof in moments if not roof.disturbed])
        if len(rates) > 1:
            ratios = rates / np.median(rates)
            found.append(float(np.maximum(ratios, 1.0 / ratios).max()) - 1.0)
    return float(np.quantile(found, 0.9)) if found else None


def _moments_within() -> float | None:
    """The part of moments that lie where their roof's others let another be; None where none has enough of them."""
    found = []
    known = calibration.load(calibration.file())
    for key in known.moments:
        moments = [roof for roof in known.moments[key] if not roof.disturbed]
        if not calibration.is_shared(key) or len(moments) < FOR_A_MIDDLE:
            continue
        for i, roof in enumerate(moments):
            others = [*moments[:i], *moments[i + 1 :]]
            ratio = roof.median / timing.middle(others).median
            slower, faster = timing.wider_by(others)
            ratio = 1.0 / ratio if roof.kind in timing.TIMES else ratio
            found.append(1.0 / slower <= ratio <= faster)
    return float(np.mean(found)) if found else None


def _better_moments() -> tuple[float | None, float | None]:
    """How much better the best moment of 19 of 20 roofs of a core's own is than the first, and one than all others.

    As a part of it; None where no such roof was taken at enough moments.
    """
    best, new = [], []
    known = calibration.load(calibration.file())
    for key in known.moments:
        speeds = np.array([roof.median for roof in known.latest(key) if not roof.disturbed])
        if calibration.is_shared(key) or len(speeds) < 2:
            continue
        if key.kind in timing.TIMES:
            speeds = 1.0 / speeds
        best.append(float(speeds.max() / speeds[0]) - 1.0)
        if len(speeds) >= calibration.OWN_MOMENTS:
            for i, speed in enumerate(speeds):
                new.append(float(speed / np.delete(speeds, i).max()) - 1.0)
    return _at_most(best), _at_most(new)


def _at_most(found: list[float]) -> float | None:
    return max(float(np.quantile(found, 0.95)), 0.0) if found else None


def _after(other: int, once: Callable[[], object]) -> float:
    """µs that `once` takes, each time after so many bytes of other data were read."""
    between = np.ones(other // 8)
    found = []
    for _ in range(51):
        between.sum()
        start = perf_counter_ns()
        once()
        found.append(perf_counter_ns() - start)
    return float(np.median(found)) / 1e3


def _passes() -> list[float]:
    """Median ns of each of PASSES sums over MEANT bytes, the first of which finds them out of the caches."""
    data, other = np.ones(MEANT // 8), np.ones(OTHER // 8)
    found = np.empty((TIMES, PASSES))
    for turn in range(TIMES):
        other.sum()
        for i in range(PASSES):
            start = perf_counter_ns()
            data.sum()
            found[turn, i] = perf_counter_ns() - start
    return [float(ns) for ns in np.median(found, axis=0)]


def _left() -> list[float]:
    """Median ns of reading LEFT bytes that nothing of this program has touched for each of LEFT_MS, in turns."""
    data = filled((LEFT // FLOAT,))
    found = np.empty((LEFTS, len(LEFT_MS)))
    for turn in range(LEFTS):
        for i, ms in enumerate(LEFT_MS):
            for _ in range(HOT_AFTER):
                read(data)
            until = perf_counter_ns() + ms * 1_000_000
            while perf_counter_ns() < until:
                pass
            start = perf_counter_ns()
            read(data)
            found[turn, i] = perf_counter_ns() - start
    return [float(ns) for ns in np.median(found, axis=0)]


def _after_a_wait() -> tuple[float, float]:
    """Median ns of an int8 product of WAITED frames, WAIT_MS after its last in turns: a clock watched; CHUNKs read."""
    product = panels(WAITED_BYTES, (WAITED, WAITED_GROUPS)).make()
    before, piece = filled((OTHER // FLOAT,)), filled((CHUNK,))
    found = np.empty((LEFTS, 2))
    for turn in range(LEFTS):
        for i, reads in enumerate((False, True)):
            until = perf_counter_ns() + WAIT_MS * 1_000_000
            read(before)
            while perf_counter_ns() < until:
                if reads:
                    read(piece)
            product(0)
            start = perf_counter_ns()
            product(1)
            found[turn, i] = perf_counter_ns() - start
    resting, reading = np.median(found, axis=0)
    return float(resting), float(reading)


def _gemm(size: int) -> float:
    """Operations a second."""
    a, b = (np.random.default_rng(0).random((size, size), np.float32) for _ in range(2))
    out = np.empty_like(a)
    with threadpool_limits(1):
        return 2 * size**3 / seconds(lambda: np.matmul(a, b, out=out))
