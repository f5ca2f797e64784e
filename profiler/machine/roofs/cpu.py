"""Taking the processor's roofs: GEMM and GEMV, vector and scalar arithmetic, exp and log, the bandwidth ladder.

Method as in the Empirical Roofline Tool: sweep working sets with simple kernels and take what the machine
sustains (see `timing`). Reads and writes count the bytes named (a write's own fetch of the line is not
counted), triad 12 bytes per float32 element. GEMM and GEMV run through numpy's BLAS; exp and log through
numpy, through the C library (a plain numba loop) and as vectorised polynomials, because the workload uses
all of them. A run needs the quick plan for its number of threads; a calibration takes the whole plan.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import numpy as np

from profiler.arrays import Array, check, check_indices
from profiler.errors import Cancelled as Stopped
from profiler.machine.describe import last_level_caches, usable_cores
from profiler.machine.roofs import timing
from profiler.machine.roofs.table import (
    BANDWIDTH,
    LATENCY,
    NOMINAL_DTYPE,
    OVERHEAD,
    RATE,
    Cancelled,
    Key,
    Progress,
    Roof,
    RoofTable,
    size_text,
)
from profiler.machine.roofs.timing import Effort, Task, Work, is_steady, roof_of

SMALLEST_BYTES: Final = 16 << 10
BEYOND_CACHE: Final = 4
"""The ladder ends at four times the last-level cache: what stays cached there no longer shows."""

RUN_BYTES: Final = 256 << 20
"""The last rung of a run's own ladder; a calibration goes on. Filling and reading 2 GiB takes seconds, and where few
cores share 480 MiB of cache with a server's others, 128 MiB came as slowly (`asrscope calibrate` prints the ladder)."""

ASSUMED_CACHE_BYTES: Final = 32 << 20
"""Last-level cache where the system does not tell it."""

QUICK_TRIAD_BYTES: Final = (64 << 10, 1 << 20, 8 << 20)
GEMM_SIZE: Final = 512
"""Large enough for the rate of 1024³ (`python -m tests.bench.constants --only system`), eight times as often timed."""

GEMV_SIZE: Final = 384
"""A matrix of 576 KiB: in the second-level cache, and large enough that the call is a tenth at most."""

VECTOR: Final = 2048
"""Float32 elements of the arithmetic kernels: two arrays of 8 KiB fit into any L1."""
NUMPY_VECTOR: Final = 8192
"""The same for numpy's own: a call takes longer, so that threads seldom meet at the interpreter's lock."""

RECHECK_ROUNDS: Final = 5
RECHECK_ATTEMPTS: Final = 3
RECHECK_TOLERANCE: Final = 0.03
"""A re-check that reads slower by more than this is repeated: a passing disturbance is no drift."""

BUDGET_SECONDS: Final = 3.5
"""A run's quick plan takes more rounds until then; what remains after that takes under a second."""
PATIENCE_SECONDS: Final = 90.0
"""The same for a calibration; undisturbed, one thread count takes 12 s."""

VISITS: Final = 3
"""How often a calibration comes back to what another program disturbed; bursts outlast one visit."""

FIRST_VISIT: Final = 0.8
"""The first visit's share of the progress bar."""

PAGE_BYTES: Final = 4096
APART: Final = 21 * 64
"""Bytes that the streams of a kernel begin apart within a page: about a third of it, in whole lines. A load
whose address agrees in its last 12 bits with a store just made may wait for it, to no purpose."""


class Step(NamedTuple):
    """One roof to take: what it is, and how."""

    key: Key
    take: Callable[[Effort], Roof]

    @property
    def label(self) -> str:
        """What a person reads while it is taken."""
        key = self.key
        count = "" if key.threads == 1 else f", {key.threads} threads"
        if key.kind in (BANDWIDTH, LATENCY) or key.bytes:
            return f"{key.name} {size_text(key.bytes)}{count}"
        return f"a {key.name} call" if key.kind == OVERHEAD else f"{key.name}{count}"


def measure(
    threads: int = 1,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    kernels: Mapping[str, Work] | None = None,
) -> RoofTable:
    """Measure what a run on `threads` threads needs; about 3 s, plus compilation the first time.

    `progress(what, fraction)` is called for each step; profiler.errors.Cancelled as soon as `cancelled()`.
    """
    steps = plan(threads, kernels, whole=False)
    return RoofTable.from_rows(RoofTable(tuple(take(steps, progress, cancelled))).rows())


def take(
    steps: Iterable[Step],
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
    *,
    patient: bool = False,
) -> list[Roof]:
    """Take the roofs of `steps`; `patient` comes back to those that other programs disturbed.

    Without patience it keeps to BUDGET_SECONDS and takes what it gets.
    """
    todo = list(steps)
    found: dict[Key, Roof] = {}
    if patient:
        effort = Effort(until=timing.clock() + PATIENCE_SECONDS)
    else:
        effort = Effort(seconds=timing.QUICK_SECONDS, until=timing.clock() + BUDGET_SECONDS)
    for visit in range(VISITS if patient else 1):
        for i, step in enumerate(todo):
            if cancelled is not None and cancelled():
                raise Stopped("The calibration was cancelled.")
            if progress is not None:
                # Later visits to a few steps share what the first one leaves of the bar.
                first, last = (0.0, FIRST_VISIT) if visit == 0 else (FIRST_VISIT, 1.0)
                if not patient:
                    last = 1.0
                done = (max(visit - 1, 0) + i / len(todo)) / max(VISITS - 1 if visit else 1, 1)
                progress(step.label, first + (last - first) * done)
            roof = step.take(effort)
            known = found.get(step.key)
            found[step.key] = roof if known is None else timing.better(known, roof)
        todo = [step for step in todo if not is_steady(found[step.key])]
        if not todo or timing.clock() > effort.until:
            break
    if progress is not None:
        progress("done", 1.0)
    return list(found.values())


def recheck(roof_table: RoofTable, threads: int = 1) -> RoofTable:
    """Measure GEMM and the last rung of a run's ladder again (0.3 s); compare with `table.drift`."""
    gemm = next((r for r in roof_table.roofs if r.key == Key(RATE, "gemm", threads=threads)), None)
    rungs = [rung for rung in roof_table.ladder("read", threads) if rung.bytes <= RUN_BYTES]
    again = []
    for old in [*rungs[-1:], *([gemm] if gemm else [])]:
        task = _gemm(threads) if old is gemm else _bandwidth("read", old.bytes, old.threads)
        found: Roof | None = None
        for _ in range(RECHECK_ATTEMPTS):
            new = task(Effort(RECHECK_ROUNDS, 0.0))
            found = new if found is None else timing.better(found, new)
            if found.median >= old.median * (1 - RECHECK_TOLERANCE):
                break
        if found is not None:
            again.append(found)
    return RoofTable(tuple(again))


def plan(threads: int, kernels: Mapping[str, Work] | None = None, *, whole: bool) -> list[Step]:
    """Return what to measure on `threads` threads together; nothing is compiled or allocated yet.

    `kernels` are arithmetic kernels of the workload, under names like "gemm.integers:int8".
    """
    return list(_steps(threads, kernels or {}, whole))


def ladder_bytes(threads: int) -> tuple[int, ...]:
    """Return the working sets of the ladder: 16 KiB, doubled, to four times the last-level caches in use."""
    size, number = last_level_caches() or (ASSUMED_CACHE_BYTES, 1)
    end = BEYOND_CACHE * size * min(threads, number)
    sizes = [SMALLEST_BYTES]
    while sizes[-1] < end:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)


def _steps(threads: int, kernels: Mapping[str, Work], whole: bool) -> Iterator[Step]:
    for name in ARITHMETIC if whole else QUICK_ARITHMETIC:
        yield _rate(name, threads, lambda name=name: _arithmetic(name))  # type: ignore[misc]
    for name, work in kernels.items():
        yield _rate(name, threads, lambda work=work: work)  # type: ignore[misc]
    sizes = [size for size in ladder_bytes(threads) if whole or size <= RUN_BYTES]
    some = {*QUICK_TRIAD_BYTES, sizes[-1]}
    for name in ("read", "triad", "write"):
        for size in sizes:
            if name == "read" or whole or (name == "triad" and size in some):
                key = Key(BANDWIDTH, name, threads=threads, bytes=size)
                yield Step(key, _bandwidth(name, size, threads))
    # BLAS after what has threads of its own: its threads keep spinning for a while and occupy a core.
    yield Step(Key(RATE, "gemm", threads=threads), _gemm(threads))
    yield Step(Key(RATE, "gemv", threads=threads), _gemv(threads))
    for name in ("numpy", "numba", "python"):
        key = Key(OVERHEAD, name, "")
        yield Step(key, lambda effort, key=key: roof_of(key, 1.0, _call(key.name), effort, 1))  # type: ignore[misc]


def _limited(key: Key, amount: float, task: Task, effort: Effort, *, busy: int | None) -> Roof:
    """Time work that numpy's BLAS itself spreads over threads; `busy` of them, if known."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(key.threads):
        # Frequency and thread pools settle within a few calls.
        task(10)
        return roof_of(key, amount, task, effort, busy)


def _gemm(threads: int) -> Callable[[Effort], Roof]:
    def timed(effort: Effort) -> Roof:
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((GEMM_SIZE, GEMM_SIZE)).astype(np.float32) for _ in range(2))
        c = np.empty_like(a)

        def task(repeats: int) -> None:
            for _ in range(repeats):
                np.matmul(a, b, out=c)

        key = Key(RATE, "gemm", threads=threads)
        return _limited(key, 2.0 * GEMM_SIZE**3, task, effort, busy=at_once(threads))

    return timed


def _gemv(threads: int) -> Callable[[Effort], Roof]:
    def timed(effort: Effort) -> Roof:
        matrix, vector = (
            np.ones(shape, np.float32) for shape in ((GEMV_SIZE, GEMV_SIZE), GEMV_SIZE)
        )
        out = np.empty_like(vector)

        def task(repeats: int) -> None:
            for _ in range(repeats):
                np.matmul(matrix, vector, out=out)

        key = Key(RATE, "gemv", threads=threads)
        # BLAS decides by the size whether it is worth more than one thread.
        return _limited(key, 2.0 * GEMV_SIZE**2, task, effort, busy=1 if threads == 1 else None)

    return timed


ARITHMETIC: Final = (
    "fma",
    "scalar",
    "exp.numpy",
    "exp.numba",
    "exp.vector",
    "log.numpy",
    "log.numba",
    "log.vector",
)


QUICK_ARITHMETIC: Final = ("fma", "scalar", "exp.vector", "log.vector")
"""What a run needs: no library is faster, so that these alone say what arithmetic takes at best."""


def _arithmetic(name: str) -> Work:
    """Return the work behind a class of arithmetic; compiles on first use."""
    from profiler.machine.roofs import _kernels as kernels

    size = NUMPY_VECTOR if name.endswith(".numpy") else VECTOR
    negative = aligned(size)
    negative[:] = np.linspace(-8.0, 0.0, size)
    positive = aligned(size)
    positive[:] = np.linspace(0.1, 5.0, size)

    def over(function: Callable[..., Any], values: Array) -> Callable[[], Task]:
        def make() -> Task:
            out = aligned(values.size, APART)
            _check_alike(values, out)
            return lambda n: function(values, out, n)

        return make

    def repeated(function: np.ufunc) -> Callable[[Array, Array, int], None]:
        def run(values: Array, out: Array, repeats: int) -> None:
            for _ in range(repeats):
                function(values, out=out)

        return run

    if name == "scalar":
        order = np.random.default_rng(0).permutation(VECTOR).astype(np.uint32)
        check(
            "order", order, np.uint32, (kernels.SCALAR_CHAINS * (VECTOR // kernels.SCALAR_CHAINS),)
        )
        check_indices("order", order, negative.size)
        return Work(2.0 * VECTOR, lambda: lambda n: kernels.fma_scalar(negative, order, n))
    if name == "fma":
        return Work(2.0 * kernels.HORNER_TERMS * VECTOR, over(kernels.fma_vector, positive))
    functions: dict[str, tuple[Callable[..., Any], Array]] = {
        "exp.numpy": (repeated(np.exp), negative),
        "exp.numba": (kernels.exp_loop, negative),
        "exp.vector": (kernels.exp_vector, negative),
        "log.numpy": (repeated(np.log), positive),
        "log.numba": (kernels.log_loop, positive),
        "log.vector": (kernels.log_vector, positive),
    }
    return Work(float(size), over(*functions[name]))


def _rate(name: str, threads: int, work: Callable[[], Work]) -> Step:
    name, _, dtype = name.partition(":")
    key = Key(RATE, name, dtype or NOMINAL_DTYPE, threads)

    def timed(effort: Effort) -> Roof:
        found = work()
        tasks = [found.make() for _ in range(at_once(threads))]
        return together(key, found.operations * threads, tasks, effort)

    return Step(key, timed)


def _bandwidth(name: str, size: int, threads: int) -> Callable[[Effort], Roof]:
    """Time passes over a working set of `size` bytes that `threads` threads share."""
    key = Key(BANDWIDTH, name, threads=threads, bytes=size)

    def timed(effort: Effort) -> Roof:
        from profiler.machine.roofs import _kernels as kernels

        n = size // threads // (12 if name == "triad" else 4)

        def make() -> Task:
            if name == "triad":
                a, b, c = (aligned(n, i * APART) for i in range(3))
                _check_alike(a, b, c)
                return lambda repeats: kernels.triad(a, b, c, repeats)
            kernel = {"read": kernels.read, "write": kernels.write}[name]
            values = aligned(n)
            _check_alike(values)
            return lambda repeats: kernel(values, repeats)

        moved = float(threads * n * (12 if name == "triad" else 4))
        return together(key, moved, [make() for _ in range(at_once(threads))], effort)

    return timed


def at_once(threads: int) -> int:
    """Return how many of `threads` run at once; the others wait for a processor, and need no data to be timed.

    The rate of all is stated as if each had one: the stages of a run are timed in one thread, while it has its own.
    """
    return min(threads, usable_cores() or threads)


def together(key: Key, amount: float, tasks: list[Task], effort: Effort) -> Roof:
    """Time several threads at once, each on its own arrays: `amount` is what one repeat of all tasks does."""
    if len(tasks) == 1:
        return roof_of(key, amount, tasks[0], effort, 1, timing.thread_clock)
    spent = [0.0]

    def one(task: Task, repeats: int) -> tuple[object, float]:
        start = timing.thread_clock()
        told = task(repeats)
        return told, timing.thread_clock() - start

    with ThreadPoolExecutor(len(tasks)) as pool:

        def together(repeats: int) -> timing.Counted | None:
            found = list(pool.map(lambda task: one(task, repeats), tasks))
            spent[0] += sum(seconds for _, seconds in found)
            parts = [told.seconds for told, _ in found if isinstance(told, timing.Counted)]
            return timing.Counted(max(parts)) if parts else None

        # Of these threads alone: those of BLAS keep spinning for a while after their last product.
        return roof_of(key, amount, together, effort, len(tasks), lambda: spent[0])


def _check_alike(*arrays: Array) -> None:
    """What the kernels take their arrays for: float32, writable, all as long as the first."""
    for array in arrays:
        check("an array to be timed", array, np.float32, (arrays[0].size,), writable=True)


def aligned(n: int, offset: int = 0) -> Array:
    """Return float32 ones [n] that begin `offset` bytes after a page: alignment determines L1 bandwidth."""
    room = np.ones(n + (PAGE_BYTES + offset) // 4 + 1, np.float32)
    first = (-room.ctypes.data % PAGE_BYTES + offset) // 4
    return room[first : first + n]


def _call(name: str) -> Task:
    """Return calls that do next to nothing."""
    if name == "numba":
        from profiler.machine.roofs import _kernels as kernels

        called: Callable[[int], int] = kernels.nothing
    else:
        called = _nothing
    tiny = np.zeros(1, np.float32)

    def numpy_call(repeats: int) -> None:
        for _ in range(repeats):
            np.add(tiny, tiny, out=tiny)

    def call(repeats: int) -> None:
        for _ in range(repeats):
            called(1)

    return numpy_call if name == "numpy" else call


def _nothing(value: int) -> int:
    return value
