"""Lab `clocks-cores`: what clock times cores says of a machine, against what it computes."""

from typing import Annotated

from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, setting
from pipelines.labs.desk import HALF, Desk
from pipelines.labs.figures import Ratio, between, ci
from pipelines.labs.sweep import SweepResult, Work, one_size
from pipelines.labs.verdicts import FAILS, HOLDS, Finding, at_least
from profiler.machine.describe import usable_cores

CLOCK, ONE, EVERY, DEVICE = "clock", "one", "every", "device"
"""The variants: a chain of one-cycle operations; the product on one core, on all and on the accelerator."""

LAPTOP_HZ, LAPTOP_CORES = 3.1e9, 4
K80_HZ, K80_CORES = 562e6, 4992  # Of its two processors together; the note says nearly 5 000
A_CORE = 2.0  # Operations of a GPU's core per cycle: one multiply-add
STEPS = 1_000_000


class Params(Parameters, frozen=True, kw_only=True):
    n: Annotated[int, setting("Size", "Rows and columns of the matrices.", ge=32, le=8192)] = 512
    seconds: Seconds = 12.0


def measure(params: Params, desk: Desk) -> SweepResult:
    import numpy as np
    import torch

    from pipelines.labs._kernels import CYCLES, chain

    cores = usable_cores() or 1
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.rand((params.n, params.n), generator=generator) for _ in range(2))
    out = torch.empty_like(a)

    def product(threads: int) -> Work:
        def run() -> None:
            torch.set_num_threads(threads)
            torch.mm(a, b, out=out)

        return run

    start = np.uint64(88172645463325252)
    variants: dict[str, Work] = {CLOCK: lambda: chain(start, STEPS), ONE: product(1), EVERY: product(cores)}
    if desk.device:
        from pipelines.device import COMPUTE, open_device

        device = open_device(desk.device)
        x, y, z = (value.to(device.where) for value in (a, b, out))

        def on_device() -> None:
            device.run(COMPUTE, lambda: torch.mm(x, y, out=z))
            device.wait(device.mark(COMPUTE))

        variants[DEVICE] = on_device
    sweep = one_size(variants, params.n, f"products of {params.n} × {params.n}")
    return SweepResult(
        timings=sweep.run(desk, params.seconds),
        counts={"cores": cores, "cycles": CYCLES * STEPS},
        device=desk.device or "",
    )


def flops_per_s(n: int, seconds: float) -> float:
    return 2 * n**3 / seconds


def _clock_hz(result: SweepResult) -> float:
    return result.counts["cycles"] / result.timings.time(CLOCK)


def judge(result: SweepResult) -> Finding:
    timings = result.timings
    clock = between(timings.rounds(CLOCK), lambda s: result.counts["cycles"] / s)
    rate = between(timings.rounds(ONE), lambda s: flops_per_s(timings.size(ONE), s) / A_CORE)
    ratio = Ratio(rate.value / clock.value, rate.low / clock.high, rate.high / clock.low)
    hz, cores = _clock_hz(result), round(result.counts["cores"])
    rates = {name: flops_per_s(n, timings.time(name)) for name, n in timings.cells() if name != CLOCK}
    every, there = rates[EVERY], rates.get(DEVICE)
    k80 = K80_HZ * K80_CORES
    by_count, by_work = k80 / (hz * cores), k80 * A_CORE / every
    why = (
        f"A core here runs at {hz / 1e9:.2f} GHz and does {ci(ratio)} times the operations of a GPU's core in "
        f"a cycle ({rates[ONE] / 1e9:.3g} GFLOP/s on one, {every / 1e9:.3g} on {cores}): clock × cores puts a "
        f"K80 {by_count:.3g} times above this processor, its operations {by_work:.3g} times."
    )
    figures: dict[str, float | None] = {
        "clock_hz": hz,
        "cores": float(cores),
        "flops_per_s_one_core": rates[ONE],
        "flops_per_s_all_cores": every,
        "per_cycle_over_gpu_core": ratio.ratio,
        "k80_over_here_by_clock_and_cores": by_count,
        "k80_over_here_by_operations": by_work,
        "k80_over_laptop_by_clock_and_cores": k80 / (LAPTOP_HZ * LAPTOP_CORES),
        "device_flops_per_s": there,
        "device_over_all_cores": there / every if there else None,
    }
    if there:
        why += f" {result.device} here computes {there / 1e9:.4g} GFLOP/s, {there / every:.3g} times as much."
    else:
        why += f" {HALF}."
    return Finding(at_least(ratio, 2.0), why, figures)


def picture(result: SweepResult) -> Chart:
    timings, cores = result.timings, round(result.counts["cores"])
    machines = ("laptop of the claim", "this processor", "K80")
    cycles = (LAPTOP_HZ * LAPTOP_CORES, _clock_hz(result) * cores, K80_HZ * K80_CORES)
    names = {ONE: "one core", EVERY: f"{cores} cores", DEVICE: result.device}
    computing = [variant for variant in timings.variants if variant != CLOCK]
    rates = timings.bars("measured", timings.cells(computing), lambda n, s: 1e-9 * flops_per_s(n, s))
    computed = Chart(
        Axis("machine", categories=tuple(names[variant] for variant in computing)),
        Axis("float32", "GFLOP/s", log=True),
        (rates, Mark("K80, a multiply-add a cycle", 1e-9 * A_CORE * K80_HZ * K80_CORES)),
        title="Computed",
    )
    return Chart(
        Axis("machine", categories=machines),
        Axis("clock × cores", "1e9/s", log=True),
        (Bars("cycles of all cores", tuple(1e-9 * value for value in cycles)),),
        title="Counted",
        beside=(computed,),
    )


LAB = Lab(
    claim="A K80 has a clock six times as slow as a laptop's and 1 250 times its cores, but to compare them so "
    "is not quite fair.",
    source="note 2",
    group="device",
    measured="The clock, from a chain of one-cycle operations; float32 products of torch on one core, on all "
    "cores and on the accelerator if there is one; both compared with clock × cores. A core of a GPU does one "
    "multiply-add per cycle; a core of a CPU has vectors. Clocks change with load, so all are measured in turns.",
    bound="It holds if a core of this CPU does at least twice as many operations per cycle as a core of a GPU. "
    "The claim gives no number; two is ours: below it the two kinds of core would be alike.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: compare devices by GFLOP/s and GB/s, measured, never by cores: the real gap is a tenth of "
        "what they say.",
        FAILS: "So: here a core does no more in a cycle than a GPU's does; is torch's library made for this processor?",
    },
    published=(
        PublishedValue("K80 over laptop, clock × cores", 227.0, "×", "k80_over_laptop_by_clock_and_cores"),
        PublishedValue("the laptop's clock", LAPTOP_HZ, "Hz", "clock_hz"),
    ),
    bytes_needed=lambda params: 3 * 4 * params.n**2,
)
