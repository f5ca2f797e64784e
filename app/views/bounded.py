"""As much of an utterance as is drawn: a session's names and words may be anything, and any number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.session.model import Utterance

MOST_LETTERS: Final = 80
"""Of a word; the longest of any dictionary has half as many."""

MOST_SAID: Final = 4000
"""Words of a reference that is aligned, 20 minutes of speech: each takes its time, however little was heard."""

MOST_HEARD: Final = 20_000

MOST_UNDER_WAY: Final = 32
"""Utterances that are being decoded at one moment; a recording has one. Only what is over is laid out once for all."""


def bounded(utterance: Utterance) -> Utterance:
    """Return `utterance` with texts fit to be drawn; a reference that is too long to be aligned is left out."""
    words = tuple(
        (one_line(word, MOST_LETTERS), first, frames)
        for word, first, frames in utterance.words[:MOST_HEARD]
    )
    reference = utterance.reference
    if reference is not None:
        said = reference.split(maxsplit=MOST_SAID)
        short = (one_line(word, MOST_LETTERS) for word in said)
        reference = None if len(said) > MOST_SAID else " ".join(short)
    return replace(utterance, name=one_line(utterance.name), words=words, reference=reference)


def at_most_under_way(utterances: list[Utterance], cursor_frame: int) -> list[Utterance]:
    """Leave out all but `MOST_UNDER_WAY` of the utterances that are not over at a frame."""
    left = MOST_UNDER_WAY
    kept = []
    for utterance in utterances:
        over = utterance.done and utterance.first_frame + utterance.n_frames <= cursor_frame
        left -= not over
        if over or left >= 0:
            kept.append(utterance)
    return kept
