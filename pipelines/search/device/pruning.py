"""Pruning on a device: which of a frame's new tokens live on, by beam, max_active and min_active."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Survivors(NamedTuple):
    """Of each utterance the best, in no order: `cost` and `chosen`, the columns they come from, [batch, max_active];
    `lowest` cost [batch, 1]; and which of them are `kept`."""

    cost: Tensor
    chosen: Tensor
    lowest: Tensor
    kept: Tensor


def survivors(cost: Tensor, max_active: int, beam: Tensor, min_active: int) -> Survivors:
    """The best `max_active` of `cost` float32 [batch, n] (+inf: no token), as Kaldi's GetCutoff would prune them.

    The beam [1], in nat, is wider where fewer than `min_active` tokens are in it.
    """
    import torch

    top, chosen = cost.topk(max_active, dim=1, largest=False, sorted=False)
    lowest = top.amin(1, keepdim=True)
    limit = lowest + beam
    if min_active < max_active:
        enough = top.topk(min_active + 1, dim=1, largest=False).values[:, -1:]
        limit = torch.maximum(limit, enough)
    else:
        limit = torch.full_like(limit, torch.inf)
    return Survivors(top, chosen, lowest, top < limit)
