"""Features of every kind that pocketsphinx makes, by the scores that it logs for a model that takes them."""

import math
import re
import sys
from dataclasses import replace

import kaldi_native_fbank as library
import kaldi_writer
import numpy as np
import pytest
import soundfile
import sphinx_writer as writer
from scoring_reference import brute_force

from pipelines.config import Config, assign
from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.mfcc import PIECE_FRAMES, Mfcc
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models import kaldi, sphinx
from pipelines.models.opening import open_model
from pipelines.models.sphinx import ModelError
from pipelines.scoring import build_scorer
from pipelines.scoring.blocks import Meter
from pipelines.scoring.tied.gmm import Gmm
from pipelines.scoring.tied.packing import pack
from profiler.spans import NullLane
from tests.each import each

pocketsphinx = pytest.importorskip("pocketsphinx")

STEP_NAT = 1024 * math.log(1.0001)  # of pocketsphinx' scores
LANE = NullLane()
S2_4X, ONE = [12, 24, 3, 12], "-feat 1s_c_d_dd\n-cmn batch\n"


def theirs(folder, samples):
    """Scores in nat f64 [frames, senones] that pocketsphinx logs, each frame's from its best."""
    dictionary = folder.parent / "words.dict"
    dictionary.write_text("hello AA B\n")
    decoder = pocketsphinx.Decoder(
        hmm=str(folder),
        lm=None,
        dict=str(dictionary),
        keyphrase="hello",
        kws_threshold=1e-20,
        senlogdir=str(folder.parent),
        compallsen=True,
        loglevel="FATAL",
    )
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), no_search=False, full_utt=True)
    decoder.end_utt()
    data = next(folder.parent.glob("*.sen")).read_bytes()
    data = data[data.index(b"endhdr\n") + len(b"endhdr\n") + 4 :]
    logged = np.frombuffer(data, "<i2").reshape(-1, writer.N_SENONES + 1)
    assert (logged[:, 0] == writer.N_SENONES).all()
    return from_best(logged[:, 1:] * -STEP_NAT)


def features_of(model, samples):
    return Mfcc(model.feat_params, transform=model.transform).features((samples / 32768).astype(np.float32))


def ours(folder, samples):
    model = sphinx.load(folder)
    return from_best(build_scorer(Config(), model).score(features_of(model, samples), 0, LANE))


def assert_as_logged(folder, widths, feat_params, samples, **more):
    """Scores of a model of such streams; they may differ by what pocketsphinx rounds in each, and once more."""
    writer.write_streams(folder, widths, feat_params, **more)
    expected, found = theirs(folder, samples), ours(folder, samples)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < (len(widths) + 2) * STEP_NAT


def speech(bundled_speech, rate=16_000):
    samples, found = soundfile.read(min(bundled_speech.glob("*.flac")), dtype="int16")
    assert found == 16_000
    return samples[: 3 * rate] if rate == 16_000 else samples[: 6 * rate : 2].copy()


def from_best(scores):
    return scores - scores.max(axis=1, keepdims=True)


@each(
    "feat_params, widths",
    [
        ("-feat s2_4x\n-cmn current\n", S2_4X),
        (ONE, [39]),
        (ONE + "-svspec 0-12/13-25/26-38", [13, 13, 13]),
        (ONE + "-svspec 24,0-11/25,12-23/26-38", [13, 13, 13]),
        (ONE + "-svspec 0-5/6-29/30-38", [6, 24, 9]),
        ("-feat s3_1x39\n-cmn batch\n", [39]),
        ("-feat 1s_c\n-cmn batch\n", [13]),
        ("-feat 1s_c_d\n-cmn batch\n", [26]),
        ("-feat 1s_c_d_ld_dd\n-cmn batch\n", [52]),
        ("-feat 1s_3c\n-cmn batch\n", [91]),
        ("-feat 6,7:2\n-cmn batch\n", [30, 35]),
        ("-feat 13\n-cmn batch\n", [13]),
        (ONE + "-varnorm yes", [39]),
        (ONE + "-agc max", [39]),
        (ONE + "-agc emax", [39]),
        (ONE + "-agc noise -agcthresh 3.5", [39]),
        (ONE + "-agc max -varnorm yes", [39]),
        ("-cmn none -agc emax", [39]),
        ("-cmn batch -ncep 10 -ceplen 10", [30]),
    ],
)
def test_scores_are_those_that_pocketsphinx_logs(feat_params, widths, tmp_path, bundled_speech):
    assert_as_logged(tmp_path / "model", widths, feat_params, speech(bundled_speech))


@each("more, rows, out", [("", 29, 29), ("-ldadim 20", 29, 20), ("-ldadim 40", 29, 29)])
def test_a_feature_transform_is_applied(more, rows, out, tmp_path, bundled_speech):
    matrix, folder = np.random.default_rng(3).normal(0, 0.2, (rows, 39)), tmp_path / "model"
    assert_as_logged(folder, [out], ONE + more, speech(bundled_speech), transform=matrix)
    before = sphinx.load(folder).checksum
    matrix[0, 0] += 1
    writer.write_streams(folder, [out], ONE + more, transform=matrix)
    assert sphinx.load(folder).checksum != before


def test_a_model_of_telephone_speech_takes_8000_samples_a_second(tmp_path, bundled_speech):
    text = "-samprate 8000\n-nfilt 31\n-lowerf 200\n-upperf 3500\n-feat s2_4x\n-cmn batch\n"
    assert_as_logged(tmp_path / "model", S2_4X, text, speech(bundled_speech, 8_000))
    model = sphinx.load(tmp_path / "model")
    parameters = Mfcc(model.feat_params).parameters
    assert (parameters.target.rate, parameters.nfft) == (8_000, 256)
    assert model.notes == ()


@each("codebooks", [1, 4])
def test_shared_gaussians_of_s2_4x_are_scored_as_pocketsphinx_does(codebooks, tmp_path, bundled_speech):
    """Four densities, of which pocketsphinx takes the best four, in streams of four widths."""
    folder = writer.write_streams(tmp_path / "model", S2_4X, "-feat s2_4x\n-cmn batch\n", codebooks, densities=4)
    samples = speech(bundled_speech)
    expected, found = theirs(folder, samples), ours(folder, samples)
    near = expected > -96 * STEP_NAT
    assert np.abs(found - expected)[near].mean() < 2 * STEP_NAT
    assert np.corrcoef(found[near], expected[near])[0, 1] > 0.9


@each(
    "settings, keep",
    [
        ({}, None),
        ({"gmm.selection.enabled": True}, 4),
        ({"gmm.selection.enabled": True, "gmm.selection.method": "last-top-n"}, 4),
        ({"model": "continuous", "gmm.components": 128}, None),
        ({"threads": 2, "block": 3}, None),
    ],
)
def test_streams_of_four_widths_score_by_the_definition(settings, keep, tmp_path, bundled_speech):
    """In the way of each strategy that leaves scores exact, on features as the front end makes them."""
    folder = writer.write_streams(tmp_path / "model", S2_4X, "-feat s2_4x\n-cmn batch\n", codebooks=4, densities=21)
    config = assign(Config(), {"model_directory": str(folder), **settings})
    model = open_model(config)
    features = features_of(model, speech(bundled_speech)[:20_000])[::7].copy()
    scores = build_scorer(config, model).score(features, 0, LANE)
    assert np.abs(scores - brute_force(sphinx.load(folder), features, keep)).max() < 2e-3


@each(
    "widths, feat_params",
    [
        ([13], "-feat 13"),
        ([13, 13], "-feat 1s_c_d\n-svspec 0-12/13-25"),
        ([12, 24, 3], "-feat 1s_c_d_dd\n-svspec 0-11/12-35/36-38"),
        (S2_4X, "-feat s2_4x"),
    ],
)
def test_chosen_senones_of_streams_have_the_same_scores(widths, feat_params, tmp_path, bundled_speech):
    model = sphinx.load(writer.write_streams(tmp_path / "m", widths, feat_params + "\n", codebooks=4, densities=21))
    features = features_of(model, speech(bundled_speech)[:8_000])[:16].copy()
    family = Gmm(pack(model), 1)
    scores = np.zeros((len(features), writer.N_SENONES), np.float32)
    family.begin_some(features, Meter())
    family.score_some(0, len(features), np.arange(writer.N_SENONES), scores, Meter())
    assert np.abs(scores - brute_force(model, features)).max() < 2e-3


def test_streams_that_the_means_do_not_have(tmp_path):
    def loaded(name, svspec):
        text = f"-feat 1s_c_d_dd\n-svspec {svspec}\n"
        return sphinx.load(writer.write_streams(tmp_path / name, [39], text, codebooks=4))

    # Of neighbouring features they are parted as the means are.
    assert loaded("neighbours", "0-12/13-25/26-38").feat_params["svspec"] == "0-38"
    with pytest.raises(ModelError, match=r"means has streams of \(39,\) dimensions, the front end makes"):
        loaded("others", "24,0-11/25,12-23/26-38")
    folder = writer.write_streams(tmp_path / "model", S2_4X, "-feat s2_4x\n", codebooks=4)
    with pytest.raises(ModelError, match=r"streams of \(12, 24, 3, 12\) features; model=single-stream"):
        open_model(assign(Config(), {"model_directory": str(folder), "model": "single-stream"}))
    folder = writer.write_streams(tmp_path / "transform", [39], "-feat s2_4x\n", transform=np.ones((20, 39)))
    with pytest.raises(FeatureParameterError, match="takes 39 features in one stream, -feat s2_4x"):
        sphinx.load(folder)


@each(
    "text, note",
    [
        ("-cmn live", "-cmn live is computed as batch: the mean of the whole utterance"),
        ("-cmn prior -cmninit 40,3,-1", "-cmn prior is computed as batch"),
        ("-dither yes -seed 3", "-dither is left out"),
        ("-remove_silence yes", "-remove_silence is ignored"),
        ("-vad_threshold 2.0\n-vad_prespeech 20", "-vad_threshold, -vad_prespeech are ignored"),
        ("-lw 10 -topn 4", "-lw, -topn are ignored"),
        ("-agc emax", "-agc emax begins anew in every utterance"),
        ("-upperf 4000", "no -samprate, though the filters end at 4000 Hz: taken as 16000 Hz"),
    ],
)
def test_what_is_read_otherwise_is_said_once(text, note, tmp_path):
    folder = writer.write_streams(tmp_path / "model", [39], text + "\n")
    (said,) = sphinx.load(folder).notes
    assert said.startswith(f"model/feat.params: {note}")


def test_feat_params_as_people_write_them(tmp_path):
    text = "# trained 2011, größer\r\n-nfilt 25 -lowerf 130\r\n\r\n-samprate 1.600000e+04  # Hz\r\n"
    folder = writer.write_streams(tmp_path / "model", [39], "")
    (folder / "feat.params").write_bytes(b"\xef\xbb\xbf" + text.encode())
    model = sphinx.load(folder)
    assert model.feat_params == {"nfilt": "25", "lowerf": "130", "samprate": "1.600000e+04"}
    assert Mfcc(model.feat_params).parameters.samprate == 16_000
    assert model.notes == ()


OWN_SENTENCES = [
    ("nfilt 25", "'nfilt'"),
    ("-feat s4_1x39", "-feat s4_1x39 is not known; computed are 1s_c, 1s_c_d"),
    ("-feat 12,2", "must be widths that add up to -ncep 13"),
    ("-feat s2_4x -svspec 0-12", "-svspec parts features of one stream, and -feat s2_4x has 4"),
    ("-svspec 0-12/13-39", "-svspec 0-12/13-39 must name features 0 to 38"),
    ("-svspec 0-12/12-38", "each once in a stream, 39 at most"),
    ("-feat s2_4x -ncep 12 -ceplen 12", "-feat s2_4x needs -ncep 13"),
    ("-samprate 8000", "-upperf 6855.5 must rise within 0 and 4000 Hz, half of -samprate 8000"),
    ("-samprate 15999.5", "a whole number is needed"),
    ("-lda feature_transform", "feature_transform is missing; -lda in feat.params says"),
    ("-warp_params 1.1", "-warp_params is not an option of this front end"),
]
WRONG = (
    "-doublebw yes", "-agc loud", "-dither perhaps", "-cmn sometimes", "-ncep 20", "-transform dst", "-nfilt many",
    "-nfilt 5", "-nfft 500", "-nfft 256", "-lowerf nan", "-lowerf 7000", "-upperf 9000", "-frate 200",
    "-remove_noise maybe", "-nfilt", "-alpha 1.5", "-lifter -3", "-hyphenation",
)  # fmt: skip
"""Values of which the sentence says the option and the value."""


@each("text, sentence", [*OWN_SENTENCES, *zip(WRONG, WRONG, strict=True)])
def test_what_cannot_be_is_one_sentence(text, sentence, tmp_path):
    folder = writer.write_streams(tmp_path / "model", [39], text + "\n")
    with pytest.raises((ModelError, FeatureParameterError)) as caught:
        sphinx.load(folder)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_error_for_the_folder_above_a_model_names_the_model(tmp_path):
    folder = writer.write_model(tmp_path / "en-us" / "en-us")
    with pytest.raises(ModelError, match=re.escape(f"feat.params is missing; did you mean {folder}?")):
        sphinx.load(tmp_path / "en-us")


@each("form", ["binary", "text"])
def test_phones_of_five_states_are_refused_by_that_name(form, tmp_path):
    folder = writer.write_model(tmp_path / "model")
    data = bytearray(writer.bmdf())
    data[data.index(b"made by a test\0\0") + 16 + 8] = 5  # behind the numbers of CI phones and of phones
    text = writer.text_mdef().replace(b" N\n", b" 1 2 N\n")
    (folder / "mdef").write_bytes(data if form == "binary" else text)
    with pytest.raises(ModelError, match="emitting states"):
        sphinx.load(folder)


PLAIN = KaldiFeatures(use_energy=False, norm_means=False)


def sound(seconds: float) -> np.ndarray:
    """Noise that gets louder and quieter, as int16 rounds it."""
    n = round(16_000 * seconds)
    envelope = 0.1 + np.sin(np.arange(n) / 3000) ** 2
    return (np.rint(3000 * envelope * np.random.default_rng(1).normal(size=n)) / 32_768).astype(np.float32)


def mel(hz):
    return 1127.0 * np.log(1.0 + np.asarray(hz) / 700.0)


def mfcc(samples: np.ndarray, p: KaldiFeatures) -> np.ndarray:
    """Kaldi's MFCC (feat/feature-{window,mel,mfcc}) without dither and energy, frame by frame in float64."""
    length, hop, n = p.window_samples, p.hop_samples, p.fft_samples
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))) ** 0.85
    edges = np.linspace(mel(p.low_freq), mel(p.target.band), p.num_mel_bins + 2)
    at = mel(np.arange(n // 2) * p.rate / n)
    rise = (at - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - at) / np.diff(edges)[1:, None]
    filters = np.maximum(np.minimum(rise, fall), 0)
    i, j = np.arange(p.num_ceps)[:, None], np.arange(p.num_mel_bins)
    dct = np.sqrt(2 / p.num_mel_bins) * np.cos(np.pi / p.num_mel_bins * (j + 0.5) * i)
    dct[0] /= np.sqrt(2)
    lifter = 1 + 0.5 * p.cepstral_lifter * np.sin(np.pi * np.arange(p.num_ceps) / p.cepstral_lifter)
    rows = []
    for begin in range(0, len(samples) - length + 1, hop):
        x = 32_768.0 * samples[begin : begin + length]
        x = x - x.mean()
        x = x - p.preemphasis_coefficient * np.concatenate([x[:1], x[:-1]])
        power = np.abs(np.fft.rfft(x * window, n)[: n // 2]) ** 2
        rows.append(lifter * (dct @ np.log(filters @ power)))
    return np.array(rows)


OTHER = replace(PLAIN, num_mel_bins=40, num_ceps=20, low_freq=40.0, high_freq=-400.0, frame_length=32.0)


@each("p", [PLAIN, OTHER])
def test_cepstra_are_those_of_kaldis_definition(p):
    samples = sound(2.0)
    made = KaldiMfcc(p).features(samples)
    np.testing.assert_allclose(made, mfcc(samples, p), atol=5e-3)


@each("snip", [True, False])
@each("samples", [1, 100, 399, 400, 560, 16_000])
def test_every_sound_has_frames(samples, snip):
    front = KaldiMfcc(replace(PLAIN, snip_edges=snip, norm_means=True))
    made = front.features(sound(1.0)[:samples])
    assert len(made) == front.n_frames(samples) >= 1
    assert np.isfinite(made).all()
    assert front.n_frames(0) == 0
    assert front.features(np.empty(0, np.float32)).shape == (0, 13)


def static(samples: np.ndarray, p: KaldiFeatures) -> np.ndarray:
    return KaldiMfcc(replace(p, delta_order=0, left_context=0, right_context=0)).features(samples)


TWO_PIECES = 0.01 * (PIECE_FRAMES + 40)


@each("order, window", [(1, 2), (2, 2), (3, 1)])
def test_differences_are_the_librarys(order, window):
    p = replace(PLAIN, norm_means=True, delta_order=order, delta_window=window)
    samples = sound(TWO_PIECES)
    expected = library.compute_deltas(library.DeltaOptions(order=order, window=window), static(samples, p))
    np.testing.assert_allclose(KaldiMfcc(p).features(samples), expected, atol=1e-4)


def test_splicing_and_transforms_are_the_librarys():
    p = replace(PLAIN, norm_means=True, left_context=2, right_context=4)
    samples = sound(TWO_PIECES)
    spliced = library.splice_frames(static(samples, p), library.SpliceOptions(left_context=2, right_context=4))
    np.testing.assert_array_equal(KaldiMfcc(p).features(samples), spliced)
    affine = np.random.default_rng(3).normal(size=(40, 92)).astype(np.float32)
    matrix, shift = affine[:, :-1], affine[:, -1]
    for transform, expected in ((matrix.copy(), spliced @ matrix.T), (affine, spliced @ matrix.T + shift)):
        found = KaldiMfcc(p, transform).features(samples)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)


def test_the_mean_and_variance_are_those_of_the_utterance():
    made = KaldiMfcc(replace(PLAIN, norm_means=True, norm_vars=True)).features(sound(3.0))
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(made.std(0), 1, atol=1e-4)


def test_what_the_library_lacks_is_said_in_one_sentence(monkeypatch, tmp_path):
    with pytest.raises(FeatureParameterError, match="too large"):
        KaldiMfcc(replace(PLAIN, num_mel_bins=128))
    monkeypatch.setitem(sys.modules, "kaldi_native_fbank", None)
    folder = kaldi_writer.write_model(tmp_path / "model")
    # Before a graph is built, which may take a minute.
    for use in (lambda: kaldi.load(folder), lambda: KaldiMfcc(PLAIN)):
        with pytest.raises(FeatureParameterError, match=r"pip install 'asrscope\[kaldi\]'"):
            use()
