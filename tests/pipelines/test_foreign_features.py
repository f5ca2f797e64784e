"""Features of every kind that pocketsphinx makes, by the scores that it logs for a model that takes them."""

import math

import numpy as np
import pytest
import soundfile
import sphinx_writer as writer
from scoring_reference import brute_force

from pipelines.config import Config, assign
from pipelines.frontend.mfcc import Mfcc
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models import sphinx
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


def theirs(folder, samples, log):
    """Scores in nat f64 [frames, senones] that pocketsphinx logs, each frame's from its best."""
    log.mkdir(parents=True)
    dictionary = log / "words.dict"
    dictionary.write_text("hello AA B\n")
    decoder = pocketsphinx.Decoder(
        hmm=str(folder),
        lm=None,
        dict=str(dictionary),
        keyphrase="hello",
        kws_threshold=1e-20,
        senlogdir=str(log),
        compallsen=True,
        loglevel="FATAL",
    )
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), no_search=False, full_utt=True)
    decoder.end_utt()
    data = next(log.glob("*.sen")).read_bytes()
    data = data[data.index(b"endhdr\n") + len(b"endhdr\n") + 4 :]
    logged = np.frombuffer(data, "<i2").reshape(-1, writer.N_SENONES + 1)
    assert (logged[:, 0] == writer.N_SENONES).all()
    return logged[:, 1:] * -STEP_NAT


def ours(folder, samples):
    model = sphinx.load(folder)
    frontend = Mfcc(model.feat_params, transform=model.transform)
    features = frontend.features((samples / 32768).astype(np.float32))
    return build_scorer(Config(), model).score(features, 0, LANE)


def speech(bundled_speech, rate=16_000):
    samples, found = soundfile.read(min(bundled_speech.glob("*.flac")), dtype="int16")
    assert found == 16_000
    return samples[: 3 * rate] if rate == 16_000 else samples[: 6 * rate : 2].copy()


def rounded(widths):
    """How far scores may differ that pocketsphinx rounds in every stream, and once more."""
    return (len(widths) + 2) * STEP_NAT


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
    folder = writer.write_streams(tmp_path / "model", widths, feat_params)
    samples = speech(bundled_speech)
    expected, found = theirs(folder, samples, tmp_path / "log"), ours(folder, samples)
    assert found.shape == expected.shape
    assert np.abs(from_best(found) - from_best(expected)).max() < rounded(widths)


@each("more, rows, out", [("", 29, 29), ("-ldadim 20", 29, 20), ("-ldadim 40", 29, 29)])
def test_a_feature_transform_is_applied(more, rows, out, tmp_path, bundled_speech):
    matrix = np.random.default_rng(3).normal(0, 0.2, (rows, 39))
    folder = writer.write_streams(tmp_path / "model", [out], ONE + more, transform=matrix)
    samples = speech(bundled_speech)
    expected, found = theirs(folder, samples, tmp_path / "log"), ours(folder, samples)
    assert np.abs(from_best(found) - from_best(expected)).max() < rounded([out])
    before = sphinx.load(folder).checksum
    matrix[0, 0] += 1
    writer.write_streams(folder, [out], ONE + more, transform=matrix)
    assert sphinx.load(folder).checksum != before


def test_a_model_of_telephone_speech_takes_8000_samples_a_second(tmp_path, bundled_speech):
    text = "-samprate 8000\n-nfilt 31\n-lowerf 200\n-upperf 3500\n-feat s2_4x\n-cmn batch\n"
    folder = writer.write_streams(tmp_path / "model", S2_4X, text)
    samples = speech(bundled_speech, 8_000)
    expected, found = theirs(folder, samples, tmp_path / "log"), ours(folder, samples)
    assert found.shape == expected.shape
    assert np.abs(from_best(found) - from_best(expected)).max() < rounded(S2_4X)
    model = sphinx.load(folder)
    parameters = Mfcc(model.feat_params).parameters
    assert (parameters.target.rate, parameters.nfft) == (8_000, 256)
    assert model.notes == ()


@pytest.mark.parametrize("codebooks", [1, 4])
def test_shared_gaussians_of_s2_4x_are_scored_as_pocketsphinx_does(codebooks, tmp_path, bundled_speech):
    """Four densities, of which pocketsphinx takes the best four, in streams of four widths."""
    folder = writer.write_streams(tmp_path / "model", S2_4X, "-feat s2_4x\n-cmn batch\n", codebooks, densities=4)
    samples = speech(bundled_speech)
    expected = from_best(theirs(folder, samples, tmp_path / "log"))
    found = from_best(ours(folder, samples))
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
    samples = (speech(bundled_speech)[:20_000] / 32768).astype(np.float32)
    features = Mfcc(model.feat_params).features(samples)[::7].copy()
    scorer = build_scorer(config, model)
    scores = scorer.score(features, 0, LANE)
    wanted = brute_force(sphinx.load(folder), features, keep)
    assert np.abs(scores - wanted).max() < 2e-3


def test_chosen_senones_of_four_streams_have_the_same_scores(tmp_path, bundled_speech):
    for number, widths in enumerate(([13], [13, 13], [12, 24, 3], S2_4X), 1):
        feat = {1: "13", 2: "1s_c_d", 3: "1s_c_d_dd", 4: "s2_4x"}[number]
        svspec = {2: "-svspec 0-12/13-25", 3: "-svspec 0-11/12-35/36-38"}.get(number, "")
        folder = writer.write_streams(
            tmp_path / str(number), widths, f"-feat {feat}\n{svspec}\n", codebooks=4, densities=21
        )
        model = sphinx.load(folder)
        samples = (speech(bundled_speech)[:8_000] / 32768).astype(np.float32)
        features = Mfcc(model.feat_params).features(samples)[:16].copy()
        family = Gmm(pack(model), 1)
        scores = np.zeros((len(features), writer.N_SENONES), np.float32)
        family.begin_some(features, Meter())
        family.score_some(0, len(features), np.arange(writer.N_SENONES), scores, Meter())
        assert np.abs(scores - brute_force(model, features)).max() < 2e-3, widths


def test_one_stream_cannot_be_made_of_streams_of_other_widths(tmp_path):
    folder = writer.write_streams(tmp_path / "model", S2_4X, "-feat s2_4x\n", codebooks=4)
    config = assign(Config(), {"model_directory": str(folder), "model": "single-stream"})
    with pytest.raises(ModelError, match=r"streams of \(12, 24, 3, 12\) features; model=single-stream"):
        open_model(config)


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


@each(
    "text, sentence",
    [
        ("-feat s4_1x39", "-feat s4_1x39 is not known; computed are 1s_c, 1s_c_d"),
        ("-feat 12,2", "must be widths that add up to -ncep 13"),
        ("-feat s2_4x -svspec 0-12", "-svspec parts features of one stream, and -feat s2_4x has 4"),
        ("-svspec 0-12/13-39", "-svspec 0-12/13-39 must name features 0 to 38"),
        ("-svspec 0-12/12-38", "each once in a stream, 39 at most"),
        ("-feat s2_4x -ncep 12 -ceplen 12", "-feat s2_4x needs -ncep 13"),
        ("-samprate 8000", "-upperf 6855.5 must rise within 0 and 4000 Hz, half of -samprate 8000"),
        ("-samprate 15999.5", "a whole number of hertz is needed"),
        ("-lda feature_transform", "feature_transform is missing; -lda in feat.params says"),
        ("-warp_params 1.1", "-warp_params is not an option of this front end"),
    ],
)
def test_what_cannot_be_is_one_sentence(text, sentence, tmp_path):
    folder = writer.write_streams(tmp_path / "model", [39], text + "\n")
    with pytest.raises((ModelError, FeatureParameterError)) as caught:
        sphinx.load(folder)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_transform_of_other_features_is_refused(tmp_path):
    folder = writer.write_streams(tmp_path / "model", [39], "-feat s2_4x\n", transform=np.ones((20, 39)))
    with pytest.raises(FeatureParameterError, match="takes 39 features in one stream, -feat s2_4x"):
        sphinx.load(folder)


def test_the_error_for_the_folder_above_a_model_names_the_model(tmp_path):
    writer.write_model(tmp_path / "en-us" / "en-us")
    with pytest.raises(ModelError) as caught:
        sphinx.load(tmp_path / "en-us")
    meant = tmp_path / "en-us" / "en-us"
    assert str(caught.value) == (f"{tmp_path / 'en-us' / 'feat.params'} is missing; did you mean {meant}?")


@pytest.mark.parametrize("form", ["binary", "text"])
def test_phones_of_five_states_are_refused_by_that_name(form, tmp_path):
    folder = writer.write_model(tmp_path / "model")
    data = writer.bmdf()
    at = data.index(b"made by a test\0\0") + 16 + 8  # behind the numbers of CI phones and of phones
    data = data[:at] + (5).to_bytes(4, "little") + data[at + 4 :]
    if form == "text":
        data = writer.text_mdef().replace(b" N\n", b" 1 2 N\n")
    (folder / "mdef").write_bytes(data)
    with pytest.raises(ModelError, match="emitting states"):
        sphinx.load(folder)
