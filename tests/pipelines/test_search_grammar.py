"""Graphs of grammars: they say what the grammar says, at its cost, and nothing else."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from language_models import (
    EXPRESSIONS,
    WORDS,
    jsgf_text,
    random_model,
    restricted,
    sentences,
    write_arpa,
    write_dictionary,
)
from search_graphs import QUIET, backed_off, best_path, cost_of, full_dictionary, model

import assets
from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary, sphinx
from pipelines.models.dictionary import Dictionary
from pipelines.models.grammar.expression import Alternatives, Grammar, GrammarError, Reference, Repeat, Sequence, Word
from pipelines.models.language import ngram
from pipelines.search.graph import build, grammar
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import Recipe, recipe_of
from pipelines.search.graph.sources import read_grammar
from pipelines.search.graph.wfst import GraphError
from tests.each import each

LONGEST = 3
ROUNDING = 0.02  # OpenFst compares weights in steps of 1/1024 when it determinises and minimises
HEADER = "#JSGF V1.0;\ngrammar test;\n"


def probabilities(fst, words):
    """Of each sentence up to LONGEST words, walking the acceptor, which is deterministic."""
    result = {}
    stack = [((), fst.start, 0.0)]
    while stack:
        said, state, cost = stack.pop()
        if np.isfinite(fst.final[state]):
            assert said not in result
            result[said] = np.exp(-cost - float(fst.final[state]))
        if len(said) < LONGEST:
            for arc in range(fst.first[state], fst.first[state + 1]):
                word = words[fst.ilabel[arc] - 1]
                stack.append(((*said, word), fst.target[arc], cost + float(fst.weight[arc])))
    return result


def unless_refused(make):
    """What `make` returns; the example is given up where no acceptor can be deterministic (tested by itself below)."""
    try:
        return make()
    except GrammarError as error:
        assume("cannot be made deterministic" not in str(error))
        raise


A, B = Word("a", 1), Word("b", 1)


def acceptor(whole):
    """The acceptor of a grammar, and the words that its labels mean."""
    labels = {}
    return grammar.acceptor(whole, lambda word: labels.setdefault(word.text, len(labels) + 1)), list(labels)


def accept(rules, public=("rule",)):
    return probabilities(*acceptor(Grammar(assets.path("grammars"), rules, public)))


@settings(max_examples=80, deadline=None)
@given(EXPRESSIONS)
@example(Repeat(Alternatives(((1.0, Word("a", 1)), (1.0, Sequence(()))))))
def test_the_acceptor_says_what_the_grammar_says(expression):
    expected = sentences(expression, {}, LONGEST)
    found = unless_refused(lambda: accept({"rule": expression}))
    assert found == pytest.approx(expected, rel=ROUNDING)


def test_the_most_probable_way_counts():
    twice = Alternatives(((1.0, A), (1.0, Sequence((A, B))), (2.0, Sequence((A, B))), (1.0, A)))
    assert accept({"rule": twice}) == pytest.approx({("a",): 0.2, ("a", "b"): 0.4}, rel=ROUNDING)
    # Public rules are alternatives.
    both = accept({"x": A, "y": B}, ("x", "y"))
    assert both == pytest.approx({("a",): 0.5, ("b",): 0.5}, rel=ROUNDING)


def test_a_rule_may_end_with_itself():
    again = Alternatives(((1.0, Sequence((A, Reference("rule", 1)))), (3.0, B)))
    expected = {("b",): 0.75, ("a", "b"): 0.1875, ("a", "a", "b"): 0.75 / 16}
    assert accept({"rule": again}) == pytest.approx(expected, rel=ROUNDING)
    # Through another rule and an optional group as well.
    other = Alternatives(((1.0, Sequence((A, Reference("other", 1)))), (1.0, Sequence(()))))
    back = Alternatives(((1.0, Reference("rule", 1)), (1.0, B)))
    found = accept({"rule": other, "other": back})
    assert ("a", "a", "b") in found
    assert ("b",) not in found


REFUSED = [
    ("public <a> = <a> x | y;", "line 3: <a> uses itself before its end"),
    ("public <a> = (<a> | x)+;", "line 3: <a> uses itself before its end"),
    ("public <a> = x <a>;", "can never be said to their end"),
    ("public <a> = <VOID>;", "can never be said to their end"),
    ("public <a> = <NULL>;", "say no word"),
    ("public <a> = (/9/ x | /1/ y)* u | (/1/ x | /9/ y)* v;", "cannot be made deterministic"),
    ("public <a> = x* | (x | <NULL>)*;", "cannot be made deterministic"),
    ("public <a> = (x | y)* x " + "(x | y) " * 30 + ";", "cannot be made deterministic"),
    (
        "<r0> = x;" + "".join(f"<r{i + 1}> = <r{i}> <r{i}>;" for i in range(24)) + "public <a> = <r24>;",
        "rules that are used in rules multiply",
    ),
    (
        "<r0> = x;" + "".join(f"<r{i + 1}> = y [<r{i}>];" for i in range(400)) + "public <a> = <r400>;",
        "too deep within each other",
    ),
]


@each("rules, message", REFUSED)
def test_what_no_graph_can_be_made_of_is_refused(tmp_path, rules, message, monkeypatch):
    monkeypatch.setattr(grammar, "MAX_STATES", 20_000)
    with pytest.raises(GrammarError, match=message) as caught:
        acceptor(read_grammar(Path(written(tmp_path, "test.gram", HEADER + rules))))
    assert "\n" not in str(caught.value)


def recipe(**changes):
    values = {"vocabulary": 100, "bigrams": 1000, "trigrams": 1000, "transition_scale": 0.0, "filler_probability": 0.0}
    values |= {"model": str(sphinx.default_directory()), "dictionary": str(dictionary.default_path())}
    return Recipe(**(values | changes))


@settings(max_examples=4, deadline=None)
@given(EXPRESSIONS)
def test_the_graph_accepts_exactly_the_grammars_sentences(tmp_path_factory, expression):
    folder = tmp_path_factory.getbasetemp()
    # A sentence that is silence alone is said by no word; the graph must say some.
    text = f"{HEADER}public <x> = {jsgf_text(Sequence((Word('four', 1), expression)))};\n"
    chosen = recipe(grammar=written(folder, "accepts.gram", text), dictionary=str(folder / "accepts.dict"))
    write_dictionary(restricted(full_dictionary(), [*WORDS]), folder / "accepts.dict")
    graph = unless_refused(lambda: compile_graph(chosen, lambda *_: None))
    expected = sentences(expression, {}, LONGEST)
    for length in range(LONGEST):
        for rest in product([w for w in WORDS if w in graph.words], repeat=length):
            cost, _ = best_path(graph, ("four", *rest))
            quiet = (len(rest) + 2) * QUIET
            assert cost == pytest.approx(quiet - np.log(expected[rest]) if rest in expected else np.inf, abs=ROUNDING)


def test_shipped_grammars_are_found_by_name(tmp_path):
    found = recipe_of(GraphConfig(grammar="digits"), model())
    assert found.grammar == str(assets.path("grammars", "digits.gram"))
    assert compile_graph(found, lambda *_: None).n_arcs > 100
    with pytest.raises(GraphError, match="shipped with the program are cards, digits, robot"):
        recipe_of(GraphConfig(grammar=str(tmp_path / "none.gram")), model())


def test_a_grammar_leaves_settings_of_language_models_out():
    changes = {"order": 1, "bigrams": 7, "trigrams": 5, "vocabulary": 9}
    plain, changed = (recipe_of(GraphConfig(grammar="digits", **more), model()) for more in ({}, changes))
    assert changed == plain
    unigram = recipe_of(GraphConfig(**changes), model())
    assert unigram == recipe_of(GraphConfig(order=1, vocabulary=9, pruning="count"), model())


def written(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def compiled(folder, dictionary_text, sentences_text):
    """The graph of a list of sentences."""
    files = {"grammar": written(folder, "list.txt", sentences_text)}
    files["dictionary"] = written(folder, "words.dict", dictionary_text)
    return compile_graph(recipe_of(GraphConfig(**files), model()), lambda *_: None)


@each("limit, message", [("MAX_PHONES", "where 10 can be put together"), ("MAX_GRAMMAR_STATES", "where 10 can be com")])
def test_words_that_are_too_long_together_are_refused(tmp_path, monkeypatch, limit, message):
    monkeypatch.setattr(build, limit, 10)
    with pytest.raises(GraphError, match=message):
        compiled(tmp_path, "one W AH N\ntwo T UW\n", "one two one one two two\ntwo one\n")


def test_a_word_of_very_many_phones_is_compiled(tmp_path):
    """In memory that grows with its length: all its beginnings together would take 3 GB."""
    graph = compiled(tmp_path, f"one {'AH N ' * 14_000}\ntwo T UW\n", "one\ntwo\n")
    assert graph.words == ("one", "two")
    assert graph.phone_first[-1] == 2 * 14_000 + 2


# Few phones and short words, so that homophones and prefixes are the rule.
PRONUNCIATIONS = st.lists(
    st.lists(st.sampled_from(["AH", "T", "EH"]), min_size=1, max_size=3).map(tuple), min_size=1, max_size=2, unique=True
).map(tuple)


@settings(max_examples=5, deadline=None)
@given(st.lists(PRONUNCIATIONS, min_size=2, max_size=5), st.integers(1, 3), st.integers(0, 1000), st.data())
def test_best_paths_cost_what_the_language_model_says(tmp_path_factory, prons, order, seed, data):
    words, arpa = (tmp_path_factory.getbasetemp() / name for name in ("words.dict", "words.arpa"))
    lm = random_model(seed, len(prons), order)
    names = [w for w in lm.words if w.startswith("w")]
    write_dictionary(Dictionary(dict(zip(names, prons, strict=True))), words)
    write_arpa(lm, arpa)
    graph = compile_graph(recipe(dictionary=str(words), language_model=str(arpa), order=order), lambda *_: None)
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
    for labels in (fst.ilabel, fst.olabel):
        labels[labels == grammar.backoff_label(len(lm.words))] = 0
    rng = np.random.default_rng(seed)
    for _ in range(4):
        said = [f"w{i}" for i in rng.integers(0, n_words, rng.integers(1, 5))]
        # Costs of both signs may all but cancel.
        assert cost_of(fst, [index[w] + 1 for w in said]) == pytest.approx(backed_off(lm, said), rel=1e-5, abs=1e-4)
    listed = sum(lm.counts) - 2  # neither `<s>` nor `</s>` is an arc
    assert fst.n_arcs <= listed + fst.n_states


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
