"""Gaussian selection: one strategy per module, named as `gmm.selection.method` names it.

A strategy turns features into senone scores through the stages of `scoring.gmm` and its own.
To add one: a module here with a class `Strategy`, the method's name in the configuration, a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, ClassVar, Protocol

import numpy as np

from pipelines.scoring.gmm import Gmm
from pipelines.scoring.meter import Meter
from profiler.spans import Cost

Array = np.ndarray[Any, Any]


class SelectionStrategy(Protocol):
    """Scores of all senones for a few frames. A module of this package calls it `Strategy`."""

    stages: ClassVar[dict[str, tuple[str, ...]]]
    """The stages it records beyond those of `gmm.STAGES`, and their work counts."""

    def configure(self, selection: Any) -> None:
        """Take over the settings `gmm.selection` (pipelines.config.Selection)."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, 39], n ≤ gmm.MAX_FRAMES."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage that `score` records, for calls of about `frames` frames."""


def methods() -> list[str]:
    """Names of all strategies, `none` (exact) among them."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def create(method: str, gmm: Gmm) -> SelectionStrategy:
    """The strategy called `method` on the shared stages of `gmm`; ValueError when unknown."""
    if method not in methods():
        raise ValueError(
            f"gmm.selection.method is {method!r}, expected one of {', '.join(methods())}"
        )
    module = importlib.import_module(f"{__name__}.{method.replace('-', '_')}")
    strategy: SelectionStrategy = module.Strategy(gmm)
    return strategy
