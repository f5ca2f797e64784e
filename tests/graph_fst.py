"""The graph that is searched as a transducer for OpenFst and for other decoders."""

from __future__ import annotations

import numpy as np

from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.wfst import Graph


def fst_of(graph: Graph) -> Fst:
    """The same graph with its self-loops as arcs."""
    first = graph.states["first"].astype(np.int64)
    source = np.repeat(np.arange(graph.n_states), first[1:] - first[:-1])
    loops = np.nonzero(graph.states["loop_label"][:-1] > 0)[0]
    return from_arcs(
        graph.n_states,
        graph.start,
        graph.final,
        np.concatenate([source, loops]),
        np.concatenate([graph.arcs["ilabel"], graph.states["loop_label"][loops]]),
        np.concatenate([graph.arcs["olabel"], np.zeros(len(loops), dtype=np.int32)]),
        np.concatenate([graph.arcs["weight"], graph.states["loop_weight"][loops]]),
        np.concatenate([graph.arcs["target"], loops]),
    )


def loopless_of(graph: Graph) -> Fst:
    """The same without its self-loops, for paths that do not dwell."""
    whole = fst_of(graph)
    kept = whole.target != whole.source
    return from_arcs(
        whole.n_states,
        whole.start,
        whole.final,
        whole.source[kept],
        whole.ilabel[kept],
        whole.olabel[kept],
        whole.weight[kept],
        whole.target[kept],
    )
