"""Scoring held as graphs of kernels: each stage of a piece of a block becomes one launch, where the device can.

A graph has fixed addresses, so that there is one for each pair of buffers and each piece of them. Pieces of other sizes
(the end of an utterance) are given kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.device import COMPUTE
from pipelines.scoring.device.arithmetic import Placed, Stages


class _Step(NamedTuple):
    """A stage of a piece: what does it again, frames and work counts."""

    stage: str
    replay: Callable[[], object]
    frames: int
    work: int
    more: int


@dataclass
class _Holding:
    """Takes the stages of a piece as graphs; `failed` where one could not be."""

    on: Placed
    steps: list[_Step] = field(default_factory=list)
    failed: bool = False

    def give(self, stage: str, step: Callable[[], object], frames: int, work: int, more: int = 0) -> None:
        replay = None if self.failed else self.on.work.device.capture(step)
        if replay is None:
            self.failed = True
            return
        self.steps.append(_Step(stage, replay, frames, work, more))


class Held:
    """Pieces by a name that says where they lie and how long they are."""

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[_Step]] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def hold(self, name: Hashable, on: Placed, score: Callable[[Stages], None]) -> None:
        """Hold what `score` gives; it has run before, with the same tensors."""
        holding = _Holding(on)
        device = on.work.device
        device.wait(device.mark(COMPUTE))
        score(holding)
        if not holding.failed:
            self._pieces[name] = holding.steps

    def give(self, name: Hashable, stages: Stages) -> bool:
        """Let `stages` have those of a piece; False where it is not held."""
        steps = self._pieces.get(name)
        for step in steps or ():
            stages.give(step.stage, step.replay, step.frames, step.work, step.more)
        return steps is not None
