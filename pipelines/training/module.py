"""A net as torch trains it, and the loss that it is trained by.

The gradient of the loss is worked out by hand, so that each softmax is taken once, over a few rows at a time, which
stay in a core's own cache from the first pass over them to the last.

`Layers` are those of one of several workers, with one vector of parameters to exchange. Products are in float32 and in
a fixed order, so that ways of training which ought to agree do so to the last bit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from pipelines.models.nets import FORMAT, Card, Layer
from profiler.arrays import Array

ROWS = 32
"""Taken at a time: 32 of 5 126 senones are 0.7 MB, and two such arrays are at work at once: about what a core
has of cache to itself."""
OUTPUT_STD = 0.01  # Of the output weights at the start: all senones begin about equally likely


def card_for(
    sample: Array, context: tuple[int, int], widths: Sequence[int], bottleneck: int, senones: int, heads: int = 1
) -> Card:
    """The card of a net whose input is normalised by the spread of the frames `sample` [n, features].

    `widths`: of the layers with ReLU; `bottleneck`: of one more without it (0: none).
    """
    sample = sample.astype(np.float64)
    layers = [Layer(width) for width in widths] + [Layer(bottleneck, relu=False)] * bool(bottleneck)
    return Card(
        format=FORMAT,
        left=context[0],
        right=context[1],
        mean=sample.mean(0).round(5).tolist(),
        scale=(1 / np.maximum(sample.std(0), 1e-6)).round(6).tolist(),
        layers=layers,
        senones=senones,
        heads=heads,
    )


class FeedForward(nn.Module):
    """Affine layers, ReLU where the card has it, and one output layer for each head."""

    def __init__(self, card: Card, seed: int = 0) -> None:
        """Weights drawn after He et al. (2015) from `seed`; biases nothing."""
        super().__init__()
        self.mean: torch.Tensor
        self.scale: torch.Tensor
        self.card = card
        random = torch.Generator().manual_seed(seed)
        self.layers, self.heads = nn.ModuleList(), nn.ModuleList()
        width = card.inputs
        for layer in card.layers:
            self.layers.append(_affine(width, layer.outputs, (2 / width) ** 0.5, random))
            width = layer.outputs
        for _ in range(card.heads):
            self.heads.append(_affine(width, card.senones, OUTPUT_STD, random))
        self.register_buffer("mean", torch.tensor(card.mean), persistent=False)
        self.register_buffer("scale", torch.tensor(card.scale), persistent=False)

    def answers(self, frames: torch.Tensor) -> list[torch.Tensor]:
        """Logits f32 [n, senones] of each head for frames f32 [n, left + 1 + right, features].

        Products are taken in bfloat16 with float32 sums, which is faster where the processor has instructions for it.
        """
        x = ((frames.to(self.mean.device) - self.mean) * self.scale).flatten(1)
        with torch.autocast(x.device.type, torch.bfloat16):
            for layer, shape in zip(self.layers, self.card.layers, strict=True):
                x = layer(x)
                if shape.relu:
                    x = torch.relu(x)
            return [head(x).float() for head in self.heads]

    def take(self, tensors: Mapping[str, Array]) -> None:
        """Set the parameters to `tensors`."""
        self.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})

    def tensors(self) -> dict[str, Array]:
        """The parameters, f32."""
        return {name: value.numpy(force=True) for name, value in self.state_dict().items()}


def _affine(width: int, outputs: int, std: float, random: torch.Generator) -> nn.Linear:
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, width, outputs)
    with torch.no_grad():
        layer.weight.normal_(0.0, std, generator=random)
        layer.bias.zero_()
    return layer


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, scores: torch.Tensor, temperature: float) -> torch.Tensor:
        gradient = torch.empty_like(logits)
        total = 0.0
        for rows in zip(logits.split(ROWS), scores.split(ROWS), gradient.split(ROWS), strict=True):
            said = torch.log_softmax(rows[0] / temperature, 1)
            wanted = torch.log_softmax(rows[1] / temperature, 1)
            share = wanted.exp()
            wanted -= said
            total += float(torch.dot(share.flatten(), wanted.flatten()))
            torch.sub(said.exp_(), share, out=rows[2])
        ctx.gradient, ctx.size = gradient, temperature * len(logits)
        return logits.new_tensor(total / len(logits))

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.gradient.mul_(outer[0] / ctx.size), None, None


def divergence(logits: torch.Tensor, scores: torch.Tensor, temperature: float) -> torch.Tensor:
    """Mean Kullback-Leibler divergence of softmax(logits / T) from softmax(scores / T), nats; both [n, senones]."""
    found: torch.Tensor = _Divergence.apply(logits, scores, temperature)  # type: ignore[no-untyped-call]
    return found


class _Current(torch.autograd.Function):
    """An affine layer whose backward pass takes the weights as they are by then, not as they were (stale gradients)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.x, ctx.weight = x, weight
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        (gradient,) = outer
        below = gradient @ ctx.weight if ctx.needs_input_grad[0] else None
        return below, gradient.t() @ ctx.x, gradient.sum(0)


class Layers:
    """The layers `first` to `last` (excluded) of a net, the output's last; however it is split it begins the same."""

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
