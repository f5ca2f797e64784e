"""What the search's kernels record of themselves."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from search_graphs import settings, smooth_scores, thousand_words

from pipelines.search import viterbi, workspace
from pipelines.search.kernels import layout
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.clock import now_ns
from profiler.recording.lanes import Lane
from profiler.spans import SPAN, Recorder
from tests.each import each

STEPS = ("search.emit", "search.epsilon", "search.prune")
RANK = "search.rank"
FRAMES = 60
FIRST = 4000


@pytest.fixture(scope="module")
def scores():
    return smooth_scores(5, FRAMES, thousand_words().n_senones)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A call that takes longer, on a busy machine, would return and be made again: it would have spans of its own."""
    monkeypatch.setattr(viterbi, "PATIENCE_NS", 10**12)


def record(scores, block=16, **changes):
    """Spans by name of step, and the times just before and after each call of `advance`."""
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, **changes)), Recorder()
    decoder.warm_up()
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(FIRST)
    around = []
    for at in range(0, len(scores), block):
        before = now_ns()
        decoder.advance(scores[at : at + block], FIRST + at, lane)
        around.append((before, now_ns()))
    spans = np.frombuffer(lane.take(), SPAN)
    assert lane.dropped == 0
    steps = {name: spans[spans["stage"] == recorder.stage_id(name)] for name in (*STEPS, RANK)}
    return steps, around


def follow(*spans):
    """Whether each begins where the one before ends."""
    return all((a["start_ns"] + a["duration_ns"] == b["start_ns"]).all() for a, b in pairwise(spans))


def test_spans_of_a_block_follow_each_other_within_the_call(scores):
    steps, around = record(scores, min_active=0)
    emit, epsilon, prune = (steps[name] for name in STEPS)
    assert not len(steps[RANK])
    assert emit["first_frame"].tolist() == [FIRST + at for at in range(0, FRAMES, 16)]
    assert emit["frames"].tolist() == [16, 16, 16, FRAMES % 16]
    assert follow(epsilon, prune, emit)
    for (before, after), first, last in zip(around, epsilon, emit, strict=True):
        assert before <= first["start_ns"]
        assert last["start_ns"] + last["duration_ns"] <= after
    assert (epsilon["duration_ns"] > 0).all()
    assert (prune["duration_ns"][1:] > 0).all()


def test_a_cutoff_by_rank_has_a_span_of_its_own_after_pruning(scores):
    steps, _ = record(scores, max_active=50, min_active=0)
    prune, rank, emit = (steps[name] for name in ("search.prune", RANK, "search.emit"))
    assert len(rank) == 4
    assert follow(prune, rank, emit)
    # Whole frames are ranked: more tokens than may live on, no more than were examined.
    assert (rank["work0"] > 50).all()
    assert (rank["work0"] <= prune["work0"]).all()
    assert (rank["duration_ns"] > 0).all()


def test_pruning_on_demand_of_the_scorer_says_what_it_ranked(scores):
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, max_active=50)), Recorder()
    decoder.stages(recorder)
    lane = recorder.lane("decode", decode=True)
    decoder.start(0)
    decoder.advance(scores[:12], 0)
    lane.take()
    decoder.active_senones(lane)
    prune, rank, active = spans = np.frombuffer(lane.take(), SPAN)
    assert [recorder.stages[n].name for n in spans["stage"]] == ["search.prune", RANK, "search.active"]
    assert follow(prune, rank, active)
    assert 50 < rank["work0"] == prune["work0"]


def test_calls_cut_short_record_every_frame_once_and_the_same_work(scores, monkeypatch):
    whole, _ = record(scores)
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 16)
    monkeypatch.setattr(viterbi, "PATIENCE_NS", 0)
    cut, _ = record(scores)
    assert len(cut["search.emit"]) >= FRAMES
    for name in STEPS:
        ends = cut[name]["first_frame"] + cut[name]["frames"]
        assert cut[name]["first_frame"].tolist() == [FIRST, *ends[:-1]]
        assert ends[-1] == FIRST + FRAMES
    # Tokens, arcs and senones of a frame that had to be taken up again count once.
    for name, work in (("search.emit", ["work0", "work1", "work2"]), ("search.epsilon", ["work2"])):
        for field in work:
            assert cut[name][field].sum() == whole[name][field].sum()


def books(decoder):
    """Everything that a later frame depends on; what is listed has a past, what is new has an end only."""
    arrays = decoder._space.arrays
    state, tokens = arrays.books.decoder_state, arrays.tokens
    n, m, used = (int(state[i]) for i in (layout.N, layout.M, layout.HISTORY))
    lists = state[layout.EMITTING], state[layout.EPSILONS]
    return [
        state.copy(),
        arrays.books.floats.copy(),
        arrays.books.history[:used].copy(),
        arrays.places.slot[tokens.state[:m]].copy(),
        *(column[:m].copy() for column in (tokens.state, tokens.new_cost, tokens.come)),
        np.where(tokens.come[:m] == layout.BY_ENTRY, tokens.new_hist[:m], 0),
        *(column[:n].copy() for column in (tokens.cost, tokens.hist)),
        *(column[:n].copy() for column in (tokens.loop_label, tokens.loop_weight)),
        *(column[: lists[0]].copy() for column in arrays.emitting[:5]),
        *(column[: lists[1]].copy() for column in arrays.epsilons[:4]),
    ]


def decode(scores, block, replayed, turns=False, **changes):
    """Words, cost and spans; the books after each block; what the repeats took.

    `turns`: read the active senones before each frame.
    """
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, **changes)), Recorder()
    decoder.stages(recorder)
    lane, own = recorder.lane("decode", decode=True), Lane(7, "replay", "cpu", False)
    replay = SearchReplay(decoder)
    decoder.start(0)
    after, taken = [], []
    for at in range(0, len(scores), block):
        part = scores[at : at + block]
        if replayed:
            replay.keep()
        for t in range(0, len(part), 1 if turns else block):
            if turns:
                decoder.active_senones(lane)
            decoder.advance(part[t : t + 1] if turns else part, at + t, lane)
        if replayed:
            taken.append(replay.again(list(part) if turns else part, at, own))
        after += books(decoder)
    return (decoder.finish(), decoder.best_cost, lane.recorded), after, taken


@each("block", [1, 16, 64])
@each("lattice", [False, True])
@each("turns", [False, True])
def test_the_search_is_to_the_bit_what_it_is_without(scores, block, lattice, turns):
    expected, before, _ = decode(scores, block, False, turns, lattice=lattice)
    result, after, taken = decode(scores, block, True, turns, lattice=lattice)
    assert result == expected
    for wanted, got in zip(before, after, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert len(taken) == -(-FRAMES // block)
    stages = {*STEPS, *["search.lattice"] * lattice, *["search.active"] * turns}
    assert all(set(least) - {RANK} == stages for least in taken)
    assert all(least["search.emit"] > 0 for least in taken)


def test_a_block_with_its_history_collected_in_between_is_not_repeated(scores, monkeypatch):
    plain = decode(scores, 16, False)[0]
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 256)
    (words, cost, _), _, taken = decode(scores, 16, True)
    assert words == plain[0]
    assert cost == pytest.approx(plain[1])
    assert {} in taken
    assert any(taken)


@each("lattice", [False, True])
def test_another_search_takes_over_and_does_the_same_at_other_places(scores, lattice, monkeypatch):
    config = settings(beam=10.0, lattice=lattice)
    decoder = Viterbi(thousand_words(), config)
    # The other one has room for less.
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 256)
    graph = thousand_words()
    other = Viterbi(replace(graph, states=graph.states.copy(), arcs=graph.arcs.copy()), config)
    recorder, own = Recorder(), Lane(7, "replay", "cpu", False)
    for one in (decoder, other):
        one.stages(recorder)
    replay, elsewhere = SearchReplay(decoder), SearchReplay(other)
    decoder.start(0)
    for at in range(0, FRAMES, 16):
        part = scores[at : at + 16]
        replay.keep()
        decoder.advance(part, at)
        elsewhere.take_over(replay)
        for _ in range(2):
            assert set(elsewhere.again(part, at, own)) == set(replay.again(part, at, own))
            for wanted, got in zip(books(decoder), books(other), strict=True):
                np.testing.assert_array_equal(got, wanted)
    assert other._space.arrays.graph.arcs.ctypes.data != decoder._space.arrays.graph.arcs.ctypes.data
