"""Consensus by the alternating direction method of multipliers (ADMM), an augmented Lagrangian method.

Minimises the sum of the workers' losses f_k(w_k) where all w_k = z. In rounds (Boyd et al. 2011, § 7.1):
w_k ← argmin f_k(w) + λ_k·(w − z) + ρ/2 |w − z|²; z ← mean of w_k + λ_k / ρ; λ_k ← λ_k + ρ (w_k − z). For a net the
first is not solved but gone towards, by some minibatches of SGD on the worker's own share of the data.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from pipelines.training.parallel.job import Task
from pipelines.training.parallel.method import Done, Setting
from pipelines.training.parallel.net import Layers
from pipelines.training.parallel.peers import Peers

Local = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]
"""Moves w (first) towards its minimum, given the multipliers λ and z."""


class Admm:
    """State of a worker: its w, λ and the common z, f32 vectors of one length."""

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
    """One of `task.workers`."""

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
