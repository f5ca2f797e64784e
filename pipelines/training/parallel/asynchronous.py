"""Asynchronous SGD with a parameter server: each worker goes on with the copy it got, whatever the others did since.

The first rank is the server (Dean et al. 2012, Downpour; with a processor as master and GPUs as slaves Zhang et al.
2013). A worker takes the mean gradient of `accumulate` minibatches at one copy of the parameters, sends it and gets a
new copy: two vectors per exchange. That is the note's lower learning rate: the sum of the gradients at 1 / accumulate
of the rate. The transport is gloo on the processor's memory, wherever workers compute: the server takes what comes
first.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from pipelines.training.parallel.job import Task
from pipelines.training.parallel.method import Done, Setting
from pipelines.training.parallel.net import Layers

SERVER = 0
STOP = -1.0
"""In the place of the version: the piece is over."""


class Asynchronous:
    """The server, or one of `task.workers` workers."""

    def __init__(self, task: Task, setting: Setting) -> None:
        self._task, self._setting = task, setting
        self._serves = setting.peers.rank == SERVER
        self._net = Layers(setting.card, task.seed, torch.device("cpu") if self._serves else setting.device)
        # Behind parameters or gradient stands the version of the copy; float32 counts to 16 million.
        self._vector = torch.zeros(len(self._net.vector) + 1)
        self._number = setting.peers.rank - 1
        self._version = 0

    def piece(self, batches: int) -> Done:
        """Until the server has seen `batches` minibatches or up to one exchange of each worker more."""
        return self._serve(batches) if self._serves else self._work()

    def _serve(self, batches: int) -> Done:
        task, peers = self._task, self._setting.peers
        doing = peers.diary.doing
        updates, busy = 0, task.workers
        for worker in range(1, peers.size):
            self._answer(worker)
        gradient = torch.empty_like(self._vector)
        while busy:
            with doing("wait"):
                worker = peers.receive_any(gradient)
            with doing("update", self._version):
                stale = self._version - int(gradient[-1])
                peers.diary.delays[stale] += 1
                rate = task.rate / (1 + stale) if task.rule == "by staleness" else task.rate
                self._net.vector.sub_(gradient[:-1], alpha=rate)
            self._version += 1
            updates += 1
            over = updates * task.accumulate >= batches
            busy -= over
            self._answer(worker, over)
        return Done(updates * task.accumulate * task.batch, updates)

    def _answer(self, worker: int, over: bool = False) -> None:
        with self._setting.peers.diary.doing("send", self._version):
            self._vector[:-1] = self._net.vector
            self._vector[-1] = STOP if over else self._version
            self._setting.peers.send(self._vector, worker).wait()

    def _work(self) -> Done:
        task, setting, net = self._task, self._setting, self._net
        peers, doing = setting.peers, setting.peers.diary.doing
        while True:
            with doing("wait", self._number):
                peers.receive(self._vector, SERVER).wait()
            if self._vector[-1] == STOP:
                return Done(0, 0)
            net.vector.copy_(self._vector[:-1])
            for _ in range(task.accumulate):
                with doing("gradient", self._number):
                    net.learn(*setting.lessons.batch(self._number, task.batch))
                self._number += task.workers
            with doing("send", self._number):
                # The version stays behind it, which tells the server how old the copy was.
                self._vector[:-1] = net.gradient
                self._vector[:-1] /= task.accumulate
                net.gradient.zero_()
                peers.send(self._vector, SERVER).wait()

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The server's net."""
        return self._net
