"""Standard input of a run: sound (`--audio -`), and the line from which `--wait` decodes until the input ends."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import command, here

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
