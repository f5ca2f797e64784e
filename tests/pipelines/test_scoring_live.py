"""Frame skipping, live switching, spans and cost laws of the GMM scorer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scoring_reference import likely_features

from pipelines import config as settings
from pipelines.config import Config, assign
from pipelines.scoring import build_scorer, with_context
from pipelines.scoring.strategy import never, quietly
from pipelines.scoring.tied import kernels, top_n_kernels
from profiler.spans import SPAN, NullLane, Recorder
from tests.each import each
from tests.pipelines.net_files import card, net, write

LANE = NullLane()
EXACT = Config()
TOP_4 = assign(EXACT, {"gmm.selection.top_n": 4})


@pytest.fixture(scope="module")
def features(model):
    return likely_features(model, 90, seed=1)


@pytest.fixture(scope="module")
def exact_scores(model, features):
    return build_scorer(EXACT, model).score(features, 0, LANE).copy()


def recorded(lane):
    return np.frombuffer(lane.take(), SPAN)


def test_selection_switches_at_a_block(model, features, exact_scores):
    top = build_scorer(TOP_4, model).score(features, 0, LANE)
    scorer = build_scorer(EXACT, model)
    scorer.make_ready(TOP_4, quietly, never)
    compiled = _compiled()
    # More than once where other tests of this process called them with other arguments.
    assert min(compiled["mix"], compiled["mix_kept"]) >= 1
    for at in range(0, len(features), 10):
        on = at // 10 % 2 == 1
        scorer.configure(settings.replace(EXACT, "gmm.selection.enabled", on))
        expected = (top if on else exact_scores)[at : at + 10]
        np.testing.assert_array_equal(scorer.score(features[at : at + 10], at, LANE), expected)
    # N changes too, and nothing had to be compiled on the way.
    scorer.configure(assign(EXACT, {"gmm.selection.top_n": 9}))
    scorer.score(features[:5], 0, LANE)
    assert compiled == _compiled()


def _compiled():
    """How often each kernel of the tied model is compiled."""
    found = {**vars(kernels), **vars(top_n_kernels)}
    return {name: len(f.signatures) for name, f in found.items() if hasattr(f, "signatures")}


def test_method_none_is_exact_even_when_enabled(model, features, exact_scores):
    chosen = settings.replace(EXACT, "gmm.selection.method", "none")
    chosen = settings.replace(chosen, "gmm.selection.enabled", True)
    np.testing.assert_array_equal(build_scorer(chosen, model).score(features, 0, LANE), exact_scores)


def totals(recorder, lane):
    """Work counts by name, summed over the spans of each stage that has them."""
    spans, sums = recorded(lane), {}
    for stage in recorder.stages:
        mine = spans[spans["stage"] == stage.id]
        for i, work in enumerate(stage.work):
            sums[work] = sums.get(work, 0) + int(mine[f"work{i}"].sum())
    return sums


def test_work_counts_say_what_was_done(model, features):
    scorer = build_scorer(EXACT, model)
    recorder = Recorder()
    scorer.stages(recorder)
    lane = recorder.lane("decode", decode=True)

    def counts(**changes):
        scorer.configure(assign(EXACT, {k.replace("__", "."): v for k, v in changes.items()}))
        scorer.reset()
        scorer.score(features[:16], 0, lane)
        return totals(recorder, lane)

    exact = counts()
    assert exact["gaussians"] == 16 * 42 * 3 * 128
    assert exact["exponentials"] == exact["gaussians"]
    assert exact["components"] == 16 * 5126 * 3 * 128
    assert exact["senones"] == 16 * 5126
    assert exact["copied"] == exact["selected"] == 0
    top = counts(gmm__selection__top_n=4)
    assert top["gaussians"] == exact["gaussians"]
    assert top["exponentials"] == top["selected"] == 16 * 42 * 3 * 4
    assert top["components"] == 16 * 5126 * 3 * 4
    half = counts(frames__skip=2)
    assert half["copied"] == 8
    for name in ("gaussians", "components", "senones", "exponentials"):
        assert half[name] == exact[name] // 2


def test_work_counts_of_a_continuous_model(models):
    scorer, recorder = build_scorer(EXACT, models["untied"]), Recorder()
    scorer.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    scorer.score(likely_features(models["untied"], 7), 0, lane)
    counts, own = totals(recorder, lane), models["untied"]
    gaussians = 7 * own.n_senones * own.n_streams * own.n_densities
    assert counts["gaussians"] == counts["exponentials"] == gaussians
    assert counts["senones"] == 7 * own.n_senones


def law(cost, operation, work, frames=16):
    return cost.operations[operation].total(1, frames, (work, 0, 0))


def test_gemm_counts_equal_those_of_torch(model):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    n = 16
    senones = np.bincount(model.senone_codebook)
    gaussians, mixtures = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with gaussians:
        for _ in range(3):
            torch.zeros(n, 27) @ torch.zeros(27, 42 * 128)
    with mixtures:
        for count in senones.tolist():
            for _ in range(3):
                torch.zeros(n, 128) @ torch.zeros(128, count)
    costs = build_scorer(EXACT, model).costs()
    ours = law(costs["score.gaussians"], "gemm", n * 42 * 3 * 128)
    assert ours == pytest.approx(gaussians.get_total_flops(), rel=1e-12)
    ours = law(costs["score.mixture"], "gemm", n * 5126 * 3 * 128)
    assert ours == pytest.approx(mixtures.get_total_flops(), rel=1e-12)


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


def features_again(frames: int, dim: int) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 1.5, (frames, dim)).astype(np.float32)


def scored(scorer: Any, again: bool, block: int = 7) -> Iterator[np.ndarray]:
    given = features_again(40, scorer._dim)
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
    scorer.score(features_again(8, scorer._dim), 0, lanes[0])
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
    given, beyond = features_again(40, scorer._dim), sum(scorer.context)
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
    plain = assign(Config(), {"model": "dnn", "dnn.net": str(write(tmp_path, made, np.float32))})
    one, other = (build_scorer(plain, models["real"]) for _ in range(2))
    for wanted, got in zip(scored(one, False), scored(other, True), strict=True):
        assert wanted.tobytes() == got.tobytes()
    scorer = build_scorer(assign(plain, {"frames.skip": 3, "frames.rule": "multi-frame"}), models["real"])
    list(scored(scorer, False))
    assert not scorer.replayable
