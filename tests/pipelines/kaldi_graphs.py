"""HCLG of a few words over monophones, made here and not by Kaldi: a loop of words with silence between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipelines.models.kaldi import transitions
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.transitions import TransitionModel
from pipelines.search.graph import openfst
from pipelines.search.graph.openfst import Fst, from_arcs


def hclg(model: TransitionModel, words: Mapping[str, Sequence[int]], silence: int, silence_probability=0.5) -> Fst:
    """`words`: pronunciations as phones; labels are transition-ids and places in `words` from 1 on.

    As Kaldi's without --reorder: HMM states are states, self-loops are arcs.
    """
    arcs: list[tuple[int, int, int, float, int]] = []
    n_states = 2
    between, begin = 0, 1
    skip = -float(np.log(1 - silence_probability))
    arcs.append((between, 0, 0, skip, begin))
    entry = len(words)
    jobs = [((phones, word), begin, between) for word, phones in enumerate(words.values(), start=1)]
    for (phones, word), source, target in [*jobs, (((silence,), 0), between, begin)]:
        weight = float(np.log(entry)) if word else -float(np.log(silence_probability))
        for i, phone in enumerate(phones):
            topology = model.topologies[phone]
            last = i == len(phones) - 1
            place = {len(topology) - 1: target if last else n_states + len(topology) - 1}
            place |= {state: n_states + state for state in range(len(topology) - 1)}
            arcs.append((source, 0, word if i == 0 else 0, weight if i == 0 else 0.0, place[0]))
            n_states += len(topology)
            for tid in range(1, model.n_transitions + 1):
                if model.phone[tid] == phone:
                    state = int(model.state[tid])
                    first = next(t for t in range(1, tid + 1) if model.phone[t] == phone and model.state[t] == state)
                    goal = topology[state].transitions[tid - first][0]
                    arcs.append((place[state], tid, 0, -float(model.log_prob[tid]), place[goal]))
            source = place[len(topology) - 1]
    final = np.full(n_states, np.inf, np.float32)
    final[begin] = 0.0
    columns = [np.array(column) for column in zip(*arcs, strict=True)]
    return from_arcs(n_states, between, final, *columns)


def put_graph(folder: Path, words: Mapping[str, Sequence[int]], silence: int) -> Path:
    """Write `graph/HCLG.fst` and `graph/words.txt` for the model in `folder`, which is returned."""
    model = transitions.read(Reader.of(folder / "final.mdl"))
    (folder / "graph").mkdir()
    openfst.write(hclg(model, words, silence), folder / "graph/HCLG.fst")
    lines = [f"{word} {number}\n" for number, word in enumerate(["<eps>", *words])]
    (folder / "graph/words.txt").write_text("".join(lines))
    return folder
