"""Every senone of every scored frame: the active senones later does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipelines.scoring.meter import Meter
from pipelines.scoring.senones import Parents, Source
from profiler.arrays import Array
from profiler.spans import Cost

if TYPE_CHECKING:
    from pipelines import config as settings


class Rule:
    """Hands the block through."""

    stages: Mapping[str, tuple[str, ...]] = {}
    lazy = False

    def __init__(self, n_senones: int, parents: Parents) -> None:
        self._source: Source

    def configure(self, gmm: settings.Gmm, source: Source) -> None:
        """Work on `source`."""
        self._source = source

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        self._source.score(features, scores, meter)

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """Nobody asks: `lazy` is false."""
        raise NotImplementedError

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Nobody asks: `lazy` is false."""
        raise NotImplementedError

    def costs(self, frames: int) -> dict[str, Cost]:
        """Those of the layers below."""
        return self._source.costs(frames)
