"""How many streams a machine carries: the figures of N streams that ran side by side, the bend, and its reason. No Qt.

Latency of a chunk: from its arrival until its words are shown; of a word: `app.model.word_latency`. What arrived or
was spoken in the window counts. The bound is one of the delay: the time from the end of a word until it is first
shown, without emission, which the search waits at any load. A queue grows where chunks wait longer in each of the
last three of six stretches of the window than in each of the first three (one chance in twenty where nothing grows),
and by half a chunk on average; or where a chunk of the window was not decoded when the streams were stopped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.model.report import Tree
from app.model.word_latency import PARTS, Spoken, milliseconds, of_utterance, quantiles
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.files.inputs import MIB, read_struct
from profiler.plain import counted
from profiler.session.facts import Stream

if TYPE_CHECKING:
    from pipelines.experiments.capacity.streams import Level

STRETCHES: Final = 6
GROWS: Final = 0.5
"""Chunks by which the wait at the end must be longer for a queue that grows: 80 ms of 15 s are half a percent."""

BOUND_S: Final = 0.5
"""Of p99, s, where no other is given."""

SLOWER: Final = 1.1
"""Processor time of a chunk against that of the fewest streams from which the sentence mentions it."""

OTHERS: Final = 0.1
"""Share of the cores that other programs take from which the sentence names them as the reason."""

ENOUGH_WORDS: Final = 100
"""Of fewer, p99 is the longest."""

HOUR_S: Final = 3600.0

LARGEST: Final = 256 * MIB
"""Bytes of the report of a stream."""

EMISSION: Final = PARTS.index("emission")
"""Of a word's latency the part that the search waits. It is the same at any load, and large for a few words."""

RTFX: Final = (
    "seconds of audio per second if the streams kept their cores busy: audio decoded / processor time x cores in use; "
    "audio by its number of samples, one thread per stream, without reading files and warm-up"
)
DELAY: Final = (
    "from the end of a word until it is first shown, without emission, the time that the search waits at any load"
)
MEMORY: Final = "sum of the proportional set sizes: pages of files and other pages that processes share count once"

Quantiles = Mapping[str, float]


@dataclass(frozen=True)
class Figures:
    """One measurement; seconds, bytes. `rtf` is of a chunk; `processor_s`, `waited_s`: mean of a chunk.

    `delay`: until a word is first shown, without emission. `behind`: how many words, or chunks, each percentile is of.
    `throttled_s`: of `waited_s`, by a CPU limit. None where nothing of the kind was there, or the system does not tell.
    """

    n: int
    window_s: float
    words: int
    rtfx: float | None
    rtf: Quantiles | None
    chunk: Quantiles | None
    first_shown: Quantiles | None
    stable: Quantiles | None
    final: Quantiles | None
    time_to_final: Quantiles | None
    delay: Quantiles | None
    growth_s: float
    grows: bool
    memory_bytes: int | None
    core_s_per_audio_hour: float | None
    joules_per_audio_hour: float | None
    processor_s: float
    waited_s: float | None
    stream_cores: float
    other_cores: float | None
    behind: Mapping[str, int] = field(default_factory=dict)
    throttled_s: float | None = None

    @property
    def p99(self) -> float:
        """Of the delay, s; infinite where no word was shown."""
        return self.delay["p99"] if self.delay else float("inf")

    def holds(self, bound_s: float) -> bool:
        """Whether the streams keep up: p99 within the bound, and no queue grows."""
        return self.p99 <= bound_s and not self.grows


class Streamed(Stream):
    """What the report of a run without a session has of a stream; frames of its words count from its beginning."""

    words: list[tuple[str, int, int]]


class _Row(msgspec.Struct, frozen=True):
    audio_s: float
    wall_s: float
    stream: Streamed | None


class Report(msgspec.Struct, frozen=True):
    """Of the JSON of `asrscope run --no-profile` what is read here."""

    utterances: list[_Row]

    def stream(self) -> Streamed | None:
        """Of its only utterance; None where nothing was decoded."""
        return self.utterances[0].stream if self.utterances else None


def read(path: Path) -> Report:
    return read_struct(path, Report, "the report of a run", LARGEST)


def figures(level: Level, streams: Sequence[Streamed], cores: float) -> Figures:
    """The figures of a measurement; `cores`: how many the streams shared, or as many as a CPU limit left them."""
    begin, end, stopped = (at * 1e-9 for at in (level.begin_ns, level.end_ns, level.stopped_ns))
    at, waits, computing, unfinished = list[F64](), list[F64](), list[F64](), 0
    shown, stable, final, last, delay = (list[float]() for _ in range(5))
    audio_s = 0.0
    for about in streams:
        chunk_s, origin = about["chunk_ms"] * 1e-3, about["origin_ns"] * 1e-9
        times = about["arrived_ns"], about["started_ns"], about["shown_ns"]
        n = min(map(len, times))
        arrived, started, done = (origin + np.array(column[:n], np.float64) * 1e-9 for column in times)
        within = (begin <= arrived) & (arrived < end)
        latest = float(arrived[-1]) if n else origin
        late = np.arange(latest + chunk_s * max(1, math.ceil((begin - latest) / chunk_s)), end, chunk_s)
        unfinished += len(late)
        at += [arrived[within], late]
        waits += [(done - arrived)[within], stopped - late]
        computing.append((done - started)[within])
        audio_s += chunk_s * float(np.count_nonzero((begin <= done) & (done < end)))
        latency = of_utterance(Spoken("", 0, about["words"]), about)
        ended = max((k for k, word in enumerate(latency.words) if word.rule), default=-1)
        for number, word in enumerate(latency.words):
            if begin <= origin + word.end_frame * FRAME_S < end:
                shown.append(word.shown_s)
                stable.append(word.stable_s)
                delay.append(word.shown_s - word.parts[EMISSION])
                if number <= ended:  # the others became final because the stream was stopped
                    final.append(word.final_s)
                    last += [word.final_s] if word.rule else []
    arrivals, latencies = np.concatenate(at), np.concatenate(waits)
    rtfs = np.concatenate(computing) / (streams[0]["chunk_ms"] * 1e-3)
    growth_s, grows = queue(arrivals, latencies, begin, end, streams[0]["chunk_ms"] * 1e-3)
    chunks = max(audio_s / (streams[0]["chunk_ms"] * 1e-3), 1.0)
    hours = audio_s / HOUR_S
    used = level.cpu_s / level.window_s
    return Figures(
        n=level.n,
        window_s=level.window_s,
        words=len(shown),
        rtfx=min(level.n, cores) * audio_s / level.cpu_s if level.cpu_s else None,
        rtf=quantiles(rtfs.tolist()),
        chunk=quantiles(latencies.tolist()),
        first_shown=quantiles(shown),
        stable=quantiles(stable),
        final=quantiles(final),
        time_to_final=quantiles(last),
        delay=quantiles(delay),
        growth_s=growth_s,
        grows=grows or unfinished > 0,
        memory_bytes=level.memory_bytes,
        core_s_per_audio_hour=level.cpu_s / hours if hours else None,
        joules_per_audio_hour=level.joules / hours if hours and level.joules is not None else None,
        processor_s=level.cpu_s / chunks,
        waited_s=None if level.waited_s is None else level.waited_s / chunks,
        stream_cores=used,
        other_cores=None if level.busy_s is None else max(level.busy_s / level.window_s - used, 0.0),
        behind={
            "first_shown": len(shown),
            "without_emission": len(delay),
            "stable": len(stable),
            "final": len(final),
            "time_to_final": len(last),
            "chunk": len(latencies),
        },
        throttled_s=None if level.throttled_s is None else level.throttled_s / chunks,
    )


def queue(at_s: F64, waits_s: F64, begin_s: float, end_s: float, chunk_s: float) -> tuple[float, bool]:
    """How much longer chunks wait in the second half of the window than in the first, s, and whether a queue grows."""
    stretch = ((at_s - begin_s) / (end_s - begin_s) * STRETCHES).astype(np.int64)
    means = [float(waits_s[stretch == number].mean()) for number in range(STRETCHES) if (stretch == number).any()]
    if len(means) < STRETCHES:
        return 0.0, False
    first, last = means[: STRETCHES // 2], means[STRETCHES // 2 :]
    growth_s = float(np.mean(last) - np.mean(first))
    return growth_s, min(last) > max(first) and growth_s > GROWS * chunk_s


def middle(measured: Sequence[Figures]) -> Figures:
    """The measurement with the median p99."""
    return sorted(measured, key=lambda one: one.p99)[(len(measured) - 1) // 2]


def row(measured: Sequence[Figures], bound_s: float) -> Tree:
    """What the report has of N streams: the figures of the measurement in the middle, and the range of all."""
    one = middle(measured)
    known = [each.p99 for each in measured if each.delay]
    return {
        "n": one.n,
        "rtfx": one.rtfx,
        "rtf": None if one.rtf is None else {"p50": one.rtf["p50"], "p99": one.rtf["p99"]},
        "latency_s": {
            "first_shown": one.first_shown,
            "without_emission": one.delay, "stable": one.stable, "final": one.final,
            "time_to_final": one.time_to_final, "chunk": one.chunk
        },
        "queue_grows": one.grows,
        "queue_growth_s": one.growth_s,
        "memory_bytes": one.memory_bytes,
        "core_s_per_audio_hour": one.core_s_per_audio_hour,
        "joules_per_audio_hour": one.joules_per_audio_hour,
        "processor_s_per_chunk": one.processor_s,
        "waited_s_per_chunk": one.waited_s,
        "stream_cores": one.stream_cores,
        "other_cores": one.other_cores,
        "window_s": one.window_s,
        "words": one.words, "behind": dict(one.behind),
        "throttled_s_per_chunk": one.throttled_s,
        "measurements": len(measured),
        "held": sum(each.holds(bound_s) for each in measured),
        "p99_range_s": [min(known), max(known)] if known else None,
    }  # fmt: skip


def headline(
    capacity: int, interval: tuple[int, int], cores: int, bound_s: float, finished: bool, limit: float | None = None
) -> str:
    """How many streams hold; `interval`: those of single measurements; `limit`: cores that a CPU limit leaves."""
    low, high = interval
    limited = "" if limit is None else f", of which a CPU limit leaves {limit:.3g},"
    by_each = "" if low == high == capacity else f" (by single measurements {low} to {high})"
    return (
        f"{'' if finished else 'So far '}{_streams(capacity)} on {counted(cores, 'core', 'cores')}{limited}{by_each}: "
        f"p99 of the delay is at most {bound_s:g} s, and no queue grows."
    )


def words_behind(one: Figures) -> str:
    """What is to be said of the words that the percentiles of N streams rest on; empty where they are many."""
    if one.words >= ENOUGH_WORDS:
        return ""
    return (
        f"With {_streams(one.n)} the percentiles rest on {counted(one.words, 'word', 'words')}, and p99 is the "
        f"longest; from {ENOUGH_WORDS} words on it is not: --seconds measures for longer."
    )


def reason(fewest: Figures, failing: Figures, cores: int, limit: float | None = None) -> str:
    """What takes the time at the first number that fails, next to the fewest streams, from what both measured."""
    n, one = failing.n, fewest.n
    grown = failing.processor_s / fewest.processor_s if fewest.processor_s else 1.0
    what = f"p99 is {failing.p99:.2f} s" if failing.delay else "no word is shown in time"
    what += " and a queue grows" if failing.grows else ""
    used = f"the streams use {failing.stream_cores:.1f} of {counted(cores, 'core', 'cores')}"
    others = failing.other_cores or 0.0
    if failing.other_cores is not None:
        used += f", other programs {others:.1f}"
    if failing.waited_s is None or fewest.waited_s is None:
        waits, waiting = "how long it waits for a core is not known here", 0.0
    else:
        waiting = failing.waited_s - fewest.waited_s
        waits = f"waits {milliseconds(failing.waited_s)} ms for a core"
        waits += "" if n == one else f" ({milliseconds(fewest.waited_s)} ms with {_streams(one)})"
    takes = f"takes {milliseconds(failing.processor_s)} ms of processor time"
    takes += "" if n == one else f" ({milliseconds(fewest.processor_s)} ms)"
    sentence = f"With {_streams(n)} {what}; a chunk {waits} and {takes}; {used}."
    if n == one:
        return f"The fewest streams tried do not hold. {sentence}"
    slower = failing.processor_s - fewest.processor_s
    if limit is not None and (failing.throttled_s or 0.0) > waiting / 2 >= slower / 2:
        return f"The CPU limit of {limit:.3g} cores is used up. {sentence}"
    if others > OTHERS * cores and waiting >= slower:
        return f"Other programs keep the cores busy. {sentence}"
    if waiting >= slower:
        also = f" Computing takes {grown:.2f} times as long as well." if grown > SLOWER else ""
        return f"Waiting for a core grows most. {sentence}{also}"
    if grown > SLOWER:
        return (
            f"Computing takes {grown:.2f} times as long; no counter here tells caches from memory or clock. {sentence}"
        )
    return sentence


def _streams(n: int) -> str:
    return counted(n, "stream", "streams")
