"""What all methods of training have in common, as the worker's loop takes them, and the simplest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from pipelines.models.nets import Card
from pipelines.training.parallel.job import Task
from pipelines.training.parallel.lessons import Lessons
from pipelines.training.parallel.net import Layers
from pipelines.training.parallel.peers import Peers


@dataclass
class Done:
    """Result of a piece, as the first worker knows it."""

    examples: int
    updates: int
    residuals: list[tuple[float, float]] = field(default_factory=list)


class Training(Protocol):
    """A net on its way, in one of its workers."""

    def piece(self, batches: int) -> Done:
        """Train on the next `batches` minibatches, all workers' together, until nothing is on its way any more."""

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The whole net as it is; all workers call it, the first one uses the result."""


@dataclass(frozen=True)
class Setting:
    """Context of a worker: its group, data and device. `back`: a second group of the same workers."""

    peers: Peers
    back: Peers
    lessons: Lessons
    card: Card
    device: torch.device


Maker = Callable[[Task, Setting], Training]


class Synchronous:
    """Data parallel SGD: every one of `task.workers` has the whole net and a share of each minibatch.

    With one worker it is plain minibatch SGD.
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self._task, self._setting = task, setting
        self._net = Layers(setting.card, task.seed, setting.device)
        self._number = 0

    def piece(self, batches: int) -> Done:
        """Each minibatch is one update; shares must be equal for the mean to be that of the whole."""
        task, peers = self._task, self._setting.peers
        doing = peers.diary.doing
        for _ in range(batches):
            with doing("gradient", self._number):
                self._net.learn(*self._setting.lessons.batch(self._number, task.batch, peers.rank, peers.size))
            peers.mean_(self._net.gradient)
            with doing("update", self._number):
                self._net.step(task.rate)
            self._number += 1
        return Done(batches * task.batch, batches)

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        return self._net
