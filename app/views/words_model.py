"""Data of the words view: envelope, reference and hypothesis words with their errors. No Qt."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from app.model.alignment import Columns, Token, aligned
from pipelines.audio.word_errors import SAME, ErrorCount, errors_of
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.lod.series import envelope_of
from profiler.analysis.track import CostTrack
from profiler.arrays import F64, I64
from profiler.clock import FRAME_S
from profiler.plain import one_line
from profiler.session.model import Utterance, Utterances
from profiler.session.reader import Session

AT_ONCE: Final = 16  # Utterances that a drawing waits for. An hour has hundreds, which are aligned meanwhile.
MAX_LETTERS: Final = 80  # Characters of a word; the longest in any dictionary has half as many

MAX_SAID, MAX_HEARD = 4000, 20_000  # Words that are aligned: 20 minutes of a reference, and what was recognised
MAX_UNDER_WAY: Final = 32  # Utterances being decoded at one moment; a recording has one. Only finished ones are kept.


def bounded(utterance: Utterance) -> Utterance:
    """Return `utterance` with texts that can be drawn; a reference too long to align is left out."""
    words = tuple((one_line(word, MAX_LETTERS), first, frames) for word, first, frames in utterance.words[:MAX_HEARD])
    reference = utterance.reference
    if reference is not None:
        said = reference.split(maxsplit=MAX_SAID)
        short = (one_line(word, MAX_LETTERS) for word in said)
        reference = None if len(said) > MAX_SAID else " ".join(short)
    return replace(utterance, name=one_line(utterance.name), words=words, reference=reference)


def at_most_under_way(utterances: Utterances, cursor_frame: int) -> I64:
    """Positions in time of utterances begun before a frame; of those unfinished there, the first `MAX_UNDER_WAY`."""
    begun = int(np.searchsorted(utterances.first, max(1, cursor_frame)))
    under_way = ~(utterances.done[:begun] & (utterances.end[:begun] <= cursor_frame))
    return np.flatnonzero(~under_way | (np.cumsum(under_way) <= MAX_UNDER_WAY))


@dataclass(frozen=True, eq=False)
class Spoken:
    """The visible part of an utterance: reference and hypothesis words, aligned."""

    name: str
    number: int  # In the run, from 1
    first_s: float
    last_s: float
    partial: bool  # Whether it was still being decoded at the playhead
    said: tuple[Token, ...] | None  # Reference words (None without a reference; empty when it is too long to align)
    heard: tuple[Token, ...]  # Hypothesis words begun before the playhead
    columns: Columns | None  # Both side by side; None without a reference or when it is too long to align
    count: ErrorCount | None  # As the run scored it, or of the words so far; None without a reference or a score
    right_s: F64  # [words, 2] first and last second of every word recognised as it was said
    wrong_s: F64  # [errors, 2] first and last second of every word that went wrong
    complete: bool | None = None  # Whether the words are a sentence of the grammar, None without one or before the end
    notes: tuple[str, ...] = ()  # What was done to the sound or left out of it


@dataclass(frozen=True)
class WordsModel:
    """Envelope and words over the visible range."""

    first_s: float
    last_s: float
    at_frame: int  # Where the playhead stands
    low: F64  # [columns] lowest sample, −1…1; NaN where there is no audio
    high: F64  # [columns] highest sample
    spoken: tuple[Spoken, ...]  # Utterances in view, in order of time
    current: int | None  # Index of that at the playhead, or of what is selected, in the middle of the view
    utterances: int  # Number of utterances begun in the whole run
    left: Left = ()  # Those in view that are not aligned yet, and not in `spoken`

    @property
    def now(self) -> Spoken | None:
        return None if self.current is None else self.spoken[self.current]

    @cached_property
    def right_s(self) -> F64:
        """As that of `Spoken`, of all in view."""
        return np.concatenate([np.empty((0, 2)), *(one.right_s for one in self.spoken)])

    @cached_property
    def wrong_s(self) -> F64:
        return np.concatenate([np.empty((0, 2)), *(one.wrong_s for one in self.spoken)])


Aligned = dict[int, tuple["Utterance", Spoken]]  # By number of an utterance: the one aligned, and what came of it
Left = tuple[tuple[int, "Utterance"], ...]  # Number and utterance of those that are not aligned yet

_aligned: WeakKeyDictionary[Session, Aligned] = WeakKeyDictionary()  # Of utterances that are over


def words_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    at_frame: int | None = None,
    at_once: int | None = None,
    selected: tuple[int, int] | None = None,
) -> WordsModel:
    """Reduce audio and words to `columns` pixel columns over seconds `visible`, up to a frame.

    The utterance at the playhead (`at_frame`; None: at the end) is current; with the playhead outside frames `selected`
    [first, last), the one there. Where more than `at_once` are not aligned yet, they are `left` (None: none is).
    """
    at_frame = cursor_frame if at_frame is None else at_frame
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    utterances = session.utterances.in_time
    begun = at_most_under_way(utterances, cursor_frame)
    # The audio of the utterance under way is known to its end; what follows is not.
    end = int(utterances.end[begun[-1]]) if len(begun) else 0
    low, high = (peaks[:, 0] / 127.0 for peaks in envelope_of(session).columns(edges, end))
    first, last = float(edges[0]), float(edges[-1])
    spoken, left = spoken_in(session, cursor_frame, (first, last), at_once, at_frame)
    current = current_of(spoken, at_frame * FRAME_S, visible, selected)
    seconds = first * FRAME_S, last * FRAME_S
    return WordsModel(*seconds, at_frame, low, high, spoken, current, len(begun), left)


def spoken_in(
    session: Session, cursor_frame: int, frames: tuple[float, float], at_once: int | None, at_frame: int
) -> tuple[tuple[Spoken, ...], Left]:
    """Return what was spoken in frames [first, last), and the utterances there that are not aligned yet.

    Where more than `at_once` are not aligned (None: however many), only the one at `at_frame` and the last are.
    """
    utterances, known = session.utterances.in_time, _aligned.setdefault(session, {})
    begun = at_most_under_way(utterances, cursor_frame)
    seen = (utterances.first[begun] < frames[1]) & (utterances.end[begun] > frames[0])
    over = utterances.done[begun] & (utterances.end[begun] <= cursor_frame)
    found = [(index + 1, utterances[begun[index]]) for index in np.flatnonzero(seen).tolist()]
    unknown = [(number, one) for number, one in found if over[number - 1] and one.id not in known]
    left: dict[int, Utterance] = {}
    if at_once is not None and len(unknown) > at_once:
        waiting = [each for each in unknown if each[0] != len(begun)]
        left = {number: one for number, one in waiting if not one.first_frame < at_frame <= one.end_frame}
    spoken = tuple(
        _aligned_once(known, one, number, cursor_frame) if over[number - 1] else _spoken(one, number, cursor_frame)
        for number, one in found
        if number not in left
    )
    return spoken, tuple(left.items())


def wrong_words(spoken: Spoken) -> dict[tuple[int, int], list[tuple[str, str]]]:
    """Word errors by frames [first, last): reference and hypothesis, or empty; deletions in a row have one place."""
    found: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for above, below in spoken.columns or ():
        token = below or above
        if token is not None and token.kind != SAME:
            first = round(token.first_s / FRAME_S)
            last = max(first + 1, round(token.last_s / FRAME_S))
            words = "" if above is None else above.text, "" if below is None else below.text
            found.setdefault((first, last), []).append(words)
    return dict(sorted(found.items()))


def current_of(
    spoken: tuple[Spoken, ...], cursor_s: float, visible: tuple[float, float], selected: tuple[int, int] | None
) -> int | None:
    """Index of the utterance at the cursor, of what is selected, or in the middle of the range in view."""
    if not spoken:
        return None
    # The playhead stands at the end of the last frame shown.
    at = max(cursor_s - FRAME_S / 2, 0.0)
    if selected is not None:
        first_s, last_s = (frame * FRAME_S for frame in selected)
        within = [min(one.last_s, last_s) - max(one.first_s, first_s) for one in spoken]
        if not first_s <= at <= last_s and max(within) > FRAME_S / 2:
            return within.index(max(within))
    if not visible[0] <= at <= visible[1]:
        at = (visible[0] + visible[1]) / 2
    return next((index for index, one in enumerate(spoken) if at < one.last_s), len(spoken) - 1)


def align(session: Session, left: Left, cursor_frame: int) -> Generator[None]:
    """Align utterances of a model that are `left`, the latest first, one at a time."""
    known = _aligned.setdefault(session, {})
    for number, utterance in reversed(left):
        _aligned_once(known, utterance, number, cursor_frame)
        yield


def _aligned_once(known: Aligned, utterance: Utterance, number: int, cursor_frame: int) -> Spoken:
    """An utterance that is over; what came of it is kept."""
    before = known.get(utterance.id)
    if before is None or before[0] is not utterance:
        before = known[utterance.id] = utterance, _spoken(utterance, number, cursor_frame)
    return before[1]


def _spoken(utterance: Utterance, number: int, cursor_frame: int) -> Spoken:
    utterance = bounded(utterance)
    last = utterance.end_frame
    partial = not utterance.done or last > cursor_frame
    heard = tuple(word for word in utterance.words if word[1] < cursor_frame)
    said = None if not utterance.reference else tuple(utterance.reference.split())
    heard_tokens, said_tokens, columns, so_far = aligned(said, heard, partial, utterance.first_frame)
    tokens = (heard or said for said, heard in columns or ())
    wrong = [(t.first_s, t.last_s) for t in tokens if t is not None and t.kind != SAME]
    right = [(t.first_s, t.last_s) for t in heard_tokens if t.kind == SAME]
    return Spoken(
        name=utterance.name,
        number=number,
        first_s=utterance.first_frame * FRAME_S,
        last_s=last * FRAME_S,
        partial=partial,
        said=said_tokens,
        heard=heard_tokens,
        columns=columns,
        # What the run itself scored is what its WER is made of.
        count=so_far if partial else errors_of(utterance),
        right_s=np.array(right).reshape(-1, 2),
        wrong_s=np.array(wrong).reshape(-1, 2),
        complete=None if partial else utterance.complete,
        notes=utterance.notes,
    )
