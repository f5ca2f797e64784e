"""Choosing senones by the score of their context-independent parents: what `ci` and `active-ci` share.

Layer 2 of Chan, Ravishankar and Rudnicky (2004) as Sphinx-3 does it (`approx_cont_mgau.c`): all
context-independent senones are scored first; a context-dependent one is computed only if its parent's score
is at least the best parent's minus `ci_beam`; the others get the parent's score. `ci_cap` (`maxcdsenpf`)
tightens the beam: parents are taken in order of their scores for as long as their children together do not
exceed it. Sphinx-3's other back-off, by the best Gaussian of the frame before, is not done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from pipelines.scoring.blocks import Meter
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.senones import Parents, SenoneRule
from pipelines.scoring.strategy import SomeSenones
from profiler.arrays import Array, ArrayError
from profiler.costs import Cost

if TYPE_CHECKING:
    from pipelines import config as settings

STAGE = "score.backoff"


@njit(nogil=True, cache=True)
def passing(ci_scores: Array, active: Array, parent: Array, beam: float, cap: int, children: Array) -> float:
    """The score that a parent needs for its children among `wanted` to be computed.

    `ci_scores` f32 [n_ci] by place; `parent` int32 [n_senones]; `children` int64 [n_ci] is workspace. Senones
    that are parents themselves are never counted: they are always computed.
    """
    if children.shape != ci_scores.shape or len(ci_scores) == 0:
        raise ArrayError("passing: parents and their scores do not fit each other")
    for senone in active:
        if not 0 <= senone < len(parent) or not 0 <= parent[senone] < len(ci_scores):
            raise ArrayError("passing: a senone that there is none")
    bound = ci_scores.max() - beam
    if cap <= 0:
        return bound  # type: ignore[no-any-return]
    children[:] = 0
    for senone in active:
        children[parent[senone]] += 1
    total = 0
    for place in np.argsort(-ci_scores):
        if ci_scores[place] < bound:
            break
        total += children[place]
        if total > cap:
            # Everything better than this one passes; of equal scores none does.
            limit = ci_scores[place]
            bound = np.inf
            for score in ci_scores:
                if score > limit:
                    bound = min(bound, score)
            break
    return bound  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def choose(active: Array, ci: Array, parent: Array, row: Array, bound: float, chosen: Array, scores: Array) -> int:
    """Back off to the parent's score where it is below `bound`; returns how many were put into `chosen`.

    `row` f32 [n_senones] holds the scores of the context-independent senones; `scores` f32 [n_senones] gets
    theirs too, where they are wanted.
    """
    n = 0
    if row.shape != parent.shape or scores.shape != parent.shape or len(chosen) < len(active):
        raise ArrayError("choose: senones and their scores do not fit each other")
    for senone in active:
        if not 0 <= senone < len(parent) or not 0 <= parent[senone] < len(ci):
            raise ArrayError("choose: a senone that there is none")
        if not 0 <= ci[parent[senone]] < len(row):
            raise ArrayError("choose: a parent that there is none")
        of = ci[parent[senone]]
        if of == senone or row[of] < bound:
            scores[senone] = row[of]
        else:
            chosen[n] = senone
            n += 1
    return n


class ByParent(SenoneRule):
    """Computes the senones whose parents score well; the others get their parent's score."""

    stages: Mapping[str, tuple[str, ...]] = {STAGE: ("decided", "backed_off")}

    def __init__(self, n_senones: int, parents: Parents) -> None:
        self._parents = parents
        self._all = np.arange(n_senones)
        self._is_child = np.ones(n_senones, np.bool_)
        self._is_child[parents.ci] = False
        self._chosen = np.empty(n_senones, np.int64)
        self._children = np.empty(len(parents.ci), np.int64)
        self._rows = np.empty((0, n_senones), np.float32)

    def configure(self, gmm: settings.Gmm, source: SomeSenones) -> None:
        """Take over beam and cap, and work on `source`."""
        super().configure(gmm, source)
        self._beam, self._cap = float(gmm.ci_beam), int(gmm.ci_cap)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Fill `scores` f32 [n, senones]."""
        self.begin(features, meter)
        for t in range(len(features)):
            self.frame(t, self._all, scores, meter)

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """A block begins: the context-independent senones of all its frames."""
        n = len(features)
        if len(self._rows) < n:
            self._rows = np.empty((n, len(self._all)), np.float32)
        self._source.begin_some(features, meter)
        self._source.score_some(0, n, self._parents.ci, self._rows, meter)

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Give the `senones` of frame t their scores."""
        ci, parent, row = self._parents.ci, self._parents.of, self._rows[t]
        children = senones[self._is_child[senones]] if self._cap else senones
        bound = passing(row[ci], children, parent, self._beam, self._cap, self._children)
        n = choose(senones, ci, parent, row, bound, self._chosen, scores[t])
        meter.close(STAGE, len(senones), len(senones) - n)
        if n:
            self._source.score_some(t, t + 1, self._chosen[:n], scores, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        return self._source.costs_of_some(frames) | {STAGE: laws.backed_off(len(self._all))}
