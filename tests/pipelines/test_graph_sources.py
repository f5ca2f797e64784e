"""What a graph takes from dictionary, language model and grammar, and what it says of the rest."""

import unicodedata

import numpy as np
import pytest
from language_models import write_arpa
from search_graphs import model

from pipelines.config import Graph as GraphConfig
from pipelines.models.dictionary import DictionaryError
from pipelines.models.language import ngram
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.sources import source
from tests.each import each

PLAIN = "go G OW\nforward F AO R W ER D\nten T EH N\nmeters M IY T ER Z\n"


def written(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def language_file(folder, *words, marks=("<s>", "</s>")):
    """Unigrams, each word less probable than the one before, and bigrams of neighbours."""
    listed = [*marks, *words]
    v = len(listed)
    pairs = np.array([[i, i + 1] for i in range(2, v - 1)], np.int32).reshape(-1, 2)
    made = ngram.make(
        listed,
        [np.arange(v, dtype=np.int32)[:, None], pairs],
        [-1.0 - 0.1 * np.arange(v), np.full(len(pairs), -0.5)],
        [np.full(v, -0.3)],
    )
    write_arpa(made, folder / "own.arpa")
    return str(folder / "own.arpa")


def notes_of(dictionary, **settings):
    config = GraphConfig(dictionary=dictionary, **{"vocabulary": 100, **settings})
    return source(recipe_of(config, model()), model().mdef)


def by_language(folder, dictionary, *words, vocabulary=100):
    return notes_of(
        written(folder, "own.dict", dictionary), language_model=language_file(folder, *words), vocabulary=vocabulary
    )


def by_grammar(folder, dictionary, phrases):
    return notes_of(written(folder, "own.dict", dictionary), grammar=written(folder, "own.txt", phrases))


@each(
    "words, vocabulary, note",
    [
        (["go", "forward", "ten"], 100, None),
        (
            ["go", "vorwaerts", "meterz", "zehn", "forward", "ten"],
            100,
            "3 of 6 words of the language model have no pronunciation and are left out: vorwaerts, meterz, zehn",
        ),
        (["go", "zehn"], 100, "1 of 2 words of the language model has no pronunciation and is left out: zehn"),
        # Of those that are not among the most probable nobody asks.
        (["go", "ten", "zehn", "forward"], 2, None),
        (
            ["go", "elf", "ten", "zehn", "forward"],
            2,
            "1 of 3 most probable words of the language model has no pronunciation and is left out: elf",
        ),
        (
            ["go", *(f"w{i}" for i in range(10))],
            100,
            "10 of 11 words of the language model have no pronunciation and are left out: "
            "w0, w1, w2, w3, w4, w5, w6, w7 and 2 more",
        ),
    ],
)
def test_words_without_a_pronunciation_are_counted(tmp_path, words, vocabulary, note):
    found = by_language(tmp_path, PLAIN, *words, vocabulary=vocabulary)
    assert found.notes == ((note,) if note else ())
    assert set(found.words) <= {"<s>", "</s>", "go", "forward", "ten"}


@pytest.mark.slow
def test_the_shipped_files_leave_nothing_out_and_a_graph_keeps_its_notes(tmp_path):
    config = GraphConfig(vocabulary=50, bigrams=100)
    assert compile_graph(recipe_of(config, model()), lambda *_: None).notes == ()
    for name in ("cards", "digits", "robot"):
        assert notes_of("", grammar=name).notes == ()
    own = GraphConfig(
        dictionary=written(tmp_path, "own.dict", PLAIN), language_model=language_file(tmp_path, "go", "zehn")
    )
    (note,) = compile_graph(recipe_of(own, model()), lambda *_: None).notes
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
    dictionary = "".join(
        f"{in_dictionary(word)} {phones}\n" for word, _, phones in (line.partition(" ") for line in PLAIN.splitlines())
    )
    words = [turn(word) for word in ("go", "forward", "straße")]
    dictionary += f"{in_dictionary('straße')} S T R AA S AH\n"
    same = [turn(w) == in_dictionary(w) for w in ("go", "forward", "straße")]
    found = by_language(tmp_path, dictionary, *words)
    assert found.words == ("<s>", "</s>", *words)
    assert len(found.notes) == (not all(same))
    for note in found.notes:
        assert note.startswith(f"{same.count(False)} words of the language model have other capitals")
        assert f"{turn('go')} ({in_dictionary('go')})" in note
    found = by_grammar(tmp_path, dictionary, f"{' '.join(words)}\n{words[0]}\n")
    assert found.words == tuple(map(in_dictionary, ("go", "forward", "straße")))
    assert len(found.notes) == (not all(same))


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
    with pytest.raises(DictionaryError, match=r"'go' with fillers of the acoustic model, .*: 'SIL'"):
        by_language(tmp_path, "go G OW SIL\nten T EH N\n", "go", "ten")
    with pytest.raises(DictionaryError, match=r"'go' with phones .* model lacks: 'UX'"):
        by_language(tmp_path, "go G UX SIL\nten T EH N\n", "go", "ten")


def test_the_dictionary_that_cmu_publishes_is_read(tmp_path):
    dictionary = "go G OW1 # comment\nforward F AO1 R W ER0 D\nforward(2) F AO0 R W ER1 D # place, danish\nten T EH N\n"
    found = by_language(tmp_path, dictionary, "go", "forward", "ten")
    assert found.dictionary["forward"] == (("F", "AO", "R", "W", "ER", "D"),)
    assert found.notes == (
        "stress digits of the dictionary are left out, as the acoustic model has no phones with them: "
        "AO0, AO1, ER0, ER1, OW1",
    )
    assert by_language(tmp_path, dictionary, "ten").notes == ()
    with pytest.raises(DictionaryError, match=r"'go' with phones .* lacks: 'OX1'"):
        by_grammar(tmp_path, "go G OX1\n", "go\n")


def test_probabilities_of_pronunciations_are_left_out_and_noted(tmp_path):
    dictionary = "go 0.9 G OW\nten 0.99 0.5 1.02 1.0 T EH N\nten 1.0e-3 T AH N\n"
    found = by_language(tmp_path, dictionary, "go", "ten")
    assert found.dictionary["go"] == (("G", "OW"),)
    assert found.dictionary["ten"] == (("T", "EH", "N"), ("T", "AH", "N"))
    assert found.notes == ("probabilities of pronunciations in the dictionary are left out",)


def test_missing_words_of_a_grammar_are_shown_as_written(tmp_path):
    with pytest.raises(DictionaryError, match=r"own.dict does not pronounce: 'NULIS', 'Vienas'\."):
        by_grammar(tmp_path, PLAIN, "go NULIS\nVienas NULIS\n")
