"""Constants of `tests.bench.constants` about the bytes that a search goes through between two blocks of scoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipelines.scoring.kernel_work import SEARCHED, SEARCHED_PER_FRAME
from pipelines.search.costs import LINE_BYTES, LISTED_BYTES, LISTED_EPSILON_BYTES, TOKEN_BYTES
from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels import layout
from pipelines.search.kernels.layout import ARC, STATE
from pipelines.search.roofs import OLDER_FRAMES, RECENT_FRAMES
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


class LinesUsed:
    """When the lines of the graph that new tokens need were used before, and how many a stretch of frames touches."""

    def __init__(self, search: Viterbi) -> None:
        self._search = search
        self._frame = 0
        self._last = np.full(_after(search.graph)[1] + 1, -(1 << 40))
        self._touched: list[Array] = []
        self._lists: list[float] = []
        self.all = self.older = self.oldest = 0

    def frame(self) -> None:
        """A frame was searched."""
        space = self._search._space
        n, m = (int(space.books.decoder_state[i]) for i in (layout.N, layout.M))
        cut = space.books.floats[layout.BEST] + self._search.beam
        new = space.arrays.tokens.state[n:m][space.arrays.tokens.new_cost[n:m] < cut]
        lines = lines_of(self._search.graph, new.astype(np.int64))
        unused = self._frame - self._last[lines]
        self.all += len(lines)
        self.older += int((unused > RECENT_FRAMES).sum())
        self.oldest += int((unused > OLDER_FRAMES).sum())
        self._last[lines] = self._frame
        self._touched.append(lines)
        self._lists.append(_listed(self._search))
        self._frame += 1

    def bytes_of(self, frames: int) -> float:
        """The median of what so many frames touch: lines of the graph, and the lists."""
        ends = range(frames, len(self._touched), max(frames // 2, 1))
        met = [len(np.unique(np.concatenate(self._touched[at - frames : at]))) for at in ends]
        return LINE * float(np.median(met)) + float(np.median(self._lists))


def lines_of(graph: Graph, state: Array) -> Array:
    """Numbers of the lines of memory that hold states and their arcs, int64 [n], each once."""
    first, last = (graph.states["first"][state + i].astype(np.int64) for i in (0, 1))
    begin, end = first * ARC.itemsize // LINE, (last * ARC.itemsize - 1) // LINE
    count = np.maximum(end - begin + 1, 0)
    arcs = np.repeat(begin, count) + np.arange(count.sum())
    arcs -= np.repeat(count.cumsum() - count, count)
    return np.unique(np.concatenate((state * STATE.itemsize // LINE, _after(graph)[0] + arcs)))


def _after(graph: Graph) -> tuple[int, int]:
    """The number of lines of the states, and of states and arcs together."""
    states = graph.states.nbytes // LINE + 1
    return states, states + graph.arcs.nbytes // LINE + 1


def _lines(search: Viterbi) -> Array:
    """Numbers of the lines of memory that hold the living tokens' states, their arcs and their slots, int64 [n]."""
    graph, space = search.graph, search._space
    state = space.arrays.tokens.state[: int(space.books.decoder_state[layout.M])].astype(np.int64)
    slots = _after(graph)[1] + state * 4 // LINE
    return np.unique(np.concatenate((lines_of(graph, state), slots)))


def _listed(search: Viterbi) -> float:
    """Bytes of the tokens and of the arcs that are listed for them."""
    m, arcs, epsilons = (
        int(search._space.books.decoder_state[i])
        for i in (layout.M, layout.EMITTING, layout.EPSILONS)
    )
    return m * TOKEN_BYTES + arcs * LISTED_BYTES + epsilons * LISTED_EPSILON_BYTES
