"""What of `asrscope bench dnn` a test can hold: that both sides do the same work, and what is said of the figures."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines import config as settings
from pipelines.config import Config
from pipelines.models.nets import Layer
from pipelines.run.playlist import Item
from pipelines.run.recogniser import build
from pipelines.scoring import MAX_FRAMES
from pipelines.scoring.dnn import DenseNet
from profiler.spans import NullLane, Recorder
from tests.bench import _dnn_runs as runs
from tests.bench import _rounds, dnn
from tests.pipelines.net_files import card, forward, net
from tests.pipelines.onnx_files import needs_onnx, needs_onnxruntime


@needs_onnx
@needs_onnxruntime
def test_both_sides_are_given_the_same_net_and_the_same_frames() -> None:
    made = net(card(Layer(24), Layer(16, relu=False)))
    rng = np.random.default_rng(2)
    # The second is longer than is spliced at once.
    speech = [rng.normal(0, 3, (n, 39)).astype(np.float32) for n in (7, MAX_FRAMES + 9)]
    peer = dnn.way(dnn.PEER, dnn.peer_of(made), speech)
    ours = dnn.way(dnn.PLAIN, DenseNet(made, 1, MAX_FRAMES), speech)
    for number, features in enumerate(speech):
        expected = forward(made, features)
        for side in (peer, ours):
            assert np.abs(side.scores(number) - expected).max() < 1e-3
            assert side.side(5).take(number) > 0


def test_files_of_any_length_are_decoded(
    small_net: Config, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring holds a minute at block 1; here it holds some frames."""

    class Small(runs.Sums):
        def __init__(self, *about: Any) -> None:
            super().__init__(*about, capacity=64)

    config = settings.replace(small_net, "block", 1)
    recogniser = build(config, Recorder(), NullLane(), lambda *_: None, lambda: False)
    arms = [runs.Arm(name, recogniser) for name in ("whole", "small")]
    for arm, lane in zip(arms, (runs.Sums, Small), strict=True):
        monkeypatch.setattr(runs, "Sums", lane)
        arm.begin()
        arm.take(Item("short", short, None))
    whole, small = arms
    assert small.work == whole.work
    assert small.work["search.emit", "tokens"] > 0
    assert set(small.rounds[0]) == set(whole.rounds[0])
    assert small.rounds[0]["search.emit"] > 0


def test_files_whose_content_counts_are_there() -> None:
    """What `sources` is given by name moves with the code: a bench finds out only when it has decoded for minutes."""
    named = 0
    for file in sorted(Path(_rounds.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "sources"
            ):
                names = [part.value for part in node.args if isinstance(part, ast.Constant)]
                assert _rounds.sources(*map(str, names))
                named += len(names)
    assert named
