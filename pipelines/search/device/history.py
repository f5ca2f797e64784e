"""What the host keeps of an utterance that a device decodes: its history, its latest tokens, and their words.

Back-pointers that have come down are taken into a history of the original graph's arcs, like that of the processor's
decoder (`kernels.history`); only tokens that a block's last ones stem from get entries.
"""

from typing import NamedTuple

import numba
import numpy as np

from pipelines.search.device.frontier import NOBODY
from pipelines.search.device.graph import DirectArcs
from pipelines.search.graph.openfst import ranges
from pipelines.search.graph.wfst import Graph
from pipelines.search.kernels.history import append
from pipelines.search.words import Word, WordTracer, collect_paths
from profiler.arrays import F32, I32, I64, Array, ArrayError, check, check_indices

FIRST_HISTORY = 1 << 16  # Entries (12 bytes) that a history starts with; it grows and is collected as needed


class UtteranceHistory:
    """One utterance: `states`, `costs` of its tokens after the last block (infinite: no token there).

    `path_costs` [epsilon paths]: with the penalties of their words. `words` sets `complete` and `best_cost`.
    """

    def __init__(self, graph: Graph, arcs: DirectArcs, path_costs: F32) -> None:
        self.complete = self.lost = False
        self.best_cost = np.inf
        self._graph, self._arcs = graph, arcs
        self._tracer = WordTracer(graph)
        self._history = np.empty((FIRST_HISTORY, 3), np.int32)
        self._used = self._frames = 0
        self._offset = 0.0
        # The best path to each state that epsilon arcs reach before the first frame.
        best: dict[int, tuple[float, int]] = {graph.start: (0.0, NOBODY)}
        for path in arcs.start.tolist():
            state, cost = int(arcs.path_end[path]), float(path_costs[path])
            if cost < best.get(state, (np.inf, NOBODY))[0]:
                best[state] = cost, path
        self.states = np.array(list(best), np.int64)
        self.costs = np.array([cost for cost, _ in best.values()], np.float32)
        self._entry = np.full(len(best), -1, np.int32)
        for token, (_, path) in enumerate(best.values()):
            chain = []
            while path >= 0:
                chain.append(int(arcs.path_arc[path]))
                path = int(arcs.path_before[path])
            for arc in reversed(chain):
                self._history[self._used] = self._entry[token], arc, -1
                self._entry[token] = self._used
                self._used += 1

    def prune(self, beam: float, least: int) -> None:
        """Drop tokens over the beam, as every frame does: those before the first one."""
        limit = self.costs.min() + np.float32(beam)
        if len(self.costs) <= least:
            return
        self.costs[self.costs >= max(limit, np.sort(self.costs)[least])] = np.inf

    def close_up(self, tokens: int) -> None:
        """Keep the best tokens, at most `tokens`, in the first places."""
        best = np.argsort(self.costs, kind="stable")[:tokens]
        self._entry, self.states, self.costs = self._entry[best], self.states[best], self.costs[best]

    def take(self, previous: Array, arc: Array, best: Array, states: Array, costs: Array) -> None:
        """Take in a block: back-pointers [frames, tokens], best cost [frames], tokens after it."""
        arcs = self._arcs
        previous, arc = np.ascontiguousarray(previous), np.ascontiguousarray(arc)
        check("previous", previous, np.int32, (None, len(states)))
        check("arc", arc, np.int32, previous.shape)
        # One more than there are is where tokens are that are none.
        check_indices("states", states, self._graph.n_states + 1)
        entry = np.full(len(states), -1, np.int32)
        entry[: len(self._entry)] = self._entry[: len(entry)]
        self._entry, self.states, self.costs = entry, states.copy(), costs.copy()
        if not len(previous):
            return
        direct = Arcs(arcs.base, arcs.path, arcs.path_arc, arcs.path_before, arcs.longest)
        while True:
            used = absorb(previous, arc, direct, self._frames, self._entry, self._history, self._used)
            if used >= 0:
                break
            if used == BROKEN:
                raise ArrayError("the device's back-pointers lead to tokens or arcs that there are not")
            self._make_room(-used)
        self._used = used
        self._frames += len(previous)
        self._offset += float(best.astype(np.float64).sum())

    def words(self, final: bool) -> tuple[list[Word], int]:
        """Words of the best token (`final`: to a final state if there is one), and entries followed."""
        alive = self.costs < np.inf
        total = self.costs
        if final:
            closed = total + self._graph.final[np.where(alive, self.states, self._graph.start)]
            closed[~alive] = np.inf
            self.complete = bool(np.isfinite(closed).any()) and not self.lost
            total = closed if self.complete else total
        if not alive.any():
            return [], 0
        best = int(np.argmin(total))
        if final:
            self.best_cost = self._offset + float(total[best])
        found = self._tracer.words(self._history[: self._used], int(self._entry[best]), self._frames)
        return found, self._tracer.backpointers

    @property
    def cutoff(self) -> float:
        alive = self.costs[self.costs < np.inf]
        return float(alive.max()) if len(alive) else np.inf

    def active_senones(self) -> tuple[I64, int]:
        """Senones that the next frame will look up, ascending; and how many arcs were looked through."""
        arcs = self._arcs
        states = self.states[self.costs < np.inf]
        labels = arcs.label[ranges(arcs.first[states], arcs.first[states + 1] - arcs.first[states])]
        return np.unique(labels).astype(np.int64) - 1, len(labels)

    def _make_room(self, need: int) -> None:
        """Collect history that no token leads to; enlarge it when more than half stays in use."""
        self._used = collect_paths(self._history[: self._used], self._entry)
        self._tracer.reset()
        size = len(self._history)
        while 2 * (self._used + need) > size:
            size *= 2
        if size > len(self._history):
            larger = np.empty((size, 3), np.int32)
            larger[: self._used] = self._history[: self._used]
            self._history = larger


BROKEN = -(1 << 62)


class Arcs(NamedTuple):
    """Arrays of `graph.DirectArcs`, all int32."""

    base: Array
    path: Array
    path_arc: Array
    path_before: Array
    longest: int


@numba.njit(cache=True, nogil=True)
def absorb(
    previous: I32, arc: I32, arcs: Arcs, first_frame: int, entry: I32, history: I32, used: int
) -> int:  # pragma: no cover - compiled
    """Append the entries of a block; how many there are then, −(how many more must fit), or BROKEN.

    `previous`, `arc` int32 [frames, tokens]: the token of the frame before, and the direct arc that was followed.
    `entry` int32 [tokens] holds each token's latest entry before the block, and after it.
    """
    base, path, path_arc, path_before, longest = arcs
    frames, tokens = previous.shape
    live = np.zeros((frames, tokens), dtype=np.uint8)
    n_live = 0
    for t in range(frames - 1, -1, -1):
        for k in range(tokens):
            if arc[t, k] != NOBODY and (t == frames - 1 or live[t, k] != 0):
                if not (0 <= previous[t, k] < tokens and arc[t, k] < len(base)):
                    return BROKEN
                live[t, k] = 1
                n_live += 1
                if t > 0:
                    live[t - 1, previous[t, k]] = 1
            else:
                live[t, k] = 0
    need = n_live * (1 + longest)
    if used + need > len(history):
        return -need
    before, after = entry.copy(), np.full(tokens, -1, dtype=np.int32)
    chain = np.empty(longest + 1, dtype=np.int32)
    for t in range(frames):
        for k in range(tokens):
            if live[t, k] == 0:
                continue
            latest = before[previous[t, k]]
            taken = arc[t, k]
            if taken >= 0:
                if base[taken] >= 0:
                    latest = append(history, used, latest, base[taken], first_frame + t)
                    used += 1
                length = 0
                behind = path[taken]
                while behind >= 0:
                    chain[length] = path_arc[behind]
                    length += 1
                    behind = path_before[behind]
                for i in range(length - 1, -1, -1):
                    latest = append(history, used, latest, chain[i], first_frame + t)
                    used += 1
            after[k] = latest
        before, after = after, before
    for k in range(tokens):
        entry[k] = before[k] if live[frames - 1, k] != 0 else -1
    return used
