"""Re-estimation on aligned speech, with a model of fifteen senones and words made of its two phones."""

import numpy as np
import pytest
import sphinx_writer as writer
from whole_runs import quiet

from pipelines.frontend.mfcc import Mfcc
from pipelines.models import single_stream as models
from pipelines.models import sphinx
from pipelines.models.dictionary import Dictionary
from pipelines.training import single_stream as training
from pipelines.training.single_stream import Speech, TrainingUtterance
from profiler.errors import Cancelled
from tests.pipelines.refusing import refusal


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def base(tmp_path):
    return sphinx.load(writer.write_model(tmp_path / "model", densities=20))


class Voice:
    def __init__(self):
        self.spoken = []

    def speech(self, n=5, words="bob"):
        def samples(number):
            self.spoken.append(number)
            return np.random.default_rng(number).normal(0, 0.1, 8000).astype(np.float32)

        return Speech(
            [TrainingUtterance(f"{words} {i}", words.split(), lambda i=i: samples(i)) for i in range(n)], "noise"
        )


@pytest.fixture
def voice(monkeypatch):
    monkeypatch.setattr(training, "BATCH", 2)
    words = Dictionary({"bob": (("B", "AA", "B"),), "zebra": (("Z", "B"),)})
    monkeypatch.setattr(training.dictionary, "default", lambda: words)
    return Voice()


def test_real_frames_enter_and_the_model_says_so(base, voice):
    model = training.train(base, 6, voice.speech(), 1.0, quiet)
    n = 5 * Mfcc(base.feat_params).n_frames(8000)
    assert f"re-estimated on {n / 6000:.0f} minutes of noise" in model.origin
    assert "of 15 senones have seen real frames" in model.origin
    assert models.best(base, 6).checksum == model.checksum
    # The features of noise are far from the random model's means: Gaussians have moved there.
    resampled = models.resampled(base, 6)
    frames = Mfcc(base.feat_params).features(voice.speech().utterances[0].samples())
    bob = base.mdef.ci_ssid(base.mdef.silence)
    senone = base.mdef.sseq[bob][1]
    moved = np.abs(model.means[senone, 0] - frames.mean(0)).max(1).min()
    assert moved < np.abs(resampled.means[senone, 0] - frames.mean(0)).max(1).min()


def test_a_stopped_run_goes_on_and_ends_alike(base, voice, cache):
    calls = iter([False, False, False] + [True] * 99)
    with pytest.raises(Cancelled):
        training.train(base, 6, voice.speech(), 1.0, quiet, lambda: next(calls))
    assert voice.spoken == [0, 1, 2]
    assert models.trained(base, 6) is None
    model = training.train(base, 6, voice.speech(), 1.0, quiet)
    # The first batch was kept, the second was stopped in the middle.
    assert voice.spoken == [0, 1, 2, 2, 3, 4]
    means = model.means.copy()
    again = training.train(base, 6, voice.speech(), 1.0, quiet)
    assert voice.spoken == [0, 1, 2, 2, 3, 4]
    np.testing.assert_array_equal(again.means, means)
    assert not list(cache.rglob(".*"))


def test_no_more_speech_than_requested(base, voice):
    training.train(base, 6, voice.speech(9), 120 / training.FRAMES_PER_HOUR, quiet)  # a batch of two and a bit
    assert voice.spoken == [0, 1, 2, 3]


def test_a_run_stopped_while_fitting_leaves_the_old_model(base, voice):
    old = training.train(base, 6, voice.speech(2), 1.0, quiet)

    def stop(title, fraction):
        if title.startswith("fitting"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(base, 6, voice.speech(5), 1.0, stop)
    assert models.best(base, 6).origin == old.origin


def test_damaged_alignments_are_made_anew_and_words_that_cannot_be_aligned_left_out(base, voice, cache):
    first = training.train(base, 6, voice.speech(2), 1.0, quiet).means.copy()
    (file,) = cache.rglob("frames-*/*.kept")
    for damaged in (b"", b"PK\x03\x04 nonsense", file.read_bytes()[:500]):
        file.write_bytes(damaged)
        again = training.train(base, 6, voice.speech(2), 1.0, quiet)
        np.testing.assert_array_equal(again.means, first)
    refusal("None of noise can be aligned", training.train, base, 6, voice.speech(2, "zebra"), 1.0, quiet)


def test_frames_are_shared_among_senones_of_one_state(base):
    definition = base.mdef
    scores = np.random.default_rng(0).normal(0, 5, (9, 15)).astype(np.float32)
    aligned = np.array([3, 4, 5, 12, 13, 14, 6, 9, 0], np.int32)
    alignment = training.Alignment(aligned, aligned * 0, aligned * 0, 0.0)
    senones, shares = training._Maker(base)._share(scores, alignment)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(senones[:, 0], aligned)
    for facts in (definition.senone_phone, definition.senone_state):
        assert ((facts[senones] == facts[aligned][:, None]) | (shares == 0)).all()


@pytest.mark.parametrize("flite", [True, False])
def test_the_command_without_flite_or_text_says_what_it_trains_on(base, voice, tmp_path, monkeypatch, capsys, flite):
    from assets.speech import build

    if flite:
        monkeypatch.setattr(build, "available_voices", lambda: list(build.VOICES))
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(training, "recorded", lambda folder, about="": Speech(voice.speech(2).utterances, about))
    arguments = ["--model", str(base.directory), "--text", str(tmp_path / "none.txt")]
    assert training.main([*arguments, "--components", "6"]) == 0
    out, err = capsys.readouterr()
    assert ("none.txt cannot be read" if flite else "flite is not installed") in err
    assert "minutes of the bundled demonstration utterances (too little)" in out


def test_training_sentences_are_neither_tested_nor_tuned_on(tmp_path, monkeypatch):
    from assets.speech import build
    from pipelines.training.corpus.data import sentences

    monkeypatch.setattr(build, "available_voices", lambda: list(build.VOICES))
    text = tmp_path / "sentences.txt"
    text.write_text("\n".join(f"number {i} is said here" for i in range(700)))
    speech = training.synthetic(text)
    said = {" ".join(utterance.words) for utterance in speech.utterances}
    assert len(said) == 100
    assert not said & {*sentences(text, "test"), *sentences(text, "development")}
    assert len({utterance.key for utterance in speech.utterances}) == 400
