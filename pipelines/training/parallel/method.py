"""The methods of training with several workers, and what they have in common, as the worker's loop takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from pipelines.models.nets import Card
from pipelines.training.module import Layers
from pipelines.training.parallel.job import Task
from pipelines.training.parallel.lessons import Lessons
from pipelines.training.parallel.peers import Peers

if TYPE_CHECKING:
    from torch.distributed import Work


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


class Consensus:
    """One of `task.workers`. The first step of ADMM is not solved for a net but gone towards.

    That takes some minibatches of SGD on the worker's own share of the data.
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self._task, self._setting = task, setting
        self._net = Layers(setting.card, task.seed, setting.device)
        self._admm = Admm(setting.peers, self._net.vector, task.rho)
        self._number = setting.peers.rank

    def piece(self, batches: int) -> Done:
        """As many whole exchanges as `batches` minibatches of all workers make, at least one."""
        task = self._task
        rounds = max(1, batches // (task.workers * task.local))
        residuals = [self._admm.round(self._local) for _ in range(rounds)]
        return Done(rounds * task.workers * task.local * task.batch, rounds, residuals)

    def _local(self, w: torch.Tensor, multipliers: torch.Tensor, z: torch.Tensor) -> None:
        task, net, lessons = self._task, self._net, self._setting.lessons
        for _ in range(task.local):
            with self._setting.peers.diary.doing("local", self._number):
                net.learn(*lessons.batch(self._number, task.batch))
                net.gradient.add_(multipliers).add_(w - z, alpha=task.rho)
                net.step(task.rate)
            self._number += task.workers

    def answers(self) -> Callable[[torch.Tensor], torch.Tensor]:
        whole = Layers(self._setting.card, self._task.seed, self._setting.device)
        whole.vector.copy_(self._admm.z)
        return whole


SERVER = 0
STOP = -1.0
"""In the place of the version: the piece is over."""


class Asynchronous:
    """The parameter server, or one of `task.workers` workers, which go on with the copy they got (stale gradients).

    The first rank is the server (Dean et al. 2012, Downpour; with a processor as master and GPUs as slaves Zhang et al.
    2013). A worker takes the mean gradient of `accumulate` minibatches at one copy of the parameters, sends it and gets
    a new copy: two vectors per exchange. That is the note's lower learning rate: the sum of the gradients at
    1 / accumulate of the rate. The transport is gloo on the processor's memory, wherever workers compute: the server
    takes what comes first.
    """

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
    """One of `task.workers`, with the layers from `task.split[rank]` on; each works on another minibatch.

    Worker i of K (from 1) goes on with newer minibatches while older ones are with the workers above, and so updates
    its layers with gradients that are 2 (K − i) updates old; the last has none to wait for (Pétrowski, Dreyfus &
    Girault 1993; for acoustic nets Chen, Eversole, Li, Yu & Seide 2012). A worker first applies the backward pass
    that is due and then goes forward, and back-propagates through its layers as they are by then.
    """

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
