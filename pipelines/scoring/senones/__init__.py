"""GMM layer: which senones are computed. One rule per module, named as `gmm.senones` names it.

A rule stands between the frame layer above and a strategy or net below, which computes chosen senones
(`strategy.SomeSenones`). Without a rule (`all`) a block goes to the strategy as it is. To add one: a module here with
a class `Rule`, its name in the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import Meter
from pipelines.scoring.strategy import SomeSenones
from profiler.arrays import Array, check, check_indices
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines import config as settings


@dataclass(frozen=True, eq=False)
class Parents:
    """The context-independent senones, and which of them is each senone's parent.

    `ci` int64 [n_ci], ascending. `of` int32 [n_senones]: place in `ci` of the senone of the same phone and
    state without context; that of a context-independent senone is its own.
    """

    ci: Array
    of: Array

    def __post_init__(self) -> None:
        """Raise ArrayError unless every senone has an existing parent."""
        check("ci", self.ci, np.int64, (None,))
        check("of", self.of, np.int32, (None,))
        check_indices("ci", self.ci, len(self.of))
        check_indices("of", self.of, len(self.ci))


class SenoneRule(ABC):
    """A `FrameScorer` of the senones that the rule lets through. A module of this package calls it `Rule`."""

    stages: Mapping[str, tuple[str, ...]] = {}
    """The stages it records beyond those of the layers below, and their work counts."""
    lazy = False
    """Whether the search says frame by frame what it wants; if not, `score` alone is called."""
    _source: SomeSenones

    def configure(self, gmm: settings.Gmm, source: SomeSenones) -> None:
        """Work by the settings `gmm` on `source` from the next block on."""
        self._source = source

    @abstractmethod
    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """As `FrameScorer.score`."""

    @abstractmethod
    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """Begin a block, before its first `frame`.

        `ahead`: the rule alone writes the scores of the block, and all its frames follow, so that it may compute a
        senone for the following frames as well.
        """

    @abstractmethod
    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Give the `senones` int64 of frame t their scores, in scores[t] of f32 [n, senones of the model]."""

    @abstractmethod
    def costs(self, frames: int) -> dict[str, Cost]:
        """As `FrameScorer.costs`."""


def rules() -> list[str]:
    """Names of all rules; `all` needs none."""
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

    A senone whose phone and state no context-independent one has is its own parent: it is always computed. In a model
    without them the `stand_ins` of its definition are the parents.
    """
    definition = model.mdef
    key = np.asarray(definition.senone_phone, np.int64) * 256 + definition.senone_state
    first: dict[int, int] = {}
    for senone in (*range(definition.n_ci_senones), *definition.stand_ins):
        first.setdefault(int(key[senone]), senone)
    own = np.arange(len(key))
    parent = np.array([first.get(k, s) for s, k in enumerate(key.tolist())], np.int64)
    parent[: definition.n_ci_senones] = own[: definition.n_ci_senones]
    ci = np.unique(parent)
    return Parents(ci, np.searchsorted(ci, parent).astype(np.int32))
