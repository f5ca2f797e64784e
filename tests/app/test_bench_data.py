"""A bench that lacks its data says so in a sentence and fails before it measures; what a bench names is there."""

import sys
from pathlib import Path

import pytest

from app.cli import bench
from app.cli.main import main
from assets.speech.build import FliteMissing
from tests.bench import _desk_window, corpus

NEEDS_WORDS = ("dnn", "gmm", "ladder", "strategies")
NEEDS_HUMANS = ("dnn", "ladder")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence with which `asrscope bench` ends, its status 2 and nothing on stdout."""
    assert main(["bench", *words, "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.strip().splitlines()
    return line


@pytest.mark.parametrize("name", NEEDS_HUMANS)
def test_without_human_speech(name, tmp_path, capsys, monkeypatch, bundled_speech):
    monkeypatch.setattr(corpus, "HUMAN", tmp_path / "gone")
    monkeypatch.setattr(corpus, "flite_corpus", lambda split: bundled_speech)
    line = refused(capsys, name)
    assert str(tmp_path / "gone" / "transcripts.tsv") in line
    assert "--audio" in line


@pytest.mark.parametrize("name", NEEDS_WORDS)
def test_without_a_voice_to_make_the_corpus(name, tmp_path, capsys, monkeypatch, bundled_speech):
    def no_voice(split: str) -> Path:
        raise FliteMissing("flite is not installed")

    monkeypatch.setattr(corpus, "flite_corpus", no_voice)
    monkeypatch.setattr(corpus, "HUMAN", bundled_speech)
    assert "flite is not installed" in refused(capsys, name)


@pytest.mark.parametrize("name", bench.names())
def test_files_that_are_not_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, name, "--audio", "nowhere.wav")
    assert "--repeat" in refused(capsys, name, "--repeat", "0")


def test_speech_of_which_nobody_knows_the_words(capsys: pytest.CaptureFixture[str], bundled_speech: Path) -> None:
    file = str(bundled_speech / "08-kal16-short.flac")
    assert "--transcripts" in refused(capsys, "strategies", "--audio", file)


def test_a_peer_that_is_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    monkeypatch.delitem(sys.modules, "tests.bench.decode", raising=False)
    line = refused(capsys, "decode")
    assert "needs pocketsphinx" in line
    assert "asrscope[bench]" in line


@pytest.mark.parametrize("part", _desk_window.PARTS)
def test_the_bench_of_the_desk_can_do_without_each_part(part: str) -> None:
    with _desk_window.left_out(part):
        pass
