"""Compiled graphs against what they are made from, and the cache around them."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from search_graphs import QUIET, TOY_WORDS, backed_off, best_path, full_dictionary, model, toy_language, toy_recipe

from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.lexicon import positions
from pipelines.search.graph.sources import DictionaryEntries, language
from tests.each import each
from tests.pipelines.whole_runs import quiet


@pytest.fixture(scope="module", params=[1, 2, 3])
def compiled(request, tmp_path_factory):
    """(cost of words, graph) of the toy language without weights from the HMMs."""
    order, folder = request.param, tmp_path_factory.mktemp("toy")
    return partial(spoken, toy_language(order)), compile_graph(toy_recipe(folder, order, **WEIGHTS), quiet)


WEIGHTS = {"transition_scale": 0.0, "silence_probability": 0.3, "filler_probability": 0.0}


def spoken(lm, words):
    return backed_off(lm, words) + (len(words) + 1) * QUIET


def senones(prons):
    """Labels of the words' triphones, silence being the context at both ends."""
    definition = model().mdef
    phones = [(definition.phone(p), at) for pron in prons for p, at in zip(pron, positions(len(pron)), strict=True)]
    silence = definition.silence
    padded = [silence, *[p for p, _ in phones], silence]
    labels = []
    for i, (phone, at) in enumerate(phones):
        ssid = definition.triphone(phone, padded[i], padded[i + 2], at)
        labels += [int(s) + 1 for s in definition.sseq[ssid]]
    return labels


SENTENCES = [
    ("two",),
    ("forward",),
    ("for", "ward"),
    ("four", "to", "too"),
    ("a", "i", "eye", "a"),
    ("red", "read", "a", "ward", "two", "forward", "i"),
]


@each("words", SENTENCES)
def test_every_pronunciation_is_spelled_in_triphones_at_the_cost_of_the_language_model(compiled, words):
    expected, graph = compiled
    assert best_path(graph, words)[0] == pytest.approx(expected(words), abs=0.01)
    for prons in product(*[full_dictionary()[w] for w in words]):
        cost, labels = best_path(graph, words, senones(prons))
        assert labels == senones(prons)
        assert cost == pytest.approx(expected(words), abs=0.01)


def test_silence_between_words_changes_the_contexts(compiled):
    expected, graph = compiled
    definition, words = model().mdef, ("two", "for")
    silence = [int(s) + 1 for s in definition.sseq[definition.ci_ssid(definition.silence)]]
    two, four = (senones([full_dictionary()[word][0]]) for word in words)
    cost, labels = best_path(graph, words, [*two, *silence, *four])
    assert labels == [*two, *silence, *four]
    assert cost == pytest.approx(expected(words) - np.log(0.3), abs=0.01)


def test_a_senone_sequence_outside_the_lexicon_has_no_path(compiled):
    _, graph = compiled
    labels = senones([("T", "UW")])
    assert best_path(graph, ("two",), labels[:-1])[0] == np.inf
    assert best_path(graph, ("two",), labels[::-1])[0] == np.inf
    assert best_path(graph, ("for",), labels)[0] == np.inf


def test_self_loops_belong_to_the_senone_that_was_entered(tmp_path):
    graph = compile_graph(toy_recipe(tmp_path / "toy", transition_scale=1.0), quiet)
    states, arcs = graph.states, graph.arcs
    entered = {graph.start: {0}}
    for label, target in zip(arcs["ilabel"].tolist(), arcs["target"].tolist(), strict=True):
        entered.setdefault(target, set()).add(label)
    assert [entered[state] for state in range(graph.n_states)] == [{n} for n in states["loop_label"][:-1].tolist()]
    definition, transitions = model().mdef, model().transitions
    for state in np.nonzero(states["loop_label"][:-1])[0][::50]:
        senone = states["loop_label"][state] - 1
        place = definition.senone_state[senone]
        stay = transitions[definition.senone_phone[senone], place, place]
        assert states["loop_weight"][state] == pytest.approx(-np.log(stay), rel=1e-4)


def test_every_state_on_a_path_costs_its_exit(tmp_path):
    graph = compile_graph(toy_recipe(tmp_path / "toy", **WEIGHTS | {"transition_scale": 0.5}), quiet)
    definition, transitions = model().mdef, model().transitions
    for words in SENTENCES:
        cost, labels = best_path(graph, words)
        passed = np.array(labels) - 1
        state = definition.senone_state[passed]
        leave = -np.log(transitions[definition.senone_phone[passed], state, state + 1]).sum()
        assert cost == pytest.approx(spoken(toy_language(), words) + 0.5 * leave, abs=0.02)


def test_vocabulary_and_pruning_follow_the_recipe(tmp_path):
    recipe = toy_recipe(tmp_path / "toy", vocabulary=5, bigrams=4)
    lm, words = language(recipe, DictionaryEntries(recipe, model().mdef))
    toy = toy_language()
    prob = {w: toy.log_prob[0][i] for i, w in enumerate(toy.words)}
    assert words.words() == sorted(TOY_WORDS, key=lambda w: -prob[w])[:5]
    assert lm.counts == (7, 4)
