"""GMM scores against the definition in double precision and against pocketsphinx' own log."""

import math
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import sphinx_writer as writer
from scoring_reference import brute_force, likely_features

from pipelines.config import Config, assign
from pipelines.models import derived, sphinx
from pipelines.scoring import build_scorer
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.continuous import ContinuousGmm, pack
from pipelines.scoring.continuous.packing import WINDOW, align
from pipelines.scoring.costs.continuous import all_senones
from profiler.spans import NullLane
from tests.each import each

LANE = NullLane()
NAT = 1e-3
STEP_NAT = 1024 * math.log(1.0001)  # of pocketsphinx' 8-bit scores
EXACT = Config()


def top(n):
    return assign(EXACT, {"gmm.selection.top_n": n})


@pytest.fixture(scope="module")
def features(model):
    return likely_features(model, 21)


@pytest.fixture(scope="module")
def untied():
    """The real model, 12 Gaussians per senone: every kernel, and little to compute."""
    return derived.untied(sphinx.load(sphinx.default_directory()), 12)


@each("keep", [None, 1, 4, 7, 64])
def test_scores_of_the_real_model(model, features, keep):
    scorer = build_scorer(EXACT if keep is None else top(keep), model)
    scores = scorer.score(features, 0, LANE)
    assert scores.dtype == np.float32
    assert np.abs(scores - brute_force(model, features, keep)).max() < NAT


@each("codebooks", [4, 1])
@each("densities", [1, 16, 20, 40])
@each("keep", [None, 3, 33])
def test_small_models_of_odd_sizes(tmp_path, codebooks, densities, keep):
    small = sphinx.load(writer.write_model(tmp_path, codebooks, densities))
    block = likely_features(small, 13)
    scorer = build_scorer(EXACT if keep is None else top(keep), small)
    expected = brute_force(small, block, keep)
    assert np.abs(scorer.score(block, 0, LANE) - expected).max() < NAT


def test_equal_densities_are_not_all_kept(tmp_path):
    """Ties: exactly N densities enter, whichever they are."""
    folder = writer.write_model(tmp_path, 4, 32)
    same = np.zeros((4, 3, 32, 13))
    (folder / "means").write_bytes(writer.gaussians(same))
    (folder / "variances").write_bytes(writer.gaussians(same + 1))
    (folder / "sendump").write_bytes(writer.sendump_8(np.full((3, 32, writer.N_SENONES), 20, np.uint8)))
    small = sphinx.load(folder)
    x = np.zeros((2, 39), np.float32)
    one = build_scorer(top(1), small).score(x, 0, LANE).copy()
    for keep in (2, 6, 10, 31, 32):
        scores = build_scorer(top(keep), small).score(x, 0, LANE)
        np.testing.assert_allclose(scores - one, 3 * math.log(keep), atol=1e-4)


@each("kind, config", [("tied", EXACT), ("tied", top(4)), ("untied", EXACT)])
def test_scores_do_not_depend_on_blocks_or_threads(model, untied, kind, config):
    chosen = model if kind == "tied" else untied
    features = likely_features(chosen, 2 * MAX_FRAMES + 7)
    whole = build_scorer(config, chosen).score(features, 0, LANE).copy()
    for threads in (1, 2, 64):
        scorer = build_scorer(assign(config, {"threads": threads}), chosen)
        for size in (1, 5, 16, 100):
            for at in range(0, len(features) if size > 1 else 4, size):
                part = scorer.score(features[at : at + size], at, LANE)
                np.testing.assert_array_equal(part, whole[at : at + size])


def test_blocks_of_another_shape_are_refused(model):
    scorer = build_scorer(EXACT, model)
    with pytest.raises(ValueError, match=r"expected \[frames, 39\]"):
        scorer.score(np.zeros((4, 13), np.float32), 0, LANE)
    assert scorer.score(np.zeros((0, 39), np.float32), 0, LANE).shape == (0, 5126)


def pocketsphinx_scores(samples, folder):
    """Natural log scores [frames, senones] as pocketsphinx logs them: top 4, 8-bit steps."""
    pocketsphinx = pytest.importorskip("pocketsphinx")
    decoder = pocketsphinx.Decoder(
        keyphrase="forward",
        kws_threshold=1e-20,
        lm=None,
        compallsen=True,
        senlogdir=str(folder),
        pl_window=0,
        loglevel="FATAL",
    )
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), no_search=False, full_utt=True)
    decoder.end_utt()
    data = next(folder.glob("*.sen")).read_bytes()
    data = data[data.index(b"endhdr\n") + len(b"endhdr\n") + 4 :]
    logged = np.frombuffer(data, "<i2").reshape(-1, 5127)
    assert (logged[:, 0] == 5126).all()
    return logged[:, 1:] * -STEP_NAT


def agreement(ours, theirs):
    """Mean correlation per frame, share of frames with the same best senone, mean difference in
    nat of the senones within 20 nat of the best."""
    ours = ours.astype(float) - ours.max(1, keepdims=True)
    theirs = theirs - theirs.max(1, keepdims=True)
    correlation = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(ours, theirs, strict=True)])
    near = theirs > -20
    same = (ours.argmax(1) == theirs.argmax(1)).mean()
    return correlation, same, np.abs(ours - theirs)[near].mean()


def check_against_pocketsphinx(model, path, folder):
    from pipelines.frontend.mfcc import Mfcc

    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == 16_000
    theirs = pocketsphinx_scores(samples, folder)
    features = Mfcc(model.feat_params).features((samples / 32768).astype(np.float32))
    assert len(features) == len(theirs)
    scorer = build_scorer(top(4), model)
    correlation, same, difference = agreement(scorer.score(features, 0, LANE), theirs)
    assert correlation > 0.985
    assert same > 0.90
    assert difference < 0.45
    # What is left is how pocketsphinx stores scores: no density is more than 96 steps below the
    # best of all codebooks. With that floor the definition agrees but for the rounding to steps.
    # By definition a frame takes as long as hundreds of them take compiled: every fourth one.
    some = slice(None, None, 4)
    floored = agreement(brute_force(model, features[some], 4, floor=96 * STEP_NAT), theirs[some])
    assert floored[0] > 0.999
    assert floored[2] < 0.2
    scorer.configure(EXACT)
    exact = agreement(scorer.score(features, 0, LANE), theirs)
    assert 0.95 < exact[0] < correlation
    assert 0.7 < exact[1] < same
    assert difference < exact[2] < 1.2


def test_top_4_agrees_with_pocketsphinx_on_human_speech(model, shared_audio, tmp_path):
    check_against_pocketsphinx(model, shared_audio / "goforward.flac", tmp_path)


def test_top_4_agrees_with_pocketsphinx_on_synthetic_speech(model, bundled_speech, tmp_path):
    check_against_pocketsphinx(model, min(bundled_speech.glob("*.flac")), tmp_path)


def test_scores_of_the_untied_model(untied):
    features = likely_features(untied, 21)
    scores = build_scorer(EXACT, untied).score(features, 0, LANE)
    assert scores.dtype == np.float32
    assert np.abs(scores - brute_force(untied, features)).max() < NAT


def test_untying_all_densities_changes_nothing(tmp_path):
    tied = sphinx.load(writer.write_model(tmp_path, densities=20))
    features = likely_features(tied, 9)
    scores = build_scorer(EXACT, derived.untied(tied, 128)).score(features, 0, LANE)
    # Nothing but that the test's random weights then add up to one.
    tied = replace(tied, weights=tied.weights / tied.weights.sum(1, keepdims=True))
    assert np.abs(scores - brute_force(tied, features)).max() < NAT


@each("streams", [1, 3])
@each("densities", [1, 5, 42, 128])
def test_continuous_directories_of_odd_sizes(tmp_path, streams, densities):
    model = sphinx.load(writer.write_continuous(tmp_path, streams, densities))
    assert model.is_continuous
    scorer, features = build_scorer(EXACT, model), likely_features(model, 64)
    expected = brute_force(model, features)
    for frames in (1, 3, 4, 7, 8, 13, 64):
        scores = scorer.score(features[:frames], 0, LANE)
        assert np.abs(scores - expected[:frames]).max() < NAT, frames


@each("threads", [1, 2])
@each("frames", [slice(0, 1), slice(2, 3), slice(1, 6)])
def test_some_senones_score_as_in_the_whole(untied, threads, frames):
    family = ContinuousGmm(pack(untied), threads)
    features = likely_features(untied, 6)
    whole = np.empty((6, family.n_senones), np.float32)
    family.score_all(features, whole, Meter())
    wanted = np.random.default_rng(0).permutation(family.n_senones)[:777].astype(np.int64)
    scores = np.full((6, family.n_senones), 1.0, np.float32)
    family.begin_some(features, Meter())
    family.score_some(frames.start, frames.stop, wanted, scores, Meter())
    np.testing.assert_allclose(scores[frames, wanted], whole[frames, wanted], atol=NAT)
    untouched = np.setdiff1d(np.arange(family.n_senones), wanted)
    assert (scores[:, untouched] == 1.0).all()
    family.score_some(frames.start, frames.stop, wanted[:0], scores, Meter())


def test_cost_laws_follow_from_the_shapes(tmp_path):
    model = sphinx.load(writer.write_continuous(tmp_path, streams=3, densities=5))
    family = ContinuousGmm(pack(model), 1)
    n, padded = 6, 16
    gaussians, senones = n * 15 * 3 * 5, n * 15
    costs = all_senones(family.parameters, n)
    assert set(costs) == set(family.stages)
    product, lse = costs["score.gaussians"], costs["score.lse"]
    work = (float(gaussians), 0.0, 0.0)
    assert product.operations["gemm"].total(1, n, work) == pytest.approx(2 * 27 * padded * 3 * 5 * n)
    assert product.bytes_min.total(1, n, work) == 4 * 27 * padded * 3 * 5
    both = (float(gaussians), float(senones), 0.0)
    assert lse.operations["exp"].total(1, n, both) == pytest.approx(padded * 3 * 5 * n)
    assert lse.operations["log"].total(1, n, both) == senones
    some = family.costs_of_some(1)
    assert set(some) == set(family.stages)
    # One senone of one frame: three panels of 16 Gaussians, of which 5 count.
    n_active = (15.0, 0.0, 0.0)
    assert some["score.gaussians"].bytes_max.total(1, 1, n_active) == pytest.approx(3 * 27 * 16 * 4)
    assert some["score.gaussians"].operations["gemm"].total(1, 1, n_active) == pytest.approx(2 * 27 * 3 * 16)


def test_the_components_of_large_mixtures_are_put_in_order_in_windows():
    """Costs of all pairs of a mixture of 32 000 would take four gigabytes, and as many seconds."""
    gaussians = np.random.default_rng(3).normal(size=(2, 1, 2 * WINDOW + 44, 3, 16)).astype(np.float32)
    gaussians[..., 0, :], gaussians[..., 2, :] = -0.5, 2 * gaussians[..., 1, :]
    before = gaussians.copy()
    align(gaussians)
    assert np.count_nonzero(gaussians != before)
    # The same Gaussians in each lane of a window, and each of them as a whole.
    np.testing.assert_array_equal(gaussians[..., 2, :], 2 * gaussians[..., 1, :])
    for first in range(0, gaussians.shape[2], WINDOW):
        now, was = (np.sort(each[:, :, first : first + WINDOW, 1], axis=2) for each in (gaussians, before))
        np.testing.assert_array_equal(now, was)
