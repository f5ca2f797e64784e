"""What scores senones: scorers of blocks, the one protocol of strategies, nets and senone rules, and strategies.

What must be made before scoring (codebooks, shortlists, tables) takes up to seconds, so that is a step of its own: the
`make` of a `Need` touches nothing that scores and may run on any thread, while scoring goes on by its present settings.
Between two blocks `configure` takes the result over, which takes no time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from pipelines.scoring.blocks import Meter
from profiler.arrays import Array
from profiler.spans import Cost, Lane, NullLane, Recorder

if TYPE_CHECKING:
    from pipelines import config as settings
    from pipelines.config import Config
    from pipelines.scoring.continuous.dense import ContinuousGmm
    from pipelines.scoring.tied.gmm import Gmm

Progress = Callable[[str, float | None], None]  # Takes what is being made, and the part of it that is
Cancelling = Callable[[], bool]  # Whether what is being made is no longer wanted
Kind = Literal["Tied", "Continuous"]  # Families of mixtures: senones share codebooks, or each owns its Gaussians
Family = TypeVar("Family", bound="Gmm | ContinuousGmm")

Made = Any  # Result of a need's `make`, which a `configure` takes; opaque to all others
Scores = Any  # F32 [frames, senones]; where the search is on the same device, a tensor of torch that stays there


class Need(NamedTuple):
    """What must be made before settings can act. Equal keys mean that what was made before serves again.

    `make` makes it (or finds it in the cache), on any thread, and raises profiler.errors.Cancelled.
    """

    key: Hashable
    make: Callable[[Progress, Cancelling], Made]


class Scorer:
    """What the decode loop holds: natural log-likelihoods of all senones, up to a constant per frame.

    The base is one that prepares nothing, scores whole blocks and needs no frames around them.
    """

    n_senones: int
    lazy: bool = False  # Whether it scores frame by frame the senones that the search wants
    context: tuple[int, int] = (0, 0)
    """Frames before and after those of a block that must come with it (`layered.with_context`)."""
    subsampling: int = 1
    """Frames for each row of scores; a block begins with a frame of the utterance that is a multiple of it."""
    notes: tuple[str, ...] = ()  # Sentences on what was read differently from the model's file
    looks_ahead: bool = False  # Whether `ahead` does anything

    def stages(self, recorder: Recorder) -> None:
        """Register every stage that any of its configurations records."""

    def warm_up(self) -> None:
        """Compile and touch what the present settings call; `make_ready` does so for others."""

    def reset(self) -> None:
        """An utterance begins."""

    def needs(self, config: Config) -> Hashable:
        """Return a key of what must be made before `config` can act; None: nothing."""
        return None

    def make_ready(self, config: Config, progress: Progress, cancelled: Cancelling) -> Made:
        """Make what `config` needs, on any thread, while this scores on. Raises Cancelled."""
        return None

    def configure(self, config: Config, prepared: Made = None) -> None:
        """Take over live settings from the next block on; what is not `prepared` is made first."""

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Scores:
        """Scores f32 [rows, senones] of `block` f32 [frames and context, dim]; valid until the next call.

        `first_frame` is run-global; spans go to `lane`.
        """
        raise NotImplementedError

    def ahead(self, block: Array, first_frame: int, lane: Lane | NullLane) -> None:
        """This block comes next: a device may begin with it while the search goes on."""

    def take_notices(self) -> list[str]:
        """New sentences for the person who watches, each once."""
        return []

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> Any:
        """Compute for a block of at most MAX_FRAMES what does not depend on the senones that the search wants."""
        return self.score(block, first_frame, lane)

    def frame(self, state: Any, t: int, active: Array | None) -> Scores:
        """Scores f32 [senones] of row t of the block, rows in order; only the `active` ones are right.

        None wants all. Valid until the next block.
        """
        return state[t]

    def costs(self) -> dict[str, Cost]:
        """Cost laws of the stages under the present configuration."""
        return {}


class FrameScorer(ABC):
    """Computes the senones of a block of frames: a strategy, a net, or a senone rule over one of them."""

    stages: Mapping[str, tuple[str, ...]] = {}
    """The stages it records beyond those of what it works on, and their work counts."""

    @abstractmethod
    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones] from `features` f32 [n, dim], n ≤ MAX_FRAMES."""

    @abstractmethod
    def costs(self, frames: int) -> dict[str, Cost]:
        """Cost laws of every stage that `score` records, for calls of about `frames` frames."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Compute for a block what does not depend on the senones that are wanted; `score_some` reads the result."""
        raise NotImplementedError

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Fill scores[first:last, senones] of f32 [n, senones of the model], for frames of the block begun.

        `senones` int64 [k], distinct, in any order; other scores are left alone.
        """
        raise NotImplementedError

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `begin_some` (of about `frames` frames) and `score_some` record."""
        raise NotImplementedError


class Strategy(FrameScorer, Generic[Family]):
    """Scores by one method of Gaussian selection on a model's parameters and workspace.

    Chosen senones are computed exactly, by the family, where a strategy does not say otherwise. A strategy is made once
    and configured often, so that no timed block is the first to touch its workspace.
    """

    follow = False  # Whether its scores depend on the frames before those of the block

    def __init__(self, family: Family) -> None:
        self._family: Family = family

    def needs(self, gmm: settings.Gmm) -> Need | None:
        return None

    @abstractmethod
    def configure(self, gmm: settings.Gmm, prepared: Made = None) -> None:
        """Work by the settings `gmm` from the next block on; `prepared`: what was made for them (it may be large)."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        self._family.begin_some(features, meter)

    def score_some(self, first: int, last: int, senones: Array, scores: Array, meter: Meter) -> None:
        self._family.score_some(first, last, senones, scores, meter)

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        return self._family.costs_of_some(frames)


Maker = Callable[[Any], Strategy[Any]]  # Makes a strategy of a family


def quietly(title: str, fraction: float | None) -> None:
    """Show no progress."""


def never() -> bool:
    return False


def warm_up(strategy: Strategy[Family], gmm: settings.Gmm, features: Array, scores: Array) -> None:
    """Compile what `score` calls under the settings `gmm`: of a strategy made for that alone, on a small family."""
    need = strategy.needs(gmm)
    strategy.configure(gmm, need and need.make(quietly, never))
    strategy.score(features, scores, Meter())
