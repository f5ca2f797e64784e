"""The part of an utterance that is drawn: names and words of a session can be anything, in any number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from profiler.arrays import I64
from profiler.plain import one_line

if TYPE_CHECKING:
    from profiler.session.model import Utterance, Utterances

MAX_LETTERS: Final = 80
"""Characters of a word; the longest in any dictionary has half as many."""

MAX_SAID: Final = 4000
"""Words of a reference that is aligned, 20 minutes of speech: each takes time, however little was recognised."""

MAX_HEARD: Final = 20_000

MAX_UNDER_WAY: Final = 32
"""Utterances being decoded at one moment; a recording has one. Only finished ones are laid out once and for all."""


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
    """Positions of the utterances in order of time that begin before a frame.

    Left out are all but the first `MAX_UNDER_WAY` of those unfinished there.
    """
    begun = int(np.searchsorted(utterances.first, max(1, cursor_frame)))
    under_way = ~(utterances.done[:begun] & (utterances.end[:begun] <= cursor_frame))
    return np.flatnonzero(~under_way | (np.cumsum(under_way) <= MAX_UNDER_WAY))
