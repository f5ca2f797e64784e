"""Synchronous data parallel SGD: every worker has the whole net and a share of each minibatch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pipelines.training.parallel.job import Task
from pipelines.training.parallel.net import Layers
from pipelines.training.parallel.way import Done, Setting


class Synchronous:
    """One of `task.workers`; with one it is plain minibatch SGD."""

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
                self._net.learn(
                    *self._setting.lessons.batch(self._number, task.batch, peers.rank, peers.size)
                )
            peers.mean_(self._net.gradient)
            with doing("update", self._number):
                self._net.step(task.rate)
            self._number += 1
        return Done(batches * task.batch, batches)

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """All workers have the same net."""
        return self._net
