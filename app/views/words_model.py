"""What the words view draws: envelope, words said and words heard with their errors. No Qt."""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from app.model.alignment import Columns, Token, aligned
from app.model.events import boundaries, marks
from app.views.bounded import at_most_under_way, bounded
from pipelines.audio.word_errors import SAME, ErrorCount, errors_of
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.lod.envelope import envelope_of
from profiler.arrays import F64, I64, Bool
from profiler.frames import FRAME_S

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.model import Marker, Utterance, Utterances
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
        complete: whether the words are a sentence of the grammar, None without one or before the end.
        notes: what was done to the sound or left out of it.
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
    complete: bool | None = None
    notes: tuple[str, ...] = ()


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
    marks: tuple[Marker, ...]
    boundaries: I64
    left: tuple[tuple[int, Utterance], ...] = ()


UNDER_WAY = 4
"""Utterances under way that are kept as they were aligned last."""

_aligned_before: WeakKeyDictionary[Session, dict[int, tuple[Utterance, Spoken]]]
_aligned_before = WeakKeyDictionary()

_under_way: WeakKeyDictionary[Session, dict[int, tuple[Utterance, tuple[int, bool], Spoken]]]
_under_way = WeakKeyDictionary()
"""By number of an utterance: with how many of its words it was aligned last, and whether it was partial."""


FEW = 8
"""So many utterances in view are put together as fast one by one: no run that is followed has more."""


class _Whole(NamedTuple):
    """Utterances of a session up to the first that is not over, aligned, in order of time: a stretch is a slice.

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
    """Those of `utterances` before the first that is not over; None while any of them is not aligned.

    A run that was stopped leaves one that is never over.
    """
    whole = _wholes.get(session)
    if whole is not None and whole.of is utterances:
        return whole
    over = len(utterances) if utterances.done.all() else int(np.argmin(utterances.done))
    leading = utterances[:over]
    before = [known.get(one.id) for one in leading] if len(known) >= over else []
    spoken = tuple(
        kept[1]
        for one, kept in zip(leading, before, strict=False)
        if kept is not None and kept[0] is one
    )
    if len(spoken) < over:
        return None
    right, wrong = (
        (_joined(words), np.cumsum([0, *map(len, words)]))
        for words in ([one.right_s for one in spoken], [one.wrong_s for one in spoken])
    )
    whole = _wholes[session] = _Whole(utterances, spoken, right, wrong)
    return whole


def _slice(
    session: Session,
    utterances: Utterances,
    known: dict[int, tuple[Utterance, Spoken]],
    places: I64,
    over: Bool,
) -> tuple[tuple[Spoken, ...], F64, F64]:
    """The first of the utterances in `places`, with their right and wrong words: those before one that is not `over`.

    None of them where they are few, not all aligned yet, or not next to each other.
    """
    whole = _whole(session, utterances, known) if len(places) > FEW else None
    if whole is not None:
        count = len(places) if over.all() else int(np.argmin(over))
        count = min(count, len(whole.spoken) - int(places[0]))
        if count > 0 and places[count - 1] - places[0] + 1 == count:
            return whole.within(int(places[0]), int(places[0]) + count)
    return (), np.empty((0, 2)), np.empty((0, 2))


_together: WeakKeyDictionary[Session, tuple[tuple[Spoken, ...], F64, F64]] = WeakKeyDictionary()
"""Utterances put together last, one by one, with their right and wrong words."""


def _put_together(
    session: Session, before: tuple[F64, F64] | None, spoken: tuple[Spoken, ...]
) -> tuple[F64, F64]:
    """Right and wrong words of a stretch `before` (None where there is none), then those of `spoken`.

    The same objects while these are: what is drawn of them is kept.
    """
    known = _together.get(session)
    if (
        before is None
        and known is not None
        and len(known[0]) == len(spoken)
        and all(map(operator.is_, known[0], spoken))
    ):
        return known[1], known[2]
    right, wrong = before or (np.empty((0, 2)), np.empty((0, 2)))
    right = _joined([right, *(one.right_s for one in spoken)])
    wrong = _joined([wrong, *(one.wrong_s for one in spoken)])
    if before is None:
        _together[session] = spoken, right, wrong
    return right, wrong


def _joined(words: list[F64]) -> F64:
    return np.concatenate([np.empty((0, 2)), *words])


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
    stretch = _slice(session, utterances, known, begun[shown], over[shown])
    one_by_one = shown[len(stretch[0]) :]
    left: list[tuple[int, Utterance]] = []
    found: list[tuple[int, Utterance, Spoken | None]] = []
    for index, place, done in zip(
        one_by_one.tolist(), begun[one_by_one].tolist(), over[one_by_one].tolist(), strict=True
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
    others = tuple(
        aligned_before or _remembered(session, known, utterance, number, cursor_frame)
        for number, utterance, aligned_before in found
        if not later
        or utterance.id not in later
        or _runs(utterance, at_frame)
        or number == len(begun)
    )
    spoken, right, wrong = stretch
    if others:
        words = (right, wrong) if spoken else None
        right, wrong = _put_together(session, words, others)
        spoken += others
    return WordsModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        cursor_frame=cursor_frame,
        at_frame=at_frame,
        low=low,
        high=high,
        spoken=spoken,
        current=current_of(spoken, at_frame * FRAME_S, visible, selected),
        right_s=right,
        wrong_s=wrong,
        utterances=len(begun),
        marks=marks(session, cursor_frame, int(track.n_frames)),
        boundaries=boundaries(session, cursor_frame),
        left=tuple(left),
    )


def current_of(
    spoken: tuple[Spoken, ...],
    cursor_s: float,
    visible: tuple[float, float],
    selected: tuple[int, int] | None,
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
        complete=None if partial else utterance.complete,
        notes=utterance.notes,
    )
