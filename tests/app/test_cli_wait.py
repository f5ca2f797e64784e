"""`run --wait`: prepared, it decodes from the first line on standard input until its end."""

import json
import subprocess
import time

import pytest
from command_line import answer, command, refused

from tests.waiting import PATIENCE_S, wait_until

STREAM = ("run", "--preset", "gmm-quick", "--set", "stream.chunk_ms=160", "--no-profile", "--wait", "--json")


@pytest.fixture
def waiting(bundled_speech, tmp_path):
    """A run at real time that is prepared and waits, and the file with its complaints."""
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


def test_the_report_has_the_stream_and_its_words(bundled_speech, short_runs):
    short = bundled_speech / "08-kal16-short.flac"
    (utterance,) = answer(*STREAM[:-2], "--audio", short, short)["utterances"]
    stream = utterance["stream"]
    assert [word for word, _, _ in stream["words"]] == utterance["hypothesis"].split()
    assert 0 <= stream["words"][0][1] < stream["words"][-1][1] < 100 * utterance["audio_s"]
    assert stream["audio_ns"][-1] == round(utterance["audio_s"] * 1e9)
    assert len({len(stream[name]) for name in ("audio_ns", "arrived_ns", "started_ns", "shown_ns")}) == 1


def test_standard_input_is_not_read_twice():
    assert "name a file of sound" in refused(*STREAM, "--audio", "-")
