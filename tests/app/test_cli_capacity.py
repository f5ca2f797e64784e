"""`asrscope capacity` as scripts call it: one real stream, a core that others keep busy, a stop, and bad input."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from command_line import answer, command, here, refused

from app.cli import capacity as verb
from pipelines.experiments.capacity import streams, study
from tests.waiting import PATIENCE_S, wait_until

affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of processors here")


@pytest.fixture
def short(monkeypatch):
    """One measurement of each number, without much around it."""
    monkeypatch.setattr(study, "REPEATS", 1)
    for name in ("WARM_UP_S", "AFTER_S"):
        monkeypatch.setattr(streams, name, 1.0)


def words(speech: Path, out: Path, *more: str) -> tuple[str | Path, ...]:
    audio = speech / "08-kal16-short.flac"
    return ("capacity", "--preset", "gmm-quick", "--audio", audio, "--seconds", "3", "--out", out, *more)


@pytest.mark.slow
@affinity
@pytest.mark.usefixtures("short")
def test_a_stream_is_measured_and_the_same_command_only_reads_it(bundled_speech, tmp_path):
    calls = words(bundled_speech, tmp_path / "calls", "--streams", "1", "--cores", "1", "--bound", "60")
    done = here(*calls, "--json")
    assert done.returncode == 0, done.stderr
    assert "1 stream: measuring for 3 s" in done.stderr
    tree = json.loads(done.stdout)
    assert (tree["schema"], tree["cores"], tree["chunk_ms"], tree["bound_p99_s"]) == (1, 1, 160, 60.0)
    (row,) = tree["streams"]
    assert (row["n"], row["measurements"]) == (1, 1)
    assert row["words"] > 0
    assert row["behind"]["without_emission"] == row["words"] >= row["behind"]["time_to_final"]
    (noted,) = tree["notes"]
    assert noted.startswith(f"With 1 stream the percentiles rest on {row['words']} word")
    for name in ("first_shown", "stable", "without_emission", "chunk"):
        latency = row["latency_s"][name]
        assert latency["p50"] <= latency["p90"] <= latency["p99"]
    assert 0 < row["rtf"]["p50"] <= row["rtf"]["p99"]
    assert row["memory_bytes"] > 50e6
    # Both are of the processor time of one stream on one core.
    assert row["rtfx"] * row["core_s_per_audio_hour"] == pytest.approx(3600)
    if not row["queue_grows"]:  # as it may on a machine that others keep busy
        assert (tree["capacity"], tree["capacity_range"]) == (1, [1, 1])
        assert tree["why"] == "All numbers of streams up to 1 hold; --streams asks for no more."

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "calls").rglob("*")}
    again = here(*calls, "--json")
    assert json.loads(again.stdout) == tree
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "calls").rglob("*")} == before
    text = here(*calls).stdout
    assert f"note: {noted}" in text
    assert "p99 of the delay is at most 60 s" in text
    assert str(tmp_path / "calls") in text


@contextmanager
def busy(core: int, number: int) -> Iterator[None]:
    """As many loops on a core."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        for loop in loops:
            os.sched_setaffinity(loop.pid, {core})
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.slow
@affinity
@pytest.mark.usefixtures("short")
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the scheduler of Linux tells the waiting")
def test_a_core_that_others_keep_busy_is_seen(bundled_speech, tmp_path, monkeypatch):
    measured = streams.Bench._measure

    def starved(self: streams.Bench, running: streams._Streams, *more: object) -> streams.Level:
        loops = busy(self.machine.cores[0], 6)
        *others, step = more

        def stepped(what: str) -> None:
            step(what)  # type: ignore[operator]
            if what.startswith("measuring"):
                loops.__enter__()

        try:
            return measured(self, running, *others, stepped)  # type: ignore[arg-type, call-arg]
        finally:
            loops.__exit__(None, None, None)

    monkeypatch.setattr(streams.Bench, "_measure", starved)
    calls = words(bundled_speech, tmp_path / "calls", "--streams", "1", "--cores", "1", "--bound", "0.001", "--json")
    tree = answer(*calls)
    assert (tree["capacity"], tree["capacity_range"]) == (0, [0, 0])
    (row,) = tree["streams"]
    assert row["other_cores"] > 0.5
    # About as long as it computes, as one of seven on the core that mostly sleeps; alone a thirtieth.
    assert row["waited_s_per_chunk"] > 0.1 * row["processor_s_per_chunk"]
    assert tree["why"].startswith("The fewest streams tried do not hold. With 1 stream p99 is")
    assert "other programs" in tree["why"]


@pytest.mark.slow
@affinity
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_streams_end_with_the_command_and_ctrl_c_leaves_what_was_measured(number, bundled_speech, tmp_path):
    out = tmp_path / "calls"
    calls = command(*words(bundled_speech, out, "--streams", "2", "--seconds", "600"))
    process = subprocess.Popen(calls, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    parent = psutil.Process(process.pid)
    try:
        wait_until(lambda: (out / "levels" / "2-1" / "2.json").exists() or process.poll() is not None)
        running = parent.children(recursive=True)
        assert len(running) == 2
        process.send_signal(number)
        printed, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    if number == signal.SIGKILL:
        assert not psutil.wait_procs(running, timeout=PATIENCE_S)[1]
        return
    assert not psutil.wait_procs(running, timeout=0)[1]
    assert process.returncode == 130
    assert "the same command with --out goes on with the study" in said
    assert "So far 0 streams" in printed
    assert (out / "first" / "result.json").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--streams", "0"), "whole number from 1 to 4096, not '0'"),
        (("--streams", "8..4"), "a range LO..HI, not '8..4'"),
        (("--cores", "65536"), "the processors that this program may use; not 65536"),
        (("--bound", "0"), "seconds, above 0"),
        (("--seconds", "1e9"), "at most 3600"),
        (("--set", "stream.chunk_ms=0"), "stream.chunk_ms must be above 0"),
        (("--set", "threads=2"), "threads must be 1"),
        (("--set", "loop=true"), "loop must be false"),
        (("--set", "pace=0"), "pace must be 1"),
        (("--audio", "-"), "can be read once"),
        (("--preset", "no-such"), "no-such"),
    ],
)
@affinity
def test_bad_input_is_one_sentence(more, sentence, tmp_path):
    assert sentence in refused("capacity", *more, "--out", tmp_path / "calls")
    assert not (tmp_path / "calls").exists()


@affinity
def test_a_recogniser_that_cannot_stream_says_so(bundled_speech, tmp_path, monkeypatch):
    code = "import sys; sys.exit('asrscope: A net with i-vectors cannot be decoded as a stream.')"
    monkeypatch.setattr(verb, "_command", lambda *_, **__: [sys.executable, "-c", code])
    done = here(*words(bundled_speech, tmp_path / "calls"))
    assert done.returncode == 2
    sentence = "asrscope: Stream 1 has ended: A net with i-vectors cannot be decoded as a stream."
    assert done.stderr.splitlines() == ["decoding the sound once", sentence]
