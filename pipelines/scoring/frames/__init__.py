"""Frame skipping: one rule per module, named as `frames.rule` names it.

A rule says which frames are scored; the others copy the last computed scores. To add one: a module
here with a class `Rule`, the rule's name in the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class FrameRule(Protocol):
    """Which frames of an utterance are scored. A module of this package calls it `Rule`."""

    def reset(self) -> None:
        """An utterance begins."""

    def choose(self, features: Array, first: int, skip: int) -> Array:
        """Bool [n]: whether each of these frames is scored.

        `features` f32 [n, 39]; `first` counts the utterance's frames before these; `skip` ≥ 2 is
        `frames.skip`. The first frame of an utterance is scored whatever the rule says.
        """


def rules() -> list[str]:
    """Names of all rules."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def create(rule: str) -> FrameRule:
    """The rule called `rule`; ValueError when unknown."""
    if rule not in rules():
        raise ValueError(f"frames.rule is {rule!r}, expected one of {', '.join(rules())}")
    module = importlib.import_module(f"{__name__}.{rule.replace('-', '_')}")
    made: FrameRule = module.Rule()
    return made
