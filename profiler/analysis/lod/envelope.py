"""The audio envelope drawn under the words. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from profiler.analysis.lod.columns import Extremes
from profiler.analysis.track import MAX_FRAMES

if TYPE_CHECKING:
    from profiler.session.model import Utterance
    from profiler.session.reader import Session


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


def envelope_of(session: Session) -> Extremes:
    """The up-to-date envelope of a session."""
    envelope = _envelopes.get(session)
    if envelope is None:
        envelope = _envelopes[session] = Envelope()
    return envelope.update(session.utterances)
