"""Scoring by a net against float64, block by block, all senones and wanted ones."""

from typing import Any

import numpy as np
import pytest

from pipelines.config import Config, ConfigError, assign, check, presets
from pipelines.models import nets
from pipelines.models.errors import ModelError
from pipelines.models.nets import Layer
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.blocks import Meter
from pipelines.scoring.dnn import QuantisedNet
from profiler.arrays import Array
from profiler.spans import NullLane
from tests.each import each
from tests.pipelines.net_files import SHAPES, card, forward, net, padded, utterance, write
from tests.pipelines.whole_runs import model, speech

NAT = 1e-3


@each("layers", SHAPES)
def test_a_net_in_integers_is_the_formula_rounded_twice(layers):
    made, features = net(card(*layers)), utterance()
    quantised = QuantisedNet(made, 1, 32)
    spliced = quantised.splice(padded(features, quantised), Meter()).copy()
    scores = np.empty((len(features), 50), np.float32)
    quantised.score(spliced, scores, Meter())
    expected = rounded(made, spliced[:, :-1])
    # The same roundings but for a few values that lie between two integers.
    assert np.median(np.abs(scores - expected)) < NAT
    assert np.abs(scores - expected).max() < 0.05 * np.abs(expected).max()
    exact = forward(made, features)
    assert np.abs(scores - exact).mean() < 0.03 * np.abs(exact).mean()
    quantised.begin_some(spliced, Meter())
    active, some = np.array([49, 3], np.int64), np.zeros_like(scores)
    quantised.score_some(2, 9, active, some, Meter())
    np.testing.assert_allclose(some[2:9, active], scores[2:9, active], rtol=1e-5, atol=1e-5)
    some[2:9, active] = 0
    assert not some.any()


def rounded(made: Any, x: Array) -> Array:
    """The net with weights and activations rounded to 255 steps, in float64."""

    def steps(values: Array) -> Array:
        scale = np.abs(values).max(1, keepdims=True).astype(np.float32) / np.float32(127)
        whole: Array = np.rint(values / scale) * scale
        return whole

    for weight, bias, relu in [*made.matrices(), (*made.head(0), False)]:
        x = steps(x).astype(np.float64) @ steps(weight).T.astype(np.float64) + bias
        x = np.maximum(x, 0) if relu else x
    return x


def scored(config: Config, features: Array, block: int) -> Array:
    scorer = build_scorer(config, model())
    padded, beyond = with_context(features, scorer.context), sum(scorer.context)
    parts = []
    for at in range(0, len(features), block):
        part = padded[at : min(at + block, len(features)) + beyond]
        parts.append(scorer.score(part, at, NullLane()).copy())
    return np.concatenate(parts)


DNN = presets.load("dnn").config


@each("block", [1, 7, 200])
def test_a_shipped_net_scores_speech_as_the_formula_does(block):
    shipped = nets.load(nets.find(DNN.dnn.net))
    found = scored(DNN, speech(), block)
    assert len(speech()) > 64  # more than is scored at once
    chosen = [0, 1, 40, 70, len(speech()) - 1]
    assert np.abs(found - forward(shipped, speech()))[chosen].max() < 2e-3


def test_heads_switched_on_while_running_begin_at_the_next_frame(tmp_path):
    made = net(card(Layer(16), senones=model().n_senones, heads=2))
    config = assign(DNN, {"dnn.net": str(write(tmp_path, made, np.float32))})
    scorer = build_scorer(config, model())
    features = with_context(speech()[:20], scorer.context)
    beyond = sum(scorer.context)
    scorer.score(features[: 5 + beyond], 0, NullLane())
    scorer.configure(assign(config, {"frames.skip": 2, "frames.rule": "multi-frame"}))
    found = scorer.score(features[5 : 10 + beyond], 5, NullLane())
    # Frame 5 is no multiple of 2, but nothing has been through the hidden layers for the heads yet.
    for t, (start, head) in enumerate([(5, 0), (6, 0), (6, 1), (8, 0), (8, 1)]):
        expected = forward(made, speech()[:20], head)[start]
        assert np.abs(found[t] - expected).max() < 2e-3
    four = assign(config, {"frames.skip": 4, "frames.rule": "multi-frame"})
    assert scorer.needs(four) is not None
    with pytest.raises(ModelError, match=r"answers for 2 frames at once; .* needs 4"):
        scorer.make_ready(four, lambda *_: None, lambda: False)


def test_what_cannot_be_says_why(tmp_path):
    small = str(write(tmp_path, net(card(Layer(8)))))
    with pytest.raises(ModelError, match="scores 50 senones and the acoustic model has 5126"):
        build_scorer(assign(DNN, {"dnn.net": small}), model())
    with pytest.raises(ModelError, match="There is no net 'nobody'"):
        build_scorer(assign(DNN, {"dnn.net": "nobody"}), model())
    with pytest.raises(ModelError, match="The net base answers for 1 frame at once"):
        build_scorer(assign(DNN, {"frames.rule": "multi-frame", "frames.skip": 2}), model())
    with pytest.raises(ConfigError, match=r"frames\.rule=multi-frame acts only with dnn\.senones = all"):
        check(assign(DNN, {"frames.rule": "multi-frame", "dnn.senones": "active"}))
    with pytest.raises(ConfigError, match="acts only with model = ptm, continuous or single"):
        check(assign(DNN, {"frames.rule": "conditional"}))


def test_integers_change_scores_by_less_than_the_search_notices():
    exact, quick = (scored(assign(DNN, {"dnn.dtype": d}), speech(), 16) for d in ("fp32", "int8"))
    exact, quick = (x - x.max(1, keepdims=True) for x in (exact, quick))
    near = exact > -20  # nats below the best: what a beam can keep
    assert np.abs(exact - quick)[near].mean() < 0.15
    assert (exact.argmax(1) == quick.argmax(1)).mean() > 0.9
