"""Sound on standard input: `--audio -`."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import command, here

from tests.waiting import PATIENCE_S

RUN = ("run", "--preset", "digits", "--no-profile", "--json", "--audio", "-")


def run_with_input(content: bytes, *words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*RUN, *words),
        input=content,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "TMPDIR": str(folder)},
    )


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
