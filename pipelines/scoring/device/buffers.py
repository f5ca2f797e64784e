"""Host and device buffers of one block; made once, for the largest block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.device import COMPUTE, COPY, Device
from pipelines.scoring.device.arithmetic import Arithmetic

if TYPE_CHECKING:
    from torch import Tensor

MAX_BLOCK_FRAMES = 256
"""The most that a block may hold (`block` of the settings)."""


@dataclass
class Slot:
    """Features f32 [MAX_BLOCK_FRAMES and context, dim] and scores f32 [MAX_BLOCK_FRAMES, senones].

    `spread`: the scores of all frames, where some were left out and they stay on the device.
    """

    features: Tensor
    features_there: Tensor
    scores: Tensor
    scores_there: Tensor
    spread: Tensor | None


def slot(device: Device, arithmetic: Arithmetic, pinned: bool, keep: bool) -> Slot:
    """`pinned`: those here in page-locked memory. `keep`: scores stay there. RuntimeError where memory is short."""
    import torch

    features = MAX_BLOCK_FRAMES + sum(arithmetic.context), arithmetic.dim
    scores = MAX_BLOCK_FRAMES, arithmetic.n_senones

    def here(shape: tuple[int, int]) -> Tensor:
        return device.host_tensor(shape, torch.float32, pinned=pinned)

    def there(stream: int, shape: tuple[int, int]) -> Tensor:
        return device.device_tensor(stream, shape, torch.float32)

    return Slot(
        here(features),
        there(COPY, features),
        here(scores),
        there(COMPUTE, scores),
        there(COMPUTE, scores) if keep else None,
    )


def windows(features: Tensor, first: int, n: int, apart: int, context: int) -> Tensor:
    """Each of `n` frames from `first` on with its context side by side, f32 [n, context · dim]: rows that overlap.

    `apart`: rows of `features` from one frame to the next; `context`: rows of a frame.
    """
    dim = features.shape[1]
    begin = features.storage_offset() + first * apart * dim
    return features.as_strided((n, context * dim), (apart * dim, 1), begin)
