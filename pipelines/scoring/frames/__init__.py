"""Frame layer: one rule per module, named as `frames.rule` names it.

A rule says which frames are scored; the others repeat the last computed scores. To add one: a module
here with a class `Rule`, the rule's name in the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import Meter
from pipelines.scoring.strategy import Cancelling, Made, Progress
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines.config import Config


class FrameRule(ABC):
    """Which frames of an utterance are scored. A module of this package calls its own `Rule`.

    What it must make first is prepared as a selection strategy's is (`scoring.strategy.Strategy`). This base prepares
    nothing, keeps nothing between frames and records no stage.
    """

    stages: Mapping[str, tuple[str, ...]] = {}
    """The stages it records, and their work counts."""

    def __init__(self, model: AcousticModel) -> None:
        self._model = model

    def needs(self, config: Config) -> Hashable:
        """Return what `prepare` would make under the settings `config`, as a key; None: nothing."""
        return None

    def prepare(self, config: Config, progress: Progress, cancelled: Cancelling) -> Made:
        """Make (or find in the cache) what `configure` takes; on any thread. Raises Cancelled."""
        return None

    def configure(self, config: Config, prepared: Made = None) -> None:  # noqa: B027
        """Work by the settings `config` from the next block on."""

    def reset(self) -> None:  # noqa: B027
        """An utterance begins, or frames went by without being shown to the rule."""

    @abstractmethod
    def choose(self, features: Array, first: int, skip: int, meter: Meter) -> Array:
        """Bool [n]: whether each of these frames is scored.

        `features` f32 [n, dim]; `first` counts the utterance's frames before these; `skip` ≥ 2 is
        `frames.skip`. The first frame of an utterance is scored whatever the rule says.
        """

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `choose` records, for blocks of `frames` frames."""
        return {}


def rules() -> list[str]:
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def create(rule: str, model: AcousticModel) -> FrameRule:
    """The rule called `rule` for an acoustic `model`; ValueError when unknown."""
    if rule not in rules():
        raise ValueError(f"frames.rule is {rule!r}, expected one of {', '.join(rules())}")
    module = importlib.import_module(f"{__name__}.{rule.replace('-', '_')}")
    made: FrameRule = module.Rule(model)
    return made
