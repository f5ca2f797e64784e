"""A search graph without epsilon arcs: what a device passes tokens over, one frame in one step.

Every emitting arc and self-loop is joined with every path of epsilon arcs behind its end; these are few and short in
compiled graphs (some tenth more arcs). A token's history still names the arcs of the original graph.
"""

from dataclasses import dataclass

import numpy as np

from pipelines.search.graph.openfst import ranges
from pipelines.search.graph.wfst import Graph, GraphError
from profiler.arrays import F32, I8, I32, I64, Array

LONGEST_PATH = 64  # Epsilon arcs in a row; more are a cycle
MAX_PATHS = 1 << 23  # Of epsilon arcs, kept in 56 bytes each; the largest graphs of words have a tenth of these
MAX_ARCS = 1 << 30  # Direct arcs are numbered in 32 bits
ARC_BYTES = 17  # Of a direct arc on the device: target, label, weight with and without penalty, words


@dataclass(frozen=True, eq=False)
class DirectArcs:
    """Arcs of state s: `first[s]` … `first[s + 1]`. All have a label (senone + 1).

    `words`: how many word labels they carry. `base`: the arc of the graph that emits, −1 for a self-loop; `path`: the
    epsilon path behind it, −1 for none. An epsilon path is its last arc `path_arc` behind the path `path_before`, whose
    number is less; `start`: the paths from the start state. `longest`: arcs of the longest path.
    """

    first: I32
    target: I32
    label: I32
    weight: F32
    words: I8
    base: I32
    path: I32
    path_arc: I32
    path_before: I32
    path_end: I32
    path_weight: F32
    path_words: I8
    start: I32
    longest: int

    @property
    def n_states(self) -> int:
        return len(self.first) - 1

    @property
    def n_arcs(self) -> int:
        return len(self.target)


def direct_arcs(graph: Graph) -> DirectArcs:
    """Join the arcs of `graph` with its epsilon paths; GraphError where these have a cycle."""
    states, arcs, n = graph.states, graph.arcs, graph.n_states
    source = np.repeat(np.arange(n, dtype=np.int64), np.diff(states["first"]))
    paths = _epsilon_paths(graph, source)
    by_start = np.argsort(paths["start"], kind="stable")
    first_path = np.searchsorted(paths["start"][by_start], np.arange(n + 1))

    emits = np.flatnonzero(arcs["ilabel"])
    loops = np.flatnonzero(states["loop_label"][:-1])
    base = np.concatenate([np.full(len(loops), -1), emits])
    origin = np.concatenate([loops, source[emits]])
    end = np.concatenate([loops, arcs["target"][emits]]).astype(np.int64)
    label = np.concatenate([states["loop_label"][loops], arcs["ilabel"][emits]])
    weight = np.concatenate([states["loop_weight"][loops], arcs["weight"][emits]])
    words = np.concatenate([np.zeros(len(loops), bool), arcs["olabel"][emits] != 0])

    # One direct arc for nothing behind the end, and one for each path from there.
    copies = 1 + first_path[end + 1] - first_path[end]
    total = int(copies.sum())
    if total > MAX_ARCS:
        raise GraphError(f"The graph has {total} direct arcs, more than the {MAX_ARCS} of a device search.")
    of = np.repeat(np.arange(len(base)), copies)
    nth = ranges(np.zeros_like(copies), copies)
    path = np.full(total, -1)
    behind = nth > 0
    path[behind] = by_start[first_path[end[of[behind]]] + nth[behind] - 1]

    order = np.argsort(origin[of], kind="stable")
    of, path = of[order], path[order]
    has_path = path >= 0
    target, cost, count = end[of], weight[of].copy(), words[of].astype(np.int8)
    target[has_path] = paths["end"][path[has_path]]
    cost[has_path] += paths["weight"][path[has_path]]
    count[has_path] += paths["words"][path[has_path]]
    return DirectArcs(
        first=np.searchsorted(origin[of], np.arange(n + 1)).astype(np.int32),
        target=target.astype(np.int32),
        label=label[of].astype(np.int32),
        weight=cost.astype(np.float32),
        words=count,
        base=base[of].astype(np.int32),
        path=path.astype(np.int32),
        path_arc=paths["arc"].astype(np.int32),
        path_before=paths["before"].astype(np.int32),
        path_end=paths["end"].astype(np.int32),
        path_weight=paths["weight"].astype(np.float32),
        path_words=paths["words"].astype(np.int8),
        start=by_start[first_path[graph.start] : first_path[graph.start + 1]].astype(np.int32),
        longest=int(paths["length"].max(initial=0)),
    )


def _epsilon_paths(graph: Graph, source: I64) -> dict[str, Array]:
    """All paths of one and more epsilon arcs: start, end, weight, words, last arc, path before, length."""
    arcs = graph.arcs
    epsilon = np.flatnonzero(arcs["ilabel"] == 0)
    begin = np.searchsorted(source[epsilon], np.arange(graph.n_states + 1))
    # First the empty paths, which are no paths yet.
    none, number = np.zeros(graph.n_states, np.int64), np.full(graph.n_states, -1)
    level = {"start": np.arange(len(none)), "end": np.arange(len(none)), "weight": 0.0 * none, "words": none}
    level["length"] = none
    levels: list[dict[str, Array]] = []
    numbered = 0
    while True:
        counts = begin[level["end"] + 1] - begin[level["end"]]
        of = np.repeat(np.arange(len(number)), counts)
        arc = epsilon[ranges(begin[level["end"]], counts)]
        level = {
            "start": level["start"][of],
            "end": arcs["target"][arc].astype(np.int64),
            "weight": level["weight"][of] + arcs["weight"][arc],
            "words": level["words"][of] + (arcs["olabel"][arc] != 0),
            "arc": arc,
            "before": number[of],
            "length": level["length"][of] + 1,
        }
        if not len(arc):
            return {name: np.concatenate([each[name] for each in levels or [level]]) for name in level}
        if len(levels) == LONGEST_PATH:
            raise GraphError("The graph has a cycle of epsilon arcs, which no device search can follow.")
        if numbered + len(arc) > MAX_PATHS:
            raise GraphError(
                f"The graph has more than {MAX_PATHS} paths of epsilon arcs, too many for a device search; "
                "choose search.device = cpu."
            )
        levels.append(level)
        number = numbered + np.arange(len(arc))
        numbered += len(arc)
