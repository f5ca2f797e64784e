"""Taking the machine's roofs: GEMM, vector and scalar arithmetic, exp and log, the bandwidth ladder.

Method as in the Empirical Roofline Tool: sweep working sets with simple kernels and take what the machine
sustains. Each figure is the median of repeats, kept with the lowest and highest; a repeat lasts
milliseconds, so that the call does not count. Reads count bytes read, triad 12 bytes per float32 element
(no write-allocate). GEMM runs through numpy's BLAS; exp and log through numpy, through the C library (a plain
numba loop) and as vectorised polynomials, because the workload uses all three.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from profiler.errors import Cancelled as Stopped
from profiler.machine.describe import describe
from profiler.machine.peaks import (
    BANDWIDTH,
    NOMINAL_DTYPE,
    OVERHEAD,
    RATE,
    Cancelled,
    Peaks,
    Progress,
    Roof,
)
from profiler.paths import cache_dir

METHOD: Final = 5
"""Counted up when a figure is measured differently, so that cached ones are taken again."""

LADDER_BYTES: Final = tuple(1 << power for power in range(14, 29))
"""16 KiB … 256 MiB by doubling: from inside L1 to far beyond any last-level cache of a desk machine."""

TRIAD_BYTES: Final = (24 << 10, 768 << 10, 8 << 20, 256 << 20)
GEMM_SIZE: Final = 512
"""512³: 2.6 ms a call at 100 GFLOP/s; best within 2 % of 1024³, four times as many repeats."""

VECTOR: Final = 2048
"""Float32 elements of the arithmetic kernels: two arrays of 8 KiB lie in any L1."""

REPEAT_SECONDS: Final = 0.004
ROUNDS: Final = 9
RECHECK_ROUNDS: Final = 5

STEADY_SPREAD: Final = 0.1
"""Rounds of an undisturbed machine differ by 1…5 % (of caches, up to 10 %)."""

ATTEMPTS: Final = 4
BUSY_SECONDS: Final = 600.0
BUDGET_SECONDS: Final = 3.5
"""More rounds are taken until then; what remains after that takes under a second."""


class Effort(NamedTuple):
    """How many rounds to take, and until when (perf_counter) more may be taken on a busy machine."""

    rounds: int
    until: float


Task = Callable[[int], object]
"""A kernel call that repeats its work the given number of times."""


def measure(
    threads: int = 1, progress: Progress | None = None, cancelled: Cancelled | None = None
) -> Peaks:
    """Measure all roofs for `threads` threads together; about 2 s, plus compilation the first time.

    `progress(what, fraction)` is told of each step; profiler.errors.Cancelled as soon as `cancelled()`.
    """
    from threadpoolctl import threadpool_limits

    roofs: list[Roof] = []
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(threads))
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        steps = list(_steps(threads, pool))
        effort = Effort(ROUNDS, time.perf_counter() + BUDGET_SECONDS)
        for i, (what, step) in enumerate(steps):
            if cancelled is not None and cancelled():
                raise Stopped("the calibration was cancelled")
            if progress is not None:
                progress(what, i / len(steps))
            roofs.append(step(effort))
    if progress is not None:
        progress("done", 1.0)
    return Peaks.from_rows(Peaks((*roofs, *_best_of(roofs))).rows())


def recheck(peaks: Peaks, threads: int = 1) -> Peaks:
    """Measure GEMM and the ladder's last rung again (0.2 s); compare with `peaks.drift`."""
    from threadpoolctl import threadpool_limits

    wanted = {"gemm", _read_name(LADDER_BYTES[-1])} if peaks else {"gemm"}
    with threadpool_limits(threads), ThreadPoolExecutor(threads) as pool:
        return Peaks(
            tuple(
                step(Effort(RECHECK_ROUNDS, 0.0))
                for what, step in _steps(threads, pool)
                if what in wanted
            )
        )


def load_or_measure(
    threads: int = 1,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    fresh: bool = False,
) -> Peaks:
    """Return the cached roofs of this machine, library build and thread count, or measure them.

    Roofs taken while other programs were busy are kept for BUSY_SECONDS only.
    """
    path = cache_dir("peaks") / f"{_key(threads)}.json"
    if not fresh:
        with suppress(OSError, ValueError, TypeError, KeyError):
            stored = json.loads(path.read_text(encoding="utf-8"))
            peaks = Peaks.from_rows(stored["roofs"])
            fit = stored["steady"] or 0 <= time.time() - stored["measured"] < BUSY_SECONDS
            if fit and peaks.rate("gemm", threads) and peaks.bandwidth(0, threads):
                return peaks
    peaks = measure(threads, progress, cancelled)
    content = {
        "method": METHOD,
        "measured": time.time(),
        "steady": steady(peaks),
        "roofs": peaks.rows(),
    }
    _replace(path, json.dumps(content, indent=1))
    return peaks


def steady(peaks: Peaks) -> bool:
    """Whether the machine was undisturbed enough for these roofs to be kept for good."""
    spreads = sorted(roof.spread for roof in peaks.roofs if roof.kind != OVERHEAD)
    gemm = [roof.spread for roof in peaks.roofs if roof.name == "gemm"]
    return spreads[len(spreads) // 2] <= STEADY_SPREAD and max(gemm) <= 2 * STEADY_SPREAD


def _key(threads: int) -> str:
    machine = describe()
    same: list[Any] = [METHOD, threads]
    same += [
        machine.get(key) for key in ("cpu", "cores", "caches", "memory_bytes", "python", "blas")
    ]
    same += [machine["versions"].get(name) for name in ("numpy", "numba")]
    return hashlib.sha256(json.dumps(same, sort_keys=True, default=str).encode()).hexdigest()[:20]


def _replace(path: Path, content: str) -> None:
    # Two programs may calibrate at once; each puts a whole file in place.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        draft.write_text(content, encoding="utf-8")
        draft.replace(path)


def _steps(
    threads: int, pool: ThreadPoolExecutor
) -> Iterator[tuple[str, Callable[[Effort], Roof]]]:
    """Give (name, measurement) in order; arrays are made when the step runs."""
    from profiler.machine import _kernels as kernels

    yield "gemm", lambda effort: _gemm(threads, effort)
    for name, (count, make) in _arithmetic(kernels).items():
        yield (
            name,
            lambda effort, name=name, count=count, make=make: _roof(  # type: ignore[misc]
                RATE,
                name,
                threads,
                0,
                count * threads,
                _together(make, threads, pool),
                effort,
                "op/s",
            ),
        )
    for size in LADDER_BYTES:
        yield (
            _read_name(size),
            lambda effort, size=size: _read(size, threads, pool, effort),  # type: ignore[misc]
        )
    for size in TRIAD_BYTES:
        yield (
            f"triad of {_size(size)}",
            lambda effort, size=size: _triad(size, effort),  # type: ignore[misc]
        )
    tiny = np.zeros(1, np.float32)

    def numpy_call(repeats: int) -> None:
        for _ in range(repeats):
            np.add(tiny, tiny, out=tiny)

    def numba_call(repeats: int) -> None:
        for _ in range(repeats):
            kernels.nothing(1)

    def python_call(repeats: int) -> None:
        for _ in range(repeats):
            _nothing(1)

    calls: dict[str, Task] = {"numpy": numpy_call, "numba": numba_call, "python": python_call}
    for name, task in calls.items():
        yield f"a {name} call", lambda effort, name=name, task=task: _call(name, task, effort)  # type: ignore[misc]


def _arithmetic(kernels: Any) -> dict[str, tuple[float, Callable[[], Task]]]:
    """Return per class the operations of one repeat, and what makes the work of one thread."""
    arguments = np.linspace(-8.0, 0.0, VECTOR, dtype=np.float32)
    positive = np.linspace(0.1, 5.0, VECTOR, dtype=np.float32)
    order = np.random.default_rng(0).permutation(VECTOR).astype(np.uint32)

    def scalar() -> Task:
        return lambda n: kernels.fma_scalar(arguments, order, n)

    def kernel(function: Any, values: np.ndarray) -> Callable[[], Task]:
        def make() -> Task:
            out = np.empty_like(values)
            return lambda n: function(values, out, n)

        return make

    def repeated(function: np.ufunc) -> Callable[[np.ndarray, np.ndarray, int], None]:
        def run(values: np.ndarray, out: np.ndarray, repeats: int) -> None:
            for _ in range(repeats):
                function(values, out=out)

        return run

    return {
        "fma": (2.0 * kernels.HORNER_TERMS * VECTOR, kernel(kernels.fma_vector, positive)),
        "scalar": (2.0 * VECTOR, scalar),
        "exp.numpy": (VECTOR, kernel(repeated(np.exp), arguments)),
        "exp.numba": (VECTOR, kernel(kernels.exp_loop, arguments)),
        "exp.vector": (VECTOR, kernel(kernels.exp_vector, arguments)),
        "log.numpy": (VECTOR, kernel(repeated(np.log), positive)),
        "log.numba": (VECTOR, kernel(kernels.log_loop, positive)),
        "log.vector": (VECTOR, kernel(kernels.log_vector, positive)),
    }


def _together(make: Callable[[], Task], threads: int, pool: ThreadPoolExecutor) -> Task:
    """Return the work of `threads` threads at once, each on arrays of its own."""
    tasks = [make() for _ in range(threads)]
    if threads == 1:
        return tasks[0]
    return lambda repeats: list(pool.map(lambda task: task(repeats), tasks))


def _nothing(value: int) -> int:
    return value


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _read_name(size: int) -> str:
    return f"reading {_size(size)}"


def _times(task: Task, effort: Effort) -> tuple[int, list[float]]:
    """Return how often the work was repeated within a round, and seconds per round, in rising order.

    Where rounds differ much (another program runs too), more are taken, and the fastest are kept.
    """
    task(1)
    repeats = 1
    while True:
        start = time.perf_counter()
        task(repeats)
        elapsed = time.perf_counter() - start
        if elapsed >= REPEAT_SECONDS / 2:
            break
        repeats *= max(2, min(1000, int(REPEAT_SECONDS / max(elapsed, 1e-6))))
    seconds: list[float] = []
    for attempt in range(ATTEMPTS):
        for _ in range(effort.rounds):
            start = time.perf_counter()
            task(repeats)
            seconds.append(time.perf_counter() - start)
        kept = sorted(seconds)[: effort.rounds]
        steady = kept[len(kept) // 2] <= kept[0] * (1 + STEADY_SPREAD)
        if (steady and attempt > 0) or time.perf_counter() > effort.until:
            break
        if steady and max(seconds) <= kept[0] * (1 + STEADY_SPREAD):
            break
    return repeats, kept


def _roof(
    kind: str,
    name: str,
    threads: int,
    size: int,
    per_repeat: float,
    task: Task,
    effort: Effort,
    unit: str,
) -> Roof:
    """Time `task`, whose one repeat does `per_repeat` operations or moves that many bytes."""
    repeats, seconds = _times(task, effort)
    amount = per_repeat * repeats
    return Roof(
        kind,
        name,
        NOMINAL_DTYPE,
        threads,
        size,
        amount / seconds[len(seconds) // 2],
        amount / seconds[-1],
        amount / seconds[0],
        unit,
    )


def _gemm(threads: int, effort: Effort) -> Roof:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((GEMM_SIZE, GEMM_SIZE)).astype(np.float32) for _ in range(2))
    c = np.empty_like(a)

    def task(repeats: int) -> None:
        for _ in range(repeats):
            np.matmul(a, b, out=c)

    # Frequency and thread pools settle within a few calls; more rounds than elsewhere cost little.
    task(10)
    return _roof(
        RATE,
        "gemm",
        threads,
        0,
        2.0 * GEMM_SIZE**3,
        task,
        Effort(4 * effort.rounds, effort.until),
        "op/s",
    )


def _read(size: int, threads: int, pool: ThreadPoolExecutor, effort: Effort) -> Roof:
    from profiler.machine import _kernels as kernels

    values = np.ones(size // 4, np.float32)
    parts = np.array_split(values, threads)

    def task(repeats: int) -> None:
        if threads == 1:
            kernels.read(values, repeats)
        else:
            list(pool.map(lambda part: kernels.read(part, repeats), parts))

    return _roof(BANDWIDTH, "read", threads, size, float(values.nbytes), task, effort, "B/s")


def _triad(size: int, effort: Effort) -> Roof:
    from profiler.machine import _kernels as kernels

    n = size // 12
    a, b, c = (np.ones(n, np.float32) for _ in range(3))
    return _roof(
        BANDWIDTH, "triad", 1, size, 12.0 * n, lambda r: kernels.triad(a, b, c, r), effort, "B/s"
    )


def _call(name: str, task: Task, effort: Effort) -> Roof:
    repeats, seconds = _times(task, effort)
    per_call = [s / repeats * 1e9 for s in seconds]
    return Roof(
        OVERHEAD, name, "", 1, 0, per_call[len(per_call) // 2], per_call[0], per_call[-1], "ns"
    )


def _best_of(roofs: list[Roof]) -> list[Roof]:
    """Return "exp" and "log": the fastest way to take them, for stages that do not name theirs."""
    best = []
    for name in ("exp", "log"):
        roof = max((r for r in roofs if r.name.startswith(f"{name}.")), key=lambda r: r.median)
        values: dict[str, Any] = {slot: getattr(roof, slot) for slot in Roof.__slots__}
        best.append(Roof(**{**values, "name": name}))
    return best
