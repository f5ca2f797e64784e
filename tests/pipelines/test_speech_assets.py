"""The bundled speech is what its README and its script say; the bench corpus keeps its splits."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assets.speech import build
from pipelines.audio import collecting, transcripts
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from tests.bench import corpus

SPEECH = Path(build.__file__).parent

needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


def dictionary() -> set[str]:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    lines = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")).read_text("utf-8")
    return {line.split(None, 1)[0].partition("(")[0] for line in lines.splitlines()}


def test_every_file_has_its_transcript() -> None:
    files = collecting.collect([SPEECH])
    said = transcripts.read_transcripts(SPEECH / "transcripts.tsv")
    assert [file.resolve() for file in files] == list(said)
    assert list(said.values()) == [utterance.text for utterance in build.UTTERANCES]
    names = [build.file_name(i, u) for i, u in enumerate(build.UTTERANCES, start=1)]
    assert [file.name for file in files] == names
    assert {utterance.voice for utterance in build.UTTERANCES} == set(build.VOICES)


def test_format_length_and_size() -> None:
    files = collecting.collect([SPEECH])
    for file in files:
        info = soundfile.info(file)
        assert (info.samplerate, info.channels, info.format) == (16_000, 1, "FLAC")
    assert 60 <= sum(soundfile.info(file).duration for file in files) <= 90
    assert sum(file.stat().st_size for file in SPEECH.iterdir() if file.is_file()) < 3_000_000


def test_the_words_are_known_except_the_rare_ones() -> None:
    known = dictionary()
    for utterance in build.UTTERANCES:
        unknown = set(utterance.text.split()) - known
        assert (len(unknown) >= 5) == (utterance.subject == "names"), unknown


def test_one_utterance_has_noise_in_its_middle() -> None:
    (number,) = [i for i, u in enumerate(build.UTTERANCES, start=1) if u.noise]
    sound = audio.load(SPEECH / build.file_name(number, build.UTTERANCES[number - 1]))
    quietest = audio.peaks(sound.samples, len(sound.samples) // 160).astype(int)
    spread = quietest[:, 1] - quietest[:, 0]
    n = len(spread)
    assert np.percentile(spread[int(0.4 * n) : int(0.7 * n)], 10) > 20
    assert np.percentile(spread[: int(0.3 * n)], 10) < 5


def test_pocketsphinx_understands_the_plain_sentences() -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    decoder = pocketsphinx.Decoder(loglevel="FATAL")
    samples, _ = soundfile.read(SPEECH / "01-slt-morning.flac", dtype="int16")
    decoder.start_utt()
    decoder.process_raw(samples.tobytes(), full_utt=True)
    decoder.end_utt()
    assert wer.count(build.UTTERANCES[0].text, decoder.hyp().hypstr).rate < 0.1


@needs_flite
def test_the_script_speaks_the_same_again() -> None:
    number = next(i for i, u in enumerate(build.UTTERANCES, start=1) if u.noise)
    utterance = build.UTTERANCES[number - 1]
    samples = build.render(utterance)
    assert np.array_equal(samples, build.render(utterance))
    shipped, _ = soundfile.read(SPEECH / build.file_name(number, utterance), dtype="int16")
    if len(shipped) != len(samples):
        pytest.skip(f"another flite than the {build.FLITE_VERSION} that spoke the shipped files")
    assert np.array_equal(samples, shipped)


def test_without_flite_nothing_is_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    before = (SPEECH / "transcripts.tsv").stat().st_mtime_ns
    assert build.main([]) == 0
    assert "stays as it is: flite is not installed" in capsys.readouterr().err
    assert (SPEECH / "transcripts.tsv").stat().st_mtime_ns == before


def book(folder: Path, n: int = 700) -> Path:
    numbers = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    lines = [" ".join(numbers[int(d)] for d in str(i)) + " 'Tis so!" for i in range(n)]
    (folder / "book.txt").write_text("\n".join(lines + lines[:50]))
    return folder / "book.txt"


def test_splits_are_fixed_and_share_no_sentence(tmp_path: Path) -> None:
    text = book(tmp_path)
    splits = {split: corpus.sentences(text, split) for split in corpus.SPLITS}
    assert [len(s) for s in splits.values()] == [300, 300, 100]
    assert len(set().union(*splits.values())) == 700
    assert all(sentence.endswith("tis so") for sentence in splits["test"])
    assert corpus.sentences(text, "test") == splits["test"]
    assert corpus.sentences(text, "test", seed=2) != splits["test"]


def test_the_test_split_is_long_enough() -> None:
    if not corpus.SENTENCES.exists():
        pytest.skip("no text beside the checkout")
    chosen = corpus.sentences(corpus.SENTENCES, "test")[: corpus.N_SENTENCES]
    assert len(chosen) == 200
    assert sum(len(sentence.split()) for sentence in chosen) >= 1_500


@needs_flite
def test_a_corpus_is_made_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    text = book(tmp_path)
    arguments = ["--split", "development", "--sentences", "5", "--text", str(text)]
    assert corpus.main(arguments) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder.is_relative_to(tmp_path / "cache")
    said = transcripts.read_transcripts(folder / "transcripts.tsv")
    assert list(said.values()) == corpus.sentences(text, "development")[:5]
    assert [path.name for path in said][:2] == ["0000-slt.flac", "0001-rms.flac"]
    assert all(audio.load(path).duration_s > 0.5 for path in said)
    monkeypatch.setenv("PATH", str(tmp_path))  # no flite: only what is there can be returned
    assert corpus.main(arguments) == 0
    assert Path(capsys.readouterr().out.strip()) == folder


def test_what_cannot_be_spoken_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    text = str(book(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for arguments, part in (
        (["--text", str(tmp_path / "none.txt")], "cannot be read"),
        (["--text", text, "--sentences", "301"], "has 300 sentences for the 301 asked"),
        (["--text", text, "--sentences", "2"], "flite is not installed"),
    ):
        assert corpus.main(arguments) == 2
        message = capsys.readouterr().err
        assert part in message
        assert message.count("\n") == 1
    assert not list((tmp_path / "cache").rglob("transcripts.tsv"))
