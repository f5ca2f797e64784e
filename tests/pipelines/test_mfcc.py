"""The front end against pocketsphinx' own log of its cepstra, and a plain float64 reference."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.frontend import mfcc
from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.mfcc import Mfcc
from pipelines.frontend.parameters import FeatureParameters, options_of
from profiler.spans import SPAN, Recorder
from tests.each import each

pocketsphinx = pytest.importorskip("pocketsphinx")

MODEL = Path(find_spec("pocketsphinx").origin).parent / "model" / "en-us" / "en-us"
SPEECH = Path(__file__).parents[2] / "assets" / "speech"


def parsed(text: str, source: str = "feat.params") -> FeatureParameters:
    return FeatureParameters.from_mapping(options_of(text, source), source)


DEFAULT = parsed((MODEL / "feat.params").read_text())
TOLERANCE = 1e-4


def logged_cepstra(samples: np.ndarray, folder: Path, model: Path = MODEL) -> np.ndarray:
    """f32[frames, 13] as pocketsphinx computes them, before mean subtraction.

    A decoder of its own for each signal: pocketsphinx carries its noise estimate on.
    """
    decoder = pocketsphinx.Decoder(
        hmm=str(model), lm=None, keyphrase="hello", kws_threshold=1e-20, mfclogdir=str(folder), loglevel="FATAL"
    )
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), no_search=True, full_utt=True)
    decoder.end_utt()
    (log,) = folder.glob("*.mfc")
    data = log.read_bytes()
    assert int.from_bytes(data[:4], "big") * 4 == len(data) - 4
    return np.frombuffer(data[4:], ">f4").reshape(-1, 13)


def computed(samples: np.ndarray, parameters: FeatureParameters = DEFAULT) -> mfcc.MfccUtterance:
    """An utterance of int16 samples, computed."""
    utterance = Mfcc(parameters).start(floats(samples))
    list(utterance.run())
    return utterance


def assert_as_logged(samples: np.ndarray, folder: Path, parameters: FeatureParameters = DEFAULT, *model: Path) -> None:
    expected, ours = logged_cepstra(samples, folder, *model), computed(samples, parameters).cepstra
    assert ours.shape == expected.shape
    assert np.abs(ours - expected).max() <= TOLERANCE


def speech(name: str = "05-slt-market") -> np.ndarray:
    return soundfile.read(SPEECH / f"{name}.flac", dtype="int16")[0]


def floats(samples: np.ndarray) -> np.ndarray:
    return (samples / 32768).astype(np.float32)


@each("name", ["05-slt-market", "06-rms-noise", "08-kal16-short"])
def test_cepstra_equal_pocketsphinx(name, tmp_path):
    assert_as_logged(speech(name), tmp_path)


def test_cepstra_of_human_speech_equal_pocketsphinx(shared_audio, tmp_path):
    assert_as_logged(soundfile.read(shared_audio / "librivox-0870.flac", dtype="int16")[0], tmp_path)


@each("n", [1, 159, 409, 410, 411, 569, 570, 571, 10_410])
def test_every_length_yields_the_frames_of_pocketsphinx(n, tmp_path):
    samples = speech()[20_000 : 20_000 + n]
    assert_as_logged(samples, tmp_path)
    assert Mfcc(DEFAULT).n_frames(n) == len(computed(samples).cepstra)


@each(
    "changes",
    [
        "-remove_noise no",
        "-nfilt 40 -lowerf 133.33334 -upperf 6855.4976 -transform legacy -lifter 0",
        "-transform htk -unit_area no -remove_noise no",
        "-remove_dc yes -round_filters no -alpha 0.9",
        "-wlen 0.03 -nfft 1024 -nfilt 31",
    ],
)
def test_other_parameters_equal_pocketsphinx(changes, tmp_path):
    model, log = tmp_path / "model", tmp_path / "log"
    model.mkdir()
    log.mkdir()
    for file in MODEL.iterdir():
        if file.name != "feat.params":
            os.symlink(file, model / file.name)
    words = changes.split()
    original = (MODEL / "feat.params").read_text().split()
    options = dict(zip(original[::2] + words[::2], original[1::2] + words[1::2], strict=True))
    text = "\n".join(f"{name} {value}" for name, value in options.items())
    (model / "feat.params").write_text(text + "\n")
    samples, changed = speech()[:48_000], parsed(text)
    assert_as_logged(samples, log, changed, model)
    assert np.abs(computed(samples, changed).cepstra - computed(samples).cepstra).max() > 0.1, (
        "it must change something"
    )


def test_mean_and_differences_against_a_plain_reference():
    utterance = computed(np.concatenate([np.zeros(16_000, np.int16), speech()[8_000:]]))
    static = utterance.cepstra.astype(np.float64)
    silent = static[:, 0] < 0  # frames without energy do not count for the mean
    assert silent.sum() > 90
    static -= static[~silent].mean(axis=0)
    padded = np.pad(static, ((3, 3), (0, 0)), mode="edge")

    def shifted(shift: int) -> np.ndarray:
        return padded[3 + shift : 3 + shift + len(static)]

    first = shifted(2) - shifted(-2)
    second = (shifted(3) - shifted(-1)) - (shifted(1) - shifted(-3))
    expected = np.concatenate([static, first, second], axis=1)
    assert utterance.features.shape == (len(static), 39)
    assert utterance.features.dtype == np.float32
    assert np.abs(utterance.features - expected).max() <= 5e-5


@settings(deadline=None, max_examples=25)
@given(piece=st.integers(1, 700), n=st.integers(1, 60_000))
def test_the_cut_into_pieces_changes_no_bit(piece, n):
    front_end = Mfcc(DEFAULT)
    samples = floats(speech()[:n])
    utterance = front_end.start(samples)
    pieces = list(utterance.run(piece))
    assert np.array_equal(utterance.features, front_end.features(samples))
    for stage in mfcc.STAGES:
        covered = [(p.first_frame, p.frames) for p in pieces if p.stage == stage]
        ends = list(itertools.accumulate((frames for _, frames in covered), initial=0))
        assert [first for first, _ in covered] == ends[:-1]
        assert ends[-1] == utterance.n_frames
        assert max(frames for _, frames in covered) <= piece


@each("remove_dc", [False, True])
def test_utterances_in_turns_and_on_threads_are_what_they_are_alone(remove_dc):
    """They share the buffers of a block, on each thread others."""
    parameters = replace(DEFAULT, remove_dc=remove_dc)
    both = [floats(speech("06-rms-noise")), floats(speech())[:20_001]]
    alone = [Mfcc(parameters).features(samples) for samples in both]
    front_end = Mfcc(parameters)
    front_end.features(np.full(16_000, np.nan, np.float32))
    utterances = [front_end.start(samples) for samples in both]
    for _ in itertools.zip_longest(*(utterance.run(100) for utterance in utterances)):
        pass
    with ThreadPoolExecutor(2) as threads:
        found = [*(utterance.features for utterance in utterances), *threads.map(front_end.features, 10 * both)]
    for features, expected in zip(found, itertools.cycle(alone), strict=False):
        assert np.array_equal(features, expected)


@each("n", [0, 1, 200, 5_000])
def test_digital_silence_has_finite_features(n):
    features = Mfcc(DEFAULT).features(np.zeros(n, np.float32))
    assert np.isfinite(features).all()
    assert features.shape[1] == 39
    assert np.abs(features[:, :13]).max(initial=0.0) < 1e-3


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(ValueError, match="float32"):
        Mfcc(DEFAULT).start(np.zeros(100, np.int16))
    with pytest.raises(ValueError, match="one channel"):
        Mfcc(DEFAULT).start(np.zeros((100, 2), np.float32))
    with pytest.raises(ValueError, match="-nfilt 200 is too many for -nfft 512"):
        Mfcc(parsed("-nfilt 200"))


def kaldi() -> KaldiMfcc:
    return KaldiMfcc(KaldiFeatures(delta_order=2))


@each("made", [lambda: Mfcc({"lowerf": "130", "upperf": "6800", "nfilt": "25"}), kaldi])
def test_each_piece_is_a_span_on_the_lane(made):
    recorder = Recorder(itertools.count().__next__)
    lane = recorder.lane("decode", decode=True)
    front_end = made()
    front_end.stages(recorder)
    features = front_end.features(floats(np.tile(speech(), 2)), 1_000, lane)
    spans = np.frombuffer(lane.take(), SPAN)
    names = {stage.id: stage.name for stage in recorder.stages}
    for stage in mfcc.STAGES:
        mine = spans[[names[i] == stage for i in spans["stage"]]]
        assert mine["frames"].sum() == len(features)
        assert mine["first_frame"].min() == 1_000
        assert mine["frames"].max() <= mfcc.PIECE_FRAMES
    ends = spans["start_ns"] + spans["duration_ns"]
    assert (spans["start_ns"][1:] >= ends[:-1]).all(), "leaves of one lane must not overlap"
    assert set(front_end.costs()) == {stage.name for stage in recorder.stages}


def test_costs_count_what_is_computed():
    laws, quiet = Mfcc(DEFAULT).costs(), Mfcc(parsed("-nfilt 25 -lowerf 130 -upperf 6800")).costs()
    operations = laws[mfcc.MFCC].operations
    assert operations["log"].per_frame == 25
    assert quiet[mfcc.MFCC].operations["fma"].per_frame < operations["fma"].per_frame
    # FFT 2.5·512·9, DCT 2·13·25, power 3·257, and a filter weight for each bin twice at most.
    fixed = 2.5 * 512 * 9 + 2 * 13 * 25 + 3 * 257
    assert fixed < operations["scalar"].per_frame <= fixed + 2 * 2 * 257
    for law in laws.values():
        assert 0 < law.bytes_min.per_frame <= law.bytes_max.per_frame
        assert law.working_set_bytes > 0


def test_pocketsphinx_names_and_defaults():
    assert parsed("") == FeatureParameters()
    parameters = parsed("# trained 2015\n-nfilt 25 -lowerf 130\n-upperf 6800")
    assert (parameters.nfilt, parameters.lowerf, parameters.remove_noise) == (25, 130.0, False)
    assert parameters == FeatureParameters.from_mapping({"nfilt": "25", "-lowerf": "130", "upperf": "6800"})
    assert parsed("-nfft 0").nfft == 512
    assert parsed("-cmn current").cmn == "batch"
    assert (DEFAULT.window_samples, DEFAULT.hop_samples) == (410, 160)
