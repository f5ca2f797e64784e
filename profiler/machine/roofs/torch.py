"""Measures what needs torch, in a separate process: GEMM per dtype, calls, the device.

No module imports this one: `calibration` starts it as `python -m profiler.machine.roofs.torch PART…`. It prints a JSON
object per line: {"progress": what, "fraction": f}, {"part": name, "roofs": rows, "missing": [[name, reason]]}, {"done":
true}. A dtype without a fast kernel is missing, with the rate it reached as the reason.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs import timing
from profiler.machine.roofs.calibration import DEVICE, part
from profiler.machine.roofs.table import OVERHEAD, RATE, Key, Roof, RoofTable
from profiler.machine.roofs.timing import Effort, Task, is_steady, roof_of
from profiler.process.children import read_arguments

DTYPES: Final = ("float32", "bfloat16", "float16", "int8")
GEMM_SIZES: Final = (512, 1024)
"""The faster of the two counts: kernels differ in what they like."""

PROBE_SIZE: Final = 256
PROBES: Final = 5
FAST_SHARE: Final = 0.25
"""A dtype below this part of float32's rate runs through a fallback without vector arithmetic."""

GEMV_SIZE: Final = 384
VECTOR: Final = 1 << 15
"""Elements of exp and log: 128 KiB, enough that the torch call costs little."""

VISITS: Final = 3

Send = Callable[[dict[str, Any]], None]
Take = Callable[[Effort], Roof]
Missing = tuple[str, str]


def main(parts: Sequence[str], send: Send) -> None:
    """Measure `parts` and `send` what came of them."""
    try:
        import torch
    except (ImportError, OSError) as problem:
        for name in parts:
            send({"part": name, "roofs": [], "missing": [(name, f"torch is not here: {problem}")]})
        send({"done": True})
        return
    for i, name in enumerate(parts):
        missing: list[Missing] = []
        if name == DEVICE:
            steps = device_roofs.steps(torch, device_roofs.accelerator(torch, missing), missing)
        else:
            threads = next(n for n in range(1, 1 << 16) if part(n) == name)
            steps = _steps(torch, threads, missing)
        roofs = _taken(steps, missing, i, len(parts), send)
        rows = RoofTable(tuple(roofs)).rows()
        for row, roof in zip(rows, roofs, strict=True):
            row["disturbed"] = roof.disturbed
        send({"part": name, "roofs": rows, "missing": missing})
    send({"done": True})


def _taken(steps: Iterator[tuple[Key, Take]], missing: list[Missing], place: int, parts: int, send: Send) -> list[Roof]:
    """Take every roof, the disturbed ones again; what fails is missing, with the library's words."""
    found = []
    for done, (key, take) in enumerate(steps):
        # How many steps there will be is known at the end only; the fraction nears the part's end.
        fraction = (place + done / (done + 8)) / parts
        send({"progress": f"torch: {_title(key)}", "fraction": fraction})
        try:
            roof = take(Effort())
            for _ in range(VISITS - 1):
                if is_steady(roof):
                    break
                roof = timing.better(roof, take(Effort()))
        except (RuntimeError, TypeError, NotImplementedError, AttributeError) as problem:
            missing.append((_title(key), _one_line(problem)))
        else:
            found.append(roof)
    return found


def _title(key: Key) -> str:
    count = f", {key.threads} threads" if key.threads > 1 else ""
    size = f" of {key.bytes} bytes" if key.bytes else ""
    dtype = f" {key.dtype}" if key.kind == RATE else ""
    return f"{key.name}{dtype}{size}{count}"


def _one_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def _steps(torch: Any, threads: int, missing: list[Missing]) -> Iterator[tuple[Key, Take]]:
    """Yield the roofs of the processor for this number of threads."""
    slow: float | None = None
    for dtype in DTYPES:
        key = Key(RATE, "gemm.torch", dtype, threads)
        # On one thread: how the first calls share work among several says nothing of the kernel.
        torch.set_num_threads(1)
        try:
            rate = _probe(torch, dtype)
        except (RuntimeError, TypeError, NotImplementedError, AttributeError) as problem:
            missing.append((_title(key), _one_line(problem)))
            continue
        if slow is not None and rate < slow:
            version = torch.__version__
            reason = (
                f"this processor and torch {version} have no fast kernel for it ({rate / 1e9:.0f} GFLOP/s, a fallback)"
            )
            missing.append((_title(key._replace(threads=1)), reason))
            continue
        if dtype == "float32":
            slow = FAST_SHARE * rate
        torch.set_num_threads(threads)
        yield key, partial(_gemm, torch, key)
    torch.set_num_threads(threads)
    for name, task, amount in _others(torch):
        key = Key(RATE, name, "float32", threads)
        yield key, partial(roof_of, key, amount, task)
    if threads == 1:
        tiny = torch.zeros(1)
        key = Key(OVERHEAD, "torch", "")

        def call(repeats: int) -> None:
            for _ in range(repeats):
                torch.add(tiny, tiny, out=tiny)

        yield key, partial(roof_of, key, 1.0, call, threads=1)


def _others(torch: Any) -> Iterator[tuple[str, Task, float]]:
    matrix, vector = torch.ones(GEMV_SIZE, GEMV_SIZE), torch.ones(GEMV_SIZE)
    out = torch.empty(GEMV_SIZE)

    def gemv(repeats: int) -> None:
        for _ in range(repeats):
            torch.mv(matrix, vector, out=out)

    yield "gemv.torch", gemv, 2.0 * GEMV_SIZE**2
    values = torch.linspace(0.1, 5.0, VECTOR)
    result = torch.empty(VECTOR)

    def over(function: Callable[..., Any]) -> Task:
        def task(repeats: int) -> None:
            for _ in range(repeats):
                function(values, out=result)

        return task

    yield "exp.torch", over(torch.exp), float(VECTOR)
    yield "log.torch", over(torch.log), float(VECTOR)


def _gemm(torch: Any, key: Key, effort: Effort) -> Roof:
    roofs = (roof_of(key, 2.0 * n**3, gemm_task(torch, key.dtype, n), effort, key.threads) for n in GEMM_SIZES)
    return max(roofs, key=lambda roof: roof.median)


def gemm_task(torch: Any, dtype: str, n: int) -> Task:
    """Return products [n, n] × [n, n] in `dtype`; int8 sums in int32."""
    a, b = (torch.randint(-8, 8, (n, n)).to(getattr(torch, dtype)) for _ in range(2))
    product = torch._int_mm if dtype == "int8" else torch.mm

    def task(repeats: int) -> None:
        for _ in range(repeats):
            product(a, b)

    return task


def _probe(torch: Any, dtype: str) -> float:
    """Return a first idea of a dtype's rate, operations/s."""
    task = gemm_task(torch, dtype, PROBE_SIZE)
    task(2)
    best = float("inf")
    for _ in range(PROBES):
        start = timing.clock()
        task(1)
        best = min(best, timing.clock() - start)
    return 2.0 * PROBE_SIZE**3 / max(best, 1e-9)


def _print(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(read_arguments("profiler.machine.roofs.torch", __doc__, "PART+"), _print)
    except BrokenPipeError:  # the calibration was cancelled
        raise SystemExit(1) from None
