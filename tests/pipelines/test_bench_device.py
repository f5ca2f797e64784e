"""`bench device`: which device it asks, its rows on the disk, the combinations, and what its steps measure with."""

from __future__ import annotations

import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, HostDevice
from pipelines.models import sphinx
from pipelines.scoring.device.arithmetic import Placed
from pipelines.scoring.device.batch import BLOCK_FRAMES, Batch
from pipelines.scoring.device.gmm import mixtures_of
from pipelines.scoring.device.parameters import Parameters
from pipelines.scoring.layered import with_context
from profiler.arrays import Array
from profiler.spans import NullLane, Recorder
from tests.bench import device as bench
from tests.bench.device_steps import __main__ as steps
from tests.bench.device_steps.found import Found, Task
from tests.bench.device_steps.runs import FACTORS, as_table, every, pairwise
from tests.bench.device_steps.throughput import between_events
from tests.pipelines import net_files, sphinx_writer
from tests.pipelines.lazy_device import EAGER, LATE, SCHEDULES, LazyDevice
from tests.pipelines.scoring_reference import brute_force, likely_features

LANE = NullLane()


def test_every_step_leaves_its_row_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuple(steps.STEPS) == bench.STEPS
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "device", lambda _: "torch-cpu")
    before: list[int] = []

    def take(command: list[str], **_: Any) -> Any:
        before.append(len(list(tmp_path.glob("*.json"))))
        step, out = command[3], Path(command[6])
        if step == "clock":
            return type("Done", (), {"returncode": -9, "stderr": "killed"})
        monkeypatch.setitem(steps.STEPS, step, lambda _: Found(None, "not here", {"a": 1}))
        steps.main(step, Task("torch-cpu", tmp_path), out)
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr(bench.subprocess, "run", take)
    tree = bench.run([], None, 1, lambda *_: None)
    assert before == list(range(len(bench.STEPS)))
    assert [row["step"] for row in tree["rows"]] == list(bench.STEPS)
    rows = {row["step"]: row for row in tree["rows"]}
    assert rows["clock"]["proved"] is False
    assert rows["clock"]["why"] == "its process ended with -9: killed"
    assert rows["memory"]["figures"] == {"a": 1}
    assert tree["figures"]["cannot be proved here"] == len(bench.STEPS) - 1
    kept = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("*.json"))]
    assert kept == tree["rows"]
    assert "| clock | no | its process" in as_table(kept)


def test_the_pairwise_combinations_hold_every_two_values_together() -> None:
    chosen, whole = pairwise(every()), list(every())
    assert len(whole) == 72
    assert len(chosen) <= 12
    for one, other in itertools.combinations(FACTORS, 2):
        met = {(choice[one], choice[other]) for choice in chosen}
        assert met == set(itertools.product(FACTORS[one], FACTORS[other]))


# -- several utterances scored together ------------------------------------------------------------


@pytest.fixture(scope="module")
def tied(tmp_path_factory: Any) -> Any:
    return sphinx.load(sphinx_writer.write_model(tmp_path_factory.mktemp("tied"), 4, 5))


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


@pytest.mark.parametrize("call", ["wait", "follow"])
def test_buffers_of_utterances_together_that_are_used_again_too_early_show(
    tied: Any, call: str
) -> None:
    """The host waits before it fills its buffer anew; either stream waits before it takes over from the other."""
    eager = LazyDevice(EAGER)
    expected = together(eager, tied)
    for schedule in SCHEDULES:
        np.testing.assert_array_equal(together(LazyDevice(schedule), tied), expected)
    # Of the last two calls; behind them the test itself waits, too.
    each, own = {"wait": (1, 1), "follow": (2, 0)}[call]
    last = eager.calls[call] - own
    for number in range(last - 2 * each + 1, last + 1):
        wrong = False
        for schedule in (EAGER, *SCHEDULES):
            device = LazyDevice(schedule, **{f"{call}s_left_out": frozenset({number})})
            wrong |= not np.array_equal(together(device, tied), expected, equal_nan=True)
        assert wrong, number


def test_events_of_a_stage_are_read_when_they_have_happened(tied: Any) -> None:
    """What lies between them is the stage's own, whatever the schedule; and unread before it is waited for."""
    import torch

    def stages_of(device: LazyDevice) -> dict[str, float]:
        arithmetic = mixtures_of(tied)
        on = Placed(DeviceWork(device, Recorder(), LANE), "fp32")  # type: ignore[arg-type]
        parameters = Parameters(arithmetic, on, False)
        x, out = torch.zeros(4, arithmetic.dim), torch.empty(4, arithmetic.n_senones)
        return between_events(on, partial(arithmetic.score, parameters.there, x, out))

    eager = LazyDevice(EAGER)
    assert set(stages_of(eager)) == set(mixtures_of(tied).stages)
    for schedule in SCHEDULES:
        assert all(ns > 0 for ns in stages_of(LazyDevice(schedule)).values())
    with pytest.raises(AssertionError, match="has not happened"):
        stages_of(LazyDevice(LATE, waits_left_out=frozenset({eager.calls["wait"]})))


def test_nets_score_utterances_together_with_their_context(tied: Any, tmp_path: Path) -> None:
    net = net_files.net(net_files.card(senones=tied.n_senones))
    path = net_files.write(tmp_path, net, np.float32)
    chosen = {"device": "torch-cpu", "model": "dnn", "dnn.net": str(path), "dnn.senones": "all"}
    batch = Batch(
        settings.assign(Config(), chosen), tied, DeviceWork(HostDevice(), Recorder(), LANE), 2
    )
    utterances = [net_files.utterance(n) for n in (23, 11)]
    padded = [with_context(one, batch.context) for one in utterances]
    scores = batch.score(padded, 0)
    batch._work.wait_for(batch._work.mark(COMPUTE), COMPUTE)
    for b, one in enumerate(utterances):
        expected = net_files.forward(net, one)
        error = np.abs(scores[: len(one), b].numpy() - expected).max()
        assert error < 1e-4 * np.abs(expected).max()
