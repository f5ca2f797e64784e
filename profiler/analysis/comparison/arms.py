"""The arms of a comparison: which utterances count, and their times by stage, repeat and cell.

A cell is a short stretch of one utterance, so that the same work is compared and a burst of something else spoils one
cell of one repeat. Times are those of the decode lane, tiled as in the breakdown, without what was lost to other
programs and limits.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.statistics import MIN_REPEATS, Pair, alternated, undisturbed, warm_up
from profiler.analysis.recorded import Recorded, Stretch
from profiler.analysis.stage_sums import group_codes, lost_shares, nested_in_pieces
from profiler.arrays import Array
from profiler.errors import BadInput
from profiler.session.model import Utterance
from profiler.session.reader import Session

CELL_FRAMES: Final = 16  # A block of the default size: the shorter, the likelier that some repeat was undisturbed
MAX_CELLS: Final = 800  # More cells than these are not resampled in reasonable time; cells then become longer
PIECE: Final = 1 << 18  # Spans that are sorted out at once: some 25 MB of room

Key = tuple[str, int]  # An utterance: its name, and which of the files of that name (0 for the first)


@dataclass(frozen=True)
class Arm:
    """One side: where it was recorded and the utterances that count, every utterance once per repeat."""

    name: str
    session: Session
    utterances: tuple[Utterance, ...]
    epoch: int | None = None  # The configuration epoch of an interleaved arm; None for a whole session

    @property
    def config(self) -> dict[str, Any]:
        trees = [c.tree for c in self.session.configs if self.epoch in (None, c.epoch)]
        return trees[-1] if trees else {}


def arms_of(session: Session) -> tuple[Arm, Arm]:
    """Return both arms of an interleaved session, without warm-up and repetitions; BadInput when it has none."""
    about = session.meta.get("ab")
    if not isinstance(about, dict):
        raise BadInput(f"{session.path} holds one configuration and no A/B; give a second session to compare it with.")
    start = about.get("measured_from")
    since, again = math.inf if start is None else start, set(about.get("again") or ())
    counted = [u for u in session.utterances if u.done and u.first_frame >= since and u.first_frame not in again]
    epochs = [side.get("epoch") for side in about.get("arms", ())] or [0, 1]
    if len(epochs) != 2 or not all(isinstance(epoch, int) for epoch in epochs):
        raise BadInput(f"{session.path} does not say which configurations its A/B had.")
    a, b = (
        Arm(name, session, tuple(u for u in counted if u.epochs == (epoch,)), epoch)
        for epoch, name in zip(epochs, "AB", strict=True)
    )
    if not a.utterances or not b.utterances:
        raise BadInput(f"{session.path} ended before both arms had decoded anything after the warm-up.")
    return a, b


def session_arm(session: Session, name: str) -> Arm:
    """Return a session as one arm; BadInput when nothing was decoded to its end."""
    utterances = tuple(u for u in session.utterances if u.done)
    if not utterances:
        raise BadInput(f"{session.path} holds no utterance that was decoded to its end.")
    return Arm(name, session, utterances)


class FrameSums:
    """Running sums over frames from `since` on of each stage's time on the decode lanes, for any stretch."""

    def __init__(self, session: Recorded, since: int = 0) -> None:
        codes = group_codes(session.stages)
        self._end = max((u.first_frame + u.n_frames for u in session.utterances), default=0)
        wall = np.zeros(self._end + 1)
        stages: dict[str, Array] = {}
        for lane in [lane.id for lane in session.lanes.values() if lane.decode]:
            counts = (session.spans["lane"] == lane) & (session.spans["first_frame"] >= since)
            spans = session.spans if counts.all() else session.spans[counts]
            for nested in nested_in_pieces(spans, codes, PIECE):
                # What stood still is no time of anything.
                ran = 1.0 - lost_shares(nested.outer, session.stages).sum(axis=0)
                self._add(wall, nested.outer, ran)
                for number in np.unique(nested.leaves["stage"]).tolist():
                    steps = stages.setdefault(session.stages[number].name, np.zeros(self._end + 1))
                    at = np.flatnonzero(nested.leaves["stage"] == number)
                    self._add(steps, nested.leaves[at], ran[nested.outer_of[at]])
        self.wall = self._running(wall)
        names = dict.fromkeys(session.stages[number].name for number in sorted(session.stages))
        self.stages = {name: self._running(stages.pop(name)) for name in names if name in stages}
        self.stages[OVERHEAD] = self.wall - sum(self.stages.values(), np.zeros(self._end + 1))

    def _add(self, steps: Array, spans: Array, ran: Array) -> None:
        """Add the change of time from frame to frame; spans spread over theirs, `ran` [spans]: the part that counts."""
        if not len(spans):
            return
        first = np.minimum(spans["first_frame"].astype(np.int64), self._end)
        frames = np.maximum(spans["frames"], 1).astype(np.int64)
        last = np.minimum(first + frames, self._end)
        each = spans["duration_ns"] * ran / frames
        low, high = int(first.min()), int(last.max()) + 1
        for frame, ns in ((first, each), (last, -each)):
            steps[low:high] += np.bincount(frame - low, ns, high - low)

    def _running(self, steps: Array) -> Array:
        """Return the time before each frame 0…end, float64 [end + 1] in ns."""
        return np.concatenate([[0.0], np.cumsum(np.cumsum(steps[: self._end]))])


@dataclass(frozen=True)
class Times:
    """Times of one arm in ns by stage, float64 [repeats, cells]; together they are its own time.

    Overhead is known by utterance only, being what leaves do not cover of tiles that are cut otherwise.
    """

    stages: dict[str, Array]
    by_utterance: Array  # Own time, float64 [repeats, utterances]

    @property
    def repeats(self) -> int:
        return len(self.by_utterance)

    @property
    def total(self) -> float:
        return float(self.by_utterance.sum() / self.repeats)

    def last(self, repeats: int) -> "Times":
        """The last `repeats` of them."""
        begin = self.repeats - repeats
        return Times({k: v[begin:] for k, v in self.stages.items()}, self.by_utterance[begin:])

    def whole_repeats(self) -> "Times":
        """Return the same with one cell for everything: for arms that cut the work otherwise.

        A cell is one call with blocks of 16 frames and the mean of sixteen with blocks of one, which varies less: by
        the fastest cells, nets at block 1 took 4.92 times as long as at block 16, by sums of everything 4.76 times.
        """
        whole = {name: times.sum(axis=1, keepdims=True) for name, times in self.stages.items()}
        return Times(whole, self.by_utterance)

    def warm_up(self) -> int:
        relative = self.by_utterance / np.maximum(undisturbed(self.by_utterance), 1.0)
        cut: int = math.ceil(warm_up(relative.ravel()) / relative.shape[1])
        return min(cut, max(self.repeats - MIN_REPEATS, 0))


def by_key(utterances: Iterable[Utterance]) -> dict[Key, list[Utterance]]:
    """Return the utterances by file, each once per repeat, in order."""
    by_path: dict[tuple[str, str], list[Utterance]] = {}
    for utterance in utterances:
        by_path.setdefault((utterance.name, utterance.path), []).append(utterance)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
    return {(name, next(numbers[name])): repeats for (name, _), repeats in by_path.items()}


def cell_edges(length: int, step: int) -> Array:
    """Where the cells of `length` frames begin and the last one ends, int64 [cells + 1]."""
    # A rest shorter than half a cell joins the one before.
    return np.append(np.arange(0, max(length - step // 2, 1), step), length)


def lay_out(sums: FrameSums, utterances: Sequence[Sequence[Stretch]], frames: Iterable[int]) -> Times:
    """Lay out the times of `utterances` (by file, then repeat) of `frames` each, without an unfinished last repeat."""
    lengths = list(frames)
    step = max(CELL_FRAMES, math.ceil(sum(lengths) / MAX_CELLS))
    repeats = min(len(u) for u in utterances)
    edges = [
        np.array([u.first_frame for u in found[:repeats]])[:, None] + cell_edges(length, step)
        for found, length in zip(utterances, lengths, strict=True)
    ]
    low, high = (np.concatenate([each[:, ends] for each in edges], axis=1) for ends in (slice(-1), slice(1, None)))
    stages = {name: running[high] - running[low] for name, running in sums.stages.items()}
    starts = np.cumsum([0, *(each.shape[1] - 1 for each in edges[:-1])])
    overhead = np.add.reduceat(stages[OVERHEAD], starts, axis=1)
    stages[OVERHEAD] = np.maximum(overhead, 0.0)
    wall = np.add.reduceat(sums.wall[high] - sums.wall[low], starts, axis=1)
    return Times({name: times for name, times in stages.items() if (times > 0).any()}, wall)


def pairs(a: Times, b: Times, draw: Callable[[Array, Array], Pair] = alternated) -> dict[str, Pair]:
    nothing = np.zeros((a.repeats, 1))
    return {name: draw(a.stages.get(name, nothing), b.stages.get(name, nothing)) for name in a.stages | b.stages}


def total(of_stages: Iterable[Pair]) -> Pair:
    first, *others = of_stages
    return sum(others, first)
