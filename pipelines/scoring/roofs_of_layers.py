"""What the layers above the Gaussians take, as roofs: looking scores up, and deciding by the parents' scores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import njit

from pipelines.config import Config
from pipelines.scoring.blocks import FLOAT
from pipelines.scoring.kernel_work import FIRST_CACHE, Family, Numbers
from pipelines.scoring.meter import Meter
from pipelines.scoring.roofs_tasks import THIRD, after_reading, filled, recording
from pipelines.scoring.selection.vq_table import LOOKUPS, lookup
from pipelines.scoring.senones import Parents, active
from pipelines.scoring.senones._backoff import DECIDED, STAGE, ByParent
from pipelines.scoring.senones.active import DUE, DUE_CALL
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.machine.roofs.timing import Task, Work

ASKED_AGAIN = 4
"""Frames that a senone is computed for at once, in the work of DUE."""
_ONE_SENONE = Parents(np.zeros(1, np.int64), np.zeros(1, np.int32))


@njit(nogil=True, cache=True)
def _lookups(table: Array, words: Array, scores: Array, repeats: int) -> None:
    for _ in range(repeats):
        lookup(table, words, scores)


def lookups(size: int, numbers: Numbers) -> Work:
    """Scores looked up at codewords at random: units are numbers of the table."""
    streams, senones = numbers
    rows = 16
    if not size:
        senones = min(senones, FIRST_CACHE // (4 * streams * FLOAT))
    count = max(1, size // (streams * senones * FLOAT))

    def make() -> Task:
        words = np.random.default_rng(0).integers(0, count, (rows, streams)).astype(np.int32)
        table, scores = filled((streams, count, senones)), filled((rows if size else 1, senones))
        words = words[: len(scores)]
        return lambda repeats: _lookups(table, words, scores, repeats)

    return Work(float((rows if size else 1) * streams * senones), make)


class _Nothing:
    """A source that computes nothing."""

    def score(self, features: Array, scores: Array, meter: Meter) -> None:
        """Nothing."""

    def begin_some(self, features: Array, meter: Meter) -> None:
        """Nothing."""

    def score_some(
        self, first: int, last: int, senones: Array, scores: Array, meter: Meter
    ) -> None:
        """Nothing."""

    def costs(self, frames: int) -> dict[str, Cost]:
        """None."""
        return {}

    def costs_of_some(self, frames: int) -> dict[str, Cost]:
        """None."""
        return {}


def decided(size: int, numbers: Numbers) -> Work:
    """A frame's decision over `senones` by parents with scores at random, calls included: units are senones."""
    senones, parents, capped = numbers
    rng = np.random.default_rng(0)
    ci = np.arange(parents)
    of = np.append(ci, rng.integers(0, parents, senones - parents)).astype(np.int32)
    rule = ByParent(senones, Parents(ci, of))
    settings = Config().gmm
    rule.configure(settings, _Nothing())
    rule._cap = senones // 2 if capped else 0

    def make() -> Task:
        every, scores, meter = np.arange(senones), filled((1, senones)), recording(STAGE)
        rule.begin(np.zeros((1, 1), np.float32), Meter())
        rule._rows[:] = rng.normal(size=rule._rows.shape) * settings.ci_beam

        def task(repeats: int) -> None:
            for _ in range(repeats):
                rule.frame(0, every, scores, meter)

        return task

    return Work(float(senones), make)


@njit(nogil=True, cache=True)
def _due(senones: Array, until: Array, found: Array, repeats: int) -> None:
    for senone in range(len(until)):
        # They are due again in turn, not all in the same frame.
        until[senone] = senone % ASKED_AGAIN
    for t in range(repeats):
        active.due(senones, until, t, t + ASKED_AGAIN, found)


def due(size: int, numbers: Numbers) -> Work:
    """Which of a third of all senones are not computed yet, a quarter of them in each frame: units are senones."""
    (senones,) = numbers
    asked = np.flatnonzero(np.random.default_rng(0).random(senones) < THIRD)

    def make() -> Task:
        until, found = np.empty(senones, np.int64), np.empty(senones, np.int64)
        return lambda repeats: _due(asked, until, found, repeats)

    return Work(float(len(asked)), make)


def due_call(size: int, numbers: Numbers) -> Work:
    """Whether one senone is computed already, as it is, after `size` bytes were read."""

    def make() -> Task:
        rule, meter = active.Rule(1, _ONE_SENONE, ahead=2), recording(active.STAGE)
        rule.configure(Config().gmm, _Nothing())
        rule.begin(np.zeros((2, 1), np.float32), Meter(), ahead=True)
        asked, scores = np.zeros(1, np.int64), filled((2, 1))
        rule.frame(0, asked, scores, meter)
        return after_reading(size, lambda: rule.frame(1, asked, scores, meter))

    return Work(1.0, make)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {LOOKUPS: lookups, DECIDED: decided, DUE: due, DUE_CALL: due_call}
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
