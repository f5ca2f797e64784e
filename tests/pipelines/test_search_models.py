"""Graphs of random dictionaries and language models: homophones, words that begin others, pruning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import random_model, write_arpa, write_dictionary
from search_graphs import QUIET, backed_off, best_path

from pipelines.models import sphinx
from pipelines.models.dictionary import Dictionary
from pipelines.models.language import ngram
from pipelines.search.graph import grammar
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import Recipe

# Few phones and short words, so that homophones and prefixes are the rule.
PRONUNCIATIONS = st.lists(
    st.lists(st.sampled_from(["AH", "T", "EH"]), min_size=1, max_size=3).map(tuple), min_size=1, max_size=2, unique=True
).map(tuple)


def recipe(folder, **changes):
    values = {
        "model": str(sphinx.default_directory()),
        "dictionary": str(folder / "words.dict"),
        "language_model": str(folder / "words.arpa"),
        "vocabulary": 100,
        "order": 3,
        "bigrams": 1000,
        "trigrams": 1000,
        "transition_scale": 0.0,
        "filler_probability": 0.0,
    }
    return Recipe(**(values | changes))


@settings(max_examples=5, deadline=None)
@given(st.lists(PRONUNCIATIONS, min_size=2, max_size=5), st.integers(1, 3), st.integers(0, 1000), st.data())
def test_best_paths_cost_what_the_language_model_says(tmp_path_factory, prons, order, seed, data):
    folder = tmp_path_factory.getbasetemp()
    lm = random_model(seed, len(prons), order)
    names = [w for w in lm.words if w.startswith("w")]
    write_dictionary(Dictionary(dict(zip(names, prons, strict=True))), folder / "words.dict")
    write_arpa(lm, folder / "words.arpa")
    graph = compile_graph(recipe(folder, order=order), lambda *_: None)
    for _ in range(3):
        said = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
        cost, _ = best_path(graph, said)
        assert cost == pytest.approx(backed_off(lm, said) + (len(said) + 1) * QUIET, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 3))
def test_ngrams_that_never_win_are_left_out_at_no_loss(seed, n_words, order):
    lm = random_model(seed, n_words, order)
    index = lm.index()
    fst = grammar.ngram_acceptor(lm)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        said = [f"w{i}" for i in rng.integers(0, n_words, rng.integers(1, 5))]
        cost = cheapest(fst, [index[w] + 1 for w in said], grammar.backoff_label(len(lm.words)))
        # Costs of both signs may all but cancel.
        assert cost == pytest.approx(backed_off(lm, said), rel=1e-5, abs=1e-5)
    listed = sum(lm.counts) - 2  # neither `<s>` nor `</s>` is an arc
    assert fst.n_arcs <= listed + fst.n_states


def cheapest(fst, labels, backoff):
    """Cost of the best path that reads `labels`, back-off arcs anywhere between."""
    costs = {fst.start: 0.0}

    def step(label, reached):
        for state, cost in list(costs.items()):
            for arc in range(fst.first[state], fst.first[state + 1]):
                if fst.ilabel[arc] == label:
                    target, total = int(fst.target[arc]), cost + float(fst.weight[arc])
                    reached[target] = min(reached.get(target, np.inf), total)
        return reached

    for label in labels:
        # A history of two words backs off twice.
        step(backoff, costs)
        step(backoff, costs)
        costs = step(label, {})
    step(backoff, costs)
    step(backoff, costs)
    return min(cost + float(fst.final[state]) for state, cost in costs.items())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12))
def test_pruning_by_count_keeps_what_is_expected_most(seed, limit):
    lm = random_model(seed, 5, 2)
    pruned = ngram.prune(lm, (limit,), "count")
    assert pruned.counts[1] == min(limit, lm.counts[1])
    index = {tuple(gram): i for i, gram in enumerate(lm.ids[1].tolist())}
    start, end = lm.index()["<s>"], lm.index()["</s>"]
    history = lm.ids[1][:, 0]
    # A sentence begins as often as one ends.
    expected = np.exp(lm.log_prob[0][np.where(history == start, end, history)] + lm.log_prob[1])
    kept = [index[tuple(gram)] for gram in pruned.ids[1].tolist()]
    dropped = np.setdiff1d(np.arange(lm.counts[1]), kept)
    if kept and len(dropped):
        assert expected[kept].min() >= expected[dropped].max() * (1 - 1e-9)
