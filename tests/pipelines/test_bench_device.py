"""`bench device`: which device it asks, its rows on the disk, the combinations, and what it takes for plausible."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import availability
from pipelines import config as settings
from pipelines.availability import Availability
from pipelines.config import Config
from pipelines.device import COMPUTE, DeviceWork, HostDevice
from pipelines.models import sphinx
from pipelines.scoring.device.batch import BLOCK_FRAMES, Batch
from pipelines.scoring.layered import with_context
from profiler.errors import BadInput
from profiler.machine.roofs.table import BANDWIDTH, OVERHEAD, RATE, Roof, RoofTable
from profiler.spans import NullLane, Recorder
from tests.bench import device as bench
from tests.bench.device_steps import __main__ as steps
from tests.bench.device_steps.checks import plausible
from tests.bench.device_steps.found import Found, Task
from tests.bench.device_steps.runs import FACTORS, as_table, every, pairwise
from tests.pipelines import net_files, sphinx_writer
from tests.pipelines.lazy_device import SCHEDULES, LazyDevice
from tests.pipelines.scoring_reference import brute_force, likely_features

LANE = NullLane()


def probed(**available: bool) -> Any:
    return lambda: tuple(Availability(n, a, f"about {n}") for n, a in available.items())


def test_the_device_that_is_required_is_asked_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "probe", probed(**{"torch-cpu": True, "cuda": False}))
    assert bench.device(None) == bench.device("torch-cpu") == "torch-cpu"
    for required in ("cuda", "any", "xpu"):
        with pytest.raises(BadInput, match="there is none") as problem:
            bench.device(required)
        assert "\n" not in str(problem.value)
    monkeypatch.setattr(availability, "probe", probed(**{"torch-cpu": True, "cuda": True}))
    assert {bench.device(each) for each in (None, "any", "cuda")} == {"cuda"}


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


def test_what_breaks_a_step_is_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: Task) -> Found:
        raise RuntimeError("CUDA error: device lost\nmore")

    monkeypatch.setitem(steps.STEPS, "busy", lost)
    steps.main("busy", Task("cuda", tmp_path), tmp_path / "busy.json")
    row = json.loads((tmp_path / "busy.json").read_text())
    assert (row["proved"], row["why"]) == (False, "RuntimeError: CUDA error: device lost")


def test_the_pairwise_combinations_hold_every_two_values_together() -> None:
    chosen, whole = pairwise(every()), list(every())
    assert len(whole) == 72
    assert len(chosen) <= 12
    for one, other in itertools.combinations(FACTORS, 2):
        met = {(choice[one], choice[other]) for choice in chosen}
        assert met == set(itertools.product(FACTORS[one], FACTORS[other]))


def table(**changed: float) -> RoofTable:
    def roof(kind: str, name: str, value: float, size: int = 0, dtype: str = "float32") -> Roof:
        value = changed.get(f"{name} {dtype} {size}", value)
        return Roof(kind, f"{name}@cuda", dtype, 1, size, value, value, value, "")

    return RoofTable(
        (
            roof(RATE, "gemm.torch", 5e13),
            roof(RATE, "gemm.torch", 7e14, dtype="bfloat16"),
            roof(RATE, "fma.torch", 5e13),
            roof(RATE, "exp.torch", 2e12),
            roof(RATE, "log.torch", 2e12),
            *(roof(BANDWIDTH, "read", 5e12, 1 << p) for p in (16, 20, 24)),
            roof(BANDWIDTH, "read", 3e12, 1 << 30),
            roof(OVERHEAD, "launch", 5e3, dtype=""),
        )
    )


@pytest.mark.parametrize(
    ("changed", "doubt"),
    [
        ({}, None),
        ({"gemm.torch bfloat16 0": 1e13}, "slower than those of float32"),
        ({"read float32 65536": 9e13}, "cannot be"),
        ({"read float32 1073741824": 6e12}, "no cache is as fast"),
        ({"exp.torch float32 0": 0.0}, "exp has no roof"),
    ],
)
def test_roofs_that_cannot_be_are_doubted(changed: dict[str, float], doubt: str | None) -> None:
    found = table(**changed)
    found = RoofTable(tuple(roof for roof in found.roofs if roof.median))
    _, doubts = plausible(found, "cuda")
    assert len(doubts) == (doubt is not None)
    assert doubt is None or doubt in doubts[0]


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
