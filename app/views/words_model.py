"""What the words view draws: envelope, words said and words heard with their errors. No Qt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from app.model.alignment import Columns, Token, aligned
from app.views.bounded import at_most_under_way, bounded
from app.views.columns import Extremes, column_edges
from app.views.events import Boundary, Mark, boundaries, marks
from pipelines.audio.word_errors import SAME, ErrorCount, errors_of
from profiler.analysis.track import MAX_FRAMES
from profiler.arrays import F64, I64
from profiler.frames import FRAME_S

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.model import Utterance, Utterances
    from profiler.session.reader import Session

_PEAK = 127.0


@dataclass(frozen=True)
class Spoken:
    """The shown part of an utterance: words said, words heard, aligned.

    Attributes:
        name: its name.
        number: its number in the run, from 1.
        first_s: start, seconds.
        last_s: end, seconds.
        partial: whether it was still being decoded at the playhead.
        said: reference words (None without a reference; empty when it is too long to align).
        heard: hypothesis words begun before the playhead.
        columns: (said, heard) side by side, one of them None where that side has no word; None without a
            reference or when it is too long to align.
        count: errors as the run scored them once it is done, of the words so far until then; None without a
            reference, and where the run did not score it: decoded under two configurations.
        right_s: [words, 2] first and last second of every word recognised as it was said.
        wrong_s: [errors, 2] first and last second of every word that went wrong.
    """

    name: str
    number: int
    first_s: float
    last_s: float
    partial: bool
    said: tuple[Token, ...] | None
    heard: tuple[Token, ...]
    columns: Columns | None
    count: ErrorCount | None
    right_s: F64
    wrong_s: F64


@dataclass(frozen=True)
class WordsModel:
    """Envelope and words over the visible range.

    Attributes:
        first_s: left end of the range, seconds.
        last_s: right end.
        cursor_frame: frames from here on are not there.
        at_frame: where the playhead stands.
        low: [columns] lowest sample, −1…1; NaN where there is no audio.
        high: [columns] highest sample.
        spoken: utterances in view, in order of time.
        current: index in `spoken` of the one at the playhead (of what is selected, in the middle of the view).
        right_s: [words, 2] first and last second of every word in view recognised as it was said.
        wrong_s: [errors, 2] first and last second of every word in view that went wrong.
        utterances: number of utterances begun in the whole run.
        marks: markers known at the playhead.
        boundaries: utterances begun before the playhead.
        left: number and utterance of those in view that are not aligned yet, and not in `spoken`.
    """

    first_s: float
    last_s: float
    cursor_frame: int
    at_frame: int
    low: F64
    high: F64
    spoken: tuple[Spoken, ...]
    current: int | None
    right_s: F64
    wrong_s: F64
    utterances: int
    marks: tuple[Mark, ...]
    boundaries: tuple[Boundary, ...]
    left: tuple[tuple[int, Utterance], ...] = ()


class Envelope:
    """Lowest and highest sample per run-global frame as int8, kept up with a session's utterances."""

    def __init__(self) -> None:
        self._extremes = Extremes()
        self._peaks = np.zeros((2, 1024), np.int8)
        self._taken = 0

    def update(self, utterances: Sequence[Utterance]) -> Extremes:
        """Take over utterances that were not there before, in order of time."""
        if len(utterances) == self._taken:
            return self._extremes
        same = end = len(self._extremes)
        for utterance in utterances[self._taken :]:
            first = int(utterance.first_frame)
            peaks = np.empty((0, 2)) if utterance.peaks is None else utterance.peaks
            # Between utterances, silence; what an earlier one said of these frames no longer holds.
            if first + len(peaks) > MAX_FRAMES:
                continue  # no track has such a frame
            low, end = min(first, end), first + len(peaks)
            same = min(same, low)
            if end > self._peaks.shape[1]:
                wider = np.zeros((2, 2 * end), np.int8)
                wider[:, :low] = self._peaks[:, :low]
                self._peaks = wider
            self._peaks[:, low:first] = 0
            self._peaks[:, first:end] = peaks.T
        self._taken = len(utterances)
        self._extremes.follow(self._peaks[0, :end], self._peaks[1, :end], same)
        return self._extremes


_envelopes: WeakKeyDictionary[Session, Envelope] = WeakKeyDictionary()


UNDER_WAY = 4
"""Utterances under way that are kept as they were aligned last."""

_aligned_before: WeakKeyDictionary[Session, dict[int, tuple[Utterance, Spoken]]]
_aligned_before = WeakKeyDictionary()

_under_way: WeakKeyDictionary[Session, dict[int, tuple[Utterance, tuple[int, bool], Spoken]]]
_under_way = WeakKeyDictionary()
"""By number of an utterance: with how many of its words it was aligned last, and whether it was partial."""


class _Whole(NamedTuple):
    """All utterances of a session, over and aligned, in order of time: any stretch of them is a slice.

    `right`, `wrong`: their words one after the other [n, 2], and where those of each utterance begin [utterances + 1].
    """

    of: Utterances
    spoken: tuple[Spoken, ...]
    right: tuple[F64, I64]
    wrong: tuple[F64, I64]

    def within(self, first: int, last: int) -> tuple[tuple[Spoken, ...], F64, F64]:
        """Utterances first … last − 1, and their right and wrong words."""
        right, wrong = (words[at[first] : at[last]] for words, at in (self.right, self.wrong))
        return self.spoken[first:last], right, wrong


_wholes: WeakKeyDictionary[Session, _Whole] = WeakKeyDictionary()


def _whole(
    session: Session, utterances: Utterances, known: dict[int, tuple[Utterance, Spoken]]
) -> _Whole | None:
    """All `utterances` of a session in order of time, None while any of them is not aligned."""
    whole = _wholes.get(session)
    if whole is not None and whole.of is utterances:
        return whole
    aligned_before = (
        [known.get(one.id) for one in utterances] if len(known) == len(utterances) else []
    )
    spoken = tuple(
        before[1]
        for one, before in zip(utterances, aligned_before, strict=False)
        if before is not None and before[0] is one
    )
    if len(spoken) < len(utterances):
        return None
    right, wrong = (
        (_joined(words), np.cumsum([0, *map(len, words)]))
        for words in ([one.right_s for one in spoken], [one.wrong_s for one in spoken])
    )
    whole = _wholes[session] = _Whole(utterances, spoken, right, wrong)
    return whole


def _joined(words: list[F64]) -> F64:
    return np.concatenate([np.empty((0, 2)), *words])


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
    at_frame: int | None = None,
    at_once: int | None = None,
    selected: tuple[int, int] | None = None,
) -> WordsModel:
    """Reduce audio and words to `columns` pixel columns over `visible`, up to a frame.

    Args:
        session: where the utterances are.
        track: cost per frame, for what is in the session.
        cursor_frame: frames from here on are left out.
        visible: first and last second.
        columns: pixel columns.
        at_frame: where the playhead stands, at the end if it is not said; its utterance is the current one.
        at_once: most utterances that are aligned (None: all); where there are more, all of them are `left`.
        selected: frames [first, last) that are selected; with the playhead outside, the utterance there is current.
    """
    at_frame = cursor_frame if at_frame is None else at_frame
    first_s, last_s = visible
    edges = column_edges(first_s / FRAME_S, last_s / FRAME_S, max(1, columns))
    utterances = session.utterances.in_time
    begun = at_most_under_way(utterances, cursor_frame)
    # The audio of the utterance under way is known to its end; what follows is not.
    end = int(utterances.end[begun[-1]]) if len(begun) else 0
    low, high = (peaks / _PEAK for peaks in envelope_of(session).columns(edges, end))
    known = _aligned_before.setdefault(session, {})
    seen = (utterances.first[begun] < edges[-1]) & (utterances.end[begun] > edges[0])
    over = utterances.done[begun] & (utterances.end[begun] <= cursor_frame)
    shown = np.flatnonzero(seen)
    whole = _whole(session, utterances, known) if over[shown].all() else None
    left: list[tuple[int, Utterance]] = []
    if whole is not None and len(shown) and begun[shown[-1]] - begun[shown[0]] + 1 == len(shown):
        spoken, right, wrong = whole.within(int(begun[shown[0]]), int(begun[shown[-1]]) + 1)
    else:
        found: list[tuple[int, Utterance, Spoken | None]] = []
        for index, place, done in zip(
            shown.tolist(), begun[shown].tolist(), over[shown].tolist(), strict=True
        ):
            one = utterances[place]
            before = known.get(one.id) if done else None
            aligned_before = before[1] if before is not None and before[0] is one else None
            found.append((index + 1, one, aligned_before))
            if done and before is None:
                left.append((index + 1, one))
        if at_once is None or len(left) <= at_once:
            left = []
        later = {one.id for _, one in left}
        spoken = tuple(
            aligned_before or _remembered(session, known, utterance, number, cursor_frame)
            for number, utterance, aligned_before in found
            if not later
            or utterance.id not in later
            or _runs(utterance, at_frame)
            or number == len(begun)
        )
        right, wrong = (_joined([u.right_s for u in spoken]), _joined([u.wrong_s for u in spoken]))
    return WordsModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        cursor_frame=cursor_frame,
        at_frame=at_frame,
        low=low,
        high=high,
        spoken=spoken,
        current=_current(spoken, at_frame * FRAME_S, visible, selected),
        right_s=right,
        wrong_s=wrong,
        utterances=len(begun),
        marks=marks(session, cursor_frame, int(track.n_frames)),
        boundaries=boundaries(session, cursor_frame),
        left=tuple(left),
    )


def _current(
    spoken: tuple[Spoken, ...],
    cursor_s: float,
    visible: tuple[float, float],
    selected: tuple[int, int] | None,
) -> int | None:
    if not spoken:
        return None
    # The playhead stands at the end of the last frame shown.
    at = cursor_s - FRAME_S / 2
    if selected is not None:
        first_s, last_s = (frame * FRAME_S for frame in selected)
        within = [min(one.last_s, last_s) - max(one.first_s, first_s) for one in spoken]
        if not first_s <= at <= last_s and max(within) > FRAME_S / 2:
            return within.index(max(within))
    if not visible[0] <= at <= visible[1]:
        at = (visible[0] + visible[1]) / 2
    for index, utterance in enumerate(spoken):
        if at < utterance.last_s:
            return index
    return len(spoken) - 1


def _runs(utterance: Utterance, frame: int) -> bool:
    return utterance.first_frame < frame <= utterance.first_frame + utterance.n_frames


def _over(utterance: Utterance, cursor_frame: int) -> bool:
    return utterance.done and utterance.first_frame + utterance.n_frames <= cursor_frame


def align_ahead(
    session: Session, left: list[tuple[int, Utterance]], cursor_frame: int, seconds: float
) -> None:
    """Align utterances of a model that are `left`, the latest first, for about so long, and take them off."""
    known = _aligned_before.setdefault(session, {})
    end = time.monotonic() + seconds
    while left:
        number, utterance = left.pop()
        _remembered(session, known, utterance, number, cursor_frame)
        if time.monotonic() >= end:
            break


def _remembered(
    session: Session,
    known: dict[int, tuple[Utterance, Spoken]],
    utterance: Utterance,
    number: int,
    cursor_frame: int,
) -> Spoken:
    """`_spoken`, kept for utterances that are over, of which an hour has hundreds, and until the next word comes."""
    if not _over(utterance, cursor_frame):
        heard = sum(word[1] < cursor_frame for word in utterance.words)
        state = (
            heard,
            not utterance.done or utterance.first_frame + utterance.n_frames > cursor_frame,
        )
        recent = _under_way.setdefault(session, {})
        before = recent.get(number)
        if before is None or before[0] is not utterance or before[1] != state:
            spoken = _spoken(bounded(utterance), number, cursor_frame)
            # Those that a replay has been in lately.
            if len(recent) >= UNDER_WAY:
                recent.clear()
            before = recent[number] = utterance, state, spoken
        return before[2]
    found = known.get(utterance.id)
    if found is None or found[0] is not utterance:
        found = known[utterance.id] = (utterance, _spoken(bounded(utterance), number, cursor_frame))
    return found[1]


def _spoken(utterance: Utterance, number: int, cursor_frame: int) -> Spoken:
    last = utterance.first_frame + utterance.n_frames
    partial = not utterance.done or last > cursor_frame
    heard = tuple(word for word in utterance.words if word[1] < cursor_frame)
    said = None if not utterance.reference else tuple(utterance.reference.split())
    heard_tokens, said_tokens, columns, so_far = aligned(
        said, heard, partial, utterance.first_frame
    )
    score = so_far
    if not partial:
        # What the run itself scored is what its WER is made of.
        score = errors_of(utterance)
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
        count=score,
        right_s=np.array(right).reshape(-1, 2),
        wrong_s=np.array(wrong).reshape(-1, 2),
    )
