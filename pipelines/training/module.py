"""A net as torch trains it: the layers of a card, with parameters named as the file names its tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from pipelines.models.nets import Card
from profiler.arrays import Array

OUTPUT_STD = 0.01
"""Of the output weights at the start: all senones begin about equally likely."""


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

        Products are taken in bfloat16 with float32 sums, which is faster where the processor
        has instructions for it.
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
