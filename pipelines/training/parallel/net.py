"""Layers of a net in one worker: all, or those between two places; parameters and gradients as one vector each.

One vector makes a step, an exchange and a mean single operations. Products are in float32 and in a fixed order, so
that ways of training which ought to agree do so to the last bit.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from pipelines.models.nets import Card
from pipelines.training.module import FeedForward


class _Kept(Protocol):
    """Values that a forward pass keeps for the backward pass."""

    x: torch.Tensor
    weight: torch.Tensor
    needs_input_grad: tuple[bool, ...]


class _Current(torch.autograd.Function):
    """An affine layer whose backward pass takes the weights as they are by then, not as they were (stale gradients)."""

    @staticmethod
    def forward(ctx: _Kept, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.x, ctx.weight = x, weight
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: _Kept, *outer: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        (gradient,) = outer
        below = gradient @ ctx.weight if ctx.needs_input_grad[0] else None
        return below, gradient.t() @ ctx.x, gradient.sum(0)


class Layers:
    """The layers `first` to `last` (excluded) of the net of `card`; the output layer is the last.

    Weights are drawn as for the whole net, so that however it is split it begins the same.
    """

    def __init__(self, card: Card, seed: int, device: torch.device, first: int = 0, last: int | None = None) -> None:
        whole = FeedForward(card, seed)
        relu = [layer.relu for layer in card.layers] + [False]
        every = [*whole.layers, *whole.heads]
        self.count = len(every)
        self.first, self.last = first, self.count if last is None else last
        self._taken = nn.ModuleList(every[self.first : self.last]).to(device)
        self._relu = relu[self.first : self.last]
        self._mean, self._scale = whole.mean.to(device), whole.scale.to(device)
        self.device = device
        own = list(self._taken.parameters())
        self.vector = torch.nn.utils.parameters_to_vector(own).detach()
        self.gradient = torch.zeros_like(self.vector)
        place = 0
        for parameter in own:
            size = parameter.numel()
            parameter.data = self.vector[place : place + size].view_as(parameter)
            parameter.grad = self.gradient[place : place + size].view_as(parameter)
            place += size

    @property
    def widths(self) -> tuple[int, int]:
        affine = [layer for layer in self._taken if isinstance(layer, nn.Linear)]
        return affine[0].in_features, affine[-1].out_features

    def __call__(self, x: torch.Tensor, stale: bool = False) -> torch.Tensor:
        """What comes out for f32 [n, inputs]; the first layer takes frames [n, frames of context, features].

        `stale`: whether the weights may change before the backward pass.
        """
        if self.first == 0:
            x = ((x - self._mean) * self._scale).flatten(1)
        for layer, relu in zip(self._taken, self._relu, strict=True):
            x = _Current.apply(x, layer.weight, layer.bias) if stale else layer(x)  # type: ignore[no-untyped-call]
            if relu:
                x = torch.relu(x)
        return x

    def learn(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """Add the gradient of the mean cross-entropy of a minibatch; its loss, nats. Of a whole net alone."""
        loss = torch.nn.functional.cross_entropy(self(x.to(self.device)), y.to(self.device))
        torch.autograd.backward(loss)
        return float(loss.detach())

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Go `rate` times the gradient down, and begin a new one."""
        self.vector.sub_(self.gradient, alpha=rate)
        self.gradient.zero_()
