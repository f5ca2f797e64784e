"""Gaussian selection: one strategy per module, named as `gmm.selection.method` names it.

A strategy turns features into senone scores. A module holds the class `Tied`, for models whose senones share
codebooks (`scoring.gmm`), or `Continuous`, for models whose senones own their Gaussians
(`scoring.continuous`), or both. To add one: a module here, the method's name in the configuration, a test.

What a strategy must make before it can score (codebooks, shortlists, tables) takes up to seconds, so that is
a step of its own: `prepare` returns it without touching the strategy, on any thread, while the strategy goes
on scoring by its present settings; `configure` swaps it in between two blocks and takes no time.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, Protocol

import numpy as np

from pipelines.scoring.meter import Meter
from profiler.spans import Cost

Array = np.ndarray[Any, Any]
Progress = Callable[[str, float | None], None]
Kind = Literal["Tied", "Continuous"]


class Strategy(Protocol):
    """Scores of all senones for a few frames, by one method of Gaussian selection."""

    stages: Mapping[str, tuple[str, ...]]
    """The stages it records beyond those of its family, and their work counts."""

    def needs(self, gmm: Any) -> Hashable:
        """What `prepare` would make under the settings `gmm` (pipelines.config.Gmm), as a key.

        Equal keys mean that what was prepared before serves again; None, that there is nothing to make.
        """

    def prepare(self, gmm: Any, progress: Progress, cancelled: Callable[[], bool]) -> Any:
        """Make (or find in the cache) what `configure` takes for the settings `gmm`.

        Changes nothing of the strategy and may run on any thread. Raises profiler.errors.Cancelled.
        """

    @classmethod
    def warm_up(cls, family: Any, features: Array, scores: Array) -> None:
        """Compile all that `score` may call, by strategies made for that alone, on a small `family`.

        One that scores is never set to something else for a while.
        """

    def configure(self, gmm: Any, prepared: Any = None) -> None:
        """Work by the settings `gmm` from the next block on; `prepared` is what `prepare` made for them.

        Whoever holds the strategy keeps `prepared` no longer than it is in use: it may be large.
        """

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ gmm.MAX_FRAMES."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage that `score` records, for calls of about `frames` frames."""


class Immediate:
    """What a rule inherits that has nothing to prepare."""

    def needs(self, gmm: Any) -> Hashable:
        """Nothing."""
        return None

    def prepare(self, gmm: Any, progress: Progress, cancelled: Callable[[], bool]) -> Any:
        """Nothing to make."""
        return None


def quietly(title: str, fraction: float | None) -> None:
    """A `progress` for callers that show none."""


def never() -> bool:
    """A `cancelled` for callers that cannot cancel."""
    return False


def methods(kind: Kind | None = None) -> list[str]:
    """Names of all strategies, or of those that a kind of model has; `none` (exact) among them."""
    names = sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
    return [name for name in names if kind is None or hasattr(_module(name), kind)]


def create(method: str, kind: Kind, family: Any) -> Strategy:
    """The strategy called `method` on the parameters and workspace of `family`; ValueError when unknown.

    `family`: a `scoring.gmm.Gmm` for `Tied`, a `scoring.continuous.Family` for `Continuous`.
    """
    known = methods(kind)
    if method not in known:
        raise ValueError(f"gmm.selection.method is {method!r}, expected one of {', '.join(known)}")
    strategy: Strategy = getattr(_module(method), kind)(family)
    return strategy


def _module(method: str) -> Any:
    return importlib.import_module(f"{__name__}.{method.replace('-', '_')}")
