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
from dataclasses import asdict, dataclass, field
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
from profiler.session.facts import StreamFacts

if TYPE_CHECKING:
    from pipelines.experiments.capacity.streams import Level

STRETCHES: Final = 6
GROWS: Final = 0.5  # Chunks by which the wait at the end must be longer: 80 ms of 15 s are half a percent
BOUND_S: Final = 0.5  # Of p99, s, where no other is given
SLOWER: Final = 1.1  # Growth of the processor time of a chunk from which the sentence mentions it
OTHERS: Final = 0.1  # Share of the cores that other programs take from which the sentence names them as the reason
ENOUGH_WORDS: Final = 100  # Of fewer, p99 is the longest
HOUR_S: Final = 3600.0
LARGEST: Final = 256 * MIB  # Bytes of the report of a stream
EMISSION: Final = PARTS.index("emission")  # Of the latency, what the search waits: the same at any load
OF_WORDS: Final = ("first_shown", "without_emission", "stable", "final", "time_to_final")  # Since a word's end
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
    """One measurement, with the keys of the report; None where nothing was there, or the system does not tell."""

    n: int
    window_s: float
    words: int
    rtfx: float | None
    rtf: Quantiles | None  # Of a chunk
    latency_s: Mapping[str, Quantiles | None]  # By name; `without_emission` is the delay, until a word is first shown
    queue_growth_s: float
    queue_grows: bool
    memory_bytes: int | None
    core_s_per_audio_hour: float | None
    joules_per_audio_hour: float | None
    processor_s_per_chunk: float
    waited_s_per_chunk: float | None
    stream_cores: float
    other_cores: float | None
    behind: Mapping[str, int] = field(default_factory=dict)  # How many words, or chunks, the percentiles are of
    throttled_s_per_chunk: float | None = None  # Of the wait, by a CPU limit

    @property
    def delay(self) -> Quantiles | None:
        return self.latency_s["without_emission"]

    @property
    def p99(self) -> float:
        """Of the delay, s; infinite where no word was shown."""
        return self.delay["p99"] if self.delay else float("inf")

    def holds(self, bound_s: float) -> bool:
        """Whether the streams keep up: p99 within the bound, and no queue grows."""
        return self.p99 <= bound_s and not self.queue_grows


class Streamed(StreamFacts):
    """What the report of a run without a session has of a stream; frames of its words count from its beginning."""

    words: list[tuple[str, int, int]]


class _Row(msgspec.Struct, frozen=True):
    audio_s: float
    wall_s: float
    stream: Streamed | None


class _Report(msgspec.Struct, frozen=True):
    """Of the JSON of `asrscope run --no-profile` what is read here."""

    utterances: list[_Row]


def read(path: Path) -> Streamed | None:
    """The stream of the only utterance of the report of a run; None where nothing was decoded."""
    rows = read_struct(path, _Report, "the report of a run", LARGEST).utterances
    return rows[0].stream if rows else None


def figures(level: Level, streams: Sequence[Streamed], cores: float) -> Figures:
    """The figures of a measurement; `cores`: how many the streams shared, or as many as a CPU limit left them."""
    begin, end, stopped = (at * 1e-9 for at in (level.begin_ns, level.end_ns, level.stopped_ns))
    at, waits, computing, unfinished = list[F64](), list[F64](), list[F64](), 0
    waited: dict[str, list[float]] = {name: [] for name in OF_WORDS}
    audio_s, chunk_s = 0.0, streams[0]["chunk_ms"] * 1e-3
    for about in streams:
        origin = about["origin_ns"] * 1e-9
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
                waited["first_shown"].append(word.shown_s)
                waited["without_emission"].append(word.shown_s - word.parts[EMISSION])
                waited["stable"].append(word.stable_s)
                if number <= ended:  # the others became final because the stream was stopped
                    waited["final"].append(word.final_s)
                    waited["time_to_final"] += [word.final_s] if word.rule else []
    arrivals, latencies = np.concatenate(at), np.concatenate(waits)
    rtfs = np.concatenate(computing) / chunk_s
    growth_s, grows = queue(arrivals, latencies, begin, end, chunk_s)
    chunks, hours = max(audio_s / chunk_s, 1.0), audio_s / HOUR_S
    used = level.cpu_s / level.window_s
    each = waited | {"chunk": latencies.tolist()}

    def per(share: float, total: float | None) -> float | None:
        return total / share if share and total is not None else None

    return Figures(
        n=level.n,
        window_s=level.window_s,
        words=len(waited["first_shown"]),
        rtfx=per(level.cpu_s, min(level.n, cores) * audio_s),
        rtf=quantiles(rtfs.tolist()),
        latency_s={name: quantiles(values) for name, values in each.items()},
        queue_growth_s=growth_s,
        queue_grows=grows or unfinished > 0,
        memory_bytes=level.memory_bytes,
        core_s_per_audio_hour=per(hours, level.cpu_s),
        joules_per_audio_hour=per(hours, level.joules),
        processor_s_per_chunk=level.cpu_s / chunks,
        waited_s_per_chunk=per(chunks, level.waited_s),
        stream_cores=used,
        other_cores=None if level.busy_s is None else max(level.busy_s / level.window_s - used, 0.0),
        behind={name: len(values) for name, values in each.items()},
        throttled_s_per_chunk=per(chunks, level.throttled_s),
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
    known = [each.p99 for each in measured if each.delay]
    return asdict(middle(measured)) | {
        "measurements": len(measured),
        "held": sum(each.holds(bound_s) for each in measured),
        "p99_range_s": [min(known), max(known)] if known else None,
    }


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
    grown = failing.processor_s_per_chunk / fewest.processor_s_per_chunk if fewest.processor_s_per_chunk else 1.0
    what = f"p99 is {failing.p99:.2f} s" if failing.delay else "no word is shown in time"
    what += " and a queue grows" if failing.queue_grows else ""
    used = f"the streams use {failing.stream_cores:.1f} of {counted(cores, 'core', 'cores')}"
    others = failing.other_cores or 0.0
    if failing.other_cores is not None:
        used += f", other programs {others:.1f}"
    waits, waiting = "how long it waits for a core is not known here", 0.0
    if failing.waited_s_per_chunk is not None and fewest.waited_s_per_chunk is not None:
        waiting = failing.waited_s_per_chunk - fewest.waited_s_per_chunk
        waits = f"waits {milliseconds(failing.waited_s_per_chunk)} ms for a core"
        waits += "" if n == one else f" ({milliseconds(fewest.waited_s_per_chunk)} ms with {_streams(one)})"
    takes = f"takes {milliseconds(failing.processor_s_per_chunk)} ms of processor time"
    takes += "" if n == one else f" ({milliseconds(fewest.processor_s_per_chunk)} ms)"
    sentence = f"With {_streams(n)} {what}; a chunk {waits} and {takes}; {used}."
    slower = failing.processor_s_per_chunk - fewest.processor_s_per_chunk
    longer = f"Computing takes {grown:.2f} times as long"
    if n == one:
        return f"The fewest streams tried do not hold. {sentence}"
    if limit is not None and (failing.throttled_s_per_chunk or 0.0) > waiting / 2 >= slower / 2:
        return f"The CPU limit of {limit:.3g} cores is used up. {sentence}"
    if others > OTHERS * cores and waiting >= slower:
        return f"Other programs keep the cores busy. {sentence}"
    if waiting >= slower:
        return f"Waiting for a core grows most. {sentence}{f' {longer} as well.' if grown > SLOWER else ''}"
    if grown > SLOWER:
        return f"{longer}; no counter here tells caches from memory or clock. {sentence}"
    return sentence


def _streams(n: int) -> str:
    return counted(n, "stream", "streams")
