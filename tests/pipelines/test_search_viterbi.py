"""The decoder against Kaldi's on the same graphs and scores, and against itself."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from search_graphs import (
    circle,
    decode,
    kaldi_decode,
    kaldi_graph,
    min_cost,
    random_graph,
    settings,
    smooth_scores,
    spoken,
    thousand_words,
)

from pipelines.device import DeviceWork, HostDevice
from pipelines.search import workspace
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.graph.wfst import GraphError
from pipelines.search.kernels import pruning
from pipelines.search.viterbi import Viterbi
from profiler.arrays import ArrayError
from profiler.spans import NullLane, Recorder
from tests.each import each


@each("beam, max_active", [(13.0, 7000), (10.0, 1500)])
def test_same_words_and_cost_as_kaldi_on_speech(spoken_scores, beam, max_active):
    graph = thousand_words()
    decoder, kaldis = Viterbi(graph, settings(beam, max_active)), kaldi_graph(graph)
    for scores in spoken_scores:
        words = decode(decoder, scores, 12_345)
        assert len(words) > 3
        theirs = kaldi_decode(kaldis, graph, scores, beam, max_active)
        assert (spoken(words), decoder.complete) == (theirs[0], theirs[2])
        assert decoder.best_cost == pytest.approx(theirs[1], abs=0.02)
        # Words follow one another; a phone has three states and so lasts three frames at least.
        times = np.array([(start, start + frames) for _, start, frames in words]).reshape(-1) - 12_345
        assert (np.diff(times) >= 0).all()
        assert 0 <= times[0] < times[-1] <= len(scores)
        assert np.diff(times)[::2].min() >= 3


@each("n", [1, 2, 7, 40])
def test_the_cutoff_by_rank_is_the_value_of_that_rank(n):
    values = np.random.default_rng(n).permutation(n).astype(np.float32)
    assert [pruning.select.py_func(values.copy(), n, k) for k in range(n)] == list(range(n))


@hypothesis_settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 100_000), n_frames=st.integers(1, 40), beam=st.sampled_from([2.0, 6.0, 30.0]))
def test_same_words_and_cost_as_kaldi_on_random_graphs(seed, n_frames, beam):
    # Neither a histogram limit nor, under a narrow beam, a choice among final states: there Kaldi's
    # result depends on the order in which its hash hands out tokens.
    graph = random_graph(seed, all_final=beam < 20)
    scores = smooth_scores(seed, n_frames, graph.n_senones, spread=20.0)
    # Kaldi's default of 20 would switch pruning off in graphs of a dozen states.
    decoder = Viterbi(graph, settings(beam, 1000, min_active=0))
    words = decode(decoder, scores)
    theirs = kaldi_decode(kaldi_graph(graph), graph, scores, beam, 1000, min_active=0)
    if theirs is None:
        return
    assert decoder.complete == theirs[2]
    assert decoder.best_cost == pytest.approx(theirs[1], abs=0.02)
    if spoken(words) != theirs[0]:
        # Of two that cost the same either may win.
        for said in (spoken(words), theirs[0]):
            least = min_cost(graph, scores, said, complete=decoder.complete)
            assert least <= decoder.best_cost + 1e-2


def outcome(decoder, scores, block=16):
    return decode(decoder, scores, block=block), decoder.best_cost


@each("block", [1, 7, 64])
def test_blocks_do_not_change_the_result(spoken_scores, block, monkeypatch):
    decoder = Viterbi(thousand_words(), settings())
    expected = outcome(decoder, spoken_scores[0])
    assert outcome(decoder, spoken_scores[0], block) == expected
    # The history grows and is collected.
    monkeypatch.setattr(workspace, "FIRST_HISTORY", 16)
    assert outcome(Viterbi(thousand_words(), settings()), spoken_scores[0], block)[0] == expected[0]


def test_only_wanted_senones_are_looked_up_and_partial_results_change_nothing(spoken_scores):
    graph, scores = thousand_words(), spoken_scores[1]
    decoder = Viterbi(graph, settings(beam=10.0))
    words, cost = outcome(decoder, scores)
    decoder.start(0)
    for at, row in enumerate(scores):
        active = decoder.active_senones()
        assert (np.diff(active) > 0).all()
        # Had any other senone been looked up, this would win.
        masked = np.full((1, graph.n_senones), 1e6, dtype=np.float32)
        masked[0, active] = row[active]
        decoder.advance(masked, at)
        settled = decoder.partial()
        assert decoder.partial() == settled
    assert abs(len(settled) - len(words)) <= 2
    assert (decoder.finish(), decoder.best_cost) == (words, cost)


@pytest.mark.slow
def test_long_utterances_keep_all_words_in_bounded_memory(spoken_scores):
    decoder = Viterbi(thousand_words(), settings(beam=9.0, max_active=800))
    scores, repeats = spoken_scores[1], 60
    alone = decode(decoder, scores)
    decoder.start(0)
    for i in range(repeats):
        decoder.advance(scores, i * len(scores))
        decoder.partial()
    words = decoder.finish()
    assert len(words) >= 0.8 * repeats * len(alone)
    _, start, frames = words[-1]
    assert (repeats - 1) * len(scores) < start < start + frames <= repeats * len(scores)
    assert len(decoder._space.arrays.books.history) <= 4 * workspace.FIRST_HISTORY
    # The same words as without looking at partial results on the way.
    assert decode(decoder, np.concatenate([scores] * repeats)) == words


@each("begin, end", [(-1, 2), (2, 1), (0, 4), (4, 4)])
def test_frames_that_are_not_there_are_refused(begin, end):
    graph = random_graph(1, True)
    space = Viterbi(graph, settings())._space
    lent = NullLane().lend(), (0, 0, 0, 0, 0), 0
    before = [column.copy() for column in space.books]
    with pytest.raises(ArrayError, match=f"no frames {begin} to {end} in 3"):
        space.advance(smooth_scores(0, 3, graph.n_senones), (begin, end, 0, end, 1), 0.1, 10**9, lent)
    for column, was in zip(space.books, before, strict=True):
        np.testing.assert_array_equal(column, was)


def test_scores_of_another_kind_or_order_are_read_as_they_are():
    graph = random_graph(1, True)
    scores = smooth_scores(0, 9, graph.n_senones)
    decoder = Viterbi(graph, settings())
    expected, wide = outcome(decoder, scores), np.repeat(scores, 2, axis=1)
    for other in (scores.astype(np.float64), np.asfortranarray(scores), wide[:, ::2]):
        assert outcome(decoder, other, 2) == (expected[0], pytest.approx(expected[1]))


def test_insertion_penalty_costs_each_word_once(spoken_scores):
    words, cost = outcome(Viterbi(thousand_words(), settings(beam=16.0)), spoken_scores[1])
    dear = Viterbi(thousand_words(), settings(beam=16.0, insertion_penalty=0.01))
    assert spoken(decode(dear, spoken_scores[1])) == spoken(words)
    assert dear.best_cost == pytest.approx(cost + 0.01 * len(words), abs=2e-3)


def in_torch(graph, chosen):
    return DeviceViterbi(graph, chosen, DeviceWork(HostDevice(), Recorder(), NullLane()))


of_both = each("search", [Viterbi, in_torch])


@of_both
@hypothesis_settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 100_000), n_frames=st.integers(1, 12), block=st.sampled_from([1, 5, 30]))
def test_same_path_as_brute_force_at_infinite_beam(search, seed, n_frames, block):
    graph = random_graph(seed, all_final=False)
    scores = smooth_scores(seed, n_frames, graph.n_senones, spread=20.0)
    decoder = search(graph, settings(1e4, 10_000))
    words = decode(decoder, scores, block=block)
    cost = min_cost(graph, scores)
    assert decoder.complete == np.isfinite(cost)
    if decoder.complete:
        assert decoder.best_cost == pytest.approx(cost, abs=1e-3)
        # Others may cost as little: which of them wins is not laid down.
        assert min_cost(graph, scores, spoken(words)) == pytest.approx(cost, abs=1e-3)
        theirs = kaldi_decode(kaldi_graph(graph), graph, scores, 1e4, 10_000, min_active=0)
        assert decoder.best_cost == pytest.approx(theirs[1], abs=1e-3)


@of_both
def test_scores_that_kill_every_token_are_survived(search, spoken_scores):
    """Words before the death of the last token are the result, wherever blocks begin and end."""
    decoder = search(thousand_words(), settings(11.0, 3000))
    scores = spoken_scores[0][:150]
    deadly = np.concatenate([scores, np.full_like(scores[:10], -np.inf), scores[:5]])
    for ends in ((), (150, 165), (110, 165), (150, 151, 165), (151,), ()):
        decoder.start(0)
        decoder.advance(scores, 0)
        heard = decoder.partial()
        assert heard
        if ends:
            decoder.start(0)
            for first, end in itertools.pairwise((0, *ends)):
                decoder.advance(deadly[first:end], first)
            assert decoder.partial() == heard
            assert spoken(decoder.finish()) == spoken(heard)
            assert not decoder.complete
        assert decoder.lost == bool(ends)


@of_both
def test_empty_utterances_and_wrong_shapes(search):
    decoder = search(thousand_words(), settings())
    decoder.start(5)
    assert decoder.partial() == []
    assert decoder.finish() == []
    for wrong in (np.zeros((3, 12), np.float32), np.zeros((3, 5127)), np.zeros(5126, np.float32)):
        with pytest.raises(ValueError, match=r"wants scores of 5126 senones per frame, not an array of shape \("):
            decoder.advance(wrong, 0)


@each("lattice", [False, True])
@each("weight, word, penalty", [(-0.1, 0, 0.0), (0.1, 1, -1.0)])
def test_epsilon_arcs_that_make_paths_ever_cheaper_are_refused(weight, word, penalty, lattice):
    chosen = settings(lattice=lattice, insertion_penalty=penalty)
    with pytest.raises(GraphError, match="cycle of epsilon arcs that makes paths cheaper"):
        Viterbi(circle(weight, word), chosen)
    # A penalty that makes it so only later stops the utterance, not the program.
    decoder = Viterbi(circle(0.1, 1), settings(lattice=lattice))
    decoder.start(0)
    decoder.configure(settings(lattice=lattice, insertion_penalty=-1.0))
    with pytest.raises(GraphError, match="cycle of epsilon arcs"):
        decoder.advance(np.zeros((1, 1), np.float32), 0)


def test_a_circle_of_epsilon_arcs_that_costs_nothing_is_followed_once():
    decoder = Viterbi(circle(0.0, 0), settings())
    assert decode(decoder, np.zeros((3, 1), np.float32)) == []
    assert (decoder.complete, decoder.best_cost) == (True, 0.0)


@each("wrong", [np.nan, np.inf, 3e38])
@each("lattice", [False, True])
def test_scores_that_are_no_numbers_count_as_impossible(wrong, lattice):
    graph = random_graph(7, all_final=True)
    impossible = smooth_scores(7, 12, graph.n_senones)
    spoiled = impossible.copy()
    some = np.random.default_rng(3).random(spoiled.shape) < 0.2
    impossible[some], spoiled[some] = -np.inf, wrong
    decoder = Viterbi(graph, settings(lattice=lattice, max_active=3))
    assert outcome(decoder, spoiled, 5) == outcome(decoder, impossible, 5)
    decode(decoder, np.full_like(spoiled, wrong))
    assert decoder.lost
