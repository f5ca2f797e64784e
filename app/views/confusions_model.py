"""Which words were recognised in place of which, how often, and the time that was spent in them. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.model.figures import own_ns
from app.views.words_model import Left, spoken_in, wrong_words
from pipelines.audio import word_errors as wer

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


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
    own = own_ns(track, 0, end)
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
