"""Lab `matrix-200`: a matrix product by numpy, on the device, and on the device with copies each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pipelines.config.options import setting
from pipelines.labs._accelerator import HALF, opened
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark, StackedBars
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import between, columns, ratio, seconds
from pipelines.labs.texts import told
from pipelines.labs.verdicts import FAILS, HOLDS, IMPOSSIBLE, UNDECIDED, Finding, all_of, at_least

if TYPE_CHECKING:
    import torch

    from pipelines.device import Device
    from pipelines.labs.desk import Desk

ARMS = ("numpy", "resident", "copied")
NAMES = {
    "numpy": "numpy",
    "resident": "on the device",
    "copied": "on the device, copied each time",
}
PARTS = ("there", "product", "back", "launch")
PART_NAMES = ("host to device", "product", "device to host", "launch and wait")
SIZES = (32, 64, 128, 200, 512, 1024, 2048, 4096)
SAID_FASTER = 6.0
MANY = 2.0
"""From this factor on one of two is clearly faster; "almost the same" is below it."""
FLOAT = 4
LARGE = 2048
"""From this size on a product lasts so long that few rounds of one call each are enough."""
LARGE_ROUNDS = 3


class Sizes(Parameters, frozen=True, kw_only=True):
    """What is multiplied, and for how long."""

    n: Annotated[
        int, setting("Size", "Rows and columns of the matrices of the claim.", ge=8, le=4096)
    ] = 200
    largest: Annotated[
        int, setting("Largest", "The largest size that is swept.", ge=32, le=16384)
    ] = 4096
    seconds: Annotated[
        float, setting("Seconds", "Time of the measurement.", unit="s", ge=0.0, le=600.0)
    ] = 18.0
    threads: Annotated[
        int, setting("Threads", "Threads of numpy and of torch on the processor.", ge=1, le=64)
    ] = 1


class Products(Measured, frozen=True, kw_only=True):
    """Seconds by round of each arm at each size, and of the parts of a product with copies at `n`.

    `cold`: seconds of the first call of each arm at `n`. `real`: whether the device is an accelerator.
    """

    n: int
    device: str
    real: bool
    sizes: list[int]
    by_size: dict[str, list[list[float]]]
    parts: dict[str, list[float]]
    cold: dict[str, float]


class _There:
    """Two matrices on both sides, and what can be done with them."""

    def __init__(self, device: Device, n: int) -> None:
        import numpy as np
        import torch

        draw = np.random.default_rng(n)
        self.a, self.b = (draw.random((n, n), np.float32) for _ in range(2))
        self.out = np.empty((n, n), np.float32)
        self._device = device
        self._host = [torch.from_numpy(value) for value in (self.a, self.b, self.out)]
        self._there = [torch.empty_like(value, device=device.where) for value in self._host]
        self.send()
        self.wait()

    def numpy(self) -> None:
        """On the processor."""
        import numpy as np

        np.matmul(self.a, self.b, out=self.out)

    def resident(self) -> None:
        """With matrices that are there already."""
        self.multiply()
        self.wait()

    def copied(self) -> None:
        """There, product, back."""
        self.send()
        self.multiply()
        self.fetch()
        self.wait()

    def send(self) -> None:
        """Both matrices to the device."""
        for target, source in zip(self._there[:2], self._host[:2], strict=True):
            self._give(target, source)

    def multiply(self) -> None:
        """Launch the product."""
        import torch

        from pipelines.device import COMPUTE

        a, b, out = self._there
        self._device.run(COMPUTE, lambda: torch.mm(a, b, out=out))

    def fetch(self) -> None:
        """The result to the host."""
        self._give(self._host[2], self._there[2])

    def _give(self, target: torch.Tensor, source: torch.Tensor) -> None:
        from pipelines.device import COMPUTE

        self._device.run(COMPUTE, lambda: target.copy_(source))

    def wait(self) -> None:
        """Until the device has done all of it."""
        from pipelines.device import COMPUTE

        self._device.wait(self._device.mark(COMPUTE))

    def apart(self) -> dict[str, float]:
        """Seconds of the parts of one product with copies, by the device's own events; `launch`: what is
        left."""
        from pipelines.device import COMPUTE
        from profiler.clock import now_ns

        device = self._device
        begin = now_ns()
        events = [device.record(COMPUTE)]
        for work in (self.send, self.multiply, self.fetch):
            work()
            events.append(device.record(COMPUTE))
        device.wait(events[-1])
        whole = (now_ns() - begin) / 1e9
        times = [device.time_ns(event) for event in events]
        found = {
            part: (after - before) / 1e9
            for part, before, after in zip(PARTS, times, times[1:], strict=False)
        }
        return found | {PARTS[-1]: max(whole - sum(found.values()), 0.0)}


def measure(sizes: Sizes, desk: Desk) -> Products:
    """The cold calls, the claim's size, its parts, and the sweep."""
    from pipelines.labs.desk import MOST_ROUNDS

    device, real = opened(desk)
    swept = sorted({*(n for n in SIZES if n <= sizes.largest), sizes.n})
    cold: dict[str, float] = {}
    by_size: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    for place, n in enumerate([sizes.n, *(each for each in swept if each != sizes.n)]):
        with desk.part(place / len(swept), (place + 1) / len(swept)):
            there = _There(device, n)
            arms: dict[str, Callable[[], object]] = {
                NAMES[arm]: getattr(there, arm) for arm in ARMS
            }
            if n == sizes.n:
                cold = {arm: desk.once(f"first {NAMES[arm]}", getattr(there, arm)) for arm in ARMS}
            named = {f"{name} {n}": arm for name, arm in arms.items()}
            found = desk.turns(
                named,
                seconds=sizes.seconds / len(swept),
                rounds=LARGE_ROUNDS if n >= LARGE else MOST_ROUNDS,
                inner=1 if n >= LARGE else None,
                what=f"products of {n} × {n}",
            )
            for arm, times in zip(ARMS, found.values(), strict=True):
                by_size[arm].append(times)
            if n == sizes.n:
                for _ in range(200 if sizes.seconds else 3):
                    desk.check()
                    for part, taken in there.apart().items():
                        parts[part].append(taken)
    order = sorted(
        range(len(swept)), key=lambda i: [sizes.n, *(s for s in swept if s != sizes.n)][i]
    )
    return Products(
        n=sizes.n,
        device=device.name,
        real=real,
        sizes=swept,
        by_size={arm: [each[i] for i in order] for arm, each in by_size.items()},
        parts=parts,
        cold=cold,
    )


def break_even(found: Products) -> int | None:
    """The smallest size from which on the device with copies is faster than numpy; None where it never is."""
    sooner = [
        seconds(there) < seconds(here)
        for here, there in zip(found.by_size["numpy"], found.by_size["copied"], strict=True)
    ]
    for place, size in enumerate(found.sizes):
        if all(sooner[place:]):
            return size
    return None


def judge(found: Products) -> Finding:
    """Holds where the resident product is clearly faster than numpy's, and with copies it is not."""
    at = found.sizes.index(found.n)
    here, resident, copied = (found.by_size[arm][at] for arm in ARMS)
    faster, with_copies = ratio(here, resident), ratio(here, copied)
    operations = 2.0 * found.n**3
    rates = {arm: operations / seconds(found.by_size[arm][at]) for arm in ARMS}
    even = break_even(found)
    parts = {part: seconds(times) for part, times in found.parts.items()}
    figures: dict[str, float | None] = {
        "resident_over_numpy": faster.ratio if faster and found.real else None,
        "copied_over_numpy": with_copies.ratio if with_copies and found.real else None,
        "break_even_n": float(even) if even is not None and found.real else None,
        "cold_first_product_s": found.cold["resident"] if found.real else None,
        "numpy_flops_per_s": rates["numpy"],
        "bytes_copied": 3.0 * FLOAT * found.n**2,
    }
    if not found.real:
        why = (
            f"{HALF}: numpy multiplies {found.n} × {found.n} at {rates['numpy'] / 1e9:.3g} GFLOP/s, torch on a "
            f"thread of its own at {rates['resident'] / 1e9:.3g}; copying both matrices and the result within "
            f"the memory takes {1e6 * (parts['there'] + parts['back']):.3g} µs beside "
            f"{1e6 * parts['product']:.3g} µs of product."
        )
        return Finding(IMPOSSIBLE, why, figures)
    same = with_copies is not None and with_copies.high is not None
    verdict = all_of(
        at_least(faster, MANY),
        HOLDS if same and with_copies.high < MANY else FAILS,  # type: ignore[union-attr,operator]
    )
    when = f"from {even} × {even} on" if even is not None else "at no size up to the largest"
    why = (
        f"At {found.n} × {found.n} the product on {found.device} is {told(faster)} times as fast as numpy's "
        f"where its matrices are there, and {told(with_copies)} times with copies ({1e6 * parts['there']:.3g} "
        f"µs there, {1e6 * parts['product']:.3g} µs product, {1e6 * parts['back']:.3g} µs back, "
        f"{1e6 * parts['launch']:.3g} µs launch and waiting); with copies it is faster {when}. The first call "
        f"took {1e3 * found.cold['resident']:.3g} ms."
    )
    return Finding(verdict, why, figures)


def picture(found: Products) -> Chart:
    """Times of the three ways at the claim's size; beside it the parts, and all sizes."""
    at = found.sizes.index(found.n)
    names = (
        NAMES
        if found.real
        else {arm: name.replace("the device", found.device) for arm, name in NAMES.items()}
    )
    times = [between(found.by_size[arm][at], lambda s: 1e6 * s) for arm in ARMS]
    parts = tuple(
        (name, (1e6 * seconds(found.parts[part]),))
        for part, name in zip(PARTS, PART_NAMES, strict=True)
    )
    by_size = tuple(
        Line(
            names[arm],
            tuple(map(float, found.sizes)),
            *columns([between(t, lambda s: 1e6 * s) for t in found.by_size[arm]]),
        )
        for arm in ARMS
    )
    even = break_even(found) if found.real else None
    marks = (Mark("break-even", float(even), on="x"),) if even is not None else ()
    return Chart(
        Axis("way", categories=tuple(names[arm] for arm in ARMS)),
        Axis("time", "µs", log=True),
        (Bars("time", *columns(times)),),
        title=f"{found.n} × {found.n}, float32",
        beside=(
            Chart(
                Axis("", categories=("copied each time",)),
                Axis("time", "µs"),
                (StackedBars(parts),),
                title="Its parts",
            ),
            Chart(
                Axis("size n", log=True),
                Axis("time", "µs", log=True),
                (*by_size, *marks),
                title="By size",
            ),
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
    parameters=Sizes(),
    stored=Products,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: keep weights on the device and send frames in blocks: a device that is fed product by "
        "product gains nothing.",
        FAILS: "So: measure where your device breaks even before you move a stage there; small products may never pay.",
        IMPOSSIBLE: "So: run it where there is an accelerator; here the processor's half says what a device "
        "has to beat.",
        UNDECIDED: "So: give it more time (--set seconds=120).",
    },
    said=(Said("on the GPU over numpy", SAID_FASTER, "×", "resident_over_numpy"),),
    bytes_needed=lambda sizes: 6 * FLOAT * max(sizes.largest, sizes.n) ** 2,
)
