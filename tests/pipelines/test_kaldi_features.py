"""Features of Kaldi models: against Kaldi's definition written out in float64, and the library's own operations."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import kaldi_native_fbank as library
import kaldi_writer as writer
import numpy as np
import pytest

from pipelines.frontend.kaldi import KaldiMfcc
from pipelines.frontend.kaldi_parameters import KaldiFeatures
from pipelines.frontend.mfcc import PIECE_FRAMES
from pipelines.frontend.parameters import FeatureParameterError
from pipelines.models import kaldi
from profiler.spans import Recorder
from tests.each import each

PLAIN = KaldiFeatures(use_energy=False, norm_means=False)


def sound(seconds: float, seed: int = 1) -> np.ndarray:
    """Noise that gets louder and quieter, as int16 rounds it."""
    rng = np.random.default_rng(seed)
    n = round(16_000 * seconds)
    envelope = 0.1 + np.sin(np.arange(n) / 3000) ** 2
    return (np.rint(3000 * envelope * rng.normal(size=n)) / 32_768).astype(np.float32)


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


@pytest.mark.parametrize(
    "p", [PLAIN, replace(PLAIN, num_mel_bins=40, num_ceps=20, low_freq=40.0, high_freq=-400.0, frame_length=32.0)]
)
def test_cepstra_are_those_of_kaldis_definition(p: KaldiFeatures) -> None:
    samples = sound(2.0)
    made = KaldiMfcc(p).features(samples)
    np.testing.assert_allclose(made, mfcc(samples, p), atol=5e-3)


@each("snip", [True, False])
@each("samples", [1, 100, 399, 400, 560, 16_000])
def test_every_sound_has_frames(samples: int, snip: bool) -> None:
    front = KaldiMfcc(replace(PLAIN, snip_edges=snip, norm_means=True))
    made = front.features(sound(1.0)[:samples])
    assert len(made) == front.n_frames(samples) >= 1
    assert np.isfinite(made).all()
    assert front.n_frames(0) == 0
    assert front.features(np.empty(0, np.float32)).shape == (0, 13)


def static(samples: np.ndarray, p: KaldiFeatures) -> np.ndarray:
    return KaldiMfcc(replace(p, delta_order=0, left_context=0, right_context=0)).features(samples)


@each("order, window", [(1, 2), (2, 2), (3, 1)])
def test_differences_are_the_librarys(order: int, window: int) -> None:
    p = replace(PLAIN, norm_means=True, delta_order=order, delta_window=window)
    samples = sound(0.01 * (PIECE_FRAMES + 40))  # two pieces
    expected = library.compute_deltas(library.DeltaOptions(order=order, window=window), static(samples, p))
    np.testing.assert_allclose(KaldiMfcc(p).features(samples), expected, atol=1e-4)


def test_splicing_and_transforms_are_the_librarys() -> None:
    p = replace(PLAIN, norm_means=True, left_context=2, right_context=4)
    samples = sound(0.01 * (PIECE_FRAMES + 40))
    spliced = library.splice_frames(static(samples, p), library.SpliceOptions(left_context=2, right_context=4))
    np.testing.assert_array_equal(KaldiMfcc(p).features(samples), spliced)
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(40, 91)).astype(np.float32)
    np.testing.assert_allclose(KaldiMfcc(p, matrix).features(samples), spliced @ matrix.T, rtol=1e-3, atol=1e-2)
    affine = np.concatenate([matrix, rng.normal(size=(40, 1))], axis=1).astype(np.float32)
    np.testing.assert_allclose(
        KaldiMfcc(p, affine).features(samples), spliced @ matrix.T + affine[:, -1], rtol=1e-3, atol=1e-2
    )


def test_the_mean_and_variance_are_those_of_the_utterance() -> None:
    made = KaldiMfcc(replace(PLAIN, norm_means=True, norm_vars=True)).features(sound(3.0))
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(made.std(0), 1, atol=1e-4)


def test_stages_cover_all_frames_and_have_laws() -> None:
    front = KaldiMfcc(replace(PLAIN, norm_means=True, delta_order=2))
    recorder = Recorder()
    lane = recorder.lane("decode", decode=True)
    front.stages(recorder)
    made = front.features(sound(0.01 * (PIECE_FRAMES + 40)), 7, lane)
    spans = lane.latest(lane.recorded)
    names = [recorder.stages[int(span["stage"])].name for span in spans]
    assert set(names) == front.costs().keys() == {"frontend.mfcc", "frontend.normalise"}
    for name in set(names):
        mine = [span for span, of in zip(spans, names, strict=True) if of == name]
        assert sum(int(span["frames"]) for span in mine) == len(made)
        assert int(mine[0]["first_frame"]) == 7


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "kaldi_native_fbank", None)
    folder = writer.write_model(tmp_path / "model")
    # Before a graph is built, which may take a minute.
    with pytest.raises(FeatureParameterError, match=r"pip install 'asrscope\[kaldi\]'"):
        kaldi.load(folder)
    with pytest.raises(FeatureParameterError, match=r"pip install 'asrscope\[kaldi\]'"):
        KaldiMfcc(PLAIN)


def test_options_that_the_library_refuses_are_refused_in_one_sentence() -> None:
    with pytest.raises(FeatureParameterError, match="too large"):
        KaldiMfcc(replace(PLAIN, num_mel_bins=128))
