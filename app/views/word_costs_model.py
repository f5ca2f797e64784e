"""Tables of words: which were recognised in place of which, and what each cost (time, tokens, senones). No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.views.words_model import Left, Spoken, spoken_in, wrong_words
from pipelines.audio import word_errors as wer
from profiler.arrays import F64, I64
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


TOKENS: Final = "search tokens"
SENONES: Final = ("search senones", "scoring senones")
"""Counts of active senones: those that the search needed, else those that were scored."""


@dataclass(frozen=True)
class WordCost:
    """A recognised word with what its frames cost.

    Attributes:
        utterance: number of its utterance in the run, from 1.
        word: the word.
        kind: what became of it, a kind of `pipelines.audio.word_errors`; None without a reference.
        reference: the reference word it stands for; None for an insertion or without a reference.
        first_frame: its first frame, run-global.
        frames: how many frames it has.
        ms: time of its frames, without other programs.
        tokens: tokens per frame; None where the run does not count them.
        senones: active senones per frame; None where the run does not count them.
    """

    utterance: int
    word: str
    kind: str | None
    reference: str | None
    first_frame: int
    frames: int
    ms: float
    tokens: float | None
    senones: float | None

    @property
    def rtf(self) -> float:
        return self.ms * 1e-3 / (self.frames * FRAME_S)


def word_costs(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    selected: tuple[int, int] | None = None,
    at_once: int | None = None,
) -> tuple[tuple[WordCost, ...], Left]:
    """Return the words recognised before a frame, in order of time, and the utterances not aligned yet.

    Args:
        session: where the utterances are.
        track: cost and counts per frame.
        cursor_frame: words that end later are left out.
        selected: frames [first, last); only words whose middle lies there, all if None.
        at_once: most utterances that are aligned now (None: all); the words of others are left out.
    """
    end = min(cursor_frame, int(track.n_frames))
    first, last = selected or (0, end)
    spoken, left = spoken_in(session, end, (first, last), at_once, end)
    words = [(one.number, *word) for one in spoken for word in _words(one)]
    kept = [w for w in words if w[4] > w[3] and w[4] <= end and first <= (w[3] + w[4]) / 2 < last]
    begins, ends = (np.array([word[at] for word in kept], np.int64) for at in (3, 4))
    rows = track.work_rows
    senones = next((name for name in SENONES if name in rows), None)
    wall = _sums(track.own_ns(0, end), begins, ends) * 1e-6
    tokens, active = (
        None if row is None else _sums(row[:end], begins, ends) / (ends - begins)
        for row in (rows.get(TOKENS), rows.get(senones or ""))
    )
    return tuple(
        WordCost(
            number,
            text,
            *became,
            begin,
            stop - begin,
            float(wall[at]),
            None if tokens is None else float(tokens[at]),
            None if active is None else float(active[at]),
        )
        for at, (number, text, became, begin, stop) in enumerate(kept)
    ), left


def _sums(per_frame: F64, begins: I64, ends: I64) -> F64:
    """Sum of each stretch of frames [begin, end)."""
    before = np.concatenate([[0.0], np.cumsum(per_frame)])
    found: F64 = before[ends] - before[begins]
    return found


def _words(spoken: Spoken) -> Iterator[tuple[str, tuple[str | None, str | None], int, int]]:
    """Text, (kind, reference word), first frame and the frame after the last of each recognised word."""
    pairs = spoken.columns
    if pairs is None:
        pairs = tuple((None, word) for word in spoken.heard)
    for above, word in pairs:
        if word is not None:
            kind = None if spoken.columns is None else word.kind
            at = round(word.first_s / FRAME_S), round(word.last_s / FRAME_S)
            yield word.text, (kind, None if above is None else above.text), *at


@dataclass(frozen=True)
class Confusion:
    """A pair of words.

    Attributes:
        reference: word of the reference; None for an insertion.
        hypothesis: word that was recognised; None for a deletion.
        wall_s: processing time of the frames of the recognised words, seconds; None for a deletion.
        places: frames [first, last) of each occurrence, in order of time; that of a deleted word is a guess.
    """

    reference: str | None
    hypothesis: str | None
    wall_s: float | None
    places: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        return len(self.places)


def confusions(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    selected: tuple[int, int] | None = None,
    at_once: int | None = None,
) -> tuple[tuple[Confusion, ...], Left]:
    """Return the pairs of words that differ, the most frequent first, and the utterances not aligned yet.

    Args:
        session: where the utterances are.
        track: cost per frame.
        cursor_frame: words that end later are left out.
        selected: frames [first, last); only words whose middle lies there, all if None.
        at_once: most utterances that are aligned now (None: all); the words of others are left out.
    """
    end = min(cursor_frame, int(track.n_frames))
    begin, until = selected or (0, end)
    spoken, left = spoken_in(session, end, (begin, until), at_once, end)
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for one in spoken:
        for (first, last), errors in wrong_words(one).items():
            if last <= end and begin <= (first + last) / 2 < until:
                for above, below in errors:
                    pairs.setdefault((_compared(above), _compared(below)), []).append((first, last))
    own = track.own_ns(0, end)
    found = [
        Confusion(
            reference or None,
            hypothesis or None,
            sum(float(own[first:last].sum()) for first, last in places) * 1e-9 if hypothesis else None,
            tuple(sorted(places)),
        )
        for (reference, hypothesis), places in pairs.items()
    ]
    found.sort(key=lambda one: (-one.count, -(one.wall_s or 0.0), one.places[0]))
    return tuple(found), left


def _compared(word: str) -> str:
    return " ".join(wer.words(word)) or word
