"""What a scorer needs of a family of acoustic models: tied mixtures, or senones with Gaussians of their own.

The layers above (which frames, which senones) are the same for both; the layers below (which Gaussians,
how each is computed) are a family's own: `selection.create(method, family.kind, family)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pipelines.scoring.meter import Meter
from pipelines.scoring.strategy import Kind
from pipelines.scoring.thread_pool import BlockPool
from profiler.arrays import Array
from profiler.spans import Cost


class Family(Protocol):
    """Parameters and workspace of one acoustic model."""

    kind: Kind
    """Which class of a module of `scoring.selection` is for it."""
    n_senones: int
    dim: int
    """Floats of a frame of features, all streams together."""
    stages: Mapping[str, tuple[str, ...]]
    """The stages that its strategies and `score_some` share, and their work counts."""
    pool: BlockPool

    def small(self) -> Family:
        """The same of one group of senones or one codebook, for compiling."""

    def touch(self) -> None:
        """Make the layouts of the parameters that are otherwise made when they are first asked for."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """What can be done for a block before anybody says which senones are wanted.

        `features` f32 [n, dim], n ≤ MAX_FRAMES: expanded, or all the way to the exponentials where
        senones share their Gaussians. `score_some` reads what it leaves in the workspace.
        """

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Exact scores of some senones in the frames first … last − 1 of the block begun.

        `senones` int64 [k], distinct, in any order; fills `scores[first:last, senones]` of f32 [n, senones of
        the model] and leaves the others alone.
        """

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """Cost laws of the stages that `begin_some` (of about `frames` frames) and `score_some` record."""
