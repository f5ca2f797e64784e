"""Lab `call-costs`: what one call takes in Python, numpy, numba and torch, and from which size on it no longer matters.

The same sum of two float32 vectors everywhere, written into a third; one thread.
"""

from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart, Mark
from pipelines.labs.declaration import Lab, Parameters, Seconds, setting
from pipelines.labs.desk import Desk, computing_on
from pipelines.labs.figures import ci, figure, format_integer, ratio_apart, value
from pipelines.labs.sweep import Sweep, SweepResult, Work, key
from pipelines.labs.verdicts import UNDECIDED, Finding, all_of, at_least

MANY: Final = 1000  # Numbers that are added at once, or one by one: as many as a layer of a small net has
PYTHON: Final = "Python loop"
JUDGED: Final = ("numpy", "torch")


class Params(Parameters, frozen=True, kw_only=True):
    largest: Annotated[int, setting("Largest vector", "Numbers of the longest vectors.", ge=16, le=1 << 26)] = 1 << 20
    seconds: Seconds = 20.0
    threads: Annotated[int, setting("Threads", "Of torch.", ge=1, le=256)] = 1


def additions(n: int, device: str | None) -> dict[str, Work]:
    """The sum of two vectors [n] by library; what they return is the vector, torch's tensor or the list."""
    import torch

    from pipelines.labs._kernels import add

    a, b = (np.random.default_rng(0).random(n, np.float32) for _ in range(2))
    out, compiled = np.zeros(n, np.float32), np.zeros(n, np.float32)

    def loops() -> object:
        add(a, b, compiled)
        return compiled

    found: dict[str, Work] = {"numpy": lambda: np.add(a, b, out=out), "numba": loops}
    if n <= MANY:
        la, lb, made = a.tolist(), b.tolist(), [0.0] * n

        def python() -> object:
            for i in range(n):
                made[i] = la[i] + lb[i]
            return made

        found[PYTHON] = python
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    found["torch"] = partial(torch.add, ta, tb, out=torch.zeros_like(ta))
    if device:
        there = ta.to(device), tb.to(device)
        sums = torch.zeros_like(there[0])

        def waited() -> None:
            torch.add(*there, out=sums)
            torch.accelerator.synchronize()

        found[f"torch on {device}"] = waited
    return found


def measure(params: Params, desk: Desk) -> SweepResult:
    import torch  # noqa: F401  # before threads are limited, so that its own are

    sweep = Sweep(
        lambda n: additions(n, desk.device),
        [1 << k for k in range(0, 40, 2) if 1 << k <= params.largest],
        "sums of {size} numbers",
    )
    with computing_on(params.threads):
        return SweepResult(timings=sweep.run(desk, params.seconds), device=desk.device or "")


def enough(result: SweepResult, name: str) -> float | None:
    """From how many numbers on the call is a tenth of the time or less; None: from more than the largest vector."""
    timings = result.timings
    call = timings.time(name, 1)
    return next((float(n) for n in timings.sizes(name) if timings.time(name, n) / 10 >= call), None)


def judge(result: SweepResult) -> Finding:
    timings = result.timings
    at_once = max(n for n in timings.sizes() if n <= MANY)
    gains = {}
    for name in JUDGED:
        one_by_one = [at_once * t for t in timings.rounds(name, 1)]
        gains[name] = ratio_apart(one_by_one, timings.rounds(name, at_once))
    first = {name: timings.time(name, 1) for name in timings.variants}
    lasts = {name: enough(result, name) for name in timings.variants if name != PYTHON}
    calls = ", ".join(f"{name} {figure(seconds, 's')}" for name, seconds in first.items())
    most = format_integer(timings.sizes()[-1])
    lengths = (f"{name} {format_integer(n) if n else f'more than {most}'}" for name, n in lasts.items())
    why = (
        f"One sum of two numbers takes {calls}. {at_once} of them one by one take {ci(gains['numpy'])} times as "
        f"long as at once in numpy and {ci(gains['torch'])} times in torch. The call is a tenth of the time from "
        f"so many numbers on: {', '.join(lengths)}."
    )
    figures: dict[str, float | None] = {f"{key(name).lower()}_call_s": seconds for name, seconds in first.items()}
    figures |= {f"{name}_one_by_one_over_at_once": value(gain) for name, gain in gains.items()}
    figures |= {f"{key(name).lower()}_call_is_a_tenth_from": n for name, n in lasts.items()}
    worth = all_of(*(at_least(gain, 10.0) for gain in gains.values()))
    return Finding(worth if at_once > 1 else UNDECIDED, why, figures)


def picture(result: SweepResult) -> Chart:
    timings = result.timings
    first = timings.bars("call", [(name, 1) for name in timings.variants])
    lines = [timings.line(name, figure=lambda n, s: s / n) for name in timings.variants]
    tenths = {name: enough(result, name) for name in JUDGED}
    marks = [Mark(f"call 10 % in {name}", n, on="x") for name, n in tenths.items() if n is not None]
    one = Axis("one sum of two numbers", categories=tuple(timings.variants))
    by_size = Chart(Axis("numbers in a call", log=True), Axis("time per number", "s", log=True), (*lines, *marks))
    return Chart(one, Axis("time of the call", "s", log=True), (first,), beside=(by_size,))


LAB = Lab(
    claim="Every call from the interpreter into a framework costs, so vectorise: only large operations make it vanish.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="The sum of two float32 vectors of 1 to a million numbers, written into a third: a loop in Python, "
    "one call of numpy, of a numba kernel, of torch on the CPU and, if there is one, on the device (with a wait "
    "each time). The times include the loop around the calls, some 20 ns.",
    bound="It holds if adding the numbers one by one takes at least ten times as long as all at once. The claim "
    "gives no number; ten is ours: the call is then nine tenths of the time.",
    steps=(measure, judge, picture),
    follows={
        "holds here": "So: give a framework whole layers and blocks of frames; calls per frame and Gaussian are "
        "interpreter time, whatever the framework does inside.",
        "does not hold here": "So: calls are cheap against the work here; look at bytes and operations first.",
    },
    bytes_needed=lambda params: 8 * 4 * params.largest,
)
