"""What the laws of the search count."""

from __future__ import annotations

import pytest
from search_graphs import settings, thousand_words

from pipelines.search.viterbi import Viterbi
from profiler.costs import KERNEL_CALL, Cost, Linear


@pytest.fixture(scope="module")
def search():
    return Viterbi(thousand_words(), settings())


def test_every_stage_has_a_law_or_a_reason(search):
    for turns in (False, True):
        for name, cost in search.costs(turns).items():
            assert bool(cost.unmodelled) == (name == "search.backtrace")
            assert cost.unmodelled or not cost.is_empty
            assert Cost.from_dict(cost.as_dict()) == cost


def test_a_block_is_a_call_and_in_turns_each_frame_is(search):
    whole, turns = search.costs(), search.costs(True)
    assert whole["search.emit"].calls == {KERNEL_CALL: Linear(fixed=1.0)}
    assert not whole["search.prune"].calls
    for stage in ("search.emit", "search.prune", "search.active"):
        # Spans of many frames may be one.
        assert turns[stage].calls == {KERNEL_CALL: Linear(per_frame=1.0)}
    assert {n for n in whole if whole[n] != turns[n]} == {"search.emit", "search.prune"}


def test_accesses_lie_in_the_graph_its_slots_or_the_lists_of_the_living(search):
    graph, costs = search.graph, search.costs()
    whole, slots = graph.states.nbytes + graph.arcs.nbytes, 4 * graph.n_states
    lists = costs["search.prune"].working_set_bytes
    sizes = {
        name: [each.bytes for each in costs[name].accesses]
        for name in ("search.emit", "search.epsilon", "search.prune", "search.lattice")
    }
    assert sizes["search.emit"] == sizes["search.lattice"] == [slots]
    assert sizes["search.prune"] == [whole, lists, slots]
    assert sizes["search.epsilon"][0] == slots
    assert 0 < sizes["search.epsilon"][1] <= whole


def test_pruning_counts_the_slots_of_tokens_closed_up_but_not_of_their_arcs(search):
    graph = search.graph
    slots = search.costs()["search.prune"].accesses[2].count
    listed = 300.0
    tokens = listed / (1.0 + len(graph.arcs) / graph.n_states)
    assert slots.total(1.0, 1.0, (50.0, 7.0, listed)) == pytest.approx(7.0 + tokens)
