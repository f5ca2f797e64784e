"""A few labelled frames on disk, for labs of training that run as processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipelines.training.corpus import data, labels
from pipelines.training.corpus.data import Frames

FRAMES = 300


def labelled_shard(folder: Path) -> Path:
    """Write one shard of random frames with senones into `folder`; returns the folder."""
    draw = np.random.default_rng(1)
    values = draw.normal(0, 1, (FRAMES, 39)).astype(np.float16)
    shard = folder / "shard-0000.safetensors"
    data.write(Frames(values, values, np.array([FRAMES], np.int32)), shard)
    labels.write(draw.integers(0, 100, FRAMES).astype(np.uint16), shard)
    return folder
