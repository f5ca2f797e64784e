"""Pipelined back-propagation: each worker has some layers, and works on another minibatch than the others.

Worker i of K (from 1) goes on with newer minibatches while older ones are with the workers above, and so updates its
layers with gradients that are 2 (K − i) updates old; the last has none to wait for (Pétrowski, Dreyfus & Girault 1993;
for acoustic nets Chen, Eversole, Li, Yu & Seide 2012). A worker first applies the backward pass that is due and then
goes forward, and back-propagates through its layers as they are by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from pipelines.training.parallel.job import Task
from pipelines.training.parallel.method import Done, Setting
from pipelines.training.parallel.net import Layers

if TYPE_CHECKING:
    from torch.distributed import Work


class _Coming(NamedTuple):
    """A tensor that is on its way here."""

    tensor: torch.Tensor
    work: Work


class _InFlight(NamedTuple):
    """A minibatch that went forward here: what came in and went out, and how many updates had been made.

    `gradient`: on its way back from the worker above. `passed`: what was sent up, which must live until that has come.
    """

    number: int
    heard: torch.Tensor
    said: torch.Tensor
    updates: int
    gradient: _Coming | None
    passed: tuple[torch.Tensor, Work] | None


class Pipelined:
    """One of `task.workers`, with the layers from `task.split[rank]` on."""

    def __init__(self, task: Task, setting: Setting) -> None:
        peers, ends = setting.peers, [*task.split[1:], None]
        self._task, self._setting = task, setting
        first, last = task.split[peers.rank], ends[peers.rank]
        self._net = Layers(setting.card, task.seed, setting.device, first, last)
        self._is_first, self._is_last = peers.rank == 0, peers.rank + 1 == peers.size
        self._delay = 2 * (peers.size - 1 - peers.rank)
        self._number = self._updates = 0
        self._sent: deque[tuple[torch.Tensor, Work]] = deque()

    def piece(self, batches: int) -> Done:
        """Fill the pipe, keep it full, empty it."""
        end = self._number + batches
        in_flight: deque[_InFlight] = deque()
        coming = self._expected()
        while self._number < end or in_flight:
            if in_flight and (len(in_flight) > self._delay or self._number == end):
                self._backward(in_flight.popleft())
            if self._number < end:
                in_flight.append(self._forward(coming))
                self._number += 1
                coming = self._expected() if self._number < end else None
        for _, work in self._sent:
            work.wait()
        self._sent.clear()
        return Done(batches * self._task.batch, batches)

    def _expected(self) -> _Coming | None:
        """Ask for what comes in next, so that it travels while something else is computed."""
        if self._is_first:
            return None
        shape = self._task.batch, self._net.widths[0]
        heard = torch.empty(shape, device=self._setting.device)
        peers = self._setting.peers
        return _Coming(heard, peers.receive(heard, peers.rank - 1))

    def _forward(self, coming: _Coming | None) -> _InFlight:
        task, setting, number = self._task, self._setting, self._number
        peers, doing = setting.peers, setting.peers.diary.doing
        if coming is not None:
            with doing("wait", number):
                coming.work.wait()
            heard = coming.tensor.requires_grad_()
        with doing("forward", number):
            if coming is None:
                heard = setting.lessons.batch(number, task.batch)[0].to(setting.device)
            said = self._net(heard, stale=True)
        if self._is_last:
            return _InFlight(number, heard, said, self._updates, None, None)
        with doing("send", number):
            passed = said.detach()
            gradient = torch.empty_like(passed)
            going = peers.send(passed, peers.rank + 1)
            back = _Coming(gradient, setting.back.receive(gradient, peers.rank + 1))
        return _InFlight(number, heard, said, self._updates, back, (passed, going))

    def _backward(self, batch: _InFlight) -> None:
        task, setting = self._task, self._setting
        doing = setting.peers.diary.doing
        if batch.gradient is not None:
            with doing("wait", batch.number):
                batch.gradient.work.wait()
        with doing("backward", batch.number):
            if batch.gradient is not None:
                torch.autograd.backward(batch.said, batch.gradient.tensor)
            else:
                y = setting.lessons.batch(batch.number, task.batch)[1].to(setting.device)
                loss = torch.nn.functional.cross_entropy(batch.said, y)
                torch.autograd.backward(loss)
        if not self._is_first:
            assert batch.heard.grad is not None
            with doing("send", batch.number):
                self._sent.append((batch.heard.grad, setting.back.send(batch.heard.grad, setting.peers.rank - 1)))
                while len(self._sent) > 1 and self._sent[0][1].is_completed():
                    self._sent.popleft()
        with doing("update", batch.number):
            self._net.step(task.rate)
        setting.peers.diary.delays[self._updates - batch.updates] += 1
        self._updates += 1

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The layers of all workers, put together in the first."""
        setting, net = self._setting, self._net
        peers = setting.peers
        if peers.rank:
            peers.group.send([net.vector], 0, 0).wait()
            return net
        whole = Layers(setting.card, self._task.seed, setting.device)
        bounds = [*self._task.split[1:], whole.count]
        place = len(net.vector)
        whole.vector[:place] = net.vector
        for rank in range(1, peers.size):
            layers = Layers(setting.card, 0, setting.device, self._task.split[rank], bounds[rank])
            peers.group.recv([layers.vector], rank, 0).wait()
            whole.vector[place : place + len(layers.vector)] = layers.vector
            place += len(layers.vector)
        return whole
