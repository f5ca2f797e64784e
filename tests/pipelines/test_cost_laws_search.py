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


def test_accesses_lie_in_the_graph_or_its_slots(search):
    graph = search.graph
    most = graph.states.nbytes + graph.arcs.nbytes
    sizes = [
        each.bytes
        for name in ("search.emit", "search.epsilon", "search.prune", "search.lattice")
        for each in search.costs()[name].accesses
    ]
    assert len(sizes) == 5
    assert all(0 < size <= most for size in sizes)
