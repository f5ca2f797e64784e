"""Reference and hypothesis side by side, each word at its time: for the words view and for the errors in a range."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pipelines.audio import word_errors as wer
from pipelines.audio.word_errors import SAME, ErrorCount, Transcribed, errors_of, total_of, transcribed
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from profiler.session.model import Utterance
    from profiler.session.reader import Session

Word = tuple[str, int, int]
Place = tuple[float, float]

MAX_CELLS = 4_000_000  # Reference × recognised words that are aligned for drawing: the window waits for it


@dataclass(frozen=True)
class Token:
    """A word with its place in time, of a deleted one a guess between its neighbours, and what became of it."""

    text: str
    kind: str  # One of those of `pipelines.audio.word_errors`
    first_s: float
    last_s: float

    @property
    def middle_s(self) -> float:
        return (self.first_s + self.last_s) / 2


Columns = tuple[tuple[Token | None, Token | None], ...]


def errors_in(session: Session, first: int, last: int, end: int) -> tuple[ErrorCount, Transcribed]:
    """Word errors in frames [first, last) of the utterances over before frame `end`, and how many have a transcript.

    An utterance within the range counts as the run scored it; of others, the words whose middle lies in the range. One
    that was decoded again with the same settings counts once, as it was decoded last. The turns of an A/B within a run,
    which decode one utterance again and again, count only where the range lies within it.
    """
    from app.model.configurations import every, going_on, turns_within

    going = going_on(session, last)
    turns = frozenset() if going is not None and first >= going.start else turns_within(session)
    alike = {epoch: number for number, (epochs, _) in enumerate(every(session)) for epoch in epochs}
    found: dict[tuple[str, str, int | None], ErrorCount] = {}
    within = []
    for utterance in session.utterances:
        start, over = utterance.first_frame, utterance.end_frame
        if not (start < last and over > first and over <= end):
            continue
        within.append(utterance)
        scored = errors_of(utterance)
        if scored is None or not turns.isdisjoint(utterance.epochs):
            continue
        if not (first <= start and over <= last):
            scored = _partly(utterance, first, last)
        if scored.words or scored.errors:
            found[utterance.name, utterance.path, alike.get(utterance.epochs[-1] if utterance.epochs else -1)] = scored
    return total_of(found.values()), transcribed(within)


def _partly(utterance: Utterance, first: int, last: int) -> ErrorCount:
    """Errors among the words of an utterance whose middle lies in frames [first, last)."""
    errors = words = 0
    given = tuple((utterance.reference or "").split())
    for reference, hypothesis in aligned(given, tuple(utterance.words), False, utterance.first_frame)[2] or ():
        token = hypothesis or reference
        if token is not None and first <= token.middle_s / FRAME_S < last:
            errors += token.kind != SAME
            words += reference is not None
    return ErrorCount.of(errors, words, given)


@lru_cache(maxsize=64)
def aligned(
    reference: tuple[str, ...] | None, hypothesis: tuple[Word, ...], partial: bool, first_frame: int
) -> tuple[tuple[Token, ...], tuple[Token, ...] | None, Columns | None, ErrorCount | None]:
    """Words of the hypothesis, words of the reference, both side by side, and the errors between them."""
    given = [word for word, _, _ in hypothesis]
    parts = wer.compared(given, reference is not None and wer.unspaced(" ".join(reference)))
    places = _places(hypothesis, parts)
    if reference is None or (len(reference) + 1) * (len(hypothesis) + 1) > MAX_CELLS:
        texts = [_display_text(word, part) for word, of_word in zip(given, parts, strict=True) for part in of_word]
        plain = (Token(text, SAME, *place) for text, place in zip(texts, places, strict=True))
        return tuple(plain), None if reference is None else (), None, None
    steps, every = wer.align(reference, given, partial), iter(places)
    known = [None if step.hypothesis_index is None else next(every) for step in steps]
    at = _guessed(known, first_frame * FRAME_S)
    columns: list[tuple[Token | None, Token | None]] = []
    for step, place in zip(steps, at, strict=True):
        above = below = None
        if step.reference_index is not None and step.reference is not None:
            above = Token(_display_text(reference[step.reference_index], step.reference), step.kind, *place)
        if step.hypothesis_index is not None and step.hypothesis is not None:
            below = Token(_display_text(given[step.hypothesis_index], step.hypothesis), step.kind, *place)
        columns.append((above, below))
    counted = wer.counted(steps)
    return (
        tuple(below for _, below in columns if below is not None),
        tuple(above for above, _ in columns if above is not None),
        tuple(columns),
        ErrorCount.of(counted.errors, counted.reference_words, reference),
    )


def _display_text(word: str, part: str) -> str:
    return wer.spelled(word) if wer.parts(word) == (part,) else part


def _places(hypothesis: tuple[Word, ...], parts: list[tuple[str, ...]]) -> list[Place]:
    """From when to when each part of a word was recognised, seconds: a word's time is shared out evenly."""
    found = []
    for (_, first, frames), of_word in zip(hypothesis, parts, strict=True):
        step, start = frames * FRAME_S / max(len(of_word), 1), first * FRAME_S
        found += [(start + i * step, start + (i + 1) * step) for i in range(len(of_word))]
    return found


def _guessed(at: list[Place | None], start_s: float) -> list[Place]:
    """The places with those that are not known put between their neighbours."""
    after: list[float | None] = []
    for place in reversed(at):
        after.append(place[0] if place is not None else after[-1] if after else None)
    found = []
    for place, following in zip(at, reversed(after), strict=True):
        end = start_s if following is None else max(start_s, following)
        found.append((start_s, end) if place is None else place)
        start_s = found[-1][1] if place is not None else start_s
    return found
