"""H for HMMs of any form: each arc with a phone in context becomes the states of its HMM.

Arcs that end alike (same phone in context, same target) share them. A state is entered by arcs with its senone, has its
self-loop, and an epsilon leads from the last ones to the target.
"""

from __future__ import annotations

import numpy as np

from pipelines.models.kaldi.contexts import Hmms
from pipelines.search.graph.openfst import Fst, from_arcs
from pipelines.search.graph.topology import Topology, epsilon_first


def unfold(fst: Fst, hmms: Hmms, scale: np.float32) -> Topology:
    """`fst` with labels number + 1 of `hmms`, others being epsilon; costs of transitions count `scale` times."""
    n, most = fst.n_states, hmms.pdfs.shape[1]
    phone = (fst.ilabel > 0) & (fst.ilabel <= len(hmms.size))
    pairs, which = np.unique((fst.ilabel[phone] - 1).astype(np.int64) * n + fst.target[phone], return_inverse=True)
    number, target = pairs // n, pairs % n
    size = hmms.size[number].astype(np.int64)
    begin = n + np.cumsum(size) - size
    total = n + int(size.sum())
    loop_label, loop_weight = np.zeros(total, np.int32), np.zeros(total, np.float32)
    source, silent = fst.source, ~phone
    columns = [
        (source[phone], hmms.pdfs[number, 0][which] + 1, fst.olabel[phone], fst.weight[phone], begin[which]),
        (source[silent], 0 * fst.ilabel[silent], fst.olabel[silent], fst.weight[silent], fst.target[silent]),
    ]
    for i, j in np.ndindex(most, most + 1):
        cost = scale * hmms.cost[number, i, j]
        there = np.flatnonzero(np.isfinite(cost))
        state = begin[there] + i
        if i == j:
            loop_label[state], loop_weight[state] = hmms.pdfs[number[there], i] + 1, cost[there]
        elif j == most:
            zeros = np.zeros(len(there), np.int32)
            columns.append((state, zeros, zeros, cost[there], target[there]))
        else:
            into = hmms.pdfs[number[there], j] + 1
            columns.append((state, into, 0 * into, cost[there], begin[there] + j))
    final = np.concatenate([fst.final, np.full(total - n, np.inf, np.float32)])
    arcs = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return epsilon_first(Topology(from_arcs(total, fst.start, final, *arcs), loop_label, loop_weight))
