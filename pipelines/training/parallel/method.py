"""The methods of training with several workers, and what they have in common, as the worker's loop takes them."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch
from torch.distributed import Work

from pipelines.models.nets import Card
from pipelines.training.module import Layers
from pipelines.training.parallel.job import Task
from pipelines.training.parallel.lessons import Lessons
from pipelines.training.parallel.peers import Peers


@dataclass
class Done:
    """Result of a piece, as the first worker knows it."""

    examples: int
    updates: int
    residuals: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """Context of a worker: its group, data and device. `back`: a second group of the same workers."""

    peers: Peers
    back: Peers
    lessons: Lessons
    card: Card
    device: torch.device


class Training(ABC):
    """A net on its way, in one of its workers: the layers that this one has, and the number of its next minibatch."""

    def __init__(self, task: Task, setting: Setting, net: Layers | None = None, number: int = 0) -> None:
        self._task, self._setting, self._number = task, setting, number
        self._net = net or Layers(setting.card, task.seed, setting.device)
        self._peers, self._lessons = setting.peers, setting.lessons
        self._doing = setting.peers.diary.doing

    @abstractmethod
    def piece(self, batches: int) -> Done:
        """Train on the next `batches` minibatches, all workers' together, until nothing is on its way any more."""

    def answers(self) -> Layers:
        return self._net


class Synchronous(Training):
    """Data parallel SGD: each of `task.workers` has the whole net and a share of each minibatch; one is plain SGD."""

    def piece(self, batches: int) -> Done:
        """Each minibatch is one update; shares must be equal for the mean to be that of the whole."""
        task, peers = self._task, self._peers
        for _ in range(batches):
            with self._doing("gradient", self._number):
                self._net.learn(*self._lessons.batch(self._number, task.batch, peers.rank, peers.size))
            peers.mean_(self._net.gradient)
            with self._doing("update", self._number):
                self._net.step(task.rate)
            self._number += 1
        return Done(batches * task.batch, batches)


Local = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
"""Moves w (first) towards its minimum, given the multipliers λ and z."""


class Admm:
    """State of a worker: its w, λ and the common z, f32 vectors of one length.

    The alternating direction method of multipliers minimises the sum of the workers' losses f_k(w_k) where all
    w_k = z. In rounds (Boyd et al. 2011, § 7.1): w_k ← argmin f_k(w) + λ_k·(w − z) + ρ/2 |w − z|²; z ← mean of
    w_k + λ_k / ρ; λ_k ← λ_k + ρ (w_k − z).
    """

    def __init__(self, peers: Peers, start: torch.Tensor, rho: float) -> None:
        """`start` becomes w and is changed in place."""
        self._peers, self._rho = peers, rho
        self.w, self.z = start, start.clone()
        self.multipliers = torch.zeros_like(start)

    def round(self, local: Local) -> tuple[float, float]:
        """One exchange; primal residual |w − z| and dual ρ |z − z before|, as root mean squares over all workers."""
        local(self.w, self.multipliers, self.z)
        before = self.z
        self.z = self.w + self.multipliers / self._rho
        self._peers.mean_(self.z)
        apart = self.w - self.z
        self.multipliers.add_(apart, alpha=self._rho)
        both = torch.stack([apart.square().mean(), (self.z - before).square().mean()])
        self._peers.mean_(both)
        primal, dual = (float(value) ** 0.5 for value in both)
        return primal, self._rho * dual


class Consensus(Training):
    """One of `task.workers`; it goes towards the first step of ADMM by minibatches of SGD on its share of the data."""

    def __init__(self, task: Task, setting: Setting) -> None:
        super().__init__(task, setting, number=setting.peers.rank)
        self._admm = Admm(setting.peers, self._net.vector, task.rho)

    def piece(self, batches: int) -> Done:
        """As many whole exchanges as `batches` minibatches of all workers make, at least one."""
        task = self._task
        rounds = max(1, batches // (task.workers * task.local))
        residuals = [self._admm.round(self._local) for _ in range(rounds)]
        return Done(rounds * task.workers * task.local * task.batch, rounds, residuals)

    def _local(self, w: torch.Tensor, multipliers: torch.Tensor, z: torch.Tensor) -> None:
        task, net = self._task, self._net
        for _ in range(task.local):
            with self._doing("local", self._number):
                net.learn(*self._lessons.batch(self._number, task.batch))
                net.gradient.add_(multipliers).add_(w - z, alpha=task.rho)
                net.step(task.rate)
            self._number += task.workers

    def answers(self) -> Layers:
        whole = Layers(self._setting.card, self._task.seed, self._setting.device)
        whole.vector.copy_(self._admm.z)
        return whole


SERVER = 0
STOP = -1.0  # In the place of the version: the piece is over


class Asynchronous(Training):
    """The parameter server, or one of `task.workers` workers, which go on with the copy they got (stale gradients).

    The first rank is the server (Dean et al. 2012, Downpour; with a processor as master and GPUs as slaves Zhang et al.
    2013). A worker takes the mean gradient of `accumulate` minibatches at one copy of the parameters, sends it and gets
    a new copy: two vectors per exchange. The mean is the note's lower learning rate. The transport is gloo on the
    processor's memory, wherever workers compute: the server takes what comes first.
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self._serves = setting.peers.rank == SERVER
        net = Layers(setting.card, task.seed, torch.device("cpu") if self._serves else setting.device)
        super().__init__(task, setting, net, setting.peers.rank - 1)
        # Behind parameters or gradient stands the version of the copy; float32 counts to 16 million.
        self._vector = torch.zeros(len(net.vector) + 1)
        self._version = 0

    def piece(self, batches: int) -> Done:
        """Until the server has seen `batches` minibatches or up to one exchange of each worker more."""
        return self._serve(batches) if self._serves else self._work()

    def _serve(self, batches: int) -> Done:
        task, peers = self._task, self._peers
        updates, busy = 0, task.workers
        for worker in range(1, peers.size):
            self._answer(worker)
        gradient = torch.empty_like(self._vector)
        while busy:
            with self._doing("wait"):
                worker = peers.receive_any(gradient)
            with self._doing("update", self._version):
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
        with self._doing("send", self._version):
            self._vector[:-1] = self._net.vector
            self._vector[-1] = STOP if over else self._version
            self._peers.send(self._vector, worker).wait()

    def _work(self) -> Done:
        task, peers, net = self._task, self._peers, self._net
        while True:
            with self._doing("wait", self._number):
                peers.receive(self._vector, SERVER).wait()
            if self._vector[-1] == STOP:
                return Done(0, 0)
            net.vector.copy_(self._vector[:-1])
            for _ in range(task.accumulate):
                with self._doing("gradient", self._number):
                    net.learn(*self._lessons.batch(self._number, task.batch))
                self._number += task.workers
            with self._doing("send", self._number):
                # The version stays behind it, which tells the server how old the copy was.
                self._vector[:-1] = net.gradient
                self._vector[:-1] /= task.accumulate
                net.gradient.zero_()
                peers.send(self._vector, SERVER).wait()


class _Moving(NamedTuple):
    """A tensor on its way here, or from here, where it must live until it has come."""

    tensor: torch.Tensor
    work: Work


class _InFlight(NamedTuple):
    """A minibatch that went forward here: what came in and went out, and how many updates had been made.

    `passed`: what was sent up; `gradient`: what comes back for it. None for the last worker.
    """

    number: int
    heard: torch.Tensor
    out: torch.Tensor
    updates: int
    passed: _Moving | None = None
    gradient: _Moving | None = None


class Pipelined(Training):
    """One of `task.workers`, with the layers from `task.split[rank]` on; each works on another minibatch.

    Worker i of K (from 1) goes on with newer minibatches while older ones are with the workers above, and so updates
    its layers with gradients that are 2 (K − i) updates old; the last has none to wait for (Pétrowski, Dreyfus &
    Girault 1993; for acoustic nets Chen, Eversole, Li, Yu & Seide 2012). A worker first applies the backward pass
    that is due and then goes forward, and back-propagates through its layers as they are by then.
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        peers, ends = setting.peers, [*task.split[1:], None]
        layers = task.split[peers.rank], ends[peers.rank]
        super().__init__(task, setting, Layers(setting.card, task.seed, setting.device, *layers))
        self._is_first, self._is_last = peers.rank == 0, peers.rank + 1 == peers.size
        self._delay = 2 * (peers.size - 1 - peers.rank)
        self._updates = 0
        self._sent: deque[_Moving] = deque()

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
        for moving in self._sent:
            moving.work.wait()
        self._sent.clear()
        return Done(batches * self._task.batch, batches)

    def _expected(self) -> _Moving | None:
        """Ask for what comes in next, so that it travels while something else is computed."""
        if self._is_first:
            return None
        heard = torch.empty((self._task.batch, self._net.widths[0]), device=self._setting.device)
        return _Moving(heard, self._peers.receive(heard, self._peers.rank - 1))

    def _forward(self, coming: _Moving | None) -> _InFlight:
        setting, number = self._setting, self._number
        if coming is not None:
            with self._doing("wait", number):
                coming.work.wait()
            heard = coming.tensor.requires_grad_()
        with self._doing("forward", number):
            if coming is None:
                heard = self._lessons.batch(number, self._task.batch)[0].to(setting.device)
            out = self._net(heard, stale=True)
        batch = _InFlight(number, heard, out, self._updates)
        if self._is_last:
            return batch
        with self._doing("send", number):
            above, passed = self._peers.rank + 1, out.detach()
            gradient = torch.empty_like(passed)
            going = _Moving(passed, self._peers.send(passed, above))
            return batch._replace(passed=going, gradient=_Moving(gradient, setting.back.receive(gradient, above)))

    def _backward(self, batch: _InFlight) -> None:
        setting = self._setting
        if batch.gradient is not None:
            with self._doing("wait", batch.number):
                batch.gradient.work.wait()
        with self._doing("backward", batch.number):
            if batch.gradient is not None:
                torch.autograd.backward(batch.out, batch.gradient.tensor)
            else:
                y = self._lessons.batch(batch.number, self._task.batch)[1].to(setting.device)
                torch.autograd.backward(torch.nn.functional.cross_entropy(batch.out, y))
        if not self._is_first:
            down = batch.heard.grad
            assert down is not None
            with self._doing("send", batch.number):
                self._sent.append(_Moving(down, setting.back.send(down, self._peers.rank - 1)))
                while len(self._sent) > 1 and self._sent[0].work.is_completed():
                    self._sent.popleft()
        with self._doing("update", batch.number):
            self._net.step(self._task.rate)
        self._peers.diary.delays[self._updates - batch.updates] += 1
        self._updates += 1

    def answers(self) -> Layers:
        setting, net, group = self._setting, self._net, self._peers.group
        if self._peers.rank:
            group.send([net.vector], 0, 0).wait()
            return net
        whole = Layers(setting.card, self._task.seed, setting.device)
        parts = [net.vector]
        for rank, bounds in enumerate(pairwise([*self._task.split[1:], whole.count]), 1):
            parts.append(Layers(setting.card, 0, setting.device, *bounds).vector)
            group.recv([parts[-1]], rank, 0).wait()
        torch.cat(parts, out=whole.vector)
        return whole
