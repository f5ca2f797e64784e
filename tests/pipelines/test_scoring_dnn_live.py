"""Neural nets while decoding: settings that change between blocks, and which frame each score comes from."""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import numpy as np
import pytest

from pipelines.config import Config, ConfigError, assign, check, presets
from pipelines.models import nets, shrink
from pipelines.models.errors import ModelError
from pipelines.models.nets import Layer, Net
from pipelines.run.control import Control
from pipelines.run.session_run import Request, execute
from pipelines.scoring import build_scorer, with_context
from profiler.arrays import Array
from profiler.errors import Cancelled
from profiler.session.reader import Session
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each
from tests.pipelines.net_files import card, forward, net, write
from tests.pipelines.whole_runs import model, speech

LANE = NullLane()
NAT = 2e-3
LENGTHS = (1, 7, 23, 33)


def small(seed: int = 0, heads: int = 4, left: int = 2, width: int = 21) -> Net:
    layers = Layer(width), Layer(6, relu=False)
    return net(card(*layers, senones=model().n_senones, heads=heads, left=left), seed)


@pytest.fixture(scope="module")
def made() -> Net:
    return small()


@pytest.fixture(scope="module")
def base(made: Net, tmp_path_factory: pytest.TempPathFactory) -> Config:
    path = write(tmp_path_factory.mktemp("nets"), made, np.float32)
    return assign(Config(), {"model": "dnn", "dnn.net": str(path)})


def features(frames: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).normal(0, 3, (frames, 39)).astype(np.float32)


def blocks(scorer: Any, features: Array, block: int) -> Iterator[tuple[int, Array]]:
    """First frame and the block with the context that the scorer wants by then."""
    for at in range(0, len(features), block):
        padded = with_context(features, scorer.context)
        yield at, padded[at : min(at + block, len(features)) + sum(scorer.context)]


def in_blocks(scorer: Any, features: Array, block: int) -> Array:
    return np.concatenate([scorer.score(part, at, LANE).copy() for at, part in blocks(scorer, features, block)])


@pytest.mark.parametrize("skip", [2, 3, 4])
@pytest.mark.parametrize("block", [1, 5, 16])
@pytest.mark.parametrize("rule", ["copy", "multi-frame"])
def test_skipped_frames_to_the_end_of_every_utterance(base, made, rule, block, skip):
    chosen = {"frames.skip": skip, "frames.rule": rule, "block": block}
    scorer = build_scorer(check(assign(base, chosen)), model())
    for number, length in enumerate(LENGTHS):
        given = features(length, number)
        scorer.reset()
        found = in_blocks(scorer, given, block)
        heads = [forward(made, given, head) for head in range(skip if rule == "multi-frame" else 1)]
        for t, row in enumerate(found):
            behind = t % skip
            expected = heads[behind if rule == "multi-frame" else 0][t - behind]
            assert np.abs(row - expected).max() < NAT


CHANGES: list[dict[str, Any]] = [
    {"dnn.product": "blas"},
    {"dnn.product": "scalar"},
    {"dnn.dtype": "int8"},
    {"dnn.shrink": "low-rank", "dnn.share": 0.5},
    {"dnn.dtype": "fp32"},
    {"dnn.product": "csr", "dnn.shrink": "sparse"},
    {"dnn.product": "blocks", "dnn.shrink": "blocks"},
    {"block": 7},
    {"dnn.dtype": "fp32", "dnn.shrink": "none", "dnn.product": "simd"},
]


def changed(scorer: Any, config: Config) -> None:
    """What the decode loop and its preparing thread do, one after the other."""
    ready = scorer.make_ready(config, lambda *_: None, lambda: False)
    scorer.configure(config, ready)
    assert scorer.needs(config) is None


def test_every_setting_acts_from_the_next_block_on(base):
    given, config = features(60), base
    scorer = build_scorer(config, model())
    for at, change in zip(count(0, 6), CHANGES, strict=False):
        config = check(assign(config, change))
        assert (scorer.needs(config) is None) == (set(change) == {"block"})
        changed(scorer, config)
        alone = build_scorer(config, model())
        part = with_context(given, scorer.context)[at : at + 6 + sum(scorer.context)]
        found = scorer.score(part, at, LANE)
        np.testing.assert_array_equal(found, alone.score(part, 0, LANE))


def test_smaller_nets_are_those_that_the_settings_say(base, made):
    given = features(9)
    for way, make in (("low-rank", shrink.low_rank), ("sparse", shrink.sparse)):
        config = assign(base, {"dnn.shrink": way, "dnn.share": 0.4})
        scorer = build_scorer(config, model())
        expected = forward(make(made, 0.4), given)
        assert np.abs(in_blocks(scorer, given, 9) - expected).max() < NAT
        assert np.abs(expected - forward(made, given)).max() > 100 * NAT


@pytest.mark.parametrize("rule", ["copy", "multi-frame"])
def test_a_change_begins_with_a_frame_of_its_own(base, rule):
    """In the middle of skipped frames: no score of another arithmetic is carried over."""
    given = features(12)
    config = assign(base, {"frames.skip": 4, "frames.rule": rule})
    scorer = build_scorer(config, model())
    padded, beyond = with_context(given, scorer.context), sum(scorer.context)
    scorer.score(padded[: 6 + beyond], 0, LANE)
    quick = assign(config, {"dnn.dtype": "int8"})
    changed(scorer, quick)
    found = scorer.score(padded[6 : 12 + beyond], 6, LANE).copy()
    every = build_scorer(assign(quick, {"frames.skip": 1}), model())
    fresh = every.score(padded[6 : 12 + beyond], 0, LANE)
    np.testing.assert_allclose(found[0], fresh[0], atol=NAT)
    if rule == "copy":
        np.testing.assert_allclose(found[1], fresh[0], atol=NAT)
        np.testing.assert_allclose(found[2], fresh[2], atol=NAT)  # frame 8


def test_another_net_may_look_at_other_frames(base, tmp_path):
    given = features(20)
    other = small(seed=9, heads=1, left=5, width=13)
    config = assign(base, {"dnn.net": str(write(tmp_path, other, np.float32))})
    scorer = build_scorer(base, model())
    scorer.score(with_context(given, scorer.context)[: 10 + sum(scorer.context)], 0, LANE)
    changed(scorer, config)
    assert scorer.context == (5, 3)
    part = with_context(given, scorer.context)[10 : 20 + sum(scorer.context)]
    assert np.abs(scorer.score(part, 10, LANE) - forward(other, given)[10:]).max() < NAT


def test_preparing_can_be_cancelled_and_refused(base, tmp_path):
    scorer = build_scorer(base, model())
    with pytest.raises(Cancelled):
        scorer.make_ready(assign(base, {"dnn.dtype": "int8"}), lambda *_: None, lambda: True)
    one = {"dnn.net": str(write(tmp_path, small(seed=3, heads=1), np.float32))}
    heads = assign(base, {"frames.skip": 3, "frames.rule": "multi-frame"})
    changed(scorer, heads)
    before = scorer.costs()
    with pytest.raises(ModelError, match=r"answers for 1 frame at once; .* needs 3"):
        scorer.make_ready(assign(heads, one), lambda *_: None, lambda: False)
    missing = assign(base, {"dnn.net": "nobody"})
    with pytest.raises(ModelError, match="There is no net 'nobody'"):
        scorer.make_ready(missing, lambda *_: None, lambda: False)
    assert scorer.costs() == before


def test_stages_of_a_deeper_net_are_known_when_it_takes_over(base):
    scorer = build_scorer(base, model())
    recorder = Recorder()
    scorer.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    deeper = assign(base, {"dnn.shrink": "low-rank", "dnn.share": 0.5})
    changed(scorer, deeper)
    for at, part in blocks(scorer, features(16), 16):
        scorer.score(part, at, lane)
    used = set(np.frombuffer(lane.take(), SPAN)["stage"].tolist())
    names = {stage.name for stage in recorder.stages if stage.id in used}
    assert "score.layer 3" in names
    assert names <= set(scorer.costs())


DNN = presets.load("dnn").config


@each("block", [1, 7, 200])
def test_a_shipped_net_scores_speech_as_the_formula_does(block):
    shipped = nets.load(nets.find(DNN.dnn.net))
    found = in_blocks(build_scorer(DNN, model()), speech(), block)
    assert len(speech()) > 64  # more than is scored at once
    chosen = [0, 1, 40, 70, len(speech()) - 1]
    assert np.abs(found - forward(shipped, speech()))[chosen].max() < 2e-3


def test_integers_change_scores_by_less_than_the_search_notices():
    exact, quick = (
        in_blocks(build_scorer(assign(DNN, {"dnn.dtype": d}), model()), speech(), 16) for d in ("fp32", "int8")
    )
    exact, quick = (x - x.max(1, keepdims=True) for x in (exact, quick))
    near = exact > -20  # nats below the best: what a beam can keep
    assert np.abs(exact - quick)[near].mean() < 0.15
    assert (exact.argmax(1) == quick.argmax(1)).mean() > 0.9


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


@pytest.mark.slow
def test_a_run_changes_its_net(base, bundled_speech, tmp_path):
    quick = assign(presets.load("gmm-quick").config, {"model": "dnn"})
    other = {"dnn.net": str(write(tmp_path, small(left=7), np.float32))}
    control = Control()
    control.ask("dnn.net", other["dnn.net"])
    files = tuple(str(bundled_speech / name) for name in ("01-slt-morning.flac", "08-kal16-short.flac"))
    path = tmp_path / "nets.asrs"
    transcripts = str(bundled_speech / "transcripts.tsv")
    outcome = execute(Request(quick, "test", files, transcripts, path), control, lambda *_: None)
    assert outcome.state == "closed"
    with closing(Session.open(path)) as session:
        markers = [m for m in session.markers if m.kind == "option"]
        assert [marker.applied_frame is not None for marker in markers] == [True]
        laws = {(stage, epoch) for stage, epoch in session.costs}
        groups = {number: stage.group for number, stage in session.stages.items()}
        recorded = set(zip(session.spans["stage"].tolist(), session.spans["epoch"].tolist(), strict=True))
        assert {(s, e) for s, e in recorded if groups[s] == "scoring"} <= laws
        assert session.utterances[0].errors is None
        # What a view shows of the nets stands in the session: it need not look for their files.
        named = session.meta["nets"]
        assert named[other["dnn.net"]] == {"context": [7, 3]}
        assert set(named) == {c.tree["dnn"]["net"] for c in session.configs}
