"""Only the senones that the search needs in a frame: those of the arcs that its tokens can take.

As Sphinx and Kaldi score ("on demand"); here for a frame at once. Exact: an active senone is computed in
full, and no other is ever looked up. Without a search all senones are active.

An active senone mostly stays so in the frames after, so it is computed for some frames ahead while its parameters are
at hand. On speech, with 5 000 words and beam 13, 32 % of the senones are active in a frame; eight frames ahead, 40 %
are computed and 6 % fetched from memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from pipelines.scoring.blocks import Meter
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.senones import Parents, SenoneRule
from profiler.arrays import Array, ArrayError
from profiler.costs import Cost

AHEAD = 8
"""Frames for which a senone of mixtures is computed at once; 16 fetch little less (4 %) and compute 47 %."""

STAGE = "score.due"


@njit(nogil=True, cache=True)
def due(senones: Array, until: Array, t: int, end: int, found: Array) -> int:
    """Put those of `senones` into `found` that are not computed for frame t, and note that they will be."""
    n = 0
    if len(found) < len(senones):
        raise ArrayError("due: more senones than there are")
    for senone in senones:
        if not 0 <= senone < len(until):
            raise ArrayError("due: a senone that there is none")
        # No branch: which are due no processor can foresee, and a wrong guess takes longer than all the rest.
        found[n] = senone
        before = until[senone]
        is_due = before <= t
        until[senone] = end if is_due else before
        n += is_due
    return n


class Rule(SenoneRule):
    """Computes the active senones."""

    stages: Mapping[str, tuple[str, ...]] = {STAGE: ("asked", "due")}
    lazy = True

    def __init__(self, n_senones: int, parents: Parents, ahead: int = AHEAD) -> None:
        """`ahead`: frames for which a senone is computed at once, where that may be."""
        self._most = ahead
        self._all = np.arange(n_senones)
        self._until = np.zeros(n_senones, np.int64)
        self._due = np.empty(n_senones, np.int64)
        self._frames, self._ahead = 0, 1

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        self._source.begin_some(features, meter)
        self._source.score_some(0, len(features), self._all, scores, meter)

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """A block begins."""
        # Of one frame there is nothing ahead.
        self._frames = len(features)
        self._ahead = min(self._most, self._frames) if ahead else 1
        self._until[:] = 0
        self._source.begin_some(features, meter)

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Give the `senones` of frame t their scores, and those of the next frames while at it."""
        if self._ahead == 1:
            self._source.score_some(t, t + 1, senones, scores, meter)
            return
        end = min(t + self._ahead, self._frames)
        n = due(senones, self._until, t, end, self._due)
        meter.close(STAGE, len(senones), n)
        if n:
            self._source.score_some(t, end, self._due[:n], scores, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        """Costs of the layers below, and of finding the senones not computed yet."""
        costs = self._source.costs_of_some(frames)
        if min(self._most, frames) > 1:
            costs[STAGE] = laws.due(len(self._all))
        return costs
