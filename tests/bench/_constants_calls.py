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
from pipelines.scoring.dnn.products import simd
from pipelines.scoring.simd.vector import LANES, aligned
from pipelines.search.kernels.intrinsics import arrays_in
from profiler.arrays import I64, Array
from profiler.machine import run_queue
from profiler.machine.roofs.cpu import GEMM_SIZE
from tests.bench._constants_products import row, seconds

SEVERAL = 10
OTHER = 32 << 20
"""Bytes that push everything else out of the caches near a core."""
MEANT = 10 << 20
"""Bytes of the work whose passes are compared."""
PASSES, TIMES = 8, 9


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
    product = simd.Weights(aligned((LANES, 2)), 1, 1)
    x, out = aligned((2, 1)), aligned((LANES, 1))
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
    """A reading of the run queue, data out of the caches, and the size of a product."""
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
    small, large = (_gemm(n) for n in (GEMM_SIZE, 2 * GEMM_SIZE))
    where = "profiler/machine/roofs/cpu.py"
    yield row(where, "rate of a product of 512³ / of 1024³", "", small / large, "")


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


def _gemm(size: int) -> float:
    """Operations a second."""
    a, b = (np.random.default_rng(0).random((size, size), np.float32) for _ in range(2))
    out = np.empty_like(a)
    with threadpool_limits(1):
        return 2 * size**3 / seconds(lambda: np.matmul(a, b, out=out))
