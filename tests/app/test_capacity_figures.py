"""The figures of streams made up by hand, the bend, and the sentence that says why."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.model import capacity
from app.model.capacity import Figures, Streamed
from pipelines.experiments.capacity.streams import Level
from profiler.arrays import F64
from profiler.errors import BadInput
from tests.each import each

MS = 1_000_000
S = 1_000_000_000
ORIGIN = 50 * S


def stream(seconds: float = 40.0, took_ms: float = 20.0, queue_ms: Sequence[float] | F64 | float = 0.0) -> Streamed:
    """Chunks of 100 ms, each decoded in `took_ms` after it has queued, and a word that ends with every fifth.

    Every second word is shown one chunk late (emission 100 ms). An endpoint comes after every fourth word.
    """
    n = int(seconds * 10)
    arrived = np.arange(1, n + 1) * 100 * MS
    started = arrived + (np.broadcast_to(queue_ms, n) * MS).astype(np.int64)
    words = [(f"w{k}", 50 * k + 20, 30) for k in range(n // 5)]  # ends at 0.5 s, 1.0 s …: with a chunk
    changes = [(5 * k + 4 + k % 2, k, [words[k]]) for k in range(len(words)) if 5 * k + 4 + k % 2 < n]
    ends = [(20 * k + 25, 4 * k + 4, 3) for k in range(n // 20) if 20 * k + 25 < n]
    return {
        "chunk_ms": 100, "lookahead_frames": 0, "waited": True, "origin_ns": ORIGIN,
        "audio_ns": arrived.tolist(), "arrived_ns": arrived.tolist(), "started_ns": started.tolist(),
        "shown_ns": (started + int(took_ms * MS)).tolist(), "other_ns": [0] * n,
        "changes": changes, "segments": [*ends, (n - 1, len(changes), 0)], "words": words[: len(changes)],
    }  # fmt: skip


def level(n: int = 2, **more: float | None) -> Level:
    """A window of 20 s from 10.05 s on: chunks 100 to 299."""
    about = {"cpu_s": 4.0, "waited_s": 1.0, "busy_s": 10.0, "memory_bytes": n * 100, "joules": None} | more
    return Level(n, ORIGIN + 10_050 * MS, ORIGIN + 30_050 * MS, ORIGIN + 36 * S, 1.0, **about)  # type: ignore[arg-type]


def test_figures_are_those_of_the_window():
    slow_at_first = [3000.0] * 50 + [0.0] * 350
    made = capacity.figures(level(), [stream(queue_ms=slow_at_first), stream(took_ms=40.0)], 2)
    assert (made.n, made.window_s, made.words) == (2, 20.0, 80)
    assert made.rtf == pytest.approx({"p50": 0.3, "p90": 0.4, "p99": 0.4})
    assert made.latency_s["chunk"] == pytest.approx({"p50": 0.03, "p90": 0.04, "p99": 0.04})
    # A word ends with its chunk, so it waits for the computation, and every second one for another chunk.
    assert made.latency_s["without_emission"] == pytest.approx({"p50": 0.03, "p90": 0.04, "p99": 0.04})
    assert made.latency_s["first_shown"] == pytest.approx({"p50": 0.08, "p90": 0.14, "p99": 0.14})
    assert made.latency_s["stable"] == made.latency_s["first_shown"]
    # The last word of a segment ends at 2 s, 4 s …, and its endpoint is found in the chunk that arrives 0.6 s later.
    assert made.latency_s["time_to_final"] == pytest.approx({"p50": 0.63, "p90": 0.64, "p99": 0.64})
    # The words before it end 0.5, 1.0 and 1.5 s earlier.
    assert made.latency_s["final"]["p99"] == pytest.approx(2.14)
    assert not made.queue_grows
    assert made.queue_growth_s == pytest.approx(0.0)
    # 40 s of audio in 4 s of processor time on two cores; 400 chunks.
    assert made.rtfx == pytest.approx(20.0)
    assert made.core_s_per_audio_hour == pytest.approx(360.0)
    assert made.processor_s_per_chunk == pytest.approx(0.01)
    assert made.waited_s_per_chunk == pytest.approx(0.0025)
    assert made.memory_bytes == 200
    # Of the last words of segments those that end in the window, and of the others those that an endpoint made final.
    words = ("first_shown", "without_emission", "stable", "final")
    assert made.behind == dict.fromkeys(words, 80) | {"time_to_final": 20, "chunk": 400}
    assert made.joules_per_audio_hour is None
    assert made.stream_cores == pytest.approx(0.2)
    assert made.other_cores == pytest.approx(0.3)


# 40 ms: in the window 20 ms from its first half to its second, not half a chunk.
@each("growth_ms, grows", [(0.0, False), (40.0, False), (400.0, True)])
def test_a_queue_that_grows(growth_ms, grows):
    steady = np.random.default_rng(3).exponential(10.0, 400)
    made = capacity.figures(level(1), [stream(queue_ms=np.linspace(0.0, growth_ms, 400) + steady)], 2)
    assert made.queue_grows is grows
    assert made.queue_growth_s == pytest.approx(growth_ms * 1e-3 / 4, abs=0.002)
    assert made.holds(9.0) is not grows
    assert not made.holds(0.001)


def test_one_pause_of_the_machine_is_no_queue_that_grows():
    waits = np.zeros(400)
    waits[280:290] = np.linspace(2000.0, 0.0, 10)
    made = capacity.figures(level(1), [stream(queue_ms=waits)], 2)
    assert not made.queue_grows
    assert made.latency_s["chunk"]["p99"] > 1.0


def test_chunks_that_were_never_decoded_count_until_the_streams_were_stopped():
    stuck = stream()
    for name in ("audio_ns", "arrived_ns", "started_ns", "shown_ns", "other_ns"):
        del stuck[name][200:]
    stuck["changes"] = [change for change in stuck["changes"] if change[0] < 200]
    stuck["words"] = stuck["words"][: len(stuck["changes"])]
    stuck["segments"] = [(199, len(stuck["words"]), 0)]
    made = capacity.figures(level(1), [stuck], 2)
    assert made.queue_grows
    # Chunk 200 arrived at 20.1 s and was not decoded at 36 s.
    assert made.latency_s["chunk"]["p99"] == pytest.approx(15.9, abs=0.3)
    assert made.rtfx == pytest.approx(2.5)  # half of the audio


def test_without_a_word_nothing_holds():
    silent = stream()
    silent["words"], silent["changes"], silent["segments"] = [], [], [(399, 0, 0)]
    made = capacity.figures(level(1, waited_s=None, busy_s=None, memory_bytes=None), [silent], 2)
    assert made.latency_s["first_shown"] is None
    assert not made.holds(10.0)
    assert (made.waited_s_per_chunk, made.other_cores, made.memory_bytes) == (None, None, None)
    assert capacity.row([made], 0.5)["p99_range_s"] is None


PLAIN = capacity.figures(level(), [stream(), stream()], 2)


def with_p99(p99: float, **more: object) -> Figures:
    latency_s = PLAIN.latency_s | {"without_emission": {"p50": 0.1, "p90": 0.2, "p99": p99}}
    return replace(PLAIN, latency_s=latency_s, **more)  # type: ignore[arg-type]


def test_a_row_has_the_measurement_in_the_middle_and_the_range_of_all():
    row = capacity.row([with_p99(0.6), with_p99(0.3, memory_bytes=7), with_p99(0.2)], 0.5)
    assert row["latency_s"]["without_emission"]["p99"] == 0.3
    assert row["memory_bytes"] == 7
    assert (row["measurements"], row["held"], row["p99_range_s"]) == (3, 2, [0.2, 0.6])
    assert set(row["latency_s"]) >= {"first_shown", "stable", "final", "chunk"}


ALONE = with_p99(0.2, n=1, processor_s_per_chunk=0.010, waited_s_per_chunk=0.001, stream_cores=0.06, other_cores=0.02)


@each(
    "failing, begins, has",
    [
        ((0.0105, 0.2, 1.9, 0.02, True), "Waiting for a core grows", "waits 200 ms for a core (1.0 ms with 1 stream)"),
        ((0.0105, 0.2, 1.9, 0.02, True), "Waiting", "the streams use 1.9 of 2 cores, other programs 0.0."),
        ((0.030, 0.004, 1.9, 0.02, False), "Computing takes 3.00 times", "takes 30 ms of processor time (10 ms)"),
        ((0.015, 0.2, 1.9, 0.0, False), "Waiting", "Computing takes 1.50 times as long as well."),
        ((0.0105, 0.2, 0.7, 1.3, False), "Other programs keep the cores busy.", "other programs 1.3."),
        ((0.0105, None, 0.7, None, False), "With 40 streams", "how long it waits for a core is not known here"),
    ],
)
def test_the_reason_is_what_has_grown(failing, begins, has):
    keys = ("processor_s_per_chunk", "waited_s_per_chunk", "stream_cores", "other_cores", "queue_grows")
    sentence = capacity.reason(ALONE, with_p99(0.9, n=40, **dict(zip(keys, failing, strict=True))), 2)
    assert sentence.startswith(begins)
    assert has in sentence


def test_if_the_fewest_streams_fail_there_is_nothing_to_compare_them_with():
    sentence = capacity.reason(replace(ALONE, queue_grows=True), replace(ALONE, queue_grows=True), 1)
    assert sentence.startswith("The fewest streams tried do not hold. With 1 stream p99 is 0.20 s and a queue grows;")
    assert "a chunk waits 1.0 ms for a core and takes 10 ms of processor time;" in sentence


def test_what_is_no_report_is_refused(tmp_path):
    (tmp_path / "1.json").write_text('{"utterances": [{"audio_s"')
    with pytest.raises(BadInput, match=r"1\.json: the report of a run is damaged"):
        capacity.read(tmp_path / "1.json")


def test_percentiles_of_a_few_words_say_so():
    many = capacity.figures(level(), [stream(), stream()], 2)
    assert capacity.words_behind(replace(many, words=100)) == ""
    assert "With 1 stream the percentiles rest on 1 word, and" in capacity.words_behind(replace(many, n=1, words=1))


def test_a_cpu_limit_is_named_as_the_reason():
    fewest = capacity.figures(level(1), [stream()], 2)
    held = replace(fewest, n=8, waited_s_per_chunk=0.9, throttled_s_per_chunk=0.8, other_cores=1.5)
    assert capacity.reason(fewest, held, 2, 0.5).startswith("The CPU limit of 0.5 cores is used up. With 8 streams")
    assert capacity.reason(fewest, replace(held, throttled_s_per_chunk=0.1), 2, 0.5).startswith("Other programs keep")
    assert "on 2 cores, of which a CPU limit leaves 0.5," in capacity.headline(1, (1, 1), 2, 0.5, True, 0.5)
    # Two cores of a machine, of which a limit leaves half a one: that is what a stream can use.
    assert capacity.figures(level(), [stream(), stream()], 0.5).rtfx == pytest.approx(5.0)
