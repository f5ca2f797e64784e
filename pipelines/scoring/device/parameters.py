"""The parameters of an arithmetic on a device: host copy, device copy, and the upload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.device import COMPUTE, COPY
from pipelines.scoring.device.arithmetic import NAMES, Arithmetic, Placed

if TYPE_CHECKING:
    from torch import Tensor


class Parameters:
    """Uploaded once when made; `there`: the tensors on the device, by name.

    `pinned`: those here lie in page-locked memory, where that is possible.
    """

    def __init__(self, arithmetic: Arithmetic, on: Placed, pinned: bool) -> None:
        """Upload the parameters; raises RuntimeError if the device has too little memory."""
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
