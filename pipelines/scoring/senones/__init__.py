"""GMM layer: which senones are computed. One rule per module, named as `gmm.senones` names it.

A rule stands between the frame layer above and the Gaussians below: it turns a block of features into scores
with the help of a `Source`, which computes all senones of it or chosen ones. To add one: a module here with a
class `Rule`, its name in the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.meter import Meter
from profiler.arrays import Array, check, check_indices
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines import config as settings


class SomeSenones(Protocol):
    """What computes chosen senones of single frames."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """What can be done for a block before anybody says which senones are wanted."""

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Fill scores[first:last, senones], for frames of the block begun; `senones` int64, distinct."""

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages of `begin_some` and `score_some`."""


class Source(SomeSenones, Protocol):
    """What the layers below offer: all senones of a block at once, or chosen ones of single frames."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim]."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages of `score`."""


@dataclass(frozen=True, eq=False)
class Parents:
    """The context-independent senones, and which of them is each senone's parent.

    `ci` int64 [n_ci], ascending. `of` int32 [n_senones]: place in `ci` of the senone of the same phone and
    state without context; that of a context-independent senone is its own.
    """

    ci: Array
    of: Array

    def __post_init__(self) -> None:
        """ArrayError unless every senone has a parent that there is."""
        check("ci", self.ci, np.int64, (None,))
        check("of", self.of, np.int32, (None,))
        check_indices("ci", self.ci, len(self.of))
        check_indices("of", self.of, len(self.ci))


class SenoneRule(Protocol):
    """Scores of the senones that the rule lets through. A module of this package calls it `Rule`."""

    stages: Mapping[str, tuple[str, ...]]
    """The stages it records beyond those of the layers below, and their work counts."""
    lazy: bool
    """Whether it is told frame by frame what the search wants; if not, `score` alone is called."""

    def configure(self, gmm: settings.Gmm, source: Source) -> None:
        """Work by the settings `gmm` on `source` from the next block on."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ MAX_FRAMES."""

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """What a lazy rule does for a block before the first `frame` of it.

        `ahead`: nobody else writes the scores of the block, and all its frames will be asked for, so that a
        rule may compute a senone for the following frames as well.
        """

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Give the `senones` int64 of frame t their scores, in scores[t] of f32 [n, senones of the model]."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage it causes, for blocks of about `frames` frames."""


def rules() -> list[str]:
    """Names of all rules."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))


def create(rule: str, n_senones: int, parents: Parents) -> SenoneRule:
    """The rule called `rule`; ValueError when unknown."""
    if rule not in rules():
        raise ValueError(f"gmm.senones is {rule!r}, expected one of {', '.join(rules())}")
    module = importlib.import_module(f"{__name__}.{rule.replace('-', '_')}")
    made: SenoneRule = module.Rule(n_senones, parents)
    return made


def parents_of(model: AcousticModel) -> Parents:
    """Which senones of `model` (with its `mdef`) are context-independent, and whose parents they are.

    A senone whose phone and state no context-independent one has is its own parent: it is always computed.
    """
    definition = model.mdef
    key = np.asarray(definition.senone_phone, np.int64) * 256 + definition.senone_state
    first: dict[int, int] = {}
    for senone in range(definition.n_ci_senones):
        first.setdefault(int(key[senone]), senone)
    own = np.arange(len(key))
    parent = np.array([first.get(k, s) for s, k in enumerate(key.tolist())], np.int64)
    parent[: definition.n_ci_senones] = own[: definition.n_ci_senones]
    ci = np.unique(parent)
    return Parents(ci, np.searchsorted(ci, parent).astype(np.int32))
