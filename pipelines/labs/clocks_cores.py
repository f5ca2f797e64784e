"""Lab `clocks-cores`: what clock times cores says of a machine, against what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pipelines.config.options import setting
from pipelines.labs._accelerator import HALF
from pipelines.labs.chart import Axis, Bars, Chart, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import between, columns, seconds
from pipelines.labs.texts import told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, at_least
from profiler.analysis.comparison.statistics import Ratio
from profiler.machine.describe import usable_cores

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

LAPTOP_HZ, LAPTOP_CORES = 3.1e9, 4
K80_HZ, K80_CORES = 562e6, 4992
"""Of its two processors together; the note says nearly 5 000."""
A_CORE = 2.0
"""Operations of a GPU's core per cycle: one multiply-add."""
UNFAIR = 2.0
"""From this factor on, a core's cycle is another thing on both sides."""
STEPS = 1_000_000


class Sizes(Parameters, frozen=True, kw_only=True):
    """What is multiplied, and for how long."""

    n: Annotated[int, setting("Size", "Rows and columns of the matrices.", ge=32, le=8192)] = 512
    seconds: Annotated[
        float, setting("Seconds", "Time of the measurement.", unit="s", ge=0.0, le=600.0)
    ] = 12.0


class Rates(Measured, frozen=True, kw_only=True):
    """Seconds by round: of the chain of `cycles` cycles, of the product on one thread, on all and on the
    device."""

    n: int
    cores: int
    cycles: int
    clock: list[float]
    one: list[float]
    every: list[float]
    device: list[float]
    device_name: str


def measure(sizes: Sizes, desk: Desk) -> Rates:
    """All in turns; the device's products are waited for."""
    import numpy as np
    import torch

    from pipelines.labs._clock_kernel import CYCLES, chain

    cores = usable_cores() or 1
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.rand((sizes.n, sizes.n), generator=generator) for _ in range(2))
    out = torch.empty_like(a)

    def product(threads: int) -> Callable[[], object]:
        def run() -> None:
            torch.set_num_threads(threads)
            torch.mm(a, b, out=out)

        return run

    start = np.uint64(88172645463325252)
    arms: dict[str, Callable[[], object]] = {
        "clock": lambda: chain(start, STEPS),
        "one": product(1),
        "every": product(cores),
    }
    name = desk.device or ""
    if name:
        from pipelines.device import COMPUTE, open_device

        device = open_device(name)
        there = [torch.empty_like(value, device=device.where) for value in (a, b, out)]
        for target, source in zip(there, (a, b), strict=False):
            device.run(COMPUTE, lambda to=target, of=source: to.copy_(of))  # type: ignore[misc]

        def on_device() -> None:
            device.run(COMPUTE, lambda: torch.mm(there[0], there[1], out=there[2]))
            device.wait(device.mark(COMPUTE))

        arms["device"] = on_device
    found = desk.turns(arms, seconds=sizes.seconds, what=f"products of {sizes.n} × {sizes.n}")
    return Rates(
        n=sizes.n,
        cores=cores,
        cycles=CYCLES * STEPS,
        clock=found["clock"],
        one=found["one"],
        every=found["every"],
        device=found.get("device", []),
        device_name=name,
    )


def _per_cycle(found: Rates) -> Ratio:
    """Operations of one core in a cycle, over those of a GPU's core."""
    clock = between(found.clock, lambda s: found.cycles / s)
    rate = between(found.one, lambda s: 2 * found.n**3 / s)
    middle = rate.value / clock.value / A_CORE
    return Ratio(middle, rate.low / clock.high / A_CORE, rate.high / clock.low / A_CORE)


def judge(found: Rates) -> Finding:
    """Not fair where a core here does at least twice the work of a GPU's core in a cycle."""
    ratio = _per_cycle(found)
    hz = found.cycles / seconds(found.clock)
    work = 2.0 * found.n**3
    one, every = work / seconds(found.one), work / seconds(found.every)
    k80 = K80_HZ * K80_CORES
    by_count = k80 / (hz * found.cores)
    by_work = k80 * A_CORE / every
    why = (
        f"A core here runs at {hz / 1e9:.2f} GHz and does {told(ratio)} times the operations of a GPU's core in "
        f"a cycle ({one / 1e9:.3g} GFLOP/s on one, {every / 1e9:.3g} on {found.cores}): clock × cores puts a "
        f"K80 {by_count:.3g} times above this processor, its operations {by_work:.3g} times."
    )
    figures: dict[str, float | None] = {
        "clock_hz": hz,
        "cores": float(found.cores),
        "flops_per_s_one_core": one,
        "flops_per_s_all_cores": every,
        "per_cycle_over_gpu_core": ratio.ratio,
        "k80_over_here_by_clock_and_cores": by_count,
        "k80_over_here_by_operations": by_work,
        "k80_over_laptop_by_clock_and_cores": k80 / (LAPTOP_HZ * LAPTOP_CORES),
        "device_flops_per_s": None,
        "device_over_all_cores": None,
    }
    if found.device:
        rate = work / seconds(found.device)
        why += f" {found.device_name} here computes {rate / 1e9:.4g} GFLOP/s, {rate / every:.3g} times as much."
        figures |= {"device_flops_per_s": rate, "device_over_all_cores": rate / every}
    else:
        why += f" {HALF}."
    return Finding(at_least(ratio, UNFAIR), why, figures)


def picture(found: Rates) -> Chart:
    """Cores × clock of each, and beside it what they compute: the K80's by its count, ours measured."""
    hz = found.cycles / seconds(found.clock)
    names = ("laptop of the claim", "this processor", "K80")
    cycles = (LAPTOP_HZ * LAPTOP_CORES, hz * found.cores, K80_HZ * K80_CORES)
    work = 2.0 * found.n**3
    measured = [("one core", found.one), (f"{found.cores} cores", found.every)]
    if found.device:
        measured.append((found.device_name, found.device))
    rates = [between(times, lambda s: 1e-9 * work / s) for _, times in measured]
    return Chart(
        Axis("machine", categories=names),
        Axis("clock × cores", "1e9/s", log=True),
        (Bars("cycles of all cores", tuple(1e-9 * value for value in cycles)),),
        title="Counted",
        beside=(
            Chart(
                Axis("machine", categories=tuple(name for name, _ in measured)),
                Axis("float32", "GFLOP/s", log=True),
                (
                    Bars("measured", *columns(rates)),
                    Mark("K80, a multiply-add a cycle", 1e-9 * A_CORE * K80_HZ * K80_CORES),
                ),
                title="Computed",
            ),
        ),
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
    parameters=Sizes(),
    stored=Rates,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: compare devices by GFLOP/s and GB/s, measured, never by cores: the real gap is a tenth of "
        "what they say.",
        FAILS: "So: here a core does no more in a cycle than a GPU's does; is torch's library made for this processor?",
        UNDECIDED: "So: give it more time (--set seconds=60), with nothing else running.",
    },
    said=(
        Said("K80 over laptop, clock × cores", 227.0, "×", "k80_over_laptop_by_clock_and_cores"),
        Said("the laptop's clock", LAPTOP_HZ, "Hz", "clock_hz"),
    ),
    bytes_needed=lambda sizes: 3 * 4 * sizes.n**2,
)
