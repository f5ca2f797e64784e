"""What a lab declares: the claim, its parameters, what measures, judges and draws it, and what follows.

Light on purpose: the window lists labs in a process that loads neither numba nor torch. What there is to draw
stands in `chart`, what may come of it in `verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

import msgspec

if TYPE_CHECKING:
    from pipelines.labs.chart import Chart
    from pipelines.labs.desk import Desk
    from pipelines.labs.verdicts import Finding, Verdict

Group = Literal["scoring", "caches", "device", "training"]

GROUPS: Final[Mapping[Group, str]] = {
    "scoring": "Scoring and arithmetic",
    "caches": "Caches and frameworks",
    "device": "Device",
    "training": "Training at scale",
}
"""In the order of the list, each with its heading."""


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
class PublishedValue:
    """A number that the claim publishes; `ours` is the key of our value for it in `Finding.figures`."""

    what: str
    value: float
    unit: str
    ours: str


@dataclass(frozen=True)
class Lab(Generic[P, M]):
    """A claim that can be tried; see CONTRIBUTING, "a lab".

    `claim`: one sentence. `source`: a key for programs ("note 0"), with the papers in brackets; readers know no notes,
    so texts call the claim what it says. `measured`: what is measured in one or two sentences, with traps and what is
    left out. `bound`: when it holds, and where that bound comes from: the claim itself, a paper, or ourselves, and
    then why. `parameters`: the defaults. `stored`: the type of what `measure` returns. `judge` and `picture` are pure.
    `follows`: what follows for a recogniser, by verdict. `bytes_needed`: held against the memory that is free before
    anything is made. `wants_device`: whether all of the claim can be tried with an accelerator alone.
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
    published: tuple[PublishedValue, ...] = ()
    bytes_needed: Callable[[P], int] = lambda _: 0
    wants_device: bool = False

    @property
    def papers(self) -> str:
        return self.source.partition("(")[2].removesuffix(")")

    @property
    def cited(self) -> str:
        return f"{self.claim} ({self.papers})" if self.papers else self.claim
