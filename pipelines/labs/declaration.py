"""What a lab declares: the claim, its parameters, what measures, judges and draws it, and what follows.

Light on purpose: the window lists labs in a process that loads neither numba nor torch. What there is to draw stands in
`chart`, what may come of it in `verdicts`. Here are also the parameters that several labs have, each with one text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Generic, Literal, TypeVar, get_type_hints

import msgspec

from pipelines.config.options import setting as setting  # noqa: PLC0414 - labs take it from here

if TYPE_CHECKING:
    from pipelines.labs.chart import Chart
    from pipelines.labs.desk import Desk
    from pipelines.labs.verdicts import Finding, Verdict

MORE_TIME: Final = "So: give it more time (--set seconds=120), with nothing else running."
"""Follows from an undecided claim, unless its lab knows better."""

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
    then why. `steps`: what measures, judges and draws; the parameters' and the measured types are those that the first
    is declared with, and the others are pure. `follows`: what follows for a recogniser, by verdict. `bytes_needed`:
    held against the memory that is free before anything is made. `wants_device`: whether all of the claim can be tried
    with an accelerator alone.
    """

    claim: str
    source: str
    group: Group
    measured: str
    bound: str
    steps: tuple[Callable[[P, Desk], M], Callable[[M], Finding], Callable[[M], Chart]]
    follows: Mapping[Verdict, str]
    published: tuple[PublishedValue, ...] = ()
    bytes_needed: Callable[[P], int] = lambda _: 0
    wants_device: bool = False

    @cached_property
    def parameters(self) -> P:
        """The defaults: of the type that `measure` takes first."""
        made: P = next(iter(get_type_hints(self.steps[0]).values()))()
        return made

    @cached_property
    def stored(self) -> type[M]:
        found: type[M] = get_type_hints(self.steps[0])["return"]
        return found

    def measure(self, parameters: P, desk: Desk) -> M:
        return self.steps[0](parameters, desk)

    def judge(self, measured: M) -> Finding:
        return self.steps[1](measured)

    def picture(self, measured: M) -> Chart:
        return self.steps[2](measured)

    def follows_from(self, verdict: Verdict) -> str | None:
        return self.follows.get(verdict, MORE_TIME if verdict == "undecided" else None)

    @property
    def papers(self) -> str:
        return self.source.partition("(")[2].removesuffix(")")

    @property
    def cited(self) -> str:
        return f"{self.claim} ({self.papers})" if self.papers else self.claim


Seconds = Annotated[float, setting("Time", "What the measurement may take.", unit="s", ge=0.0, le=600.0)]
Vocabulary = Annotated[int, setting("Vocabulary", "Words that the search knows.", unit="words", ge=10, le=200000)]
NetName = Annotated[str, setting("Net", "The name of a net that ships with the program.")]
Gaussians = Annotated[int, setting("Gaussians", "Gaussians per senone and stream.", ge=8, le=128)]
Words = Annotated[float, setting("Speech", "Speech that is decoded for words.", unit="s", ge=0.1, le=3600.0)]
Compared = Annotated[float, setting("Speech", "Speech on which scores are compared.", unit="s", ge=0.1, le=600.0)]
Singly = Annotated[int, setting("Frames", "Frames that a turn scores, one at a time.", ge=1, le=1000)]
InBlocks = Annotated[int, setting("Frames", "Frames that a turn scores, in blocks of 16.", ge=16, le=1000)]
