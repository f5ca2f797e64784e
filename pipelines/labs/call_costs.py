"""Lab `call-costs`: what one call takes in Python, numpy, numba and torch, and from which size on it no longer matters.

The same sum of two float32 vectors everywhere, written into a third; one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs.chart import Axis, Bars, Chart, Line, Mark
from pipelines.labs.declaration import Lab, Measured, Parameters
from pipelines.labs.figures import between, columns, ratio_apart, seconds
from pipelines.labs.texts import figure, told, whole
from pipelines.labs.verdicts import UNDECIDED, Finding, all_of, at_least

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

FLOAT: Final = 4
MANY: Final = 1000
"""Numbers that are added at once, or one by one: as many as a layer of a small net has."""

WORTH: Final = 10.0
"""The call decides where as many numbers one by one take ten times as long as at once: the note gives no number."""

MATTERS: Final = 0.1
"""A call no longer matters where it is a tenth of the time."""

PYTHON: Final = "Python loop"


class Sizes(Parameters, frozen=True, kw_only=True):
    """What may be changed."""

    largest: Annotated[
        int, setting("Largest vector", "Numbers of the longest vectors.", ge=16, le=1 << 26)
    ] = 1 << 20
    seconds: Annotated[
        float, setting("Time", "What the measurement may take.", unit="s", ge=0.0, le=600.0)
    ] = 20.0
    threads: Annotated[int, setting("Threads", "Of torch.", ge=1, le=256)] = 1


class Calls(Measured, frozen=True, kw_only=True):
    """Seconds per call by round, by library and by size; Python's loop over the small sizes alone."""

    sizes: list[int]
    times: dict[str, list[list[float]]]
    device: str | None


def additions(n: int, device: str | None) -> dict[str, Callable[[], object]]:
    """The sum of two vectors [n] by library; what they return is the vector, torch's tensor or the list."""
    import torch

    from pipelines.labs._call_kernels import add

    a, b = (np.random.default_rng(0).random(n, np.float32) for _ in range(2))
    out, compiled = np.zeros(n, np.float32), np.zeros(n, np.float32)

    def loops() -> object:
        add(a, b, compiled)
        return compiled

    found: dict[str, Callable[[], object]] = {
        "numpy": lambda: np.add(a, b, out=out),
        "numba": loops,
    }
    if n <= MANY:
        la, lb, made = a.tolist(), b.tolist(), [0.0] * n

        def python() -> object:
            for i in range(n):
                made[i] = la[i] + lb[i]
            return made

        found[PYTHON] = python
    for name in filter(None, ("cpu", device)):
        ta, tb = torch.from_numpy(a).to(name), torch.from_numpy(b).to(name)
        found["torch" if name == "cpu" else f"torch on {name}"] = _torch(ta, tb, name)
    return found


def _torch(a: object, b: object, name: str) -> Callable[[], object]:
    import torch

    assert isinstance(a, torch.Tensor)
    assert isinstance(b, torch.Tensor)
    out = torch.zeros_like(a)
    if name == "cpu":
        return lambda: torch.add(a, b, out=out)

    def waited() -> object:
        torch.add(a, b, out=out)
        getattr(torch, name).synchronize()
        return out

    return waited


def measure(sizes: Sizes, desk: Desk) -> Calls:
    """Every library over vectors of 1 number to the largest, four times as many each."""
    import torch  # noqa: F401  # before threads are limited, so that its own are

    device = desk.device
    steps = [1 << k for k in range(0, 40, 2) if 1 << k <= sizes.largest]
    times: dict[str, list[list[float]]] = {}
    with desk.threads(sizes.threads):
        for place, n in enumerate(steps):
            with desk.part(place / len(steps), (place + 1) / len(steps)):
                arms = {f"{name}, {n}": call for name, call in additions(n, device).items()}
                share = sizes.seconds / len(steps)
                found = desk.turns(arms, seconds=share, what=f"sums of {n} numbers")
            for name, each in found.items():
                times.setdefault(name.rpartition(", ")[0], []).append(each)
    return Calls(sizes=steps, times=times, device=device)


def enough(found: Calls, name: str) -> float | None:
    """From how many numbers on the call is a tenth of the time or less; None where the largest vector is too short.

    The time of a sum of n numbers is taken as that of one number and a share per number, which the largest vectors
    within a core's cache give.
    """
    times = [seconds(each) for each in found.times[name]]
    for n, took in zip(found.sizes, times, strict=False):
        if took * MATTERS >= times[0]:
            return float(n)
    return None


def judge(found: Calls) -> Finding:
    """As many numbers one by one as at once, in numpy and in torch: WORTH times as long or more."""
    at_once = max(n for n in found.sizes if n <= MANY)
    place = found.sizes.index(at_once)
    gains = {}
    for name in ("numpy", "torch"):
        one = [at_once * t for t in found.times[name][0]]
        gains[name] = ratio_apart(one, found.times[name][place])
    verdict = all_of(*(at_least(gain, WORTH) for gain in gains.values())) if place else UNDECIDED
    calls = ", ".join(f"{n} {figure(seconds(t[0]), 's')}" for n, t in found.times.items())
    lasts = {name: enough(found, name) for name in found.times if name != PYTHON}
    from_here = ", ".join(
        f"{name} {whole(n)}" if n else f"{name} more than {whole(found.sizes[-1])}"
        for name, n in lasts.items()
    )
    why = (
        f"One sum of two numbers takes {calls}. {at_once} of them one by one take {told(gains['numpy'])} times as "
        f"long as at once in numpy and {told(gains['torch'])} times in torch. The call is a tenth of the time from "
        f"so many numbers on: {from_here}."
    )
    figures: dict[str, float | None] = {
        f"{_key(name)}_call_s": seconds(each[0]) for name, each in found.times.items()
    }
    figures |= {
        f"{_key(name)}_one_by_one_over_at_once": g.ratio if g else None for name, g in gains.items()
    }
    figures |= {f"{_key(name)}_call_is_a_tenth_from": n for name, n in lasts.items()}
    return Finding(verdict, why, figures)


def _key(name: str) -> str:
    return name.lower().replace(" ", "_")


def picture(found: Calls) -> Chart:
    """Time of a call by library; beside it the time per number over the size."""
    names = tuple(found.times)
    first = [between(found.times[name][0]) for name in names]
    lines = []
    for name, each in found.times.items():
        x = tuple(float(n) for n in found.sizes[: len(each)])
        per = [between(t, lambda s, n=n: s / n) for t, n in zip(each, x, strict=True)]  # type: ignore[misc]
        lines.append(Line(name, x, *columns(per)))
    marks = _tenths(found)
    return Chart(
        Axis("one sum of two numbers", categories=names),
        Axis("time of the call", "s", log=True),
        (Bars("call", *columns(first)),),
        beside=(
            Chart(
                Axis("numbers in a call", log=True),
                Axis("time per number", "s", log=True),
                (*lines, *marks),
            ),
        ),
    )


def _tenths(found: Calls) -> tuple[Mark, ...]:
    named: Mapping[str, float | None] = {n: enough(found, n) for n in ("numpy", "torch")}
    return tuple(
        Mark(f"call 10 % in {name}", n, on="x") for name, n in named.items() if n is not None
    )


LAB = Lab(
    claim="Every call from the interpreter into a framework costs, so vectorise: only large operations make it vanish.",
    source="note 3 (Dive into Deep Learning, § 12.5)",
    group="caches",
    measured="The sum of two float32 vectors of 1 to a million numbers, written into a third: a loop in Python, "
    "one call of numpy, of a numba kernel, of torch on the CPU and, if there is one, on the device (with a wait "
    "each time). The times include the loop around the calls, some 20 ns.",
    bound="It holds if adding the numbers one by one takes at least ten times as long as all at once. The claim "
    "gives no number; ten is ours: the call is then nine tenths of the time.",
    parameters=Sizes(),
    stored=Calls,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        "holds here": "So: give a framework whole layers and blocks of frames; calls per frame and Gaussian are "
        "interpreter time, whatever the framework does inside.",
        "does not hold here": "So: calls are cheap against the work here; look at bytes and operations first.",
        "undecided": "So: give it more time (--set seconds=120), with nothing else running.",
    },
    bytes_needed=lambda sizes: 8 * FLOAT * sizes.largest,
)
