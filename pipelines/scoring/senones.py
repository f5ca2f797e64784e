"""GMM layer: the rules that say which senones of a frame are computed.

A rule stands between the frame layer above and a strategy or net below that computes chosen senones
(`strategy.FrameScorer`). Without a rule (`all`) a block goes to the strategy as it is. To add one: a class here, its
name in `RULES` and in the configuration, a test.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from pipelines import config as settings
from pipelines.models.sphinx import AcousticModel
from pipelines.scoring.blocks import MAX_FRAMES, Meter
from pipelines.scoring.costs import selection as laws
from pipelines.scoring.strategy import FrameScorer
from profiler.arrays import Array, ArrayError
from profiler.costs import Cost

AHEAD = 8  # Frames for which a senone of mixtures is computed at once; 16 fetch little less (4 %) and compute 47 %

DUE_STAGE, BACKOFF_STAGE = "score.due", "score.backoff"


class Parents(NamedTuple):
    """The context-independent senones, and which of them is each senone's parent.

    `ci` int64 [n_ci], ascending. `of` int32 [n_senones]: place in `ci` of the senone of the same phone and
    state without context; that of a context-independent senone is its own.
    """

    ci: Array
    of: Array


class SenoneRule(FrameScorer):
    """A `FrameScorer` of the senones that the rule lets through."""

    lazy = False  # Whether the search says frame by frame what it wants; if not, `score` alone is called
    _source: FrameScorer

    def configure(self, gmm: settings.Gmm, source: FrameScorer) -> None:
        """Work by the settings `gmm` on `source` from the next block on."""
        self._source = source

    @abstractmethod
    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        """Begin a block, before its first `frame`.

        `ahead`: the rule alone writes the scores of the block, and all its frames follow, so that it may compute a
        senone for the following frames as well.
        """

    @abstractmethod
    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        """Give the `senones` int64 of frame t their scores, in scores[t] of f32 [n, senones of the model]."""


@njit(nogil=True, cache=True)
def due(senones: Array, until: Array, t: int, end: int, listed: Array) -> int:
    """Put those of `senones` into `listed` that are not computed for frame t, and note that they will be."""
    n = 0
    if len(listed) < len(senones):
        raise ArrayError("due: more senones than there are")
    for senone in senones:
        if not 0 <= senone < len(until):
            raise ArrayError("due: a senone that there is none")
        # No branch: which are due no processor can foresee, and a wrong guess takes longer than all the rest.
        listed[n] = senone
        before = until[senone]
        is_due = before <= t
        until[senone] = end if is_due else before
        n += is_due
    return n


class Active(SenoneRule):
    """Only the senones that the search needs in a frame, as Sphinx and Kaldi score ("on demand"); exact.

    Without a search all senones are active. An active senone mostly stays so in the frames after, so it is computed for
    some frames ahead while its parameters are at hand. On speech, with 5 000 words and beam 13, 32 % of the senones are
    active in a frame; eight frames ahead, 40 % are computed and 6 % fetched from memory.
    """

    stages: Mapping[str, tuple[str, ...]] = {DUE_STAGE: ("asked", "due")}
    lazy = True

    def __init__(self, n_senones: int, parents: Parents, ahead: int = AHEAD) -> None:
        """`ahead`: frames for which a senone is computed at once, where that may be."""
        self._most = ahead
        self._all = np.arange(n_senones)
        self._until = np.zeros(n_senones, np.int64)
        self._due = np.empty(n_senones, np.int64)
        self._frames, self._ahead = 0, 1

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        self._source.begin_some(features, meter)
        self._source.score_some(0, len(features), self._all, scores, meter)

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        self._frames = len(features)
        self._ahead = min(self._most, self._frames) if ahead else 1
        self._until[:] = 0
        self._source.begin_some(features, meter)

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        if self._ahead == 1:
            self._source.score_some(t, t + 1, senones, scores, meter)
            return
        end = min(t + self._ahead, self._frames)
        n = due(senones, self._until, t, end, self._due)
        meter.close(DUE_STAGE, len(senones), n)
        if n:
            self._source.score_some(t, end, self._due[:n], scores, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        costs = self._source.costs_of_some(frames)
        if min(self._most, frames) > 1:
            costs[DUE_STAGE] = laws.due(len(self._all))
        return costs


@njit(nogil=True, cache=True)
def passing(ci_scores: Array, active: Array, parent: Array, beam: float, cap: int, children: Array) -> float:
    """The score that a parent needs for its children among the `active` to be computed.

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
        of = ci[parent[senone]]
        if not 0 <= of < len(row):
            raise ArrayError("choose: a parent that there is none")
        if of == senone or row[of] < bound:
            scores[senone] = row[of]
        else:
            chosen[n] = senone
            n += 1
    return n


class ByParent(SenoneRule):
    """The senones whose context-independent parents score well; the others get their parent's score.

    Layer 2 of Chan, Ravishankar and Rudnicky (2004) as Sphinx-3 does it (`approx_cont_mgau.c`): all context-independent
    senones are scored first; a context-dependent one is computed only if its parent's score is at least the best
    parent's minus `ci_beam`. `ci_cap` (`maxcdsenpf`) tightens the beam: parents are taken in order of their scores for
    as long as their children together do not exceed it. Sphinx-3's other back-off, by the best Gaussian of the frame
    before, is not done.

    Decided for all senones of a block at once, whether active or not, since frame by frame batching would be lost; or,
    `lazy`, among the active senones, which alone count for the cap then.
    """

    stages: Mapping[str, tuple[str, ...]] = {BACKOFF_STAGE: ("decided", "backed_off")}

    def __init__(self, n_senones: int, parents: Parents, lazy: bool = False) -> None:
        self.lazy = lazy
        self._parents = parents
        self._all = np.arange(n_senones)
        self._is_child = parents.ci[parents.of] != self._all
        self._chosen = np.empty(n_senones, np.int64)
        self._children = np.empty(len(parents.ci), np.int64)
        self._rows = np.empty((MAX_FRAMES, n_senones), np.float32)

    def configure(self, gmm: settings.Gmm, source: FrameScorer) -> None:
        super().configure(gmm, source)
        self._beam, self._cap = float(gmm.ci_beam), int(gmm.ci_cap)

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        self.begin(features, meter)
        for t in range(len(features)):
            self.frame(t, self._all, scores, meter)

    def begin(self, features: Array, meter: Meter, ahead: bool = False) -> None:
        self._source.begin_some(features, meter)
        self._source.score_some(0, len(features), self._parents.ci, self._rows, meter)

    def frame(self, t: int, senones: Array, scores: Array, meter: Meter) -> None:
        ci, parent, row = self._parents.ci, self._parents.of, self._rows[t]
        children = senones[self._is_child[senones]] if self._cap else senones
        bound = passing(row[ci], children, parent, self._beam, self._cap, self._children)
        n = choose(senones, ci, parent, row, bound, self._chosen, scores[t])
        meter.close(BACKOFF_STAGE, len(senones), len(senones) - n)
        if n:
            self._source.score_some(t, t + 1, self._chosen[:n], scores, meter)

    def costs(self, frames: int) -> dict[str, Cost]:
        return self._source.costs_of_some(frames) | {BACKOFF_STAGE: laws.backed_off(len(self._all))}


RULES: Final[dict[str, Callable[[int, Parents], SenoneRule]]] = {
    "active": Active,
    "active-ci": partial(ByParent, lazy=True),
    "ci": ByParent,
}
"""As `gmm.senones` names them, for the number of senones and their parents."""


def parents_of(model: AcousticModel) -> Parents:
    """Which senones of `model` are context-independent, and whose parents they are.

    A senone whose phone and state no context-independent one has is its own parent: it is always computed. In a model
    without them the `stand_ins` of its definition are the parents.
    """
    definition = model.mdef
    key = np.asarray(definition.senone_phone, np.int64) * 256 + definition.senone_state
    first: dict[int, int] = {}
    for senone in (*range(definition.n_ci_senones), *definition.stand_ins):
        first.setdefault(int(key[senone]), senone)
    parent = np.array([first.get(k, s) for s, k in enumerate(key.tolist())], np.int64)
    parent[: definition.n_ci_senones] = np.arange(definition.n_ci_senones)
    ci = np.unique(parent)
    return Parents(ci, np.searchsorted(ci, parent).astype(np.int32))
