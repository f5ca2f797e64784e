"""Measures the processor: GEMM and GEMV, vector and scalar arithmetic, exp and log, the bandwidth ladder.

Method as in the Empirical Roofline Tool: sweep working sets with simple kernels and keep what the machine sustains
(see `timing`). Reads and writes count the bytes named (not a write's own fetch of the line), triad 12 bytes per float32
element. GEMM and GEMV run through numpy's BLAS; exp and log through numpy, the C library (a plain numba loop) and as
vectorised polynomials, because the workload uses all of them. A run needs the quick plan, a calibration the whole one.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import Array, check, check_indices
from profiler.errors import Cancelled as Stopped
from profiler.machine.describe import last_level_caches, usable_cores
from profiler.machine.roofs import table, timing
from profiler.machine.roofs.table import BANDWIDTH, LATENCY, NOMINAL_DTYPE, OVERHEAD, RATE, Key, Roof, RoofTable
from profiler.machine.roofs.timing import Effort, Task, Work, is_steady, roof_of

SMALLEST_BYTES: Final = 16 << 10
BEYOND_CACHE: Final = 4  # The ladder ends at four times the last-level cache: what stays cached there no longer shows

RUN_BYTES: Final = 256 << 20
"""The last rung of a run's own ladder; a calibration goes on. Filling and reading 2 GiB takes seconds, and where few
cores share 480 MiB of cache with a server's others, 128 MiB came as slowly (`asrscope calibrate` prints the ladder)."""

ASSUMED_CACHE_BYTES: Final = 32 << 20  # Last-level cache where the system does not tell it

QUICK_TRIAD_BYTES: Final = (64 << 10, 1 << 20, 8 << 20)
GEMM_SIZE: Final = 512  # Large enough for 97 % of the rate of 1024³, and eight times as often timed
GEMV_SIZE: Final = 384  # 576 KiB: in the second-level cache, and the call is a tenth of it at most
VECTOR: Final = 2048  # Float32 elements of the arithmetic kernels: two arrays of 8 KiB fit into any L1
NUMPY_VECTOR: Final = 8192  # Longer calls of numpy's own, so that threads seldom meet at the interpreter's lock
RECHECK: Final = Effort(5, 0.0)
RECHECK_ATTEMPTS: Final = 3
RECHECK_TOLERANCE: Final = 0.03  # A re-check slower by more is repeated: a disturbance is no drift
BUDGET_SECONDS: Final = 3.5  # A quick plan takes more rounds until then; the rest takes under a second
PATIENCE_SECONDS: Final = 90.0  # The same for a calibration; undisturbed, one thread count takes 12 s
VISITS: Final = (0.0, 0.8, 0.9, 1.0)  # Progress at the visits of a calibration: bursts outlast one of them
PAGE_BYTES: Final = 4096
APART: Final = 21 * 64
"""Bytes that the streams of a kernel begin apart within a page: about a third of it, in whole lines. A load
whose address agrees in its last 12 bits with a store just made may wait for it, to no purpose."""


class Step(NamedTuple):
    """One roof to measure, and the function that does it."""

    key: Key
    take: Callable[[Effort], Roof]

    @property
    def label(self) -> str:
        """Shown while it is measured."""
        key = self.key
        count = "" if key.threads == 1 else f", {key.threads} threads"
        if key.kind in (BANDWIDTH, LATENCY) or key.bytes:
            return f"{key.name} {table.size_text(key.bytes)}{count}"
        return f"a {key.name} call" if key.kind == OVERHEAD else f"{key.name}{count}"


def take(
    steps: Iterable[Step],
    progress: table.Progress | None = None,
    cancelled: table.Cancelled | None = None,
    *,
    patient: bool = False,
) -> list[Roof]:
    """Measure the roofs of `steps`, those that other programs disturbed again if `patient`, else within BUDGET_SECONDS.

    `progress(what, fraction)` is called for each step; profiler.errors.Cancelled as soon as `cancelled()`.
    """
    todo = list(steps)
    found: dict[Key, Roof] = {}
    effort = Effort(until=timing.clock() + PATIENCE_SECONDS)
    if not patient:
        effort = Effort(seconds=timing.QUICK_SECONDS, until=timing.clock() + BUDGET_SECONDS)
    for begin, end in pairwise(VISITS if patient else (0.0, 1.0)):
        for i, step in enumerate(todo):
            if cancelled is not None and cancelled():
                raise Stopped("The calibration was cancelled.")
            if progress is not None:
                progress(step.label, begin + (end - begin) * i / len(todo))
            roof = step.take(effort)
            found[step.key] = timing.better(found.get(step.key, roof), roof)
        todo = [step for step in todo if not is_steady(found[step.key])]
        if not todo or timing.clock() > effort.until:
            break
    if progress is not None:
        progress("done", 1.0)
    return list(found.values())


def recheck(roof_table: RoofTable, threads: int = 1) -> RoofTable:
    """Measure GEMM and the last rung of a run's ladder again (0.3 s); compare with `table.drift`."""
    rungs = [rung for rung in roof_table.ladder("read", threads) if rung.bytes <= RUN_BYTES]
    gemm = [roof for roof in roof_table.roofs if roof.key == Key(RATE, "gemm", threads=threads)]
    again = []
    for known in [*rungs[-1:], *gemm]:
        measure = _gemm if known.kind == RATE else _bandwidth
        found = measure(known.key, RECHECK)
        for _ in range(RECHECK_ATTEMPTS - 1):
            if found.median < known.median * (1 - RECHECK_TOLERANCE):
                found = timing.better(found, measure(known.key, RECHECK))
        again.append(found)
    return RoofTable(tuple(again))


def plan(threads: int, kernels: Mapping[str, Work] | None = None, *, whole: bool) -> list[Step]:
    """Return steps for `threads` threads at once, none prepared yet; `kernels`: the workload's, by operation name."""
    steps = [_rate(name, threads, None) for name in (ARITHMETIC if whole else QUICK_ARITHMETIC)]
    steps += [_rate(name, threads, work) for name, work in (kernels or {}).items()]
    sizes = [size for size in ladder_bytes(threads) if whole or size <= RUN_BYTES]
    some = {*QUICK_TRIAD_BYTES, sizes[-1]}
    for name in ("read", "triad", "write"):
        for size in sizes:
            if name == "read" or whole or (name == "triad" and size in some):
                key = Key(BANDWIDTH, name, threads=threads, bytes=size)
                steps.append(Step(key, partial(_bandwidth, key)))
    # BLAS after what has threads of its own: its threads keep spinning for a while and occupy a core.
    gemm, gemv = (Key(RATE, name, threads=threads) for name in ("gemm", "gemv"))
    steps += [Step(gemm, partial(_gemm, gemm)), Step(gemv, partial(_gemv, gemv))]
    calls = [Key(OVERHEAD, name, "") for name in ("numpy", "numba", "python")]
    return steps + [Step(key, partial(_call, key)) for key in calls]


def ladder_bytes(threads: int) -> tuple[int, ...]:
    """Return the working sets of the ladder: 16 KiB, doubled, to four times the last-level caches in use."""
    size, number = last_level_caches() or (ASSUMED_CACHE_BYTES, 1)
    end = BEYOND_CACHE * size * min(threads, number)
    sizes = [SMALLEST_BYTES]
    while sizes[-1] < end:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)


def repeated(call: Callable[[], object]) -> Task:
    """Return the task of calling `call` again and again."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            call()

    return task


def _gemm(key: Key, effort: Effort) -> Roof:
    return _product(key, GEMM_SIZE, GEMM_SIZE, at_once(key.threads), effort)


def _gemv(key: Key, effort: Effort) -> Roof:
    # BLAS decides by the size whether it is worth more than one thread.
    return _product(key, GEMV_SIZE, 1, 1 if key.threads == 1 else None, effort)


def _product(key: Key, size: int, columns: int, busy: int | None, effort: Effort) -> Roof:
    """Time [size, size] × [size, columns], which numpy's BLAS itself spreads over threads; `busy` of them, if known."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, n)).astype(np.float32).squeeze() for n in (size, columns))
    task = repeated(partial(np.matmul, a, b, out=np.empty_like(b)))
    with threadpool_limits(key.threads):
        # Frequency and thread pools settle within a few calls.
        task(10)
        return roof_of(key, 2.0 * size**2 * columns, task, effort, busy)


QUICK_ARITHMETIC: Final = ("fma", "scalar", "exp.vector", "log.vector")
"""What a run needs: no library is faster, so that these alone say what arithmetic takes at best."""
ARITHMETIC: Final = (*QUICK_ARITHMETIC, "exp.numpy", "exp.numba", "log.numpy", "log.numba")


def _arithmetic(name: str) -> Work:
    """Return the work behind a class of arithmetic; compiles on first use."""
    from profiler.machine.roofs import _kernels as kernels

    size = NUMPY_VECTOR if name.endswith(".numpy") else VECTOR
    low, high = (-8.0, 0.0) if name.startswith(("exp", "scalar")) else (0.1, 5.0)
    values = aligned(size)
    values[:] = np.linspace(low, high, size)
    if name == "scalar":
        order = np.random.default_rng(0).permutation(VECTOR).astype(np.uint32)
        check("order", order, np.uint32, (kernels.SCALAR_CHAINS * (VECTOR // kernels.SCALAR_CHAINS),))
        check_indices("order", order, size)
        return Work(2.0 * VECTOR, lambda: lambda n: kernels.fma_scalar(values, order, n))
    compiled: dict[str, Callable[[Array, Array, int], None]] = {
        "fma": kernels.fma_vector,
        "exp.numba": kernels.exp_loop,
        "exp.vector": kernels.exp_vector,
        "log.numba": kernels.log_loop,
        "log.vector": kernels.log_vector,
    }

    def make() -> Task:
        out = aligned(size, APART)
        _check_alike(values, out)
        if name in compiled:
            return lambda n: compiled[name](values, out, n)
        return repeated(partial(np.exp if name == "exp.numpy" else np.log, values, out=out))

    return Work(2.0 * kernels.HORNER_TERMS * size if name == "fma" else float(size), make)


def _rate(name: str, threads: int, work: Work | None) -> Step:
    """The rate of a class of arithmetic, by `work` or by the kernel of that name here."""
    head, _, dtype = name.partition(":")
    key = Key(RATE, head, dtype or NOMINAL_DTYPE, threads)

    def measured(effort: Effort) -> Roof:
        found = work or _arithmetic(head)
        tasks = [found.make() for _ in range(at_once(threads))]
        return together(key, found.operations * threads, tasks, effort)

    return Step(key, measured)


def _bandwidth(key: Key, effort: Effort) -> Roof:
    """Time passes over a working set that the threads share."""
    from profiler.machine.roofs import _kernels as kernels

    arrays = 3 if key.name == "triad" else 1
    kernel: Callable[..., object] = getattr(kernels, key.name)
    n = key.bytes // key.threads // (4 * arrays)

    def make() -> Task:
        streams = [aligned(n, i * APART) for i in range(arrays)]
        _check_alike(*streams)
        return lambda repeats: kernel(*streams, repeats)

    tasks = [make() for _ in range(at_once(key.threads))]
    return together(key, float(key.threads * n * 4 * arrays), tasks, effort)


def at_once(threads: int) -> int:
    """Return how many of `threads` run at once; rates are stated as if each had a processor, as stages are timed."""
    return min(threads, usable_cores() or threads)


def together(key: Key, amount: float, tasks: list[Task], effort: Effort) -> Roof:
    """Time several threads at once, each on its own arrays: `amount` is what one repeat of all tasks does."""
    if len(tasks) == 1:
        return roof_of(key, amount, tasks[0], effort, 1, timing.thread_clock)
    spent = [0.0]

    def timed(task: Task, repeats: int) -> float:
        start = timing.thread_clock()
        task(repeats)
        return timing.thread_clock() - start

    with ThreadPoolExecutor(len(tasks)) as pool:

        def all_tasks(repeats: int) -> None:
            spent[0] += sum(pool.map(lambda task: timed(task, repeats), tasks))

        # Of these threads alone: those of BLAS keep spinning for a while after their last product.
        return roof_of(key, amount, all_tasks, effort, len(tasks), lambda: spent[0])


def _check_alike(*arrays: Array) -> None:
    """ArrayError unless all are float32, writable and as long as the first."""
    for array in arrays:
        check("an array to be timed", array, np.float32, (arrays[0].size,), writable=True)


def aligned(n: int, offset: int = 0) -> Array:
    """Return float32 ones [n] that begin `offset` bytes after a page: alignment determines L1 bandwidth."""
    room = np.ones(n + (PAGE_BYTES + offset) // 4 + 1, np.float32)
    first = (-room.ctypes.data % PAGE_BYTES + offset) // 4
    return room[first : first + n]


def _call(key: Key, effort: Effort) -> Roof:
    """Time calls that do next to nothing."""
    from profiler.machine.roofs import _kernels as kernels

    tiny = np.zeros(1, np.float32)
    called: Callable[[int], int] = kernels.nothing if key.name == "numba" else _nothing

    def numpy_call(repeats: int) -> None:
        for _ in range(repeats):
            np.add(tiny, tiny, out=tiny)

    def call(repeats: int) -> None:
        for _ in range(repeats):
            called(1)

    return roof_of(key, 1.0, numpy_call if key.name == "numpy" else call, effort, 1)


def _nothing(value: int) -> int:
    return value
