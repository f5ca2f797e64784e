"""A block scored again: the same scores and spans, and only where scoring is a function of the block alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pipelines.config import Config, assign
from pipelines.scoring import build_scorer, with_context
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each
from tests.pipelines.net_files import card, net, write

LANE = NullLane()

SOME = {"gmm.selection.codewords": 16, "frames.codewords": 16, "gmm.selection.expand": 5}
LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "max": {"gmm.component": "max"},
    "every second frame": {"frames.skip": 2},
    "conditional": {"frames.skip": 3, "frames.rule": "conditional"},
    "multi-frame": {"frames.skip": 2, "frames.rule": "multi-frame"},
    "top-n": {"gmm.selection.method": "top-n"},
    "vq-table": {"gmm.selection.method": "vq-table"},
    "clusters": {"gmm.selection.method": "clusters"},
    "ci": {"gmm.senones": "ci"},
}


def features(frames: int, dim: int) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 1.5, (frames, dim)).astype(np.float32)


def scored(scorer: Any, again: bool, block: int = 7) -> Iterator[np.ndarray]:
    given = features(40, scorer._dim)
    padded = with_context(given, scorer.context)
    beyond = sum(scorer.context)
    scorer.reset()
    for at in range(0, len(given), block):
        n = min(block, len(given) - at)
        scores = scorer.score(padded[at : at + n + beyond], at, LANE)
        kept = scores.copy()
        if again:
            assert scorer.replayable
            for _ in range(2):
                scorer.again(at, LANE)
            assert scores.tobytes() == kept.tobytes()
        yield kept


@each("chosen", LAYERS.values())
def test_scoring_again_leaves_no_trace(models, chosen):
    config = assign(Config(), {**SOME, "gmm.selection.enabled": False, **chosen})
    plain, replayed = (build_scorer(config, models["tied"]) for _ in range(2))
    for one, other in zip(scored(plain, False), scored(replayed, True), strict=True):
        assert one.tobytes() == other.tobytes()


def test_scoring_again_records_the_stages_that_scoring_records(models):
    scorer = build_scorer(assign(Config(), {"frames.skip": 2}), models["tied"])
    recorder = Recorder()
    scorer.stages(recorder)
    lanes = [recorder.lane(name) for name in ("once", "again")]
    scorer.score(features(8, scorer._dim), 0, lanes[0])
    scorer.again(0, lanes[1])
    once, again = (np.frombuffer(lane.take(), SPAN) for lane in lanes)
    assert recorder.stage_id("score.copy") in once["stage"]
    for name in ("stage", "frames", "first_frame", "work0", "work1", "work2"):
        assert once[name].tolist() == again[name].tolist(), name


def test_what_goes_by_the_block_before_is_not_replayed(models):
    scorer = build_scorer(Config(), models["tied"])
    assert not scorer.replayable, "nothing was scored yet"
    list(scored(scorer, False))
    assert scorer.replayable
    scorer.configure(assign(Config(), {"gmm.selection.method": "last-top-n"}))
    list(scored(scorer, False))
    assert not scorer.replayable


FRAME_BY_FRAME: dict[str, dict[str, Any]] = {
    "active": {},
    "active-ci": {"gmm.senones": "active-ci"},
    "capped": {"gmm.senones": "active-ci", "gmm.ci_cap": 9},
    "every second frame": {"frames.skip": 2},
    "clusters": {"gmm.selection.method": "clusters"},
}


def turns(scorer: Any, lanes: Any, *, again: bool, block: int = 7) -> Iterator[np.ndarray]:
    """The scores of each block that takes turns with a search which asks for some senones of each frame.

    `lanes`: of the block, and of the block done again.
    """
    rng = np.random.default_rng(8)
    given, beyond = features(40, scorer._dim), sum(scorer.context)
    padded = with_context(given, scorer.context)
    scorer.reset()
    for at in range(0, len(given), block):
        n = min(block, len(given) - at)
        if again:
            scorer.note()
        state = scorer.prepare(padded[at : at + n + beyond], at, lanes[0])
        asked = [np.flatnonzero(rng.random(scorer.n_senones) < 0.4) for _ in range(n)]
        scores = [scorer.frame(state, t, some)[some].copy() for t, some in enumerate(asked)]
        if again:
            whole = scorer._scores.copy()
            # Another number than any score: what is written once more is seen, too.
            scorer._scores[:] = 7.0
            assert scorer.replayable
            assert scorer.again(at, lanes[1])
            assert scorer.again(at, NullLane())
            assert (scorer._scores == 7.0).all()
            scorer._scores[:] = whole
        yield np.concatenate(scores)


@each("chosen", FRAME_BY_FRAME.values())
def test_frames_scored_again_one_by_one_leave_no_trace_and_record_the_same(models, chosen):
    config = assign(Config(), {**SOME, "gmm.selection.enabled": False, "gmm.senones": "active", **chosen})
    plain, replayed = (build_scorer(config, models["tied"]) for _ in range(2))
    recorder = Recorder()
    lanes = [recorder.lane(name) for name in ("once", "again")]
    replayed.stages(recorder)
    for one, other in zip(turns(plain, (LANE, LANE), again=False), turns(replayed, lanes, again=True), strict=True):
        assert one.tobytes() == other.tobytes()
    once, again = (np.frombuffer(lane.take(), SPAN) for lane in lanes)
    once = once[once["stage"] != recorder.stage_id("score.copy")]
    assert len(once)
    for name in ("stage", "frames", "first_frame", "work0", "work1", "work2"):
        assert once[name].tolist() == again[name].tolist(), name


def test_what_was_not_noted_is_not_scored_again(models):
    scorer = build_scorer(assign(Config(), {"gmm.senones": "active"}), models["tied"])
    list(turns(scorer, (LANE, LANE), again=False))
    assert not scorer.again(0, LANE)
    list(turns(scorer, (LANE, LANE), again=True))
    # Noted is one block.
    list(turns(scorer, (LANE, LANE), again=False))
    assert not scorer.again(0, LANE)


@pytest.mark.slow
def test_nets_are_replayed_but_for_heads(models, tmp_path):
    made = net(card(senones=models["real"].n_senones, heads=3), 0)
    base = {"model": "dnn", "dnn.net": str(write(tmp_path, made, np.float32))}
    plain = assign(Config(), base)
    one, other = (build_scorer(plain, models["real"]) for _ in range(2))
    for wanted, got in zip(scored(one, False), scored(other, True), strict=True):
        assert wanted.tobytes() == got.tobytes()
    for rule in ("active", "active-ahead"):
        lazy = assign(plain, {"dnn.senones": rule})
        one, other = (build_scorer(lazy, models["real"]) for _ in range(2))
        blocks = (turns(scorer, (LANE, LANE), again=scorer is other) for scorer in (one, other))
        for wanted, got in zip(*blocks, strict=True):
            assert wanted.tobytes() == got.tobytes()
    heads = assign(plain, {"frames.skip": 3, "frames.rule": "multi-frame"})
    scorer = build_scorer(heads, models["real"])
    list(scored(scorer, False))
    assert not scorer.replayable
