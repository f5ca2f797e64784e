"""N-best word sequences and confidences against all paths of small graphs, counted one by one."""

import math
from collections import defaultdict
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from search_graphs import decode as decoded
from search_graphs import packed, random_graph, recorded, settings, smooth_scores, spoken

from pipelines.search import words as histories
from pipelines.search import workspace
from pipelines.search.graph.openfst import from_arcs
from pipelines.search.kernels import layout
from pipelines.search.viterbi import Viterbi
from tests.graph_fst import fst_of

SCALE = 0.1


def decoder_of(graph, **changes):
    """One under whose settings nothing is pruned."""
    plain = {"beam": 1e4, "max_active": 10_000, "lattice": True, "lattice_beam": 1e4, "nbest": 100}
    return Viterbi(graph, settings(acoustic_scale=SCALE, **plain | changes))


def all_sequences(graph, scores):
    """Least cost of every word sequence over all complete paths, by extending all of them, float64.

    None when more than a hundred thousand (state, words) pairs would be alive.
    """
    fst = fst_of(graph)

    def step(alive, waiting, row):
        """Follow the arcs that read a senone of `row`, or epsilon arcs if there is none, to what is returned."""
        after = defaultdict(lambda: math.inf) if row is not None else alive
        while waiting:
            state, words = waiting.pop(0)
            for arc in range(fst.first[state], fst.first[state + 1]):
                label, word = int(fst.ilabel[arc]), int(fst.olabel[arc])
                if (label > 0) != (row is not None):
                    continue
                key = int(fst.target[arc]), words + ((graph.words[word - 1],) if word else ())
                value = alive[state, words] + float(fst.weight[arc])
                value -= SCALE * float(row[label - 1]) if row is not None else 0.0
                if value < after.get(key, math.inf):
                    after[key] = value
                    if row is None:
                        waiting.append(key)
        return after

    # Epsilon arcs of these graphs lead to higher states only, so ascending order does.
    alive = step({(graph.start, ()): 0.0}, [(graph.start, ())], None)
    for row in scores:
        after = step(alive, list(alive), row)
        if len(after) > 100_000:
            return None
        alive = step(after, sorted(after), None)
    best = defaultdict(lambda: math.inf)
    for (state, words), cost in alive.items():
        if (total := cost + float(graph.final[state])) < math.inf:
            best[words] = min(best[words], total)
    return dict(best)


def decode(decoder, scores, block=None):
    return spoken(decoded(decoder, scores, block=block or max(len(scores), 1)))


@hypothesis_settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    n_frames=st.integers(1, 6),
    block=st.sampled_from([1, 3, 50]),
    beam=st.sampled_from([1e4, 1e4, 1.0, 3.0]),
)
def test_the_true_n_best_of_all_word_sequences_within_the_beam(seed, n_frames, block, beam):
    graph = random_graph(seed, all_final=False)
    scores = smooth_scores(seed, n_frames, graph.n_senones, spread=20.0)
    truth = all_sequences(graph, scores)
    if truth is None:
        return
    decoder = decoder_of(graph, lattice_beam=beam)
    words = decode(decoder, scores, block)
    assert decoder.complete == bool(truth)
    if not truth:
        return
    best = min(truth.values())
    costs, said = [h.cost for h in decoder.nbest], [tuple(h.words) for h in decoder.nbest]
    assert [truth[sequence] for sequence in said] == pytest.approx(costs, abs=1e-3)
    assert len(set(said)) == len(said)
    # Costs are float32: what lies on the border may fall to either side.
    within = sorted(v for v in truth.values() if v <= best + beam - 1e-3)[:100]
    assert costs[: len(within)] == pytest.approx(within, abs=1e-3)
    assert costs[-1] <= best + beam + 1e-3
    assert truth[tuple(words)] == pytest.approx(best, abs=1e-3)
    assert decoder.best_cost == pytest.approx(best, abs=1e-3)
    assert len(decoder.confidences) == len(words)


@hypothesis_settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 100_000), settled=st.sampled_from([3, 300]))
def test_collecting_loses_no_alternative(seed, settled):
    graph = random_graph(seed, all_final=True)
    scores = smooth_scores(seed, 30, graph.n_senones, spread=20.0)
    roomy = decoder_of(graph, lattice_beam=4.0, nbest=10)
    decode(roomy, scores)
    with mock.patch.multiple(workspace, FIRST_HISTORY=1, FIRST_ALTERNATIVES=2, FEW_ENTRIES=4, SETTLED_FRAMES=settled):
        tight = decoder_of(graph, lattice_beam=4.0, nbest=10)
        decode(tight, scores, block=4)
    assert tight._space.collected > roomy._space.collected
    costs = [h.cost for h in roomy.nbest]
    assert [h.cost for h in tight.nbest] == pytest.approx(costs, abs=1e-4)
    # Of two that cost the same either may come first, and of those at the end either may be left out.
    alone = [
        i
        for i, cost in enumerate(costs)
        if sum(abs(cost - other) < 1e-3 for other in costs) == 1 and (i < 9 or len(costs) < 10)
    ]
    assert [tight.nbest[i].words for i in alone] == [roomy.nbest[i].words for i in alone]
    if 0 in alone:
        assert tight.confidences == pytest.approx(roomy.confidences, abs=1e-4)


@pytest.mark.slow
@hypothesis_settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_a_lattice_without_room_is_pruned_by_a_narrower_beam(seed):
    graph = random_graph(seed, all_final=True)
    scores = smooth_scores(seed, 60, graph.n_senones, spread=20.0)
    whole, narrow = decoder_of(graph, lattice=False), decoder_of(graph, lattice_beam=20.0)
    words = decode(whole, scores)
    with mock.patch.multiple(workspace, FIRST_HISTORY=64, FIRST_ALTERNATIVES=64, FEW_ENTRIES=64, MAX_HISTORY=800):
        tight = decoder_of(graph, lattice_beam=20.0)
        decode(tight, scores)
    decode(narrow, scores)
    assert narrow.narrowed is None
    assert tight.best_cost == pytest.approx(whole.best_cost, abs=1e-3)
    assert tight.nbest[0].cost == pytest.approx(whole.best_cost, abs=1e-3)
    assert len(tight.confidences) == len(words)
    if tight.narrowed is None:
        return
    assert "within" in tight.narrowed
    beam = tight._space.numbers.lattice_beam
    within = [h.cost for h in narrow.nbest if h.cost < narrow.best_cost + beam - 1e-3]
    assert [h.cost for h in tight.nbest[: len(within)]] == pytest.approx(within, abs=1e-3)


@mock.patch.multiple(workspace, FIRST_HISTORY=1 << 12, FEW_ENTRIES=256, SETTLED_FRAMES=20)
def test_a_lattice_takes_as_much_for_each_second_however_long_the_file(monkeypatch):
    gone_over = []
    collect = histories.collect

    def counted(entries, first, *others):
        gone_over.append(len(entries) - first)
        return collect(entries, first, *others)

    monkeypatch.setattr(histories, "collect", counted)
    graph = random_graph(5, all_final=True)
    scores = smooth_scores(5, 500, graph.n_senones, spread=20.0)
    decoder = decoder_of(graph, lattice_beam=1.0, nbest=1)
    kept, least = {}, {}
    for repeats in (4, 40):
        gone_over.clear()
        decode(decoder, np.concatenate([scores] * repeats), 50)
        kept[repeats] = int(decoder._space.books.decoder_state[layout.HISTORY])
        least[repeats] = sorted(gone_over)[len(gone_over) // 2]
    assert kept[40] < 12 * kept[4]
    # Nearly always the new part alone is gone over.
    assert least[40] < 2 * least[4]


def fork(costs):
    """Word i over one arc of cost costs[i] from the start to the end, another word for all after it."""
    n = len(costs)
    final = np.array([np.inf, np.inf, 0.0], np.float32)
    columns = [0] * n + [1], [1] * (n + 1), range(1, n + 2), [*costs, 0.0], [1] * n + [2]
    return packed(from_arcs(3, 0, final, *map(np.array, columns)), 1, "abcdefgh"[: n + 1])


def test_confidences_are_posterior_probabilities():
    costs, silence = [0.5, 1.0, 2.5], np.zeros((2, 1), dtype=np.float32)
    decoder = decoder_of(fork(costs))
    assert decode(decoder, silence) == ["a", "d"]
    weights = np.exp(-np.array(costs))
    assert decoder.confidences == pytest.approx([weights[0] / weights.sum(), 1.0], abs=1e-5)
    assert [h.words for h in decoder.nbest] == [["a", "d"], ["b", "d"], ["c", "d"]]
    assert [h.cost for h in decoder.nbest] == pytest.approx(costs)
    # Without a beam there is the best path alone.
    decoder = decoder_of(fork(costs), lattice_beam=0.0)
    decode(decoder, silence)
    assert [h.words for h in decoder.nbest] == [["a", "d"]]
    assert decoder.confidences == [1.0, 1.0]


def test_the_lattice_of_a_graph_without_epsilons_has_spans_too():
    assert len(recorded(decoder_of(fork([0.5, 1.0])), np.zeros((2, 1), np.float32))["search.lattice"])
