"""Scoring several utterances at once on a device, for the device search to decode together: throughput.

The blocks of all go up together and are scored as one, since one utterance's block does not fill a device; the scores
stay there, as the device search takes them (`search.device.search`).
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from pipelines.config import Config
from pipelines.device import COMPUTE, COPY, DeviceWork
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.device import dnn, gmm
from pipelines.scoring.device.arithmetic import Arithmetic, Placed, of_piece
from pipelines.scoring.device.buffers import Parameters
from profiler.arrays import Array
from profiler.spans import Recorder

GATHER = "score.gather"  # the frames of all utterances, each with its context, are put one behind the other
BLOCK = 64  # frames of each utterance in a call: as many as the device search takes at once


class Batch:
    """`size` utterances that are scored together. Raises ModelError; RuntimeError where memory is short."""

    def __init__(self, config: Config, model: AcousticModel, work: DeviceWork, size: int) -> None:
        self.size, self._work = size, work
        self._on = Placed(work, config.placement.dtype, config.threads)
        self._arithmetic: Arithmetic = gmm.mixtures_of(model)
        if config.model == "dnn":
            features = model.means.shape[1] * model.means.shape[3]
            self._arithmetic = dnn.layers_of(config, model.n_senones, features)
        self.context = self._arithmetic.context
        self._parameters = Parameters(self._arithmetic, self._on, config.placement.pinned)
        rows = BLOCK + sum(self.context)
        device, shape = work.device, (size, rows, self._arithmetic.dim)
        self._here = device.host_tensor(shape, torch.float32, pinned=config.placement.pinned)
        self._there = device.device_tensor(COPY, shape, torch.float32)
        frames, wide = size * BLOCK, (1 + sum(self.context)) * self._arithmetic.dim
        self._scores, self._x = (
            device.device_tensor(COMPUTE, (frames, each), torch.float32) for each in (self._arithmetic.n_senones, wide)
        )
        stages = {GATHER: ("rows",), **self._arithmetic.stages}
        recorder = Recorder()
        self._ids = {name: recorder.stage(name, "scoring", counts) for name, counts in stages.items()}

    def score(self, features: Sequence[Array], first_frame: int) -> torch.Tensor:
        """Scores f32 [frames, size, senones] on the device, filled by the time its compute stream gets there, and valid
        until the next call. `features`: of each utterance f32 [all frames and context, dim]; a block is scored."""
        blocks = np.stack([one[first_frame : first_frame + BLOCK + sum(self.context)] for one in features])
        work, n = self._work, blocks.shape[1] - sum(self.context)
        # What was uploaded from here before has long been read: the host waits for it.
        work.wait_for(work.mark(COPY), COPY)
        self._here.numpy()[:, : blocks.shape[1]] = blocks
        work.then(COMPUTE, COPY)
        work.upload(self._there, self._here, first_frame, n)
        work.then(COPY, COMPUTE)
        scores, x = self._scores[: self.size * n], self._x[: self.size * n]
        give = of_piece(work, self._ids, first_frame)
        give(GATHER, partial(self._gather, x, n), n, (self.size * n, 0, 0))
        self._arithmetic.score(self._parameters.there, x, scores, self._on, give)
        return scores.view(self.size, n, -1).transpose(0, 1)

    def _gather(self, x: torch.Tensor, n: int) -> None:
        rows, dim, wide = self._there.shape[1], self._arithmetic.dim, x.shape[1]
        x.view(self.size, n, wide).copy_(self._there.as_strided((self.size, n, wide), (rows * dim, dim, 1)))
