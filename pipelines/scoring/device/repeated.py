"""Scores of all frames of a block: those that were left out repeat the last one scored, here or on the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.device import COMPUTE, DeviceWork
from pipelines.scoring.device.buffers import Slot
from profiler.arrays import Array
from profiler.device.clock import Event

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Begun:
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
