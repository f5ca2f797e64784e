"""Constants of `tests.bench.constants` about the bytes that a search goes through between two blocks of scoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipelines.scoring.kernel_work import SEARCHED, SEARCHED_PER_FRAME
from pipelines.search.costs import LINE_BYTES, LISTED_BYTES, LISTED_EPSILON_BYTES, TOKEN_BYTES
from pipelines.search.graph.wfst import ARC, STATE
from pipelines.search.kernels import layout
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.spans import SPAN, Recorder
from tests.bench._constants_products import row

WHERE = "scoring/kernel_work.py "
LINE = int(LINE_BYTES)
MIB, KIB = 1 << 20, 1 << 10


def searched(
    search: Viterbi, recorder: Recorder, scores: list[Array], block: int
) -> Iterator[dict[str, Any]]:
    """What a block meets that the one before met too, and what is new with each frame."""
    lane = recorder.lane("searched", "cpu", decode=True)
    costs = search.costs()
    again: list[float] = []
    least = 0.0
    for told in scores:
        search.start(0)
        before = np.zeros(0, np.int64)
        for at in range(0, len(told), block):
            met = np.zeros(0, np.int64)
            for frame in range(at, min(at + block, len(told))):
                search.advance(told[frame : frame + 1], frame, lane)
                met = np.union1d(met, _lines(search))
            if at:
                again.append(LINE * len(np.intersect1d(met, before)) + _listed(search))
            before = met
            spans = np.frombuffer(lane.take(), SPAN)
            for stage in recorder.stages:
                if stage.name in costs:
                    of_stage = spans[spans["stage"] == stage.id]
                    least += float(costs[stage.name].bytes_min.of(of_stage).sum())
    what = f"of graph and tokens, what a block of {block} frames meets as the one before did"
    yield row(WHERE + "SEARCHED", what, SEARCHED / MIB, float(np.median(again)) / MIB, "MiB")
    what = "least bytes of the search, each frame"
    a_frame = least / sum(map(len, scores))
    yield row(WHERE + "SEARCHED_PER_FRAME", what, SEARCHED_PER_FRAME / KIB, a_frame / KIB, "KiB")


def _lines(search: Viterbi) -> Array:
    """Numbers of the lines of memory that hold the living tokens' states, their arcs and their slots, int64 [n]."""
    graph, space = search.graph, search._space
    state = space.arrays.tokens.state[: int(space.books.decoder_state[layout.M])].astype(np.int64)
    first, last = (graph.states["first"][state + i].astype(np.int64) for i in (0, 1))
    begin, end = first * ARC.itemsize // LINE, (last * ARC.itemsize - 1) // LINE
    count = np.maximum(end - begin + 1, 0)
    arcs = (
        np.repeat(begin, count) + np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
    )
    after_states = graph.states.nbytes // LINE + 1
    after_arcs = after_states + graph.arcs.nbytes // LINE + 1
    found = (state * STATE.itemsize // LINE, after_states + arcs, after_arcs + state * 4 // LINE)
    return np.unique(np.concatenate(found))


def _listed(search: Viterbi) -> float:
    """Bytes of the tokens and of the arcs that are listed for them."""
    m, arcs, epsilons = (
        int(search._space.books.decoder_state[i])
        for i in (layout.M, layout.EMITTING, layout.EPSILONS)
    )
    return m * TOKEN_BYTES + arcs * LISTED_BYTES + epsilons * LISTED_EPSILON_BYTES
