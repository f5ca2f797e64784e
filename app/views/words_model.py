"""What the words view draws: envelope, words said and words heard with their errors. No Qt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from app.views.alignment import DELETED, SAME, Counts, Pair, align, count
from app.views.columns import Extremes, Floats, column_edges
from app.views.events import FRAME_S, Boundary, Mark, boundaries, marks

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.model import Utterance
    from profiler.session.reader import Session

Word = tuple[str, int, int]

_VARIANT = re.compile(r"\(\d+\)$")
_PEAK = 127.0


@dataclass(frozen=True)
class Token:
    """A word with its place in time and what became of it.

    `kind` is one of `alignment`'s; for a deleted word the place is a guess between its neighbours.
    """

    text: str
    kind: str
    first_s: float
    last_s: float


@dataclass(frozen=True)
class Spoken:
    """One utterance as far as it was shown: words said, words heard, aligned.

    Attributes:
        name: its name.
        number: its number in the run, from 1.
        first_s: start, seconds.
        last_s: end, seconds.
        partial: whether it was still being decoded at the playhead.
        said: reference words (None without a reference).
        heard: hypothesis words begun before the playhead.
        pairs: columns of the alignment; None without a reference or when it is too long to align.
        counts: errors of the alignment; None where `pairs` is.
        errors: word errors, as scored by the run once it is done; None without a reference.
        words: reference words that `errors` refers to.
        wrong_s: [errors, 2] first and last second of every word that went wrong.
    """

    name: str
    number: int
    first_s: float
    last_s: float
    partial: bool
    said: tuple[Token, ...] | None
    heard: tuple[Token, ...]
    pairs: tuple[Pair, ...] | None
    counts: Counts | None
    errors: int | None
    words: int | None
    wrong_s: Floats


@dataclass(frozen=True)
class WordsModel:
    """Envelope and words over the visible range.

    Attributes:
        first_s: left end of the range, seconds.
        last_s: right end.
        cursor_frame: frames from here on are not shown.
        low: [columns] lowest sample, −1…1; NaN where there is no audio.
        high: [columns] highest sample.
        spoken: utterances in view, in order of time.
        current: index in `spoken` of the one at the playhead (or in the middle of the view).
        wrong_s: [errors, 2] first and last second of every word in view that went wrong.
        utterances: number of utterances begun in the whole run.
        marks: markers known at the playhead.
        boundaries: utterances begun before the playhead.
    """

    first_s: float
    last_s: float
    cursor_frame: int
    low: Floats
    high: Floats
    spoken: tuple[Spoken, ...]
    current: int | None
    wrong_s: Floats
    utterances: int
    marks: tuple[Mark, ...]
    boundaries: tuple[Boundary, ...]


class Envelope:
    """Lowest and highest sample per run-global frame as int8, kept up with a session's utterances."""

    def __init__(self) -> None:
        self._extremes = Extremes()
        self._peaks = np.zeros((2, 1024), np.int8)
        self._taken = 0

    def update(self, utterances: Iterable[Utterance]) -> Extremes:
        """Take over utterances that were not there before, in order of time."""
        begun = list(utterances)
        same = end = len(self._extremes)
        for utterance in begun[self._taken :]:
            first = int(utterance.first_frame)
            peaks = np.empty((0, 2)) if utterance.peaks is None else utterance.peaks
            # Between utterances, silence; what an earlier one said of these frames no longer holds.
            low, end = min(first, end), first + len(peaks)
            same = min(same, low)
            if end > self._peaks.shape[1]:
                wider = np.zeros((2, 2 * end), np.int8)
                wider[:, :low] = self._peaks[:, :low]
                self._peaks = wider
            self._peaks[:, low:first] = 0
            self._peaks[:, first:end] = peaks.T
        self._taken = len(begun)
        self._extremes.follow(self._peaks[0, :end], self._peaks[1, :end], same)
        return self._extremes


_envelopes: WeakKeyDictionary[Session, Envelope] = WeakKeyDictionary()


_aligned_before: WeakKeyDictionary[Session, dict[int, tuple[Utterance, Spoken]]]
_aligned_before = WeakKeyDictionary()


def envelope_of(session: Session) -> Extremes:
    """The up-to-date envelope of a session."""
    envelope = _envelopes.get(session)
    if envelope is None:
        envelope = _envelopes[session] = Envelope()
    return envelope.update(session.utterances)


def words_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
) -> WordsModel:
    """Reduce audio and words to `columns` pixel columns over `visible`, up to the playhead."""
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    begun = [u for u in session.utterances if u.first_frame < max(1, cursor_frame)]
    begun.sort(key=lambda u: u.first_frame)
    # The audio of the utterance under way is known to its end; what follows is not.
    end = begun[-1].first_frame + begun[-1].n_frames if begun else 0
    low, high = (peaks / _PEAK for peaks in envelope_of(session).columns(edges, end))
    known = _aligned_before.setdefault(session, {})
    spoken = tuple(
        _remembered(known, utterance, number, cursor_frame)
        for number, utterance in enumerate(begun, start=1)
        if utterance.first_frame < edges[-1]
        and utterance.first_frame + utterance.n_frames > edges[0]
    )
    return WordsModel(
        first_s=first_s,
        last_s=last_s,
        cursor_frame=cursor_frame,
        low=low,
        high=high,
        spoken=spoken,
        current=_current(spoken, cursor_frame * FRAME_S, visible),
        wrong_s=np.concatenate([np.empty((0, 2)), *(u.wrong_s for u in spoken)]),
        utterances=len(begun),
        marks=marks(session, cursor_frame, int(track.n_frames)),
        boundaries=boundaries(session, cursor_frame),
    )


def shown_form(word: str) -> str:
    """A word without its pronunciation variant: `the(2)` is shown as `the`."""
    return _VARIANT.sub("", word)


def _is_word(word: str) -> bool:
    """Fillers (`<sil>`, `[NOISE]`, `++BREATH++`) are no words."""
    return bool(word) and word[0] not in "<[+"


def _current(
    spoken: tuple[Spoken, ...], cursor_s: float, visible: tuple[float, float]
) -> int | None:
    if not spoken:
        return None
    # The playhead stands at the end of the last frame shown.
    at = cursor_s - FRAME_S / 2
    if not visible[0] <= at <= visible[1]:
        at = (visible[0] + visible[1]) / 2
    for index, utterance in enumerate(spoken):
        if at < utterance.last_s:
            return index
    return len(spoken) - 1


def _remembered(
    known: dict[int, tuple[Utterance, Spoken]],
    utterance: Utterance,
    number: int,
    cursor_frame: int,
) -> Spoken:
    """`_spoken`, kept for utterances that are over: an hour has hundreds of them in view."""
    over = utterance.done and utterance.first_frame + utterance.n_frames <= cursor_frame
    if not over:
        return _spoken(utterance, number, cursor_frame)
    found = known.get(utterance.id)
    if found is None or found[0] is not utterance:
        found = known[utterance.id] = (utterance, _spoken(utterance, number, cursor_frame))
    return found[1]


def _spoken(utterance: Utterance, number: int, cursor_frame: int) -> Spoken:
    last = utterance.first_frame + utterance.n_frames
    partial = not utterance.done or last > cursor_frame
    heard = tuple(
        (shown_form(word), first, frames)
        for word, first, frames in utterance.words
        if first < cursor_frame and _is_word(word)
    )
    said = None if not utterance.reference else tuple(utterance.reference.split())
    heard_tokens, said_tokens, pairs = _aligned(said, heard, partial, utterance.first_frame)
    counts = None if pairs is None else count(pairs)
    errors = None if counts is None else counts.errors
    words = None if counts is None else counts.said
    if not partial and utterance.errors is not None:
        # What the run itself scored is what its WER is made of.
        errors, words = utterance.errors, utterance.reference_words
    wrong = [token for token in heard_tokens if token.kind != SAME]
    wrong += [token for token in said_tokens or () if token.kind == DELETED]
    return Spoken(
        name=utterance.name,
        number=number,
        first_s=utterance.first_frame * FRAME_S,
        last_s=last * FRAME_S,
        partial=partial,
        said=said_tokens,
        heard=heard_tokens,
        pairs=pairs,
        counts=counts,
        errors=errors,
        words=words,
        wrong_s=np.array([(t.first_s, t.last_s) for t in wrong]).reshape(-1, 2),
    )


@lru_cache(maxsize=64)
def _aligned(
    said: tuple[str, ...] | None, heard: tuple[Word, ...], partial: bool, first_frame: int
) -> tuple[tuple[Token, ...], tuple[Token, ...] | None, tuple[Pair, ...] | None]:
    times = [(first * FRAME_S, (first + frames) * FRAME_S) for _, first, frames in heard]
    words = [word for word, _, _ in heard]
    pairs = None if said is None else align(said, words, partial)
    if said is None or pairs is None:
        plain = (Token(w, SAME, *t) for w, t in zip(words, times, strict=True))
        return tuple(plain), None, None
    heard_tokens = [
        Token(words[pair.heard], pair.kind, *times[pair.heard])
        for pair in pairs
        if pair.heard is not None
    ]
    said_tokens = []
    before = first_frame * FRAME_S
    for column, pair in enumerate(pairs):
        if pair.heard is not None:
            place = times[pair.heard]
            before = place[1]
        else:
            after = next((times[p.heard][0] for p in pairs[column:] if p.heard is not None), before)
            place = (before, max(before, after))
        if pair.said is not None:
            said_tokens.append(Token(said[pair.said], pair.kind, *place))
    return tuple(heard_tokens), tuple(said_tokens), pairs
