"""exp next to addition, multiplication and comparison, in an interpreted loop and in compiled ones (note 0)."""

import math
import random
from functools import partial
from typing import Annotated, Final

import numpy as np

from pipelines.labs.chart import Axis, Chart
from pipelines.labs.declaration import Lab, Parameters, PublishedValue, Seconds, setting
from pipelines.labs.desk import Desk, computing_on
from pipelines.labs.figures import Ratio, ci, inverse, value
from pipelines.labs.sweep import Sweep, SweepResult, Timings, Work, key
from pipelines.labs.verdicts import FAILS, HOLDS, UNDECIDED, Finding, all_of, at_least
from profiler.arrays import Array

PYTHON: Final = "Python"
CHEAP: Final = ("add", "multiply", "compare")
OPERATIONS: Final = (*CHEAP, "exp")
NONE: Final = "nothing"  # The operation that does all but one: the loop over a list, or a call for one element
PAIRS: Final = "nothing, in pairs"
DTYPES: Final = ("float32", "float64")
LIMIT: Final = 5.0  # The note's values: uniform in (−5, 5), seed 0
RESOLVED: Final = 0.05  # Share of the whole time; an operation that takes less cannot be distinguished from zero
CALLS, LIST_CALLS = 400, 5
"""Of a turn over arrays, which takes a millisecond: other programs interrupt it less often than the usual turns of
four; and of one over lists."""

Operations = dict[str, Work]  # Of one way of computing: what a call does, by operation


class Params(Parameters, frozen=True, kw_only=True):
    elements: Annotated[int, setting("Elements", "Length of an array; 4 096 stay in the caches.", ge=64, le=10**7)] = (
        4096
    )
    items: Annotated[int, setting("List items", "Length of the lists that Python loops over.", ge=10, le=10**7)] = 5000
    seconds: Seconds = 14.0


def measure(params: Params, desk: Desk) -> SweepResult:
    import torch  # noqa: F401 - before the number of threads is set, which is then also torch's

    with computing_on(1):
        arrays = in_arrays(params.elements, desk)
        lists = {f"{PYTHON}, {what}": call for what, call in in_python(params.items).items()}

        def variants(size: int) -> dict[str, Work]:
            listed = lists if size == params.items else {}
            return listed | (arrays if size == params.elements else {})

        sweep = Sweep(
            variants,
            list(dict.fromkeys((params.items, params.elements))),
            "exp and its rivals in turns",
            label="{variant}",
            together=True,
            calls=lambda variant, size: LIST_CALLS if variant.startswith(PYTHON) else CALLS,
        )
        return SweepResult(timings=sweep.run(desk, params.seconds))


def in_arrays(elements: int, desk: Desk) -> Operations:
    """Return the operations over arrays, each by the name "variant, operation"."""
    made: Operations = {}
    chance = np.random.default_rng(0)
    for dtype in DTYPES:
        x, y = chance.uniform(-LIMIT, LIMIT, (2, elements)).astype(dtype)
        ways = {"numpy": in_numpy, "numba": in_numba, "torch": in_torch}
        for name, make in ways.items():
            desk.check()
            made |= {f"{name} {dtype}, {what}": call for what, call in make(x, y).items()}
        if desk.device is not None and not (desk.device == "mps" and dtype == "float64"):
            made |= {f"{desk.device} {dtype}, {what}": call for what, call in in_torch(x, y, desk.device).items()}
    return made


def in_python(items: int) -> Operations:
    """The note's list comprehensions, and the same without the operation."""
    draw = random.Random(0)
    values, others = ([draw.uniform(-LIMIT, LIMIT) for _ in range(items)] for _ in range(2))
    return {
        NONE: lambda: [x for x in values],  # noqa: C416 - the loop is what is timed
        PAIRS: lambda: [x for x, y in zip(values, others)],  # noqa: B905 - as the note has it
        "add": lambda: [x + y for x, y in zip(values, others)],  # noqa: B905
        "multiply": lambda: [x * y for x, y in zip(values, others)],  # noqa: B905
        "compare": lambda: [x < y for x, y in zip(values, others)],  # noqa: B905
        "exp": lambda: [math.exp(x) for x in values],
    }


def in_numpy(x: Array, y: Array) -> Operations:
    out, less = np.empty_like(x), np.empty(x.shape, np.bool_)
    a, b, c = x[:1].copy(), y[:1].copy(), out[:1].copy()
    return {
        NONE: lambda: np.add(a, b, out=c),
        "add": lambda: np.add(x, y, out=out),
        "multiply": lambda: np.multiply(x, y, out=out),
        "compare": lambda: np.less(x, y, out=less),
        "exp": lambda: np.exp(x, out=out),
    }


def in_numba(x: Array, y: Array) -> Operations:
    import numba

    kind = x.dtype.name
    add = numba.vectorize([f"{kind}({kind},{kind})"])(lambda a, b: a + b)
    multiply = numba.vectorize([f"{kind}({kind},{kind})"])(lambda a, b: a * b)
    compare = numba.vectorize([f"boolean({kind},{kind})"])(lambda a, b: a < b)
    exp = numba.vectorize([f"{kind}({kind})"])(lambda a: math.exp(a))  # noqa: PLW0108 - compiled
    out, less = np.empty_like(x), np.empty(x.shape, np.bool_)
    a, b, c = x[:1].copy(), y[:1].copy(), out[:1].copy()
    return {
        NONE: lambda: add(a, b, c),
        "add": lambda: add(x, y, out),
        "multiply": lambda: multiply(x, y, out),
        "compare": lambda: compare(x, y, less),
        "exp": lambda: exp(x, out),
    }


def in_torch(x: Array, y: Array, device: str = "cpu") -> Operations:
    """As numpy's; on an accelerator a call ends when its result is there."""
    import torch

    left, right = (torch.from_numpy(np.array(values)).to(device) for values in (x, y))
    out, less = torch.empty_like(left), torch.empty(len(x), dtype=torch.bool, device=device)
    a, b, c = left[:1].clone(), right[:1].clone(), out[:1].clone()

    def waited(call: Work) -> None:
        call()
        torch.accelerator.synchronize()

    made: Operations = {
        NONE: lambda: torch.add(a, b, out=c),
        "add": lambda: torch.add(left, right, out=out),
        "multiply": lambda: torch.mul(left, right, out=out),
        "compare": lambda: torch.lt(left, right, out=less),
        "exp": lambda: torch.exp(left, out=out),
    }
    return made if device == "cpu" else {what: partial(waited, call) for what, call in made.items()}


def ways_of(result: SweepResult) -> list[str]:
    return list(dict.fromkeys(name.partition(", ")[0] for name in result.timings.variants))


def alone(result: SweepResult) -> Timings:
    """Seconds of the operations alone, by "way, operation": what the loop or the call takes without them is taken
    off."""
    found: dict[str, dict[int, list[float]]] = {}
    for way in ways_of(result):
        for what in OPERATIONS:
            name = f"{way}, {what}"
            idle = PAIRS if way == PYTHON and what != "exp" else NONE
            off = result.timings.time(f"{way}, {idle}")
            rounds = [max(t - off, RESOLVED * t) for t in result.timings.rounds(name)]
            found[name] = {result.timings.size(name): rounds}
    return Timings(seconds=found)


def nanoseconds(elements: int, seconds: float) -> float:
    return 1e9 * seconds / elements


def judge(result: SweepResult) -> Finding:
    ratios: dict[str, Ratio | None] = {}
    operations = alone(result)
    numbers = operations.table("{variant}_ns", nanoseconds)
    for way in ways_of(result):
        slowest = max((f"{way}, {what}" for what in CHEAP), key=operations.time)
        ratios[way] = operations.ratio(f"{way}, exp", slowest)
        numbers[f"{key(way)}_exp_over_slowest"] = value(ratios[way])
    flawed = result.timings.ratio(f"{PYTHON}, add", f"{PYTHON}, exp")
    repaired = inverse(operations.ratio(f"{PYTHON}, exp", f"{PYTHON}, add"))
    for what in ("exp", "add"):
        name = f"{PYTHON}, {what}"
        numbers[f"flawed_{what}_ns"] = nanoseconds(result.timings.size(name), result.timings.time(name))
    numbers |= {"flawed_add_over_exp": value(flawed), "repaired_add_over_exp": value(repaired)}
    (low, least), *_, (high, most) = sorted(ratios.items(), key=lambda each: value(each[1]) or 0.0)
    why = (
        f"An exp takes {ci(least)} times the slowest of the others ({low}) to {ci(most)} times ({high}). In the "
        f"claim's own benchmark an addition takes {ci(flawed)} of the time of an exp; without zip and loop "
        f"{ci(repaired)}."
    )
    return Finding(all_of(*(at_least(r, 1.0) for r in ratios.values())), why, numbers)


def picture(result: SweepResult) -> Chart:
    operations, ways = alone(result), ways_of(result)
    bars = tuple(
        operations.bars(what, operations.cells(f"{way}, {what}" for way in ways), nanoseconds) for what in OPERATIONS
    )
    time = Axis("time per element, without loop and call", "ns", log=True)
    return Chart(Axis("way of computing", categories=tuple(ways)), time, bars)


LAB: Final = Lab(
    claim="An exp costs more than an addition, a multiplication or a comparison; a benchmark that finds the addition "
    "slower has timed its zip.",
    source="note 0",
    group="scoring",
    measured="Each operation over values in (−5, 5): in list comprehensions, like the claim's benchmark, and over "
    "arrays in numpy, numba and torch (and on the device, if there is one), in float32 and float64. The time of the "
    "loop or call without the operation is subtracted. Arrays stay in the caches, so memory does not count. numba "
    "takes exp from the C library, one element at a time, unless Intel's vector library is installed.",
    bound="It holds if an exp takes longer than the slowest of the others in every way of computing, as the "
    "claim says. The claim gives no factor.",
    steps=(measure, judge, picture),
    follows={
        HOLDS: "So: exp is an expensive operation, but count how many there are before you replace it: see exp-share.",
        FAILS: "So: here no exp needs to be avoided for its own sake.",
        UNDECIDED: "So: take more rounds; the operations are too close here.",
    },
    published=(
        PublishedValue("math.exp in a list, the best of ten runs", 262.0, "ns", "flawed_exp_ns"),
        PublishedValue("x + y over zip, the best of the later runs", 398.0, "ns", "flawed_add_ns"),
    ),
    bytes_needed=lambda params: 400 * params.items + 160 * params.elements,
)
