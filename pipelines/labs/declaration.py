"""What a lab declares: the claim, its parameters, what measures, judges and draws it, and what follows.

Light on purpose: the window lists labs in a process that loads neither numba nor torch. A lab never draws; it says
with the layers below what there is to draw, and `app` draws it with the program's own charts and themes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

import msgspec

from pipelines.labs import texts
from profiler.analysis.comparison.statistics import Ratio
from profiler.errors import BadInput

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk

Group = Literal["scoring", "caches", "device", "training"]
Verdict = Literal["holds here", "does not hold here", "undecided", "cannot be tried here"]

HOLDS: Final = "holds here"
FAILS: Final = "does not hold here"
UNDECIDED: Final = "undecided"
IMPOSSIBLE: Final = "cannot be tried here"

GROUPS: Final[Mapping[Group, str]] = {
    "scoring": "Scoring and arithmetic",
    "caches": "Caches and frameworks",
    "device": "Device",
    "training": "Training at scale",
}
"""In the order of the list, each with its heading."""


class LabError(BadInput):
    """What ended a lab that was under way (such as a worker that died); one sentence, with the end of its log."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person may change of a lab; a lab subclasses it.

    Each field as `Annotated[int, setting(title, help, unit=…, ge=…, le=…)]` with its default: --set, the page and the
    help are made from it. A field `threads`, where there is one, also limits BLAS while the lab measures.
    """


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a lab measured: numbers, strings, lists and dicts of them; a lab subclasses it.

    It is kept in the session as JSON, so that page and pictures need no second run. Times by round stay raw.
    """


P = TypeVar("P", bound=Parameters)
M = TypeVar("M", bound=Measured)


@dataclass(frozen=True)
class Said:
    """A number of the note's own; `ours` is the key in `Finding.figures` of what stands beside it."""

    what: str
    value: float
    unit: str
    ours: str


@dataclass(frozen=True)
class Finding:
    """What came of it: the verdict, one sentence with the numbers and their intervals, and figures by name.

    Names of figures carry their units (`exp_over_add`, `dram_bytes_per_s`); None where there is none.
    """

    verdict: Verdict
    why: str
    figures: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Lab(Generic[P, M]):
    """A claim that can be tried; see CONTRIBUTING, "a lab".

    `claim`: one sentence, as the note puts it. `source`: "note 0", with the paper where there is one. `measured`: what
    is measured in one or two sentences, with traps and what is left out. `bound`: when it holds, and where that bound
    comes from: the note, a paper, or ourselves, and then why. `parameters`: the defaults. `stored`: the type of what
    `measure` returns. `judge` and `picture` are pure. `follows`: what follows for a recogniser, by verdict.
    `bytes_needed`: held against the memory that is free before anything is made. `obstacle`: why it cannot be tried
    here at all, in half a sentence; None if it can.
    """

    claim: str
    source: str
    group: Group
    measured: str
    bound: str
    parameters: P
    stored: type[M]
    measure: Callable[[P, Desk], M]
    judge: Callable[[M], Finding]
    picture: Callable[[M], Chart]
    follows: Mapping[Verdict, str]
    said: tuple[Said, ...] = ()
    bytes_needed: Callable[[P], int] = lambda _: 0
    obstacle: Callable[[P], str | None] = lambda _: None


# -- what there is to draw ----------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """One axis: what, in which unit, on which scale.

    `categories`: the names of places 0, 1, … for bars and rows. `unit` as a person writes it ("GB/s", "ns", "B");
    ticks get its prefixes where it is a plain one. `low`, `high`: the range, where the data should not decide.
    """

    title: str
    unit: str = ""
    log: bool = False
    categories: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


Values = tuple[float | None, ...]
"""None: unavailable, left out of the drawing."""


@dataclass(frozen=True)
class Bars:
    """One series of bars over the categories of x; several stand side by side. `low`, `high`: the intervals."""

    name: str
    values: Values
    low: Values = ()
    high: Values = ()


@dataclass(frozen=True)
class StackedBars:
    """Bars that consist of parts, over the categories of x: each part's values in order from the ground."""

    parts: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class Line:
    """Points in order of x, joined unless `joined` is false. `low`, `high`: the intervals; `dashed`: modelled."""

    name: str
    x: tuple[float, ...]
    y: Values
    low: Values = ()
    high: Values = ()
    dashed: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Steps:
    """A line that jumps at each x and holds until the next: distributions, histograms."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Block:
    """A stretch of one row of a Gantt chart, from `begin` to `end` on x; `kind` gives its colour, `text` is in it."""

    row: int
    begin: float
    end: float
    kind: str
    text: str = ""


@dataclass(frozen=True)
class Gantt:
    """Who worked when: rows are the categories of y, from the top."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Mark:
    """A level (`on` y) or a place (`on` x) that data is held against: a number of the note's, a roof, a cache's size.

    `until`: the other end, where it is a band.
    """

    text: str
    value: float
    on: Literal["x", "y"] = "y"
    until: float | None = None


Layer = Bars | StackedBars | Line | Steps | Gantt | Mark


@dataclass(frozen=True)
class Chart:
    """What to draw. The same name has the same colour in all panels.

    `title` and `subtitle` of the whole picture are the claim and the verdict's sentence, put there by whoever draws;
    a panel of `beside` may have a title of its own.
    """

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    title: str = ""
    beside: tuple[Chart, ...] = ()


# -- verdicts -----------------------------------------------------------------------------------


def at_least(ratio: Ratio | None, bound: float) -> Verdict:
    """Whether a ratio is `bound` or more: holds if its interval lies above, does not if it lies below."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return UNDECIDED
    if ratio.low >= bound:
        return HOLDS
    return FAILS if ratio.high < bound else UNDECIDED


def at_most(ratio: Ratio | None, bound: float) -> Verdict:
    """Whether a ratio is `bound` or less: holds if its interval lies below, does not if it lies above."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return UNDECIDED
    if ratio.high <= bound:
        return HOLDS
    return FAILS if ratio.low > bound else UNDECIDED


def all_of(*verdicts: Verdict) -> Verdict:
    """Whether everything of a claim holds: one part that does not is enough for it not to."""
    for worst in (IMPOSSIBLE, FAILS, UNDECIDED):
        if worst in verdicts:
            return worst
    return HOLDS


told = texts.told
"""Sentences of verdicts need it beside the verdicts."""
