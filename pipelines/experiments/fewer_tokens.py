"""What the search would do with fewer tokens at most, from the counts that a session holds of its blocks.

How many tokens lived in a frame is known as a mean over each block. Where that is above the new most, so many live;
what is done per token (arcs, epsilons, entries of lists) follows in proportion, since the tokens that go are like those
that stay in what leads on from them. Frames differ within a block, and those above the most are held by it while those
below cannot make up for them: how far they differ is judged by how far neighbouring blocks do. That tokens dropped in
one frame have no successors in the next is left out, so that a few per cent too many are expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipelines.config import Config
from pipelines.experiments.rerun import Recording
from pipelines.models.opening import open_model
from pipelines.run.recogniser import Progress
from pipelines.search import costs
from pipelines.search.graph import compile as graphs
from pipelines.search.workspace import FIRST_HISTORY
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.nesting import pick
from profiler.arrays import F64, Array
from profiler.machine.roofs.table import RoofTable
from profiler.session.model import LaneInfo, StageInfo
from profiler.session.reader import Session

EMIT: Final = "search.emit"
PRUNE: Final = "search.prune"
RANK: Final = "search.rank"
BY_TOKENS: Final = (EMIT, "search.epsilon", PRUNE, "search.active", "search.lattice")
"""Stages whose counts go with the number of tokens."""
ASSUMED: Final = (
    "Where more than {0} tokens lived in a frame, {0} do, and what is done per token follows in proportion; which "
    "words are lost by it only a run tells."
)
WITHIN: Final = 0.5
"""Standard deviation of the frames of a block, of the difference between the means of two neighbouring blocks: in a
random walk such means of n frames have a variance of 2n/3 steps between them, and frames within a block n/6."""


@dataclass(frozen=True)
class Searched:
    """Spans of the search's stages by name, SPAN [n] in the order of their frames, with what they count."""

    stages: dict[str, StageInfo]
    spans: dict[str, Array]


def searched(session: Session, first: int | None, last: int | None) -> Searched:
    """What `session` holds of the search in the frames first … last − 1 (None: all)."""
    stages, found = {}, {}
    every = session.spans
    for number, stage in session.stages.items():
        if stage.group != "search":
            continue
        spans = pick(every, np.flatnonzero(every["stage"] == number))
        within = np.ones(len(spans), np.bool_)
        if first is not None and last is not None:
            within = (spans["first_frame"] >= first) & (spans["first_frame"] < last)
        spans = spans[within]
        order = np.argsort(spans["first_frame"], kind="stable")
        stages[stage.name], found[stage.name] = stage, spans[order]
    return Searched(stages, found)


def unknown(before: Searched | None, old: Config, new: Config) -> str | None:
    """Why nothing is known of `new.search.max_active` in place of `old`'s; None where it is."""
    if before is None or not all(len(before.spans.get(name, ())) for name in (EMIT, PRUNE)):
        return "the session counts no tokens"
    if old.search.adaptive_beam or new.search.adaptive_beam:
        return "with a beam that follows the time, what a token costs changes how many there are"
    if new.search.max_active > old.search.max_active and len(before.spans.get(RANK, ())):
        return "how many more tokens would have lived is not in a session that dropped them"
    return None


def rows(
    before: Searched,
    old: Config,
    new: Config,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> tuple[list[StageRow], list[StageRow]]:
    """The search's stages as they were and with `new.search.max_active`: of both the counts and laws, not the times.

    Raises Cancelled, and what reading the model and the graph raises.
    """
    model = open_model(old, progress, cancelled)
    graph = graphs.load_or_build(old.graph, model, progress, cancelled)
    most = new.search.max_active
    after = _with_fewer(before, most)
    found = []
    for side, limit in ((before, old.search.max_active), (after, most)):
        laws = costs.laws(graph, limit, float(costs.ENTRY_BYTES * FIRST_HISTORY))
        stages = {stage.id: stage for stage in side.stages.values()}
        laws_of = {(stage.id, 0): laws[name] for name, stage in side.stages.items() if name in laws}
        # Apart from any block: these times are nobody's.
        lane = LaneInfo(0, "search", "cpu", False, 0, 0)
        recording = Recording(stages, laws_of, roof_table, {0: lane})
        spans = np.concatenate([side.spans[name] for name in side.stages])
        spans["epoch"] = spans["lane"] = 0
        recording.spans = spans
        found.append(breakdown(recording).stages)  # type: ignore[arg-type]
    return found[0], found[1]


def _with_fewer(before: Searched, most: int) -> Searched:
    """The same spans with the counts of at most so many tokens in a frame."""
    emitted = before.spans[EMIT]
    emitted = emitted[emitted["frames"] > 0]
    tokens = emitted["work0"] / emitted["frames"]
    left, held = fewer(tokens, most)
    share = np.divide(left, tokens, out=np.ones(len(tokens)), where=tokens > 0)

    def place(spans: Array) -> Array:
        at = np.searchsorted(emitted["first_frame"], spans["first_frame"], side="right") - 1
        return np.clip(at, 0, max(len(emitted) - 1, 0))

    spans = dict(before.spans)
    for name in BY_TOKENS:
        if name not in spans or not len(emitted):
            continue
        scaled = spans[name].copy()
        factor = share[place(scaled)]
        for i in range(len(before.stages[name].work)):
            scaled[f"work{i}"] = np.rint(scaled[f"work{i}"] * factor)
        spans[name] = scaled
    if RANK in spans and len(emitted):
        # All tokens of a frame are ranked where too many are in the beam; those of which it has been said are.
        ranked = spans[PRUNE].copy()
        ranked["stage"] = before.stages[RANK].id
        ranked["work0"] = np.rint(ranked["work0"] * held[place(ranked)])
        ranked["work1"] = ranked["work2"] = 0
        spans[RANK] = ranked[ranked["work0"] > 0]
    return Searched(before.stages, spans)


def fewer(tokens: F64, most: int) -> tuple[F64, F64]:
    """Of frames with `tokens` on the mean of a block, [blocks]: how many live of `most`, and which part of the frames
    is held by it, 0…1.

    Frames within a block are taken to be normal about its mean, of which E[min(X, most)] and P[X > most] follow.
    """
    step = np.diff(tokens)
    spread = WITHIN * float(np.sqrt(np.mean(step**2))) if len(step) else 0.0
    if not spread:
        return np.minimum(tokens, most), (tokens > most).astype(np.float64)
    z = (most - tokens) / spread
    below = np.array([0.5 * math.erfc(-one / math.sqrt(2.0)) for one in z.tolist()])
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    left = most - spread * (density + z * below)
    return np.clip(left, 0.0, tokens), 1.0 - below
