"""A block of the search run again: the search stays what it was, and its spans go nowhere else."""

from dataclasses import replace

import numpy as np
import pytest
from search_graphs import settings, smooth_scores, thousand_words

from pipelines.search import viterbi, workspace
from pipelines.search.kernels import layout
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.recording.lanes import Lane
from profiler.spans import Recorder
from tests.each import each

FRAMES = 80


@pytest.fixture(scope="module")
def scores():
    return smooth_scores(6, FRAMES, thousand_words().n_senones)


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
    """Words, cost and books after each block; what the repeats took; the spans of the decode lane.

    `turns`: read the active senones before each frame.
    """
    decoder, recorder = Viterbi(thousand_words(), settings(beam=10.0, **changes)), Recorder()
    decoder.stages(recorder)
    lane, own = recorder.lane("decode", decode=True), Lane(7, "replay", "cpu", False)
    replay = SearchReplay(decoder) if replayed else None
    decoder.start(0)
    after, taken = [], []
    for at in range(0, len(scores), block):
        part = scores[at : at + block]
        if replay:
            replay.keep()
        for t in range(len(part)) if turns else ():
            decoder.active_senones(lane)
            decoder.advance(part[t : t + 1], at + t, lane)
        if not turns:
            decoder.advance(part, at, lane)
        if replay:
            taken.append(replay.again(list(part) if turns else part, at, own))
        after.append(books(decoder))
    return (decoder.finish(), decoder.best_cost, after), taken, lane.recorded


@each("block", [1, 16, 64])
@each("lattice", [False, True])
@each("turns", [False, True])
def test_the_search_is_to_the_bit_what_it_is_without(scores, block, lattice, turns, monkeypatch):
    # A call that takes longer, on a busy machine, returns and is made again: it has spans of its own.
    monkeypatch.setattr(viterbi, "PATIENCE_NS", 10**12)
    (words, cost, books), _, spans = decode(scores, block, False, turns, lattice=lattice)
    (same_words, same_cost, same_books), taken, same_spans = decode(scores, block, True, turns, lattice=lattice)
    assert words == same_words
    assert cost == same_cost
    assert spans == same_spans
    for before, after in zip(books, same_books, strict=True):
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(taken) == -(-FRAMES // block)
    wanted = {"search.emit", "search.epsilon", "search.prune"}
    wanted |= {"search.lattice"} if lattice else set()
    wanted |= {"search.active"} if turns else set()
    assert all(set(least) - {"search.rank"} == wanted for least in taken)
    assert all(least["search.emit"] > 0 for least in taken)


def test_a_block_with_its_history_collected_in_between_is_not_repeated(scores, monkeypatch):
    plain, _, _ = decode(scores, 16, False)
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 256)
    (words, cost, _), taken, _ = decode(scores, 16, True)
    assert words == plain[0]
    assert cost == pytest.approx(plain[1])
    assert {} in taken
    assert any(taken)


@pytest.mark.parametrize("lattice", [False, True])
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
            pairs = list(zip(books(decoder), books(other), strict=True))
            for wanted, got in pairs:
                np.testing.assert_array_equal(got, wanted)
    assert other._space.arrays.graph.arcs.ctypes.data != decoder._space.arrays.graph.arcs.ctypes.data
