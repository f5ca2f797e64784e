"""The algebra of back-off models: sums, conditioning, pruning."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import arpa_text, distribution, random_model
from search_graphs import model

from pipelines.config import Graph as GraphConfig
from pipelines.models.language import ngram
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.sources import DictionaryEntries, source
from tests.each import each
from tests.pipelines.refusing import refusal

MODELS = st.builds(
    random_model,
    seed=st.integers(0, 10_000),
    n_words=st.integers(2, 7),
    order=st.integers(1, 3),
    density=st.floats(0.1, 1.0),
)


def histories(model):
    """Every history that the model distinguishes, as lists of ids."""
    result = [[]]
    for k in range(1, model.order):
        result += [g.tolist() for g in model.ids[k - 1] if g[-1] != 1]
    return result


@settings(max_examples=60, deadline=None)
@given(MODELS)
def test_every_history_sums_to_one(model):
    for history in histories(model):
        # Words that share less than this mass may come on top of explicit ones that already sum to 1.
        assert distribution(model, history).sum() == pytest.approx(1.0, abs=ngram.MIN_BACKOFF_MASS)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.data())
def test_restriction_conditions_on_the_vocabulary(model, data):
    words = [w for w in model.words if w.startswith("w")]
    kept = data.draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
    small = ngram.restrict(model, kept)
    assert set(small.words) == {"<s>", "</s>", *kept}
    for history in histories(small):
        before = distribution(model, [model.words.index(small.words[h]) for h in history])
        inside = before[[model.words.index(w) for w in small.words]]
        np.testing.assert_allclose(distribution(small, history), inside / inside.sum(), rtol=1e-6, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(MODELS, st.integers(0, 12), st.integers(0, 12))
def test_pruned_models_keep_the_best_and_sum_to_one(model, bigrams, trigrams):
    pruned = ngram.prune(model, (bigrams, trigrams))
    for history in histories(pruned):
        assert distribution(pruned, history).sum() == pytest.approx(1.0, abs=1e-9)
    if model.order == 2:
        assert pruned.counts[1] == min(bigrams, model.counts[1])
    if model.order == 3:
        assert pruned.counts[2] == min(trigrams, model.counts[2])
        # A trigram's history must be listed, for it holds the back-off weight.
        assert (pruned.find(pruned.ids[2][:, :-1]) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_worth_is_the_relative_entropy_of_removal(seed):
    model = random_model(seed, 5, 2)
    worth = ngram.removal_entropy(model, 2)
    errors = []
    for row, (history, _) in enumerate(model.ids[1]):
        kept = np.arange(len(worth)) != row
        ids, probs = (model.ids[0], model.ids[1][kept]), (model.log_prob[0], model.log_prob[1][kept])
        without = ngram.renormalise(ngram.make(model.words, ids, probs, model.log_backoff))
        p, q = distribution(model, [history]), distribution(without, [history])
        some = p > 0
        weight = np.exp(model.log_prob[0][1 if history == 0 else history])
        wanted = weight * (p[some] * np.log(p[some] / q[some])).sum()
        errors.append(abs(worth[row] - wanted))
        assert worth[row] == pytest.approx(wanted, rel=1e-4, abs=5e-4)
    # Back-off weights are rounded, and of a history that lists every word nothing is left to back off with:
    # a few are off by that much.
    assert not errors or np.median(errors) < 1e-5


def test_sums_above_one_are_scaled_down():
    """As what 16-bit tables make of a nearly full history."""
    ids = np.array([[0], [1], [2]], "i4"), np.array([[2, 1], [2, 2]], "i4")
    probs = np.log([1e-40, 0.5, 0.5]), np.log([0.6, 0.402])
    fixed = ngram.renormalise(ngram.make(["<s>", "</s>", "a"], ids, probs, (np.zeros(3),)))
    assert distribution(fixed, [2]).sum() == pytest.approx(1.0, abs=1e-5)


def test_most_probable_is_deterministic_and_ordered():
    model = random_model(3, 6, 1)
    words = ngram.most_probable(model, [*model.words[2:], "unheard"], 4)
    prob = dict(zip(model.words, model.log_prob[0], strict=True))
    assert words == sorted(model.words[2:], key=lambda w: -prob[w])[:4]


@each("words, message", [(["<s>", "</s>", "a", "a"], "a word twice"), (["<s>", "a"], "sentence mark </s>")])
def test_malformed_models_are_refused(words, message):
    ids = np.arange(len(words), dtype="i4")[:, None]
    refusal(message, ngram.make, words, [ids], [np.full(len(words), -1.0)], [])


# -- what a graph takes from dictionary ------------------------------------------------------------


PLAIN = "go G OW\nforward F AO R W ER D\nten T EH N\nmeters M IY T ER Z\n"


def written(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def language_file(folder, *words):
    """Unigrams, each less probable than the one before."""
    grams = {(word,): (-1.0 - i / 10, 0.0) for i, word in enumerate(["<s>", "</s>", *words])}
    return written(folder, "own.arpa", arpa_text([grams]))


def notes_of(dictionary, **settings):
    recipe = recipe_of(GraphConfig(dictionary=dictionary, **{"vocabulary": 100, **settings}), model())
    return source(recipe, DictionaryEntries(recipe, model().mdef))


def by_language(folder, dictionary, *words, **settings):
    own = written(folder, "own.dict", dictionary)
    return notes_of(own, language_model=language_file(folder, *words), **settings)


def by_grammar(folder, dictionary, phrases):
    return notes_of(written(folder, "own.dict", dictionary), grammar=written(folder, "own.txt", phrases))


@each(
    "words, vocabulary, counted, names",
    [
        ("go forward ten", 100, "", ""),
        ("go vorwaerts meterz zehn forward ten", 100, "3 of 6 words of the language model", "vorwaerts, meterz, zehn"),
        # Of those that are not among the most probable nobody asks.
        ("go ten zehn forward", 2, "", ""),
        ("go elf ten zehn forward", 2, "1 of 3 most probable words of the language model", "elf"),
        ("go u0 u1 u2 u3 u4 u5 u6 u7 u8 u9", 100, "10 of 11 words", "u0, u1, u2, u3, u4, u5, u6, u7 and 2 more"),
    ],
)
def test_words_without_a_pronunciation_are_counted(tmp_path, words, vocabulary, counted, names):
    found = by_language(tmp_path, PLAIN, *words.split(), vocabulary=vocabulary)
    assert len(found.notes) == bool(names)
    for note in found.notes:
        assert note.startswith(counted)
        assert note.endswith(f" no pronunciation and {'is' if counted[:2] == '1 ' else 'are'} left out: {names}")
    assert set(found.words) <= {"<s>", "</s>", "go", "forward", "ten"}


@pytest.mark.slow
def test_the_shipped_files_leave_nothing_out_and_a_graph_keeps_its_notes(tmp_path):
    config = GraphConfig(vocabulary=50, bigrams=100)
    assert compile_graph(recipe_of(config, model()), lambda *_: None).notes == ()
    for name in ("cards", "digits", "robot"):
        assert notes_of("", grammar=name).notes == ()
    own, language = written(tmp_path, "own.dict", PLAIN), language_file(tmp_path, "go", "zehn")
    config = GraphConfig(dictionary=own, language_model=language)
    (note,) = compile_graph(recipe_of(config, model()), lambda *_: None).notes
    assert note.endswith("left out: zehn")


@each("forms", [("NFC", "NFD"), ("NFD", "NFC")])
@each("word", ["naïve", "हिन्दी", "क़िला", "한국", "Ångström"])
def test_forms_of_unicode_do_not_matter(tmp_path, forms, word):
    in_dictionary, in_text = (unicodedata.normalize(form, word) for form in forms)
    dictionary = f"{in_dictionary} N AA IY V\ngo G OW\n"
    found = by_language(tmp_path, dictionary, "go", in_text)
    assert (found.words, found.notes) == (("<s>", "</s>", "go", in_text), ())
    assert found.dictionary[in_text] == (("N", "AA", "IY", "V"),)
    found = by_grammar(tmp_path, dictionary, f"go {in_text}\n")
    assert (found.words, found.notes) == (("go", in_dictionary), ())


@each("turn", [str.upper, str.title, str.lower])
@each("in_dictionary", [str.upper, str.title, str.lower])
def test_capitals_do_not_matter_and_are_said(tmp_path, turn, in_dictionary):
    phones = {"go": "G OW", "forward": "F AO R W ER D", "straße": "S T R AA S AH"}
    listed, words = [*map(in_dictionary, phones)], [*map(turn, phones)]
    dictionary = "".join(f"{word} {sounds}\n" for word, sounds in zip(listed, phones.values(), strict=True))
    others = sum(a != b for a, b in zip(listed, words, strict=True))
    found = by_language(tmp_path, dictionary, *words)
    assert found.words == ("<s>", "</s>", *words)
    assert len(found.notes) == bool(others)
    for note in found.notes:
        assert note.startswith(f"{others} words of the language model have other capitals")
        assert f"{words[0]} ({listed[0]})" in note
    found = by_grammar(tmp_path, dictionary, f"{' '.join(words)}\n{words[0]}\n")
    assert (found.words, len(found.notes)) == (tuple(listed), bool(others))


def test_a_word_as_written_comes_first(tmp_path):
    dictionary = "Polish P OW L IH SH\npolish P AA L IH SH\n"
    found = by_language(tmp_path, dictionary, "polish", "Polish", "POLISH")
    assert found.dictionary["Polish"] == (("P", "OW", "L", "IH", "SH"),)
    assert found.dictionary["POLISH"] == found.dictionary["polish"]
    assert found.notes == ("1 word of the language model has other capitals in the dictionary: POLISH (polish)",)
    assert by_grammar(tmp_path, dictionary, "polish Polish POLISH").words == ("polish", "Polish")


FILLERS = "<s> SIL\n</s> SIL\n<sil> SIL\n<unk> SPN\n++NOISE++ +NSN+\nbreath +NSN+ SIL\n[laughter] L AE F UX\n"


def test_fillers_and_sentence_marks_are_no_words(tmp_path):
    noises = ["++NOISE++", "<unk>", "<sil>", "breath", "[laughter]", "++COUGH++", "<UNK>"]
    found = by_language(tmp_path, FILLERS + PLAIN, "go", *noises, "forward")
    assert found.words == ("<s>", "</s>", "go", "forward")
    assert found.notes == ("fillers whose phones the acoustic model lacks are left out: [laughter]",)
    phrases = "<s> go ++NOISE++ forward breath </s>\n[laughter] ten\n"
    found = by_grammar(tmp_path, FILLERS + PLAIN, phrases)
    assert found.words == ("go", "forward", "ten")
    # A filler that is pronounced like a word is one.
    found = by_grammar(tmp_path, "<um> AH1 M\n[um] AH M\n", "<um> [um]\n")
    assert found.words == ("<um>", "[um]")


def test_fillers_inside_a_word_are_named_as_what_they_are(tmp_path):
    fillers = r"'go' with fillers of the acoustic model, .*: 'SIL'"
    refusal(fillers, by_language, tmp_path, "go G OW SIL\nten T EH N\n", "go", "ten")
    refusal(r"'go' with phones .* model lacks: 'UX'", by_language, tmp_path, "go G UX SIL\nten T EH N\n", "go", "ten")


def test_the_dictionary_that_cmu_publishes_is_read(tmp_path):
    dictionary = "go G OW1 # comment\nforward F AO1 R W ER0 D\nforward(2) F AO0 R W ER1 D # place, danish\nten T EH N\n"
    found = by_language(tmp_path, dictionary, "go", "forward", "ten")
    assert found.dictionary["forward"] == (("F", "AO", "R", "W", "ER", "D"),)
    assert [note.rpartition(": ")[2] for note in found.notes] == ["AO0, AO1, ER0, ER1, OW1"]
    assert by_language(tmp_path, dictionary, "ten").notes == ()
    refusal(r"'go' with phones .* lacks: 'OX1'", by_grammar, tmp_path, "go G OX1\n", "go\n")


def test_probabilities_of_pronunciations_are_left_out_and_noted(tmp_path):
    dictionary = "go 0.9 G OW\nten 0.99 0.5 1.02 1.0 T EH N\nten 1.0e-3 T AH N\n"
    found = by_language(tmp_path, dictionary, "go", "ten")
    assert found.dictionary["go"] == (("G", "OW"),)
    assert found.dictionary["ten"] == (("T", "EH", "N"), ("T", "AH", "N"))
    assert found.notes == ("probabilities of pronunciations in the dictionary are left out",)


def test_missing_words_of_a_grammar_are_shown_as_written(tmp_path):
    missing = r"own.dict does not pronounce: 'NULIS', 'Vienas'\."
    refusal(missing, by_grammar, tmp_path, PLAIN, "go NULIS\nVienas NULIS\n")
