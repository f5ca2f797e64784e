"""Signals to real runs: SIGTERM and SIGHUP close the session as Ctrl+C does, and a crash leaves its stack."""

import shutil
import signal
import sys
import time

import pytest
from command_line import decoding

from profiler.session.reader import Session
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

PACED = ("--preset", "gmm-quick", "--set", "pace=1", "--set", "replay=0")


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "number"), [("run", "SIGTERM"), ("run", "SIGINT"), ("ab", "SIGHUP")])
def test_the_session_is_closed(verb, number, bundled_speech, tmp_path):
    out = tmp_path / "ended.asrs"
    more = ("--b", "search.beam=10") if verb == "ab" else ()
    with decoding(verb, *PACED, *more, "--audio", bundled_speech, "--out", out) as process:
        time.sleep(0.3)
        process.send_signal(signal.Signals[number])
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in stderr
    # An A/B that was stopped before both arms were heard has nothing to compare, and says so.
    assert process.returncode in {128 + signal.Signals[number], *((2,) if verb == "ab" else ())}
    with Session.open(out) as session:
        assert session.state == "stopped"
        assert 0 < sum(one.audio_s for one in session.utterances) < 30
    assert not list(tmp_path.glob("*-wal"))


@pytest.mark.slow
def test_a_second_signal_is_not_waited_with(bundled_speech, tmp_path):
    out = tmp_path / "ended.asrs"
    with decoding("run", *PACED, "--audio", bundled_speech, "--out", out) as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    with Session.open(out) as session:
        assert session.state in ("stopped", "failed")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nohup") is None, reason="no nohup here")
def test_nohup_is_respected(bundled_speech, tmp_path):
    out = tmp_path / "survives.asrs"
    short = bundled_speech / "08-kal16-short.flac"
    words = ("run", *PACED, "--audio", short, "--out", out)
    with decoding(*words, before=("nohup",)) as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    with Session.open(out) as session:
        assert session.state == "closed"


def test_a_crash_leaves_its_stack(bundled_speech, tmp_path):
    out = tmp_path / "crashed.asrs"
    with decoding("run", *PACED, "--audio", bundled_speech, "--out", out) as process:
        process.send_signal(signal.SIGSEGV)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in stderr
    assert "in execute" in stderr
