"""The bundled speech is what its README and its script say; the bench corpus keeps its splits."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from assets.speech import build
from pipelines.audio import collecting, transcripts
from pipelines.audio import loading as audio

SPEECH = Path(build.__file__).parent
needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


def test_every_file_has_its_transcript_and_is_as_the_readme_says():
    files = collecting.collect([SPEECH])
    said = transcripts.read(SPEECH / "transcripts.tsv").by_place()
    assert [file.resolve() for file in files] == list(said)
    assert list(said.values()) == [utterance.text for utterance in build.UTTERANCES]
    assert [file.name for file in files] == [build.file_name(i, u) for i, u in enumerate(build.UTTERANCES, start=1)]
    assert {utterance.voice for utterance in build.UTTERANCES} == set(build.VOICES)
    infos = [soundfile.info(file) for file in files]
    assert {(info.samplerate, info.channels, info.format) for info in infos} == {(16_000, 1, "FLAC")}
    assert 60 <= sum(info.duration for info in infos) <= 90
    assert sum(file.stat().st_size for file in SPEECH.iterdir() if file.is_file()) < 3_000_000


def test_one_utterance_has_noise_in_its_middle():
    (number,) = [i for i, u in enumerate(build.UTTERANCES, start=1) if u.noise]
    sound = audio.load(SPEECH / build.file_name(number, build.UTTERANCES[number - 1]))
    quietest = audio.peaks(sound.samples, len(sound.samples) // 160).astype(int)
    spread = quietest[:, 1] - quietest[:, 0]
    n = len(spread)
    assert np.percentile(spread[int(0.4 * n) : int(0.7 * n)], 10) > 20
    assert np.percentile(spread[: int(0.3 * n)], 10) < 5


@needs_flite
def test_the_script_speaks_the_same_again():
    number = next(i for i, u in enumerate(build.UTTERANCES, start=1) if u.noise)
    utterance = build.UTTERANCES[number - 1]
    samples = build.render(utterance)
    assert np.array_equal(samples, build.render(utterance))
    shipped, _ = soundfile.read(SPEECH / build.file_name(number, utterance), dtype="int16")
    if len(shipped) != len(samples):
        pytest.skip(f"another flite than the {build.FLITE_VERSION} that spoke the shipped files")
    assert np.array_equal(samples, shipped)


def test_without_flite_nothing_is_changed(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    before = (SPEECH / "transcripts.tsv").stat().st_mtime_ns
    assert build.main([]) == 0
    assert "stays as it is: flite is not installed" in capsys.readouterr().err
    assert (SPEECH / "transcripts.tsv").stat().st_mtime_ns == before
