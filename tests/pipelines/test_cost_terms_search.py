"""What bounds the search: every stage says it in terms, and what they name runs."""

from types import SimpleNamespace

import pytest
from search_graphs import settings, thousand_words

from pipelines.config import Config, assign
from pipelines.kernel_roofs import work_of
from pipelines.run.recogniser import Recogniser
from pipelines.scoring.kernel_work import COLD, FRAME_PASSED
from pipelines.search import roofs
from pipelines.search.costs import BY_HEART
from pipelines.search.viterbi import Viterbi
from profiler.analysis.law import needed
from profiler.costs import ACCESS, CALL, KERNEL, Cost, Linear


@pytest.fixture(scope="module")
def costs():
    return Viterbi(thousand_words(), settings()).costs()


@pytest.fixture(scope="module")
def in_turns():
    return Viterbi(thousand_words(), settings()).costs(16, 5e6, turns=True)


def test_every_stage_has_terms_and_what_they_name_runs(costs, in_turns):
    words = costs["search.backtrace"]
    assert words.unmodelled, "Python, of which it says so"
    assert all(cost.terms for cost in costs.values() if cost is not words)
    every = [*costs.values(), *in_turns.values()]
    names = {term.roof for term, _ in needed(every) if term.roof != "numpy"}
    # What a call waits for is of a size of its own, and looked at below.
    names = {name for name in names if "+" not in name}
    assert {name.partition("/")[0] for name in names} == set(roofs.FAMILIES)
    for name in names:
        work = work_of(name, 0)
        task = work.make()
        task(2)
        task(1)
        assert work.operations > 0


@pytest.mark.parametrize(("between", "kib"), [(3e5, 256), (4 << 20, 4096), (1e9, COLD >> 10)])
def test_a_call_waits_for_what_was_pushed_out_since_the_last(between, kib):
    plain, far = (Viterbi(thousand_words(), settings()).costs(between=b) for b in (0.0, between))
    assert {name for name in far if far[name] != plain[name]} == {"search.emit"}
    (waits,) = set(far["search.emit"].terms or ()) - set(plain["search.emit"].terms or ())
    assert (waits.kind, waits.bytes, waits.count) == (ACCESS, kib << 10, Linear(fixed=1.0))
    for size in (0, int(waits.bytes)):
        work = work_of(waits.roof, size)
        work.make()(2)
        assert work.operations == 1.0
        assert work.in_turn == (size > 0), "other data are read between two calls"


def test_a_run_tells_the_search_how_much_scoring_goes_through():
    scoring = {
        "a": Cost(working_set_bytes=5e6),
        "b": Cost(working_set_bytes=2e6),
        "c": Cost(working_set_bytes=9e9, device="cuda"),
    }
    given = []
    search = SimpleNamespace(costs=lambda *of: given.append(of) or {})
    config = assign(Config(), {"block": 16})
    for lazy in (False, True):
        scorer = SimpleNamespace(costs=lambda: scoring, lazy=lazy)
        assert Recogniser(config, None, scorer, search).decoding_costs() == scoring
    assert given == [(16, 5e6, False), (16, 5e6, True)], (
        "the most of what lies in the host's memory"
    )


@pytest.mark.parametrize("frames", [1, 16])
def test_in_turns_each_frame_is_a_call_whose_first_comes_after_all_of_scoring(frames):
    made = Viterbi(thousand_words(), settings())
    laws, whole = (made.costs(frames, 5e6, turns=turns) for turns in (True, False))
    calls = {stage: [t for t in law.terms or () if t.kind == CALL] for stage, law in laws.items()}
    for stage in ("search.emit", "search.prune", "search.active"):
        counts = [term.count for term in calls[stage]]
        assert sum(count.per_frame for count in counts) == pytest.approx(1.0)
        assert not any(count.fixed for count in counts), "spans of many frames may be one"
    prunes = [(term.roof, term.bytes) for term in calls["search.prune"]]
    after = [4 << 20, FRAME_PASSED][: 1 if frames == 1 else 2]
    assert prunes == [(roofs.PRUNE_CALL, size) for size in after]
    waits = [t for t in laws["search.emit"].terms if t.roof.startswith(f"{roofs.ADVANCE}+")]
    assert [term.bytes for term in waits] == after
    # A block at once has no call but its own.
    assert not [term for term in whole["search.prune"].terms if term.kind == CALL]
    assert {name for name in laws if laws[name] != whole[name]} == {"search.emit", "search.prune"}


def test_the_look_through_all_senones_counts_once(in_turns):
    """Where tokens and arcs are as many as in the roof, that roof has all of it."""
    arcs = work_of(roofs.ACTIVE, 0).operations
    terms = {term.roof.partition("/")[0]: term for term in in_turns["search.active"].terms}
    count = terms[roofs.FOUND].count
    assert count.per_frame == thousand_words().n_senones
    assert arcs * -count.per_work[0] == pytest.approx(roofs.SENONES, rel=0.01)
    # None of its branches depend on data.
    assert all(term.by_heart == 0.0 for term in terms.values())


def test_of_many_frames_a_replay_knows_fewer_branches():
    known = []
    for frames in (1, 16, 64):
        law = Viterbi(thousand_words(), settings()).costs(frames)["search.prune"]
        known.append(max(term.by_heart for term in law.terms or ()))
    assert known == sorted(known, reverse=True)
    assert known[1] == pytest.approx(BY_HEART / 2)
    assert 0.3 < known[0] < BY_HEART


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
