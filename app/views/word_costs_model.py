"""Tables of words: which were recognised in place of which, and what each cost (time, tokens, senones). No Qt."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.views.words_model import Left, spoken_in, wrong_words
from pipelines.audio import word_errors as wer
from profiler.analysis.track import CostTrack
from profiler.clock import FRAME_S
from profiler.session.reader import Session

TOKENS: Final = "search tokens"
SENONES: Final = ("search senones", "scoring senones")  # Of active ones: needed, else scored


@dataclass(frozen=True)
class WordCost:
    """A recognised word with what its frames cost."""

    utterance: int  # Number of its utterance in the run, from 1
    word: str  # The word
    kind: str | None  # What became of it, a kind of `pipelines.audio.word_errors`; None without a reference
    reference: str | None  # The reference word it stands for; None for an insertion or without a reference
    first_frame: int  # Its first frame, run-global
    frames: int  # How many frames it has
    ms: float  # Time of its frames, without other programs
    tokens: float | None  # Tokens per frame; None where the run does not count them
    senones: float | None  # Active senones per frame; None where the run does not count them

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

    Words count whose middle lies in frames `selected` [first, last), all if None. `at_once`: most utterances that are
    aligned now (None: all); the words of others are left out.
    """
    end = min(cursor_frame, int(track.n_frames))
    first, last = selected or (0, end)
    spoken, left = spoken_in(session, end, (first, last), at_once, end)
    rows = track.work_rows
    senones = next((rows[name] for name in SENONES if name in rows), None)
    wall, *counts = (
        None if row is None else np.concatenate([[0.0], np.cumsum(row[:end])])
        for row in (track.own_ns(0, end), rows.get(TOKENS), senones)
    )
    assert wall is not None
    found = []
    for one in spoken:
        for above, word in one.columns or tuple((None, word) for word in one.heard):
            if word is None:
                continue
            begin, stop = round(word.first_s / FRAME_S), round(word.last_s / FRAME_S)
            if begin < stop <= end and first <= (begin + stop) / 2 < last:
                kind = None if one.columns is None else word.kind
                of = kind, None if above is None else above.text
                means = [None if c is None else float(c[stop] - c[begin]) / (stop - begin) for c in counts]
                ms = float(wall[stop] - wall[begin]) * 1e-6
                found.append(WordCost(one.number, word.text, *of, begin, stop - begin, ms, *means))
    return tuple(found), left


@dataclass(frozen=True)
class Confusion:
    """A pair of words."""

    reference: str | None  # None for an insertion
    hypothesis: str | None  # The word that was recognised; None for a deletion
    wall_s: float | None  # Processing time of the frames of the recognised words, seconds; None for a deletion
    places: tuple[tuple[int, int], ...]  # Frames [first, last) of each occurrence, in order; of a deletion a guess

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
    """The pairs of words that differ, the most frequent first, and what is not aligned yet (see `word_costs`)."""
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
    found = []
    for (reference, hypothesis), places in pairs.items():
        wall_s = sum(float(own[first:last].sum()) for first, last in places) * 1e-9 if hypothesis else None
        found.append(Confusion(reference or None, hypothesis or None, wall_s, tuple(sorted(places))))
    found.sort(key=lambda one: (-one.count, -(one.wall_s or 0.0), one.places[0]))
    return tuple(found), left


def _compared(word: str) -> str:
    return " ".join(wer.words(word)) or word
