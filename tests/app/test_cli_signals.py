"""Signals to real runs: they close the session, a crash leaves its stack, and a stop takes none of the run's time."""

import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from command_line import answer, decoding, here

from profiler.analysis.categories import NOT_OWN
from profiler.machine import run_queue
from profiler.session.reader import Session
from profiler.spans import TILING
from tests.waiting import PATIENCE_S, wait_for_frames, wait_until

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
    words = ("run", *PACED, "--audio", bundled_speech / "08-kal16-short.flac", "--out", out)
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


@pytest.mark.skipif(not Path(run_queue.TASKS).exists(), reason="Linux tells what all threads do")
def test_what_stood_still_is_outside_and_has_its_place(bundled_speech, tmp_path):
    out = tmp_path / "stopped.asrs"
    words = ("--preset", "gmm-quick", "--set", "loop=true", "--set", "replay=0")
    still = []
    with decoding("run", *words, "--audio", bundled_speech, "--out", out) as process:
        for frames in (500, 1500):  # twice, as it may be between two utterances
            wait_for_frames(out, frames)
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
            begin = time.monotonic()
            time.sleep(3.0)
            still.append(time.monotonic() - begin)
            process.send_signal(signal.SIGCONT)
        wait_for_frames(out, 4000)  # What stood still in an utterance that is cut off counts by its decoded part.
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    with Session.open(out) as session:
        tiling = [stage.id for stage in session.stages.values() if stage.group in TILING]
        tiles = session.spans[np.isin(session.spans["stage"], tiling)]
        blocks = np.isin(tiles["stage"], [stage.id for stage in session.stages.values() if stage.group == "decode"])
        stopped_ms = tiles["work2"].astype(np.int64)
        # Every tile that is as long says how much of that was none of its own.
        long = tiles["duration_ns"] - tiles["work0"].astype(np.int64) - tiles["work1"] >= 1e9 * min(still)
        assert long.any()
        assert (stopped_ms[long] >= 1e3 * min(still) - 10).all()
        assert (stopped_ms[~long] == 0).all()
        marks = [m for m in session.markers if "stood still" in m.text]
        assert sorted(m.asked_frame for m in marks) == sorted(tiles["first_frame"][long].tolist())
        noted = [u for u in session.utterances if any(note.startswith("stood still for") for note in u.notes)]
        assert {u.id for u in noted} == {
            u.id for u in session.utterances for mark in marks if u.first_frame <= mark.asked_frame < u.end_frame
        }
    tree = answer("show", out)
    assert tree["stopped_s"] == pytest.approx(stopped_ms.sum() / 1e3)
    # Of the features of the last utterance those of the frames count that were decoded.
    of_blocks, of_all = (
        ns / 1e9 - tree["stopped_s"] for ns in (tiles["duration_ns"][blocks].sum(), tiles["duration_ns"].sum())
    )
    assert of_blocks - 1e-6 <= tree["wall_s"] <= of_all + 1e-6
    times = tree["categories"] | {"hidden_s": 0.0}
    assert sum(times.values()) == pytest.approx(tree["wall_s"])
    # None of it is the recogniser's: without other programs, blocks take what their processor time allows.
    own = tree["wall_s"] - sum(times[f"{name}_s"] for name in NOT_OWN)
    assert sum(row["own_s"] for row in tree["stages"]) <= own + 1e-6
    assert "stood still" in here("show", out).stdout
