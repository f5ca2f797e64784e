"""Scoring alone: models that no recogniser has, without front end and search before and after the scorer."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.config import Config
from pipelines.experiments.rerun import (
    MAX_ROUNDS,
    WARM_UP_ROUNDS,
    Arm,
    Piece,
    Taken,
)
from pipelines.models.sphinx import AcousticModel
from pipelines.run.interleave import turns
from pipelines.scoring import build_scorer, with_context
from profiler.analysis.conditions import OTHER_COUNT
from profiler.arrays import Array
from profiler.frames import FRAME_S
from profiler.machine.roofs.table import RoofTable
from profiler.recording.drained_lane import DrainedLane
from profiler.spans import Recorder


def score(arms: Sequence[tuple[Arm, AcousticModel]], features: Array, roof_table: RoofTable) -> int:
    """Score `features` f32 [frames, 39] by arms of (arm, model) in turns; returns how many rounds count."""
    scorers = [Alone(arm.config, model, roof_table) for arm, model in arms]
    for turn in turns(len(arms), 1, range(-WARM_UP_ROUNDS, MAX_ROUNDS)):
        scorers[turn.arm].score(features)
    for (arm, _), scorer in zip(arms, scorers, strict=True):
        scorer.taken.hand_over(arm, 1)
    return MAX_ROUNDS


class Alone:
    """A scorer, and what it recorded."""

    def __init__(self, config: Config, model: AcousticModel, roof_table: RoofTable) -> None:
        self._recorder, self._block, self._frame = Recorder(), config.block, 0
        self._lane = self._recorder.lane("decode", decode=True, make=DrainedLane)
        self._scorer = build_scorer(config, model)
        self._scorer.stages(self._recorder)
        self._of_blocks = self._recorder.stage("decode.block", "decode", (OTHER_COUNT,))
        laws = self._scorer.costs().items()
        costs = {(self._recorder.stage_id(stage), 0): cost for stage, cost in laws}
        self.taken = Taken(self._recorder, costs, roof_table)

    def score(self, features: Array) -> None:
        """Score f32 [frames, 39] block by block."""
        clock, first = self._recorder.clock, self._frame
        scorer, block = self._scorer, self._block
        scorer.reset()
        beyond = sum(scorer.context)
        padded = with_context(features, scorer.context)
        for at in range(0, len(features), block):
            n = min(block, len(features) - at)
            start = clock()
            scorer.score(padded[at : at + n + beyond], first + at, self._lane)
            self._lane.put(self._of_blocks, start, clock(), first + at, n)
        self._frame += len(features)
        self.taken.add(self._lane, Piece(first, len(features), len(features) * FRAME_S))
