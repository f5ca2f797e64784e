"""Measures a device: GEMM per dtype, its memory, copies in both directions, the cost of a launch.

Written against `torch.accelerator` (CUDA, XPU, MPS); the process that has torch passes it in. Everything is timed on
the host's clock from the first launch to the end of a synchronisation. Names end in the device's kind:
"gemm.torch@cuda", "read@cuda", "to_device.pinned@cuda"; by call "launch" (host time, not waiting), "view" (of what
launches nothing), "piece" (an event with no work before it), "held" (a kernel of a graph), "roundtrip" (a launch and
the wait for it). Launches and views are of several kinds: the quickest, the middle and the slowest make the interval.
Multiply-adds outside of products run at the rate of float32 products without TF32; exponentials and logarithms are what
a pass takes beyond one that only negates. Loads that wait for each other ("chase@cuda") and barriers of a thread block
("barrier@cuda") are measured within one kernel of numba-cuda. What a device cannot do is missing, with the library's
own words.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy as np

from profiler.costs import BARRIER, CHASE
from profiler.machine.roofs.accesses import lines_at_random
from profiler.machine.roofs.cpu import Step
from profiler.machine.roofs.table import BANDWIDTH, LATENCY, OVERHEAD, RATE, Key, Roof, size_text
from profiler.machine.roofs.timing import Effort, Task, roof_of

DTYPES: Final = ("float32", "tf32", "bfloat16", "float16", "int8")
GEMM_SIZES: Final = (2048, 4096)  # 17 and 137 GFLOP a product fill today's devices; the faster counts
ELEMENTS: Final = 1 << 24  # Of a pass of exponentials: 64 MiB, some 30 µs on today's fastest device
LEAST_BEYOND: Final = 0.05  # Part of a pass below which an exponential counts as free beyond its traffic
READ_BYTES: Final = 1 << 30  # What one launch reads, going over a small set many times: 0.2 ms at 5 TB/s

PLACES: Final = 512
"""Where the passes over a small set begin, at most: as many as a device has under way at once, so that no two of them
read the same at the same time, which caches would give both for the price of one."""
LINE: Final = 32  # Values of a line of memory
SMALL: Final = 64  # Values that a kernel has when the launch is what takes the time
IN_A_GRAPH: Final = 100  # Kernels of a graph: enough that its launch costs little

LAUNCHES_LONG: Final = 10
LAUNCHES_AHEAD: Final = 2
"""A launch that takes less than this many empty launches measures launches and is no roof: LAUNCHES_LONG if it goes
over its set many times, LAUNCHES_AHEAD if once, so that the host has time to stay ahead of the device."""

LADDER_BYTES: Final = tuple(1 << power for power in range(16, 31))  # From a multiprocessor's memory to beyond any cache
COPY_BYTES: Final = tuple(1 << power for power in range(12, 29, 2))  # 4 KiB … 256 MiB: from a frame to a model
CHASE_BYTES: Final = tuple(1 << power for power in range(16, 29, 2))  # 64 KiB … 256 MiB: to beyond the last cache
IN_A_KERNEL: Final = 1 << 14  # Loads, or barriers, of one kernel: its launch is less than a hundredth of its time
BARRIER_THREADS: Final = 448  # Of the thread block whose barriers are measured
FREE_SHARE: Final = 0.25  # Part of a device's free memory that the ladder's arrays may take
METHOD: Final = 3  # Counted up when a figure is measured differently, so that cached ones are taken again


class Missing(NamedTuple):
    """What has no roof on this machine, and why."""

    name: str
    reason: str


class Device(NamedTuple):
    """Where to measure: what torch calls it, its kind, how to wait for it, its free bytes and last cache if known."""

    where: Any
    kind: str
    wait: Callable[[], object]
    free: int | None = None
    cache: int = 0


def accelerator(torch: Any, missing: list[Missing]) -> Device | None:
    """Return the accelerator that torch finds; None, with the reason put into `missing`."""
    found = getattr(torch, "accelerator", None)
    if found is None or not found.is_available():
        problem = "is too old to name an" if found is None else "finds no"
        missing.append(Missing("device", f"torch {torch.__version__} {problem} accelerator"))
        return None
    where = found.current_accelerator()
    backend = getattr(torch, where.type, None)
    tell = getattr(backend, "get_device_properties", None)
    cache = int(getattr(tell(where), "L2_cache_size", 0)) if tell is not None else 0
    return Device(where, where.type, found.synchronize, free_memory(backend), cache)


def free_memory(backend: Any) -> int | None:
    """Return the bytes that the driver of `backend` (torch.cuda, torch.xpu …) can give; None where nothing tells."""
    tell = getattr(backend, "mem_get_info", None)
    if tell is None:
        return None
    try:
        return int(tell()[0])
    except RuntimeError:
        # Intel's devices on the processor's die have the question and refuse it.
        return None


def steps(torch: Any, device: Device | None, missing: list[Missing]) -> Iterator[Step]:
    """Give the device's roofs; none without a device."""
    if device is None:
        return
    kind = device.kind

    def step(
        measure: Callable[[Any, Device, Key, Effort], Roof], of: str, name: str, dtype: str = "float32", size: int = 0
    ) -> Step:
        key = Key(of, f"{name}@{kind}", dtype, bytes=size)
        return Step(key, partial(measure, torch, device, key))

    for dtype in DTYPES:
        if dtype == "tf32" and kind != "cuda":
            missing.append(Missing(f"gemm tf32@{kind}", "only CUDA has this format"))
        else:
            yield step(_gemm, RATE, "gemm.torch", dtype)
    yield step(_gemm, RATE, "fma.torch")
    for name in ("exp", "log"):
        yield step(_beyond, RATE, f"{name}.torch")
    for name in ("read", "write", "triad"):
        for size in LADDER_BYTES:
            if device.free is None or size <= FREE_SHARE * device.free:
                yield step(_memory, BANDWIDTH, name, size=size)
    memories = ["pageable"]
    try:
        torch.empty(1, pin_memory=True)
        memories.insert(0, "pinned")
    except (RuntimeError, NotImplementedError) as problem:
        missing.append(Missing(f"pinned copies@{kind}", (str(problem).splitlines() or ["not supported"])[0]))
    for memory in memories:
        for direction in ("to", "from"):
            for size in COPY_BYTES:
                yield step(_copy, BANDWIDTH, f"{direction}_device.{memory}", size=size)
    if kind == "cuda" and find_spec("numba_cuda") is not None:
        for size in CHASE_BYTES:
            yield step(_chase, LATENCY, CHASE, "", size=size)
        yield step(_barrier, OVERHEAD, BARRIER, "")
    else:
        reason = "numba-cuda is not installed (extra gpu)" if kind == "cuda" else "only CUDA has these kernels"
        missing.append(Missing(f"{CHASE} and {BARRIER}@{kind}", reason))
    calls = {"launch": _launch, "view": _view, "piece": _piece, "roundtrip": _roundtrip}
    if hasattr(getattr(torch, kind, None), "CUDAGraph"):
        calls["held"] = _held
    for name, call in calls.items():
        yield step(call, OVERHEAD, name, "")


def _until_done(device: Device, work: Callable[[], object]) -> Task:
    """Repeat `work` and wait once, at the end, for all of it."""

    def task(repeats: int) -> None:
        for _ in range(repeats):
            work()
        device.wait()

    return task


def _gemm(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    products = torch.backends.cuda.matmul
    before, products.allow_tf32 = products.allow_tf32, key.dtype == "tf32"
    dtype = "float32" if key.dtype == "tf32" else key.dtype
    product = torch._int_mm if dtype == "int8" else torch.mm
    found = []
    try:
        for n in GEMM_SIZES:
            a, b = (torch.randint(-8, 8, (n, n)).to(getattr(torch, dtype)).to(device.where) for _ in range(2))
            # A second factor stored by columns is what int8 kernels want, and no other minds.
            b = b.t().contiguous().t()
            found.append(roof_of(key, 2.0 * n**3, _until_done(device, partial(product, a, b)), effort))
    finally:
        products.allow_tf32 = before
    return max(found, key=lambda roof: roof.median)


def _beyond(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    """Exponentials or logarithms beyond the traffic of their pass: at least as fast as the whole pass."""
    name = key.name.partition(".")[0]
    values = torch.ones(ELEMENTS, device=device.where)
    out = torch.empty_like(values)
    whole, bare = (
        roof_of(key, float(ELEMENTS), _until_done(device, partial(function, values, out=out)), effort)
        for function in (getattr(torch, name), torch.neg)
    )

    def beyond(pass_rate: float, bare_rate: float) -> float:
        return pass_rate / max(1.0 - pass_rate / bare_rate, LEAST_BEYOND)

    median, high = beyond(whole.median, bare.median), beyond(whole.high, bare.low)
    return replace(whole, median=median, high=max(median, high))


def _memory(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    name, times = key.name.partition("@")[0], 1
    work: Callable[[], object]
    if name == "triad":
        n = key.bytes // 12
        a, b, c = (torch.ones(n, device=device.where) for _ in range(3))
        work, moved = partial(torch.add, b, c, alpha=2.0, out=a), 12.0 * n
    else:
        # Of a larger set than the last cache a second pass would find in it what the first has just left.
        if name == "read" and not 0 < device.cache < key.bytes:
            times = max(1, READ_BYTES // key.bytes)
        rows = _again_and_again(torch, device, key.bytes // 4, times)
        out = torch.empty(rows.shape[:-1], device=device.where)
        work = partial(torch.sum, rows, dim=-1, out=out) if name == "read" else partial(rows.fill_, 1.0)
        moved = float(key.bytes) * times
    found = roof_of(key, moved, _until_done(device, work), effort)
    quickest = Key(OVERHEAD, f"launch@{device.kind}", "")
    launch = roof_of(quickest, 1.0, _until_done(device, _small(torch, device)[0]), Effort(3, 0.0))
    least = LAUNCHES_AHEAD if times == 1 else LAUNCHES_LONG
    if moved / found.median * 1e9 < least * launch.median:
        raise RuntimeError(
            f"a pass over {size_text(key.bytes)} takes less than {least} launches, so that these would be measured"
        )
    return found


def _copy(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    direction, _, memory = key.name.partition("@")[0].partition(".")
    host = torch.zeros(key.bytes, dtype=torch.uint8, pin_memory=memory == "pinned")
    there = torch.zeros(key.bytes, dtype=torch.uint8, device=device.where)
    target, source = (there, host) if direction == "to_device" else (host, there)
    # From pageable memory the library copies in its own time; asking it not to wait changes nothing.
    task = _until_done(device, lambda: target.copy_(source, non_blocking=memory == "pinned"))
    return roof_of(key, float(key.bytes), task, effort)


def _chase(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    places, order = lines_at_random(key.bytes)
    # One cycle through all lines.
    places[order] = np.roll(order, -1)
    there = torch.from_numpy(places.view(np.int32)).to(device.where)
    return _inside(torch, device, key, effort, 1, there)


def _barrier(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    return _inside(torch, device, key, effort, BARRIER_THREADS)


def _inside(torch: Any, device: Device, key: Key, effort: Effort, threads: int, *data: Any) -> Roof:
    """The roof of what a kernel of one block of `threads` does IN_A_KERNEL times."""
    try:
        from numba import cuda

        from profiler.machine.roofs import _cuda as kernels

        kernel = getattr(kernels, key.name.partition("@")[0])[1, threads]
        state = torch.zeros(threads, dtype=torch.int32, device=device.where)
        # In numba's simulator they lie in the memory of the host.
        arrays = [cuda.as_cuda_array(each) if each.is_cuda else each.numpy() for each in (*data, state)]
        return roof_of(key, float(IN_A_KERNEL), _until_done(device, partial(kernel, *arrays, IN_A_KERNEL)), effort)
    except Exception as problem:  # of the driver, the compiler or the linker
        raise RuntimeError(f"numba-cuda does not run its kernel: {problem}") from problem


def _again_and_again(torch: Any, device: Device, values: int, times: int) -> Any:
    """Return `values` values in a row, or in rows of half, each begun elsewhere, `times` as many for one launch."""
    if times == 1:
        return torch.ones(values, device=device.where)
    half, rows = values // 2, 2 * times
    apart = max(half // min(PLACES, rows) // LINE, 1) * LINE
    places = min(rows, half // apart)
    places = 1 << (places.bit_length() - 1)
    all_values = torch.ones(values, device=device.where)
    return all_values.as_strided((rows // places, places, half), (0, apart, 1))


def _small(torch: Any, device: Device) -> tuple[Callable[[], object], ...]:
    """Return operations of one kernel each, as scoring and search are made of: some change, some make tensors."""
    row = torch.zeros(SMALL, device=device.where)
    square = torch.zeros((8, SMALL // 8), device=device.where)
    places = torch.zeros(SMALL, dtype=torch.int64, device=device.where)
    return (
        lambda: row.add_(1.0),
        lambda: torch.mul(row, row),
        lambda: torch.mm(square, square),
        lambda: square.amax(dim=1),
        lambda: row.index_select(0, places),
    )


def _over(key: Key, device: Device, kinds: tuple[Callable[[], object], ...], effort: Effort) -> Roof:
    """Return the roof of calls of several kinds: the quickest, the middle one, the slowest."""
    roofs = (roof_of(key, 1.0, _until_done(device, call), effort) for call in kinds)
    each = sorted(roofs, key=lambda roof: roof.median)
    return replace(each[len(each) // 2], low=each[0].low, high=each[-1].high)


def _launch(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    return _over(key, device, _small(torch, device), effort)


def _view(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    square = torch.zeros((8, SMALL // 8), device=device.where)
    kinds: tuple[Callable[[], object], ...] = (
        lambda: square.view(-1),
        lambda: square[1:3],
        lambda: square.unsqueeze(0),
        lambda: torch.empty((8, 8), device=device.where),
    )
    return _over(key, device, kinds, effort)


def _piece(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    """What it takes to give nothing to a stream, and a timed event behind it; without streams, to wait."""
    backend = getattr(torch, device.kind, None)
    if backend is None or device.kind == "cpu" or not hasattr(backend, "Stream"):
        return roof_of(key, 1.0, _until_done(device, device.wait), effort)
    stream, event = backend.Stream(), backend.Event(enable_timing=True)

    def once() -> None:
        with backend.stream(stream):
            event.record(stream)

    return roof_of(key, 1.0, _until_done(device, once), effort)


def _held(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    kinds = _small(torch, device)

    def work() -> None:
        for i in range(IN_A_GRAPH):
            kinds[i % len(kinds)]()

    work()
    device.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return roof_of(key, float(IN_A_GRAPH), _until_done(device, graph.replay), effort)


def _roundtrip(torch: Any, device: Device, key: Key, effort: Effort) -> Roof:
    tiny = torch.zeros(1, device=device.where)

    def together() -> None:
        tiny.add_(1.0)
        device.wait()

    return roof_of(key, 1.0, _until_done(device, together), effort)
