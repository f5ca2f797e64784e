"""Measures what needs torch, in a separate process: GEMM per dtype, calls, the device.

No module imports this one: `calibration` starts it as `python -m profiler.machine.roofs.torch PART…`. It prints a JSON
object per line: {"progress": what, "fraction": f}, {"part": name, "roofs": rows, "missing": [[name, reason]]}, {"done":
true}. A dtype without a fast kernel is missing, with the rate it reached as the reason.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from profiler.machine.roofs import device as device_roofs
from profiler.machine.roofs import timing
from profiler.machine.roofs.calibration import DEVICE, part
from profiler.machine.roofs.cpu import GEMV_SIZE, Step, repeated
from profiler.machine.roofs.device import Missing
from profiler.machine.roofs.table import OVERHEAD, RATE, Key, Roof, RoofTable
from profiler.machine.roofs.timing import Effort, Task, is_steady, roof_of
from profiler.process.children import read_arguments

DTYPES: Final = ("float32", "bfloat16", "float16", "int8")
GEMM_SIZES: Final = (512, 1024)  # The faster of the two counts: kernels differ in what they like

PROBE_SIZE: Final = 256
PROBES: Final = 5
FAST_SHARE: Final = 0.25  # A dtype below this part of float32's rate runs through a fallback without vector arithmetic
VECTOR: Final = 1 << 15  # Elements of exp and log: 128 KiB, enough that the torch call costs little

VISITS: Final = 3

Send = Callable[[dict[str, Any]], None]
FAILURES: Final = (RuntimeError, TypeError, NotImplementedError, AttributeError)
"""What a library raises for what it cannot do here."""


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


def _taken(steps: Iterable[Step], missing: list[Missing], place: int, parts: int, send: Send) -> list[Roof]:
    """Take every roof, the disturbed ones again; what fails is missing, with the library's words."""
    found = []
    for done, (key, take) in enumerate(steps):
        # How many steps there will be is known at the end only; the fraction nears the part's end.
        send({"progress": f"torch: {_title(key)}", "fraction": (place + done / (done + 8)) / parts})
        try:
            roof = take(Effort())
            for _ in range(VISITS - 1):
                if not is_steady(roof):
                    roof = timing.better(roof, take(Effort()))
            found.append(roof)
        except FAILURES as problem:
            missing.append(_missing(key, problem))
    return found


def _title(key: Key) -> str:
    count = f", {key.threads} threads" if key.threads > 1 else ""
    size = f" of {key.bytes} bytes" if key.bytes else ""
    dtype = f" {key.dtype}" if key.kind == RATE else ""
    return f"{key.name}{dtype}{size}{count}"


def _missing(key: Key, problem: Exception) -> Missing:
    return Missing(_title(key), (str(problem).strip().splitlines() or [type(problem).__name__])[0])


def _steps(torch: Any, threads: int, missing: list[Missing]) -> Iterator[Step]:
    """Yield the roofs of the processor for this number of threads."""
    slow = 0.0
    for dtype in DTYPES:
        key = Key(RATE, "gemm.torch", dtype, threads)
        # On one thread: how the first calls share work among several says nothing of the kernel.
        torch.set_num_threads(1)
        try:
            rate = _probe(torch, dtype)
        except FAILURES as problem:
            missing.append(_missing(key, problem))
            continue
        if rate < slow:
            here = f"this processor and torch {torch.__version__} have no fast kernel for it"
            reason = f"{here} ({rate / 1e9:.0f} GFLOP/s, a fallback)"
            missing.append(Missing(_title(key._replace(threads=1)), reason))
            continue
        if dtype == "float32":
            slow = FAST_SHARE * rate
        torch.set_num_threads(threads)
        yield Step(key, partial(_gemm, torch, key))
    torch.set_num_threads(threads)
    matrix, vector, product = torch.ones(GEMV_SIZE, GEMV_SIZE), torch.ones(GEMV_SIZE), torch.empty(GEMV_SIZE)
    values, result = torch.linspace(0.1, 5.0, VECTOR), torch.empty(VECTOR)
    for name, amount, call in (
        ("gemv.torch", 2.0 * GEMV_SIZE**2, partial(torch.mv, matrix, vector, out=product)),
        ("exp.torch", float(VECTOR), partial(torch.exp, values, out=result)),
        ("log.torch", float(VECTOR), partial(torch.log, values, out=result)),
    ):
        key = Key(RATE, name, "float32", threads)
        yield Step(key, partial(roof_of, key, amount, repeated(call)))
    if threads == 1:
        tiny = torch.zeros(1)
        key = Key(OVERHEAD, "torch", "")

        def calls(repeats: int) -> None:
            for _ in range(repeats):
                torch.add(tiny, tiny, out=tiny)

        yield Step(key, partial(roof_of, key, 1.0, calls, threads=1))


def _gemm(torch: Any, key: Key, effort: Effort) -> Roof:
    roofs = (roof_of(key, 2.0 * n**3, gemm_task(torch, key.dtype, n), effort, key.threads) for n in GEMM_SIZES)
    return max(roofs, key=lambda roof: roof.median)


def gemm_task(torch: Any, dtype: str, n: int) -> Task:
    """Return products [n, n] × [n, n] in `dtype`; int8 sums in int32."""
    a, b = (torch.randint(-8, 8, (n, n)).to(getattr(torch, dtype)) for _ in range(2))
    return repeated(partial(torch._int_mm if dtype == "int8" else torch.mm, a, b))


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
