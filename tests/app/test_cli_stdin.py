"""What `run` is given: sound on standard input, the line that `--wait` waits for, transcripts and ids of utterances."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import answer, command, here, printed, refused

from tests.waiting import PATIENCE_S, wait_until

RUN = ("run", "--preset", "digits", "--no-profile", "--json", "--audio", "-")


def run_with_input(content: bytes, *words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    own = {**os.environ, "TMPDIR": str(folder)}
    line = command(*RUN, *words)
    return subprocess.run(line, input=content, capture_output=True, check=False, timeout=PATIENCE_S, env=own)


def test_sound_on_standard_input_is_decoded(bundled_speech, tmp_path, monkeypatch, short_runs):
    """Samples without a header come to a process of its own, a file of sound to this one."""
    voice = bundled_speech / "08-kal16-short.flac"
    samples, rate = soundfile.read(voice, dtype="int16")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(voice.read_bytes())))
    raw = samples.astype("<i2").tobytes()
    apart = run_with_input(raw, "--set", f"audio.raw={rate}:s16le", folder=tmp_path)
    assert not list(tmp_path.glob("asrscope-stdin-*")), "the file it was kept in is gone"
    for done in (apart, here(*RUN)):
        assert done.returncode == 0, done.stderr
        (utterance,) = json.loads(done.stdout)["utterances"]
        assert utterance["id"] == "stdin"
        assert utterance["audio_s"] == pytest.approx(len(samples) / rate)


@pytest.mark.slow
def test_what_is_no_sound_on_standard_input_is_refused(tmp_path):
    for content, words, says in (
        (b"", [], "Standard input is empty"),
        (b"", ["-"], "names standard input (-) twice"),
        (b"only words", [], "stdin cannot be read as sound"),
        (np.zeros(99, np.int16).tobytes(), ["--set", "audio.raw=x"], "audio.raw must be"),
    ):
        done = run_with_input(content, *words, folder=tmp_path)
        assert done.returncode == 2
        (line,) = done.stderr.decode().splitlines()
        assert says in line
        assert not list(tmp_path.glob("asrscope-stdin-*"))


STREAM = ("run", "--preset", "gmm-quick", "--set", "stream.chunk_ms=160", "--no-profile", "--wait", "--json")


@pytest.fixture
def waiting(bundled_speech, tmp_path):
    """A run at real time that is prepared and waits."""
    said = tmp_path / "said"
    speech = bundled_speech / "01-slt-morning.flac"
    words = command(*STREAM, "--set", "pace=1", "--audio", speech, "--partials", tmp_path / "partials")
    with said.open("wb") as complaints:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints)
    try:
        wait_until(lambda: "decoding" in said.read_text().splitlines() or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_it_waits_for_a_line_and_stops_at_the_end_of_the_input(waiting, tmp_path):
    begun_ns = time.perf_counter_ns()
    assert waiting.stdin is not None
    waiting.stdin.write(b"\n")
    waiting.stdin.flush()
    wait_until(lambda: bool((tmp_path / "partials").read_text()))
    printed, _ = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 130
    (utterance,) = json.loads(printed)["utterances"]
    assert utterance["stream"]["origin_ns"] > begun_ns
    assert utterance["audio_s"] < 6  # of 6.2 s


@pytest.mark.slow
def test_without_a_line_nothing_is_decoded(waiting):
    printed, _ = waiting.communicate(timeout=PATIENCE_S)
    assert json.loads(printed)["utterances"] == []
    assert waiting.returncode == 130


QUICK = ["--preset", "gmm-quick"]
SAID = "yes of course"


@pytest.fixture
def corpus(bundled_speech, tmp_path):
    """Three files of one speaker each, two of the same name."""
    for name in ("spk1/001.flac", "spk2/001.flac", "spk2/cafe\u0301.flac"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(bundled_speech / "08-kal16-short.flac", tmp_path / name)
    return tmp_path


def test_ids_are_distinct_and_can_be_selected(corpus, short_runs):
    table, out = corpus / "t.csv", corpus / "run.asrs"
    rows = ("spk1/001.flac", "spk2/caf\u00e9.flac", "gone.flac")
    table.write_text("".join(["path,sentence\n", *(f'{row},"{SAID}"\n' for row in rows)]))
    audio = (corpus / "spk1", corpus / "spk2")
    tree = answer("run", *QUICK, "--audio", *audio, "--transcripts", table, "--out", out)
    ids = ["spk1/001", "spk2/001", "caf\u00e9"]
    assert [u["id"] for u in tree["utterances"]] == ids
    assert [u["reference"] for u in tree["utterances"]] == [SAID, None, SAID]
    assert (tree["wer_errors"], tree["wer_words"]) == (0, 6)
    assert tree["transcribed"] == {"utterances": 2, "of": 3}
    note = "1 row of the transcripts names no file that is decoded: gone.flac"
    assert tree["notes"] == [note]
    text = here("show", out).stdout
    assert "0 errors in 6 words; 2 of 3 utterances have a transcript" in text
    assert f"note: {note}" in text
    picture = ("export", out, "--svg", corpus / "p.svg", "--view", "words", "--select")
    for name in ids:
        printed(*picture, name)
        assert name in refused(*picture, "001")


def test_a_reference_without_spaces_has_a_character_error_rate(corpus, short_runs):
    table = corpus / "t.tsv"
    table.write_text(f"file\ttranscript\nspk1/001.flac\t\u662f\u7684\u5f53\u7136\nspk2/001.flac\t{SAID}\n")
    out = corpus / "run.asrs"
    tree = answer("run", *QUICK, "--transcripts", table, "--out", out)
    letters = len(SAID.replace(" ", ""))
    keys = ("wer_errors", "wer_words", "cer_errors", "cer_characters")
    assert [tree[key] for key in keys] == [letters, 7, letters, 4]
    assert tree["cer"] == letters / 4
    assert [u["cer_characters"] for u in tree["utterances"]] == [4, None]
    text = here("show", out).stdout
    assert f"{letters} errors in 7 words and characters (4 of them, where the reference has no spaces" in text
    one = here("show", out, "--select", tree["utterances"][0]["id"]).stdout
    assert f"CER 275.0%: {letters} errors in 4 characters (the reference has no spaces between words)" in one


def test_parts_of_a_file_are_utterances(corpus):
    (corpus / "wav.scp").write_text("rec spk1/001.flac\n")
    (corpus / "segments").write_text("u1 rec 0 -1\n")
    (corpus / "text").write_text(f"u1 {SAID}\nu2 no\n")
    tree = answer("run", *QUICK, "--no-profile", "--transcripts", corpus / "text")
    (row,) = tree["utterances"]
    assert (row["id"], row["wer"], row["reference"]) == ("u1", 0.0, SAID)
    assert tree["notes"] == ["1 row of the transcripts names no file that is decoded: u2"]
