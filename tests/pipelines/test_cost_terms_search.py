"""What bounds the search: every stage says it in terms, and what they name runs."""

import pytest
from search_graphs import settings, thousand_words

from pipelines.kernel_roofs import work_of
from pipelines.search import roofs
from pipelines.search.viterbi import Viterbi
from profiler.analysis.law import needed
from profiler.costs import ACCESS, CALL, KERNEL, Linear


@pytest.fixture(scope="module")
def costs():
    return Viterbi(thousand_words(), settings()).costs()


def test_every_stage_has_terms_and_what_they_name_runs(costs):
    assert all(cost.terms for cost in costs.values())
    names = {term.roof for term, _ in needed(costs.values()) if term.roof != "numpy"}
    assert {name.partition("/")[0] for name in names} == set(roofs.FAMILIES)
    for name in names:
        work = work_of(name, 0)
        task = work.make()
        task(2)
        task(1)
        assert work.operations > 0


def test_a_call_counts_once_and_every_unit_of_work_is_in_a_kernel(costs):
    emit = {term.roof: term for term in costs["search.emit"].terms or ()}
    assert emit[roofs.ADVANCE].kind == CALL
    assert emit[roofs.ADVANCE].count == Linear(fixed=1.0)
    for name, works in (("emit", (1, 2)), ("epsilon", (0, 1)), ("prune", (0, 1, 2))):
        terms = costs[f"search.{name}"].terms or ()
        kernels = [term for term in terms if term.kind == KERNEL]
        for work in works:
            assert any(term.count.per_work[work] > 0 for term in kernels)


def test_loops_over_lists_may_take_a_tenth_less_and_those_over_senones_as_long(costs):
    for name in ("emit", "epsilon", "prune", "rank"):
        for term in costs[f"search.{name}"].terms or ():
            if term.kind == KERNEL and not term.roof.startswith(roofs.LABELS):
                assert term.most is not None
                assert term.count == term.most.times(0.9)
    (labels,) = (t for t in costs["search.emit"].terms or () if t.roof.startswith(roofs.LABELS))
    assert labels.most is None


def test_accesses_lie_in_the_graph_and_are_an_interval_where_lines_may_be_near(costs):
    for name in ("search.emit", "search.epsilon", "search.prune"):
        found = [term for term in costs[name].terms or () if term.kind == ACCESS]
        assert any(term.most is not None and term.count == Linear() for term in found)
        assert all(0 < term.bytes <= thousand_words().n_bytes for term in found)


def test_lines_used_recently_are_as_far_as_what_was_touched_since_at_most(costs):
    recent, older, oldest = (
        t for t in costs["search.prune"].terms if t.roof == roofs.ENTERED and t.kind == ACCESS
    )
    assert (recent.count.per_work[1], recent.most.per_work[1]) == (roofs.OLDER, 1.0)
    for term, part in ((older, roofs.OLDER), (oldest, roofs.OLDEST)):
        assert (term.count, term.most.per_work[1]) == (Linear(), part)


def test_arcs_that_pass_bring_as_many_others_along_as_the_law_takes_off():
    arcs, passed = work_of(roofs.ARCS, 0), work_of(roofs.PASSED, 0)
    assert arcs.operations / passed.operations == pytest.approx(roofs.ARCS_PER_PASSED, rel=0.02)


def test_kernels_leave_their_work_as_it_was():
    """Repeated, each does the same again: as much as the first time."""
    for name in (roofs.PASSED, roofs.LISTED, roofs.FOLLOWED):
        assert work_of(name, 0).operations == work_of(name, 0).operations
        task = work_of(name, 0).make()
        cycle = 256
        first = task(cycle)
        assert task(cycle) == pytest.approx(first, rel=0.05)


def test_pruning_again_lists_the_same_arcs():
    space, pruning = roofs._pruning(new_tokens=True)
    state = space.books.decoder_state
    before = state.copy()
    pruning.make()(3)
    assert state.tolist() == before.tolist()
    work = space.books.work
    assert work[roofs.layout.ENTERED] == 3 * roofs.PLACES
    assert work[roofs.layout.CLOSED_UP] == 0
