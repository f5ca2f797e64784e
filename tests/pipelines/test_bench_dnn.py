"""`asrscope bench dnn`: both sides do the same work, and its figures are judged by their limits."""

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
    peer = dnn.variant(dnn.PEER, dnn.peer_of(made), speech)
    ours = dnn.variant(dnn.PLAIN, DenseNet(made, 1, MAX_FRAMES), speech)
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
    # Not all counts: partial results come by the clock.
    for count in (("search.emit", "tokens"), ("score.output", "senones")):
        assert small.work[count] == whole.work[count] > 0, count
    assert set(small.rounds[0]) == set(whole.rounds[0])
    assert small.rounds[0]["search.emit"] > 0


def test_every_limit_has_its_figure_and_whether_it_holds() -> None:
    found: dict[str, float | None] = dict.fromkeys(dnn.WANTED, 1.2)
    found["points of WER lost by int8"] = None
    table = dnn.holds(found)
    assert list(table) == list(dnn.WANTED)
    assert [row["holds"] for row in table.values()] == [True, True, False, None, True]


def test_a_loss_on_few_words_says_nothing() -> None:
    assert dnn.points_lost({"words": dnn.WORDS, "points lost": 0.2}) == 0.2
    assert dnn.points_lost({"words": dnn.WORDS - 1, "points lost": 0.2}) is None


def test_efficiency_is_what_was_saved_of_what_could_be() -> None:
    arms = {name: runs.Arm(name, None) for name in (runs.NET, runs.SINGLE, *runs.LAZY)}
    whole, single = arms[runs.NET], arms[runs.SINGLE]
    asked, ahead, alone = (arms[name] for name in runs.LAZY)
    whole.work["score.output", "senones"] = 100 * 50
    asked.work["score.active outputs", "senones"] = 25 * 50
    ahead.work["score.active outputs", "senones"] = 40 * 50
    alone.work["score.active outputs", "senones"] = 25 * 50
    for ns in (800, 1600):
        whole.rounds.append({"score.output": ns})
        asked.rounds.append({"score.active outputs": ns // 2})
        ahead.rounds.append({"score.active outputs": ns // 4})
        single.rounds.append({"score.output": 4 * ns})
        alone.rounds.append({"score.active outputs": ns})
    lazy, batched, frame_by_frame = runs.lazy_rows(arms)
    assert (lazy["share computed"], lazy["efficiency"]) == pytest.approx((0.25, 0.5))
    assert (batched["share computed"], batched["efficiency"]) == pytest.approx((0.4, 1.0))
    assert (frame_by_frame["share computed"], frame_by_frame["efficiency"]) == (0.25, 1.0)


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
