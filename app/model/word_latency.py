"""When each word of a stream was shown, and what it waited for: user-perceived latency and its parts. No Qt.

    shown − end of the word = buffering + queue + compute + other programs + emission

Buffering: from the end of the word, by the final alignment, until the chunk with this end has arrived; half a chunk in
the mean. Emission: the chunks after that one until the word is shown, so what look-ahead and search wait for; negative
where the word is shown before its end. Queue: until the decoder takes the chunk. Compute: until its words are shown,
without the time that other programs had the processor. A word is stable when it is shown for the last time after not
being there, and final at the endpoint or the end of the utterance.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from profiler.clock import FRAME_S
from profiler.plain import counted
from profiler.session.facts import STREAM

if TYPE_CHECKING:
    from profiler.session.facts import StreamFacts, StreamWord
    from profiler.session.model import Utterance
    from profiler.session.reader import Session

PARTS: Final = ("buffering", "queue", "compute", "other_programs", "emission")  # In order, but for emission
PART_TITLES: Final = {"other_programs": "other programs"}
QUANTILES: Final = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
HALF: Final = 0.5
TAKEN_BACK: Final = 64  # Words taken back that may come again, of an utterance: the latest


@dataclass(frozen=True)
class WordLatency:
    """A word of a stream; times in seconds, latencies since the end of the word; frames of the run."""

    word: str
    utterance: str
    first_frame: int
    frames: int
    parts: tuple[float, float, float, float, float]  # As PARTS
    stable_s: float
    final_s: float
    rule: int | None  # Of the endpoint after the last word of a segment, 0 the end of the utterance
    interim_s: float | None  # Of the first word of a segment: from its beginning until a word of that was shown

    @property
    def shown_s(self) -> float:
        return sum(self.parts)

    @property
    def end_frame(self) -> int:
        return self.first_frame + self.frames


@dataclass(frozen=True)
class StreamLatency:
    """What one utterance of a stream tells: its words, how many were taken back, and its chunks."""

    words: tuple[WordLatency, ...]
    shown: int
    taken_back: int
    chunks: int
    late: int  # Chunks that were not done when the next one had arrived
    busy_s: float  # Time in which chunks were decoded
    other_s: float  # … of which other programs had the processor


class Spoken(NamedTuple):
    """What is known of an utterance without a session; words as (word, first frame, frames)."""

    name: str
    first_frame: int
    words: Sequence[tuple[str, int, int]]


@dataclass
class _Shown:
    """A word on display: since which chunk, and at first."""

    word: str
    begin: int
    end: int
    first: int
    since: int

    def taken_from(self, others: list[_Shown]) -> _Shown | None:
        """Take the same word at the same time out of `others`."""
        for other in others:
            if self.word == other.word and self.begin < other.end and other.begin < self.end:
                others.remove(other)
                return other
        return None


_known: WeakKeyDictionary[Session, dict[int, StreamLatency]] = WeakKeyDictionary()


def streams(session: Session) -> dict[int, StreamLatency]:
    """The finished utterances of a session that arrived in chunks, in order, by id."""
    known = _known.setdefault(session, {})
    for utterance in session.utterances:
        about = session.meta.get(f"{STREAM}/{utterance.id}")
        if about is not None and utterance.done and utterance.id not in known:
            known[utterance.id] = of_utterance(utterance, about)
    return known


def of_utterance(utterance: Utterance | Spoken, about: StreamFacts) -> StreamLatency:
    """The latencies of an utterance from what its session keeps of its stream."""
    times = about["audio_ns"], about["arrived_ns"], about["started_ns"], about["shown_ns"], about["other_ns"]
    n = min(map(len, times))
    audio, arrived, started, shown, other = (np.array(column[:n], np.float64) * 1e-9 for column in times)
    if not n:
        return StreamLatency((), 0, 0, 0, 0, 0.0, 0.0)
    other = np.clip(other, 0.0, shown - started)
    display, appeared, taken_back = _replayed(about["changes"], n)
    words = []
    finals = [(min(chunk, n - 1), count, rule) for chunk, count, rule in about["segments"]]
    segment, begin = 0, 0
    for number, ((word, first, frames), seen) in enumerate(zip(utterance.words, display, strict=False)):
        while segment < len(finals) - 1 and number >= finals[segment][1]:
            segment, begin = segment + 1, number
        chunk, count, rule = finals[segment] if finals else (n - 1, len(display), 0)
        ends = [(frame - utterance.first_frame) * FRAME_S for frame in (first, first + frames)]
        spoken = np.interp(ends, np.append(0.0, audio), np.append(0.0, arrived))
        whole = min(int(np.searchsorted(audio, min(ends[1], audio[-1]))), n - 1)
        at = seen.first
        parts = (
            arrived[whole] - spoken[1],
            started[at] - arrived[at],
            shown[at] - started[at] - other[at],
            other[at],
            arrived[at] - arrived[whole],
        )
        interim = None
        if number == begin:
            after = finals[segment - 1][0] if segment else -1
            interim = float(next((shown[one] for one in appeared if one > after), shown[at]) - spoken[0])
        stable, final = shown[seen.since] - spoken[1], shown[chunk] - spoken[1]
        last_rule = rule if number == min(count, len(display)) - 1 else None
        latencies = tuple(map(float, parts)), float(stable), float(final), last_rule, interim
        words.append(WordLatency(word, utterance.name, first, frames, *latencies))  # type: ignore[arg-type]
    late = int(np.count_nonzero(shown[:-1] > arrived[1:]))
    total = len(display) + taken_back
    return StreamLatency(tuple(words), total, taken_back, n, late, float((shown - started).sum()), float(other.sum()))


def _replayed(
    changes: Iterable[tuple[int, int, Sequence[StreamWord]]], chunks: int
) -> tuple[list[_Shown], list[int], int]:
    """The words on display at the end, the chunks that showed a new word, and how many words were taken back."""
    display: list[_Shown] = []
    gone: list[_Shown] = []
    appeared = []
    taken_back = 0
    for chunk, kept, words in changes:
        at = min(chunk, chunks - 1)
        before, display = display[kept:], display[:kept]
        for word, first, frames in words:
            new = _Shown(word, first, first + frames, at, at)
            if same := new.taken_from(before):
                new.first, new.since = same.first, same.since
            elif again := new.taken_from(gone):
                new.first = again.first
            else:
                appeared.append(at)
            display.append(new)
        taken_back += len(before)
        gone = [*gone, *before][-TAKEN_BACK:]
    return display, appeared, taken_back


def quantiles(seconds: Iterable[float]) -> dict[str, float] | None:
    """p50, p90 and p99 in seconds; None of nothing."""
    values = list(seconds)
    found = np.percentile(values, list(QUANTILES.values())).tolist() if values else ()
    return dict(zip(QUANTILES, found, strict=True)) if values else None


def as_dict(session: Session, frames: tuple[int, int] | None = None) -> dict[str, object] | None:
    """The latencies of the words in frames [first, last) as JSON values; None where nothing arrived in chunks."""
    found = list(streams(session).values())
    if not found:
        return None
    first, last = frames or (0, sys.maxsize)
    words = [word for one in found for word in one.words if first <= word.first_frame and word.end_frame <= last]
    means = mean_parts(words)
    slowest = attack(means)
    return {
        "words": len(words),
        "first_interim": quantiles(word.interim_s for word in words if word.interim_s is not None),
        "first_shown": quantiles(word.shown_s for word in words),
        "stable": quantiles(word.stable_s for word in words),
        "final": quantiles(word.final_s for word in words),
        "time_to_final": quantiles(word.final_s for word in words if word.rule is not None),
        "parts_mean": means,
        "taken_back": sum(one.taken_back for one in found) / max(sum(one.shown for one in found), 1),
        "attack": slowest,
        "queue_from": queue_from(session) if slowest == "queue" else None,
        "sentence": advice(session, words),
    }


def by_utterance(session: Session) -> dict[int, dict[str, object]]:
    def row(word: WordLatency) -> dict[str, object]:
        return {
            "word": word.word,
            "begin_s": word.first_frame * FRAME_S,
            "end_s": word.end_frame * FRAME_S,
            "first_shown_s": word.shown_s,
            "stable_s": word.stable_s,
            "final_s": word.final_s,
            **{f"{name}_s": value for name, value in zip(PARTS, word.parts, strict=True)},
        }

    return {number: {"words": [*map(row, one.words)]} for number, one in streams(session).items()}


def mean_parts(words: Sequence[WordLatency]) -> dict[str, float]:
    """Mean of each part in seconds, by name; empty without words."""
    means = np.mean([word.parts for word in words], axis=0).tolist() if words else ()
    return dict(zip(PARTS, means, strict=True)) if words else {}


def attack(means: dict[str, float]) -> str | None:
    return max(means, key=lambda name: means[name], default=None)


def queue_from(session: Session) -> str:
    return "other_programs" if _share_of_others(session) > HALF else "compute"


def _share_of_others(session: Session) -> float:
    every = streams(session).values()
    busy_s = sum(one.busy_s for one in every)
    return sum(one.other_s for one in every) / busy_s if busy_s else 0.0


def advice(session: Session, words: Sequence[WordLatency]) -> str:
    """One sentence: the largest part of the time until `words` are shown, and where it comes from in the session."""
    means = mean_parts(words)
    part = attack(means)
    if part is None:
        return "No word was shown."
    every = streams(session).values()
    about = next(value for key, value in session.meta.items() if key.startswith(f"{STREAM}/"))
    chunk_ms, after_ms = about["chunk_ms"], round(about["lookahead_frames"] * FRAME_S * 1e3)
    chunks = sum(one.chunks for one in every)
    each = f"a chunk of {chunk_ms} ms takes {milliseconds(sum(one.busy_s for one in every) / max(chunks, 1))} ms"
    share = f"other programs had the processor for {_share_of_others(session):.0%} of that"
    late = sum(one.late for one in every)
    reasons = {
        "buffering": f"a word waits until its chunk of {chunk_ms} ms is full",
        "queue": f"{late} of {counted(chunks, 'chunk', 'chunks')} were not done when the next one had arrived; "
        f"{each}, and {share}",
        "compute": each,
        "other_programs": f"{each}, and {share}",
        "emission": f"the search shows words in later chunks than the one in which they end; the front end looks "
        f"{after_ms} ms ahead",
    }
    return f"Largest part: {PART_TITLES.get(part, part)}, {milliseconds(means[part])} ms on average; {reasons[part]}."


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if abs(seconds) >= 0.01 else f"{1e3 * seconds:.1f}"
