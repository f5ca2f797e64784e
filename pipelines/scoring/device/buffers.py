"""What lies in memory of a device: buffers of one block, made once for the largest; parameters; repeated scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.device import COMPUTE, COPY, Device, DeviceWork
from pipelines.scoring.device.arithmetic import NAMES, Arithmetic, Placed
from profiler.arrays import Array
from profiler.device.clock import Event

if TYPE_CHECKING:
    from torch import Tensor

MAX_BLOCK_FRAMES = 256  # The most that a block may hold (`block` of the settings)


class Slot(NamedTuple):
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
    here = partial(device.host_tensor, dtype=torch.float32, pinned=pinned)
    there = partial(device.device_tensor, dtype=torch.float32)
    spread = there(COMPUTE, scores) if keep else None
    return Slot(here(features), there(COPY, features), here(scores), there(COMPUTE, scores), spread)


def windows(features: Tensor, first: int, n: int, apart: int, context: int) -> Tensor:
    """Each of `n` frames from `first` on with its context side by side, f32 [n, context · dim]: rows that overlap.

    `apart`: rows of `features` from one frame to the next; `context`: rows of a frame.
    """
    dim = features.shape[1]
    begin = features.storage_offset() + first * apart * dim
    return features.as_strided((n, context * dim), (apart * dim, 1), begin)


class Parameters:
    """Uploaded once when made; `there`: the tensors on the device, by name."""

    def __init__(self, arithmetic: Arithmetic, on: Placed, pinned: bool) -> None:
        """`pinned`: those here in page-locked memory, if possible. RuntimeError where the device's is short."""
        import torch

        self._work = on.work
        number = getattr(torch, NAMES[on.dtype])
        self._here: dict[str, Tensor] = {}
        self.there: dict[str, Tensor] = {}
        for name, array in arithmetic.arrays.items():
            exact = array.dtype == np.int64
            kept = torch.int64 if exact else torch.float32 if array.ndim == 1 else number
            here = on.work.device.host_tensor(array.shape, kept, pinned=pinned)
            here.copy_(torch.from_numpy(np.ascontiguousarray(arithmetic.fitting(name, on.dtype))))
            self._here[name] = here
            self.there[name] = on.work.device.device_tensor(COPY, array.shape, kept)
        self.upload(0, 0)
        self._work.wait_for(self._work.mark(COPY), COPY)

    def upload(self, first_frame: int, frames: int) -> None:
        """Bring them up, not before what is being computed has done with those there."""
        self._work.then(COMPUTE, COPY)
        for i, (name, here) in enumerate(self._here.items()):
            self._work.upload(self.there[name], here, first_frame, frames, directly=i > 0)
        self._work.then(COPY, COMPUTE)


class Begun(NamedTuple):
    """A block given to the device: which frames are scored, the event behind its last piece and its stream."""

    first_frame: int
    n: int
    chosen: Array
    slot: Slot
    ready: Event
    stream: int
    settings: int


class Repeated:
    """The latest scores, and the blocks that go on from them."""

    def __init__(self, work: DeviceWork, n_senones: int) -> None:
        import torch

        self._work = work
        self.last = np.zeros(n_senones, np.float32)
        self.last_there = work.device.device_tensor(COMPUTE, (1, n_senones), torch.float32)
        work.device.run(COMPUTE, self.last_there.zero_)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """After the context the latest scores are those of before."""
        last, there = self.last.copy(), self.last_there
        kept: list[Tensor] = []
        self._work.device.run(COMPUTE, lambda: kept.append(there.clone()))
        yield
        self._work.device.run(COMPUTE, lambda: there.copy_(kept[0]))
        self.last[:] = last

    def here(self, begun: Begun) -> Array:
        """Scores f32 [n, senones] of a block that has come down."""
        computed: Array = begun.slot.scores.numpy()
        if begun.chosen.all():
            scores = computed[: begun.n]
        else:
            source = np.cumsum(begun.chosen) - 1
            scores = np.where(source[:, None] >= 0, computed[source], self.last)
        if begun.n:
            self.last[:] = scores[-1]
        return scores

    def there(self, begun: Begun, stage: int, first: int, skip: int) -> Tensor:
        """The same on the device, f32 [n, senones]; the block's first frame is number `first` of its utterance."""
        import torch

        buffers, n = begun.slot, begun.n
        scored = int(begun.chosen.sum())
        found = buffers.scores_there[:n]
        if scored < n:
            assert buffers.spread is not None, "slots of a scorer that keeps its scores have one"
            found = buffers.spread[:n]

        def spread() -> None:
            if scored < n:
                at = torch.arange(first, first + n, device=self.last_there.device)
                rows = torch.cat([self.last_there, buffers.scores_there[:scored]])
                torch.index_select(rows, 0, (at % skip == 0).cumsum(0), out=found)
            if n:
                self.last_there.copy_(found[n - 1 :])

        self._work.work(stage, spread, begun.first_frame, n, (n - scored, 0, 0))
        return found
