"""The scorer of a CTC net, whose scores are there when an utterance begins (`pipelines.models.ctc.front_end`).

It takes for each output the first of the frames that it stands for. All that a net costs is in the stages of its
blocks; how long this takes, some microseconds a block of frames, is overhead of the decode loop.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.strategy import Cancelling, Made, Progress
from profiler.arrays import F32, Array
from profiler.spans import Cost, Lane, NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.config import Config


class CtcScorer:
    """Hands the scores of a net to the search."""

    lazy = False
    context = (0, 0)
    notes: tuple[str, ...] = ()

    def __init__(self, model: AcousticModel) -> None:
        self.n_senones, self.subsampling = model.n_senones, model.subsampling

    def stages(self, recorder: Recorder) -> None:
        pass

    def warm_up(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def needs(self, config: Config) -> Hashable:
        return None

    def make_ready(self, config: Config, progress: Progress, cancelled: Cancelling) -> Made:
        return None

    def configure(self, config: Config, prepared: Made = None) -> None:
        pass

    def score(self, block: Array, first_frame: int, lane: Lane | NullLane) -> F32:
        """Natural log-probabilities f32 [outputs, units] of a block that begins with the first frame of an output."""
        return np.ascontiguousarray(block[:: self.subsampling])

    def prepare(self, block: Array, first_frame: int, lane: Lane | NullLane) -> F32:
        return self.score(block, first_frame, lane)

    def frame(self, state: F32, t: int, active: Array | None) -> F32:
        row: F32 = state[t]
        return row

    def costs(self) -> dict[str, Cost]:
        return {}
