"""GMM scores against the definition in double precision and against pocketsphinx' own log."""

import math

import numpy as np
import pytest
import soundfile
import sphinx_writer as writer
from scoring_reference import brute_force, likely_features

from pipelines.config import Config, assign
from pipelines.models import sphinx
from pipelines.scoring import build_scorer
from pipelines.scoring.blocks import MAX_FRAMES
from pipelines.scoring.tied import gmm
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


@pytest.mark.parametrize("config", [EXACT, top(4)], ids=["exact", "top-4"])
def test_scores_do_not_depend_on_the_block(model, config):
    block = likely_features(model, 3 * MAX_FRAMES + 7)
    scorer = build_scorer(config, model)
    whole = scorer.score(block, 0, LANE).copy()
    for size in (1, 5, 16, 100):
        for at in range(0, len(block) if size > 1 else 4, size):
            part = scorer.score(block[at : at + size], at, LANE)
            np.testing.assert_array_equal(part, whole[at : at + size])


@each("config", [EXACT, top(4)])
@each("threads", [2, 5, 64])
def test_scores_do_not_depend_on_the_threads(model, features, config, threads):
    alone = build_scorer(config, model).score(features, 0, LANE)
    shared = build_scorer(assign(config, {"threads": threads}), model)
    for _ in range(5):
        np.testing.assert_array_equal(shared.score(features, 0, LANE), alone)


def test_threads_share_all_codebooks_evenly(model):
    from pipelines.scoring.tied.packing import pack

    parameters = pack(model)
    for threads in (1, 2, 3, 7):
        pool = gmm.Gmm(parameters, threads).pool
        covered = [book for first, last in pool.ranges for book in range(first, last)]
        assert covered == list(range(42))
        shares = [parameters.senones_per_codebook[a:b].sum() for a, b in pool.ranges]
        if threads == 2:
            assert max(shares) < 0.55 * 5126


def test_blocks_of_another_shape_are_refused(model):
    scorer = build_scorer(EXACT, model)
    with pytest.raises(ValueError, match=r"expected \[frames, 39\]"):
        scorer.score(np.zeros((4, 13), np.float32), 0, LANE)
    assert scorer.score(np.zeros((0, 39), np.float32), 0, LANE).shape == (0, 5126)


def test_prepared_block_gives_the_same_frames(model, features):
    scorer = build_scorer(EXACT, model)
    whole = scorer.score(features, 0, LANE).copy()
    scorer.reset()
    state = scorer.prepare(features, 0, LANE)
    for t in range(len(features)):
        np.testing.assert_array_equal(scorer.frame(state, t, None), whole[t])


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
