"""exp beside addition, multiplication and comparison, in an interpreted loop and in compiled ones (note 0)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from pipelines.config.options import setting
from pipelines.labs import figures
from pipelines.labs._parameters import Rounds
from pipelines.labs.chart import Axis, Bars, Chart
from pipelines.labs.declaration import Lab, Measured, Parameters, Said
from pipelines.labs.figures import inverse, ratio, value
from pipelines.labs.texts import told
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least
from profiler.analysis.comparison.statistics import Ratio

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk
    from profiler.arrays import Array

PYTHON: Final = "Python"
CHEAP: Final = ("add", "multiply", "compare")
OPERATIONS: Final = (*CHEAP, "exp")
NONE: Final = "nothing"
"""The arm of a way that does all but the operation: the loop over a list, or a call for one element."""
PAIRS: Final = "nothing, in pairs"
DTYPES: Final = ("float32", "float64")
LIMIT: Final = 5.0
"""The note's values: uniform in (−5, 5), seed 0."""

RESOLVED: Final = 0.05
"""Of the whole time: what an operation takes is not told apart from nothing below that."""

CALLS: Final = 400
"""Calls of a turn over arrays, and of one over lists so many fewer: a millisecond, which other programs interrupt
less often than the usual turns of four."""

LIST_CALLS: Final = 5

Arms = dict[str, Callable[[], object]]


class Given(Parameters, frozen=True, kw_only=True):
    """How much is computed."""

    elements: Annotated[
        int,
        setting("Elements", "Length of an array; 4 096 stay in the caches.", ge=64, le=10**7),
    ] = 4096
    items: Annotated[
        int, setting("List items", "Length of the lists that Python loops over.", ge=10, le=10**7)
    ] = 5000
    seconds: Rounds = 14.0


class Found(Measured, frozen=True, kw_only=True):
    """`seconds` per call by "way, operation"; `ways` in the order of the picture; elements of a call by way."""

    elements: int
    items: int
    ways: list[str]
    seconds: dict[str, list[float]]


def measure(given: Given, desk: Desk) -> Found:
    """All ways in turns, each on one thread."""
    import torch  # noqa: F401 - before the number of threads is set, which is then also torch's

    with desk.threads(1):
        return _measured(given, desk)


def _measured(given: Given, desk: Desk) -> Found:
    arms = python_arms(given.items)
    ways = [PYTHON]
    chance = np.random.default_rng(0)
    for dtype in DTYPES:
        x, y = chance.uniform(-LIMIT, LIMIT, (2, given.elements)).astype(dtype)
        made = {"numpy": numpy_arms, "numba": numba_arms, "torch": torch_arms}
        for name, make in made.items():
            desk.check()
            ways.append(f"{name} {dtype}")
            arms |= {f"{ways[-1]}, {what}": call for what, call in make(x, y).items()}
        if desk.device is not None and not (desk.device == "mps" and dtype == "float64"):
            ways.append(f"{desk.device} {dtype}")
            on_device = torch_arms(x, y, desk.device)
            arms |= {f"{ways[-1]}, {what}": call for what, call in on_device.items()}
    inner = {name: LIST_CALLS if name.startswith(PYTHON) else CALLS for name in arms}
    seconds = desk.turns(
        arms, seconds=given.seconds, inner=inner, what="exp and its rivals in turns"
    )
    return Found(elements=given.elements, items=given.items, ways=ways, seconds=seconds)


def python_arms(items: int) -> Arms:
    """The note's list comprehensions, and the same without the operation."""
    draw = random.Random(0)
    values, others = ([draw.uniform(-LIMIT, LIMIT) for _ in range(items)] for _ in range(2))
    arms: Arms = {
        NONE: lambda: [x for x in values],  # noqa: C416 - the loop is what is timed
        PAIRS: lambda: [x for x, y in zip(values, others)],  # noqa: B905 - as the note has it
        "add": lambda: [x + y for x, y in zip(values, others)],  # noqa: B905
        "multiply": lambda: [x * y for x, y in zip(values, others)],  # noqa: B905
        "compare": lambda: [x < y for x, y in zip(values, others)],  # noqa: B905
        "exp": lambda: [math.exp(x) for x in values],
    }
    return {f"{PYTHON}, {what}": call for what, call in arms.items()}


def numpy_arms(x: Array, y: Array) -> Arms:
    """Into arrays that are there."""
    out, less = np.empty_like(x), np.empty(x.shape, np.bool_)
    a, b, c = x[:1].copy(), y[:1].copy(), out[:1].copy()
    return {
        NONE: lambda: np.add(a, b, out=c),
        "add": lambda: np.add(x, y, out=out),
        "multiply": lambda: np.multiply(x, y, out=out),
        "compare": lambda: np.less(x, y, out=less),
        "exp": lambda: np.exp(x, out=out),
    }


def numba_arms(x: Array, y: Array) -> Arms:
    """As numpy's, the loops compiled here."""
    import numba

    kind = x.dtype.name
    two = {
        "add": (f"{kind}({kind},{kind})", lambda a, b: a + b),
        "multiply": (f"{kind}({kind},{kind})", lambda a, b: a * b),
        "compare": (f"boolean({kind},{kind})", lambda a, b: a < b),
    }
    made = {name: numba.vectorize([how])(what) for name, (how, what) in two.items()}
    exp = numba.vectorize([f"{kind}({kind})"])(lambda a: math.exp(a))  # noqa: PLW0108 - compiled
    out, less = np.empty_like(x), np.empty(x.shape, np.bool_)
    a, b, c = x[:1].copy(), y[:1].copy(), out[:1].copy()
    return {
        NONE: lambda: made["add"](a, b, c),
        "add": lambda: made["add"](x, y, out),
        "multiply": lambda: made["multiply"](x, y, out),
        "compare": lambda: made["compare"](x, y, less),
        "exp": lambda: exp(x, out),
    }


def torch_arms(x: Array, y: Array, device: str = "cpu") -> Arms:
    """As numpy's; on an accelerator a call ends when its result is there."""
    import torch

    def there(values: Array) -> torch.Tensor:
        return torch.from_numpy(np.array(values)).to(device)

    left, right = there(x), there(y)
    out, less = torch.empty_like(left), torch.empty(len(x), dtype=torch.bool, device=device)
    a, b = left[:1].clone(), right[:1].clone()
    c = torch.empty_like(a)

    def ended(call: Callable[[], object]) -> Callable[[], object]:
        if device == "cpu":
            return call

        def whole() -> None:
            call()
            torch.accelerator.synchronize()

        return whole

    arms: Arms = {
        NONE: lambda: torch.add(a, b, out=c),
        "add": lambda: torch.add(left, right, out=out),
        "multiply": lambda: torch.mul(left, right, out=out),
        "compare": lambda: torch.lt(left, right, out=less),
        "exp": lambda: torch.exp(left, out=out),
    }
    return {what: ended(call) for what, call in arms.items()}


def operation_s(found: Found, way: str) -> dict[str, list[float]]:
    """Seconds of the operations alone, by round: what the loop or the call takes without them is taken off."""
    seconds = {}
    for what in OPERATIONS:
        idle = PAIRS if way == PYTHON and what != "exp" else NONE
        off = figures.seconds(found.seconds[f"{way}, {idle}"])
        whole = found.seconds[f"{way}, {what}"]
        seconds[what] = [max(t - off, RESOLVED * t) for t in whole]
    return seconds


def judge(found: Found) -> Finding:
    """It holds where exp takes longer than the slowest of the others in every way of computing."""
    ratios: dict[str, Ratio | None] = {}
    numbers: dict[str, float | None] = {}
    for way in found.ways:
        times = operation_s(found, way)
        n = found.items if way == PYTHON else found.elements
        slowest = max(CHEAP, key=lambda what, t=times: figures.seconds(t[what]))  # type: ignore[misc]
        ratios[way] = ratio(times["exp"], times[slowest])
        name = way.replace(" ", "_")
        for what in OPERATIONS:
            numbers[f"{name}_{what}_ns"] = figures.seconds(times[what]) / n * 1e9
        numbers[f"{name}_exp_over_slowest"] = value(ratios[way])
    flawed, repaired = flawed_and_repaired(found)
    numbers["flawed_exp_ns"] = figures.seconds(found.seconds[f"{PYTHON}, exp"]) / found.items * 1e9
    numbers["flawed_add_ns"] = figures.seconds(found.seconds[f"{PYTHON}, add"]) / found.items * 1e9
    numbers["flawed_add_over_exp"], numbers["repaired_add_over_exp"] = (
        value(flawed),
        value(repaired),
    )
    verdict = all_of(*(at_least(r, 1.0) for r in ratios.values()))
    known = {way: r for way, r in ratios.items() if r is not None}
    low, high = (pick(known, key=lambda way: known[way].ratio) for pick in (min, max))
    why = (
        f"An exp takes {told(known[low])} times the slowest of the others ({low}) to "
        f"{told(known[high])} times ({high}). In the claim's own benchmark an addition takes "
        f"{told(flawed)} of the time of an exp; without zip and loop {told(repaired)}."
    )
    return Finding(verdict, why, numbers)


def flawed_and_repaired(found: Found) -> tuple[Ratio | None, Ratio | None]:
    """Time of an addition / time of an exp as the note has it, and without what the loops take."""
    flawed = ratio(found.seconds[f"{PYTHON}, add"], found.seconds[f"{PYTHON}, exp"])
    return flawed, inverse(
        ratio(operation_s(found, PYTHON)["exp"], operation_s(found, PYTHON)["add"])
    )


def picture(found: Found) -> Chart:
    """Nanoseconds per element of each operation, way by way."""
    bars = []
    for what in OPERATIONS:
        rows = []
        for way in found.ways:
            n = found.items if way == PYTHON else found.elements
            times = operation_s(found, way)[what]
            rows.append(figures.between(times, lambda s, n=n: 1e9 * s / n))  # type: ignore[misc]
        bars.append(Bars(what, *figures.columns(rows)))
    return Chart(
        Axis("way of computing", categories=tuple(found.ways)),
        Axis("time per element, without loop and call", "ns", log=True),
        tuple(bars),
    )


LAB: Final = Lab(
    claim="An exp costs more than an addition, a multiplication or a comparison; a benchmark that finds the addition "
    "slower has timed its zip.",
    source="note 0",
    group="scoring",
    measured="Each operation over values in (−5, 5): in list comprehensions, like the claim's benchmark, and "
    "over arrays in numpy, numba and torch (and on the device, if there is one), in float32 and float64. The "
    "time of the loop or call without the operation is subtracted. Arrays stay in the caches, so memory does not "
    "count. numba takes exp from the C library, one element at a time, unless Intel's vector library is "
    "installed.",
    bound="It holds if an exp takes longer than the slowest of the others in every way of computing, as the "
    "claim says. The claim gives no factor.",
    parameters=Given(),
    stored=Found,
    measure=measure,
    judge=judge,
    picture=picture,
    follows={
        HOLDS: "So: exp is an expensive operation, but count how many there are before you replace it: see "
        "exp-share.",
        FAILS: "So: here no exp needs to be avoided for its own sake.",
        UNDECIDED: "So: take more rounds; the operations are too close here.",
    },
    said=(
        Said("math.exp in a list, the best of ten runs", 262.0, "ns", "flawed_exp_ns"),
        Said("x + y over zip, the best of the later runs", 398.0, "ns", "flawed_add_ns"),
    ),
    bytes_needed=lambda given: 400 * given.items + 160 * given.elements,
)
