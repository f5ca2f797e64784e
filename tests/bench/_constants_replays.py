"""Constants of `tests.bench.constants` about hot replay.

How far one replay is from what many say of the same stage, and what loops are spared whose branches repeat.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from profiler.analysis.law import law_of_cached
from profiler.analysis.waiting import BY_TIME, ONE_REPLAY, Waiting
from profiler.arrays import Array
from profiler.costs import Cost
from profiler.session.reader import Session
from profiler.spans import Stage
from tests.bench import _data
from tests.bench._constants_products import row
from tests.bench._measured import printed

BLOCKS = (1, 16)
RUNS = tuple(
    (block, f"asrscope run {preset} --set block={block} --set replay=0.1 --repeat 8 --out SESSION")
    for preset in (
        "--preset gmm",
        "--preset gmm --set gmm.selection.method=top-n --set gmm.selection.top_n=4",
        "--preset dnn",
    )
    for block in BLOCKS
)
"""Frames of a block, and how they are decoded."""
EMIT = "search.emit"
LARGE = 0.03
"""Stages with a smaller share of the wall time do not count."""
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
MANY = 8
"""Replays of a stage, at least, of which one is compared with all."""


def replays() -> Iterator[dict[str, Any]]:
    """Of single replays, how far the hot time is from what all of its stage's say, as a part of the time.

    Of all replays of a loop whose branches depend on its data, how much less it took than in a run.
    """
    files = [str(item.path) for item in _data.human_speech()]
    found: dict[str, list[dict[float, Array]]] = {group: [] for group in ONE_REPLAY}
    spared: dict[tuple[bool, int], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="asrscope-bench-") as folder:
        names = {"SESSION": str(Path(folder) / "run.asrs")}
        for block, command in RUNS:
            list(printed(f"{command} --json", names, ["--audio", *files]))
            with closing(Session.open(names["SESSION"])) as session:
                for group, apart in _apart(session):
                    found[group].append(apart)
                for stage, learned, share in _spared(session):
                    spared.setdefault((stage == EMIT, block), []).append((learned, share))
    for group, apart in found.items():
        off = {part: _off([stage[part] for stage in apart]) for part in PARTS}
        where = f"profiler/analysis/waiting.py BY_TIME {group}"
        what = "how much by time, in quarters, puts one replay nearest to all of its stage"
        yield row(where, what, BY_TIME[group], min(PARTS, key=lambda part: off[part]), "")
        where = f"profiler/analysis/waiting.py ONE_REPLAY {group}"
        what = "how far 19 of 20 replays are from all of their stage, as a part of the time"
        yield row(where, what, ONE_REPLAY[group], off[BY_TIME[group]], "")
    for (emits, block), shares in sorted(spared.items(), reverse=True):
        name, stages = ("ARCS_BY_HEART", EMIT) if emits else ("BY_HEART", "other search")
        what = f"of the loops of {stages} in calls of {block}, what a replay is spared at most"
        stands = max(learned for learned, _ in shares)
        yield row(f"search/costs.py {name}", what, stands, max(share for _, share in shares), "")


def _off(apart: list[Array]) -> float:
    """What nineteen of twenty are below."""
    return float(np.quantile(np.concatenate(apart), 0.95))


def _many(session: Session) -> Iterator[tuple[Stage, Cost, Array, Waiting]]:
    """The large stages that were replayed MANY times, each with its law, its spans and what the replays say."""
    wall_ns = sum(utterance.wall_ns or 0 for utterance in session.utterances)
    waiting = Waiting()
    waiting.update(session)
    for number, stage in session.stages.items():
        cost = session.costs.get((number, 0))
        of = session.spans[session.spans["stage"] == number]
        large = of["duration_ns"].sum() >= LARGE * wall_ns
        if cost is not None and large and waiting.replayed(stage.name, cost) >= MANY:
            yield stage, cost, of, waiting


def _spared(session: Session) -> Iterator[tuple[str, float, float]]:
    """Of each stage with such loops, how much less than by its law its own instructions take hot, of the loops' time.

    Before it what its terms say of that.
    At least: what its data take on their way from a second cache is in the hot time as well.
    """
    for stage, cost, of, waiting in _many(session):
        law = law_of_cached(cost, session.calibration)
        learned = max((term.by_heart for term in cost.terms or ()), default=0.0)
        if learned:
            loops = law.by_heart.of(of).sum() / learned
            many = waiting.replayed(stage.name, cost)
            hot = waiting.hot(stage.name, cost, many)[-1] * of["duration_ns"].sum()
            own = law.core.mid.of(of).sum() + law.calls.mid.of(of).sum()
            yield stage.name, learned, float((own - hot) / loops)


def _apart(session: Session) -> Iterator[tuple[str, dict[float, Array]]]:
    """Of each large stage its group, and how far each replay is from all of them by how much time tells."""
    for stage, cost, _, waiting in _many(session):
        many = waiting.replayed(stage.name, cost)
        apart = {}
        for part in PARTS:
            one, together = (waiting.hot(stage.name, cost, latest, part) for latest in (1, many))
            apart[part] = np.abs(one - together[-1])
        yield stage.group, apart
