"""What training minimises, with its gradient worked out by hand, so that each softmax is taken once.

Softmaxes over thousands of senones are a matter of memory: rows are taken a few at a time, which stay in a core's
own cache from the first pass over them to the last.
"""

from __future__ import annotations

from typing import Any

import torch

ROWS = 32
"""Taken at a time: 32 of 5 126 senones are 0.7 MB, and two such arrays are at work at once: about what a core
has of cache to itself."""


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, scores: torch.Tensor, temperature: float
    ) -> torch.Tensor:
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
    """Mean Kullback-Leibler divergence of softmax(logits / T) from softmax(scores / T), nats; both [n, senones].

    Can be differentiated once, for the logits.
    """
    found: torch.Tensor = _Divergence.apply(logits, scores, temperature)  # type: ignore[no-untyped-call]
    return found
