"""What a scorer expects of a Gaussian selection strategy or another rule that is prepared and then swapped in.

What must be made before scoring (codebooks, shortlists, tables) takes up to seconds, so that is a step of its own:
`prepare` returns it without touching the strategy, on any thread, while the strategy goes on scoring by its present
settings; `configure` swaps it in between two blocks and takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pipelines.scoring.meter import Meter
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines import config as settings
    from pipelines.scoring.family import Family

Progress = Callable[[str, float | None], None]
Kind = Literal["Tied", "Continuous"]

Made = Any
"""What a part's own `prepare` returns and its `configure` takes; nobody else looks into it."""


class Strategy(Protocol):
    """Scores of all senones for a few frames, by one method of Gaussian selection."""

    stages: Mapping[str, tuple[str, ...]]
    """The stages it records beyond those of its family, and their work counts."""

    def needs(self, gmm: settings.Gmm) -> Hashable:
        """What `prepare` would make under the settings `gmm` as a key.

        Equal keys mean that what was prepared before serves again; None, that there is nothing to make.
        """

    def prepare(self, gmm: settings.Gmm, progress: Progress, cancelled: Callable[[], bool]) -> Made:
        """Make (or find in the cache) what `configure` takes for the settings `gmm`.

        Changes nothing of the strategy and may run on any thread. Raises profiler.errors.Cancelled.
        """

    @classmethod
    def warm_up(cls, family: Family, features: Array, scores: Array) -> None:
        """Compile all that `score` may call, by strategies made for that alone, on a small `family`.

        One that scores is never set to something else for a while.
        """

    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        """Work by the settings `gmm` from the next block on; `prepared` is what `prepare` made for them.

        Whoever holds the strategy keeps `prepared` no longer than it is in use: it may be large.
        """

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ MAX_FRAMES."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage that `score` records, for calls of about `frames` frames."""


class Immediate:
    """What a rule inherits that has nothing to prepare."""

    def needs(self, asked: object) -> Hashable:
        """Nothing."""
        return None

    def prepare(self, asked: object, progress: Progress, cancelled: Callable[[], bool]) -> None:
        """Nothing to make."""
        return


def quietly(title: str, fraction: float | None) -> None:
    """A `progress` for callers that show none."""


def never() -> bool:
    """A `cancelled` for callers that cannot cancel."""
    return False
