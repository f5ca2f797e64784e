"""Protocols of the layers of scoring, and the base of Gaussian selection strategies.

What must be made before scoring (codebooks, shortlists, tables) takes up to seconds, so that is a step of its own:
`prepare` returns it without touching the strategy, on any thread, while the strategy goes on scoring by its present
settings; `configure` swaps it in between two blocks and takes no time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pipelines.scoring.blocks import Meter
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines import config as settings
    from pipelines.scoring.continuous.dense import ContinuousGmm
    from pipelines.scoring.tied.gmm import Gmm

Progress = Callable[[str, float | None], None]
"""Takes what is being made, and the part of it that is."""
Cancelling = Callable[[], bool]
"""Whether what is being made is no longer wanted."""
Kind = Literal["Tied", "Continuous"]
"""Families of mixtures: senones share codebooks, or each owns its Gaussians."""
Family = TypeVar("Family", bound="Gmm | ContinuousGmm")

Made = Any
"""Result of a part's `prepare`, which its `configure` takes; opaque to all others."""


class FrameScorer(Protocol):
    """Computes the senones of a block of frames: a strategy, a net, or a senone rule over one of them."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ MAX_FRAMES."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage that `score` records, for calls of about `frames` frames."""


class SomeSenones(FrameScorer, Protocol):
    """A `FrameScorer` that also computes chosen senones; optional for nets."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Compute for a block what does not depend on the senones that are wanted; `score_some` reads the result."""

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Fill scores[first:last, senones] of f32 [n, senones of the model], for frames of the block begun.

        `senones` int64 [k], distinct, in any order; other scores are left alone.
        """

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `begin_some` (of about `frames` frames) and `score_some` record."""


class Strategy(ABC, Generic[Family]):
    """Scores by one method of Gaussian selection on a model's parameters and workspace.

    Chosen senones are computed exactly, by the family, where a strategy does not say otherwise.
    """

    stages: Mapping[str, tuple[str, ...]] = {}
    """The stages it records beyond those of its family, and their work counts."""
    follow = False
    """Whether its scores depend on the frames before those of the block."""

    def __init__(self, family: Family) -> None:
        self._family: Family = family

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """Return what `prepare` would make under the settings `gmm` as a key; None: nothing.

        Equal keys mean that what was prepared before serves again.
        """
        return None

    def prepare(self, gmm: settings.Gmm, progress: Progress, cancelled: Cancelling) -> Made:
        """Make (or find in the cache) what `configure` takes for the settings `gmm`.

        Changes nothing of the strategy and may run on any thread. Raises profiler.errors.Cancelled.
        """
        return None

    def warm_up(self, gmm: settings.Gmm, features: Array, scores: Array) -> None:
        """Compile what `score` calls under the settings `gmm`: of a strategy made for that alone, on a small family."""
        self.configure(gmm, self.prepare(gmm, quietly, never))
        self.score(features, scores, Meter())

    @abstractmethod
    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        """Work by the settings `gmm` from the next block on; `prepared` is what `prepare` made for them.

        The owner of the strategy keeps `prepared` no longer than it is in use: it may be large.
        """

    @abstractmethod
    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """As `FrameScorer.score`."""

    @abstractmethod
    def costs(self, frames: int) -> dict[str, Cost]:
        """As `FrameScorer.costs`."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """As `SomeSenones.begin_some`."""
        self._family.begin_some(features, meter)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """As `SomeSenones.score_some`."""
        self._family.score_some(first, last, senones, scores, meter)

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """As `SomeSenones.costs_of_some`."""
        return self._family.costs_of_some(frames)


def quietly(title: str, fraction: float | None) -> None:
    """Show no progress."""


def never() -> bool:
    return False
