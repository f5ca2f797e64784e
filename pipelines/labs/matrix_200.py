"""Lab `matrix-200`: a matrix product by numpy, on the device, and on the device with copies each time."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import numpy as np

from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, setting
from pipelines.labs.desk import HALF, Desk, opened
from pipelines.labs.figures import ci, value
from pipelines.labs.sweep import Sweep, SweepResult, Timings, Work
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, UNDECIDED, Finding, Verdict, all_of, at_least
from profiler.clock import now_ns

if TYPE_CHECKING:
    from pipelines.device import Device

VARIANTS = ("numpy", "resident", "copied")
NAMES = {"numpy": "numpy", "resident": "on the device", "copied": "on the device, copied each time"}
PARTS = {"there": "host to device", "product": "product", "back": "device to host", "launch": "launch and wait"}
SIZES = (32, 64, 128, 200, 512, 1024, 2048, 4096)
LARGE, LARGE_ROUNDS = 2048, 3  # From this size on a product lasts so long that few rounds of one call each are enough


class Params(Parameters, frozen=True, kw_only=True):
    n: Annotated[int, setting("Size", "Rows and columns of the matrices of the claim.", ge=8, le=4096)] = 200
    largest: Annotated[int, setting("Largest", "The largest size that is swept.", ge=32, le=16384)] = 4096
    seconds: Seconds = 18.0
    threads: Annotated[int, setting("Threads", "Threads of numpy and of torch on the processor.", ge=1, le=64)] = 1


class _There:
    """Two matrices on both sides, and what can be done with them."""

    def __init__(self, device: Device, n: int) -> None:
        import torch

        from pipelines.device import COMPUTE

        draw = np.random.default_rng(n)
        self.a, self.b = (draw.random((n, n), np.float32) for _ in range(2))
        self.out = np.empty((n, n), np.float32)
        self._device, self._stream = device, COMPUTE
        self._host = [torch.from_numpy(value) for value in (self.a, self.b, self.out)]
        self._there = [torch.empty_like(value, device=device.where) for value in self._host]
        self.send()
        self.wait()

    def numpy(self) -> None:
        np.matmul(self.a, self.b, out=self.out)

    def resident(self) -> None:
        self.multiply()
        self.wait()

    def copied(self) -> None:
        self.send()
        self.multiply()
        self.fetch()
        self.wait()

    def send(self) -> None:
        for target, source in zip(self._there[:2], self._host[:2], strict=True):
            self._launch(partial(target.copy_, source))

    def multiply(self) -> None:
        import torch

        a, b, out = self._there
        self._launch(partial(torch.mm, a, b, out=out))

    def fetch(self) -> None:
        self._launch(partial(self._host[2].copy_, self._there[2]))

    def _launch(self, work: Work) -> None:
        self._device.run(self._stream, work)

    def wait(self) -> None:
        self._device.wait(self._device.mark(self._stream))

    def apart(self) -> dict[str, float]:
        """Seconds of the parts of one product with copies, by the device's own events; `launch`: what is left."""
        device = self._device
        begin = now_ns()
        events = [device.record(self._stream)]
        for work in (self.send, self.multiply, self.fetch):
            work()
            events.append(device.record(self._stream))
        device.wait(events[-1])
        whole = (now_ns() - begin) / 1e9
        times = pairwise(map(device.time_ns, events))
        parts = {part: (after - before) / 1e9 for part, (before, after) in zip(PARTS, times, strict=False)}
        return parts | {"launch": max(whole - sum(parts.values()), 0.0)}


def measure(params: Params, desk: Desk) -> SweepResult:
    device, real = opened(desk)
    claimed = _There(device, params.n)

    def variants(n: int) -> dict[str, Work]:
        there = claimed if n == params.n else _There(device, n)
        return {variant: getattr(there, variant) for variant in VARIANTS}

    cold = {
        variant: {params.n: [desk.once(f"first {NAMES[variant]}", work)]}
        for variant, work in variants(params.n).items()
    }
    others = [n for n in SIZES if n <= params.largest and n != params.n]
    sweep = Sweep(
        variants,
        [params.n, *others],
        "products of {size} × {size}",
        label="{variant} {size}",
        calls=lambda variant, n: 1 if n >= LARGE else None,
        rounds=lambda n: LARGE_ROUNDS if n >= LARGE else None,
    )
    timings = sweep.run(desk, params.seconds)
    parts: dict[str, dict[int, list[float]]] = {part: {params.n: []} for part in PARTS}
    for _ in range(200 if params.seconds else 3):
        desk.check()
        for part, seconds in claimed.apart().items():
            parts[part][params.n].append(seconds)
    return SweepResult(
        timings=timings,
        more={"cold": Timings(seconds=cold), "parts": Timings(seconds=parts)},
        counts={"n": params.n},
        texts={"place": device.name},
        device=device.name if real else "",
    )


def break_even(timings: Timings) -> int | None:
    """The smallest size from which on the device with copies is faster than numpy; None where it never is."""
    found = None
    for n in reversed(timings.sizes()):
        if timings.time("copied", n) >= timings.time("numpy", n):
            break
        found = n
    return found


def judge(result: SweepResult) -> Finding:
    timings, n = result.timings, round(result.counts["n"])
    faster, with_copies = (timings.ratio("numpy", there, n) for there in ("resident", "copied"))
    rates = {variant: 2e-9 * n**3 / timings.time(variant, n) for variant in VARIANTS}
    us = {part: 1e6 * result.more["parts"].time(part) for part in PARTS}
    cold = result.more["cold"].time("resident")
    figures: dict[str, float | None] = {
        "resident_over_numpy": None,
        "copied_over_numpy": None,
        "break_even_n": None,
        "cold_first_product_s": None,
        "numpy_flops_per_s": 1e9 * rates["numpy"],
        "bytes_copied": 3.0 * 4 * n**2,
    }
    if not result.device:
        why = (
            f"{HALF}: numpy multiplies {n} × {n} at {rates['numpy']:.3g} GFLOP/s, torch on a "
            f"thread of its own at {rates['resident']:.3g}; copying both matrices and the result within "
            f"the memory takes {us['there'] + us['back']:.3g} µs beside {us['product']:.3g} µs of product."
        )
        return Finding(IMPOSSIBLE, why, figures)
    even = break_even(timings)
    figures |= {
        "resident_over_numpy": value(faster),
        "copied_over_numpy": value(with_copies),
        "break_even_n": None if even is None else float(even),
        "cold_first_product_s": cold,
    }
    when = f"from {even} × {even} on" if even is not None else "at no size up to the largest"
    why = (
        f"At {n} × {n} the product on {result.device} is {ci(faster)} times as fast as numpy's where its matrices are "
        f"there, and {ci(with_copies)} times with copies ({us['there']:.3g} µs there, {us['product']:.3g} µs product, "
        f"{us['back']:.3g} µs back, {us['launch']:.3g} µs launch and waiting); with copies it is faster {when}. The "
        f"first call took {1e3 * cold:.3g} ms."
    )
    high = None if with_copies is None else with_copies.high
    same: Verdict = HOLDS if high is not None and high < 2.0 else FAILS
    return Finding(all_of(at_least(faster, 2.0), same), why, figures)


def picture(result: SweepResult) -> Chart:
    timings, n = result.timings, round(result.counts["n"])
    # Where there is no accelerator, what stands in for one is named.
    there = "the device" if result.device else result.texts["place"]
    names = {variant: NAMES[variant].replace("the device", there) for variant in VARIANTS}

    def microseconds(_: int, seconds: float) -> float:
        return 1e6 * seconds

    apart = result.more["parts"]
    parts = tuple(Bars(name, (1e6 * apart.time(part),), stacked=True) for part, name in PARTS.items())
    by_size = (timings.line(variant, name, microseconds) for variant, name in names.items())
    even = break_even(timings) if result.device else None
    marks = (Mark("break-even", float(even), on="x"),) if even is not None else ()
    time = Axis("time", "µs", log=True)
    return Chart(
        Axis("way", categories=tuple(names.values())),
        time,
        (timings.bars("time", [(variant, n) for variant in VARIANTS], microseconds),),
        title=f"{n} × {n}, float32",
        beside=(
            Chart(Axis("", categories=("copied each time",)), Axis("time", "µs"), parts, title="Its parts"),
            Chart(Axis("size n", log=True), time, (*by_size, *marks), title="By size"),
        ),
    )


LAB = Lab(
    claim="A 200 × 200 product is about 6 times as fast on the GPU as in numpy, and with copying each time as "
    "slow as numpy.",
    source="note 2",
    group="device",
    wants_device=True,
    measured="A float32 product by numpy, on the device with its matrices there, and with both copied there and "
    "the result back, split by the device's own events; sizes from 32 to 4096; the first (cold) call apart. Each "
    "call waits for the device, both sides are warm, and both use the same type.",
    bound="It holds if the device is at least twice as fast with its matrices there, and less than twice with "
    "copies. The claim has 6 and almost the same; two is ours: clearly faster, and about the same.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: keep weights on the device and send frames in blocks: a device that is fed product by "
        "product gains nothing.",
        FAILS: "So: measure where your device breaks even before you move a stage there; small products may never pay.",
        IMPOSSIBLE: "So: run it where there is an accelerator; here the processor's half says what a device "
        "has to beat.",
        UNDECIDED: "So: give it more time (--set seconds=120).",
    },
    published=(PublishedValue("on the GPU over numpy", 6.0, "×", "resident_over_numpy"),),
    bytes_needed=lambda params: 6 * 4 * max(params.largest, params.n) ** 2,
)
