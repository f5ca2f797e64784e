"""What all ways of training have in common, as the worker's loop takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from pipelines.models.nets import Card
from pipelines.training.parallel.job import Task
from pipelines.training.parallel.lessons import Lessons
from pipelines.training.parallel.peers import Peers


@dataclass
class Done:
    """What a piece came to, as the first worker knows it."""

    examples: int
    updates: int
    residuals: list[tuple[float, float]] = field(default_factory=list)


class Training(Protocol):
    """A net on its way, in one of its workers."""

    def piece(self, batches: int) -> Done:
        """Train on the next `batches` minibatches, all workers' together, until nothing is on its way any more."""

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The whole net as it is; asked of all workers, meant for the first."""


@dataclass(frozen=True)
class Setting:
    """Where a worker trains: among whom, on which data, on which device. `back`: a second group of the same workers."""

    peers: Peers
    back: Peers
    lessons: Lessons
    card: Card
    device: torch.device


Maker = Callable[[Task, Setting], Training]
