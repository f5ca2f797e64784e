"""Several utterances scored together on a device: as if each were alone, whatever the schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, HostDevice
from pipelines.scoring.device.batch import BLOCK_FRAMES, Batch
from pipelines.scoring.layered import with_context
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder
from tests.pipelines import net_files
from tests.pipelines.lazy_device import EAGER, SCHEDULES, LazyDevice
from tests.pipelines.scoring_reference import brute_force, likely_features

LANE = NullLane()


def test_utterances_scored_together_score_as_if_alone(tied: Any) -> None:
    features = likely_features(tied, BLOCK_FRAMES + 9)
    expected = brute_force(tied, features)
    config = settings.assign(Config(), {"device": "torch-cpu"})
    devices = [HostDevice(), *(LazyDevice(schedule) for schedule in SCHEDULES)]
    for device in devices:
        work = DeviceWork(device, Recorder(), LANE)  # type: ignore[arg-type]
        batch = Batch(config, tied, work, 3)
        for at, n in ((0, BLOCK_FRAMES), (BLOCK_FRAMES, 9)):
            parts = [features[at : at + n], features[at : at + n // 2], features[:0]]
            scores = batch.score(parts, at)
            assert tuple(scores.shape) == (n, 3, tied.n_senones)
            work.wait_for(work.mark(COMPUTE), COMPUTE)
            found = scores.numpy()
            assert np.abs(found[:, 0] - expected[at : at + n]).max() < 1e-3
            assert np.abs(found[: n // 2, 1] - expected[at : at + n // 2]).max() < 1e-3
    assert {"score.gather", *batch._arithmetic.stages} <= set(batch.costs())
    with pytest.raises(ValueError, match="expected 3 blocks of at most 64 frames"):
        batch.score([features], 0)


def together(device: LazyDevice, tied: Any) -> list[Array]:
    """Scores of three calls, each read by the compute stream when it comes to it, and by nobody before."""
    features = likely_features(tied, 3 * 8)
    config = settings.assign(Config(), {"device": "torch-cpu"})
    batch = Batch(config, tied, DeviceWork(device, Recorder(), LANE), 2)  # type: ignore[arg-type]
    found: list[Array] = []
    for at in range(0, 24, 8):
        scores = batch.score([features[at : at + 8], features[at : at + 5]], at)
        device.run(COMPUTE, lambda there=scores: found.append(there.numpy().copy()))
    device.wait(device.mark(COMPUTE))
    return found


def test_utterances_together_score_the_same_under_every_schedule(tied: Any) -> None:
    """The host waits before it fills its buffer anew; either stream waits before it takes over from the other."""
    expected = together(LazyDevice(EAGER), tied)
    for schedule in SCHEDULES:
        np.testing.assert_array_equal(together(LazyDevice(schedule), tied), expected)


def test_nets_score_utterances_together_with_their_context(tied: Any, tmp_path: Path) -> None:
    net = net_files.net(net_files.card(senones=tied.n_senones))
    path = net_files.write(tmp_path, net, np.float32)
    chosen = {"device": "torch-cpu", "model": "dnn", "dnn.net": str(path), "dnn.senones": "all"}
    batch = Batch(settings.assign(Config(), chosen), tied, DeviceWork(HostDevice(), Recorder(), LANE), 2)
    utterances = [net_files.utterance(n) for n in (23, 11)]
    padded = [with_context(one, batch.context) for one in utterances]
    scores = batch.score(padded, 0)
    batch._work.wait_for(batch._work.mark(COMPUTE), COMPUTE)
    for b, one in enumerate(utterances):
        expected = net_files.forward(net, one)
        error = np.abs(scores[: len(one), b].numpy() - expected).max()
        assert error < 1e-4 * np.abs(expected).max()
