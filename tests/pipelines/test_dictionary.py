"""Pronouncing dictionaries, grammars, and the words that a graph takes from them."""

import tracemalloc
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_models import EXPRESSIONS, arpa_text, jsgf_text, restricted, sentences, write_dictionary
from search_graphs import full_dictionary, model

from pipelines.config import Graph as GraphConfig
from pipelines.models import dictionary
from pipelines.models.grammar import phrases
from pipelines.models.grammar.expression import Repeat
from pipelines.search.graph import lexicon
from pipelines.search.graph.build import compile_graph
from pipelines.search.graph.recipe import recipe_of
from pipelines.search.graph.sources import DictionaryEntries, read_grammar, source
from tests.each import each
from tests.pipelines.refusing import refusal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "words.dict"


def test_alternates_comments_and_repetitions(path):
    path.write_text(";;; a comment\n## another\nto T UW\nto(2) T AH\nto(3) T UW\n\n'em AH M\n")
    read = dictionary.read(path)
    assert read.pronunciations == {"to": (("T", "UW"), ("T", "AH")), "'em": (("AH", "M"),)}
    assert read.path == path


def test_joiners_and_any_end_of_line(path):
    path.write_bytes("\ufeffമഴ\u200d M\r\nنمی\u200cدانم N # the rest\rto T UW\n\tnew\xa0york  N\tY \n".encode())
    words = {"മഴ\u200d": "M", "نمی\u200cدانم": "N", "to": "T UW", "new\xa0york": "N Y"}
    assert dictionary.read(path).pronunciations == {word: (tuple(pron.split()),) for word, pron in words.items()}


def test_pocketsphinx_agrees_on_a_written_dictionary(path):
    import pocketsphinx

    assert len(full_dictionary()) > 120_000
    assert full_dictionary()["forward"] == (("F", "AO", "R", "W", "ER", "D"),)
    words = restricted(full_dictionary(), ["read", "live", "tomato"])
    write_dictionary(words, path)
    assert dictionary.read(path).pronunciations == words.pronunciations
    decoder = pocketsphinx.Decoder(dict=str(path), lm=None, loglevel="FATAL")
    for word in words.words():
        assert decoder.lookup_word(word) == " ".join(words[word][0])
        assert decoder.lookup_word(f"{word}(2)") == " ".join(words[word][1])


def test_phones_that_the_model_lacks_are_named_with_their_words():
    prons = {f"w{i}": (("AH", "Q"), ("EY",)) for i in range(6)} | {"b": (("B", "IY"),)}
    words = dictionary.Dictionary(prons)
    words.check_phones(["AH", "Q", "EY", "B", "IY"])
    message = "pronounces 'w0', 'w1', 'w2', 'w3' and 2 more with phones .* lacks: 'Q'"
    refusal(message, words.check_phones, ["AH", "EY", "B", "IY"])
    sentence = refusal("lacks", dictionary.Dictionary({"\x1b[31m" + "x" * 5000: (("AH",),)}).check_phones, [])
    assert len(sentence) < 400
    assert "\x1b" not in sentence


@each(
    "content, message",
    [
        (b"word\n", "line 1"),
        (b"ok K\n\x00\x01 K\n", "line 2"),
        (b"\xff\xfe\x00", "not UTF-16"),
        (b";;; nothing\n", "no pronunciation"),
        ("go G OW\nfor\xadward F\n".encode(), r"line 2: the word 'for\\xadward' has a character"),
        ("go G\u2028 OW\nb\n".encode(), "line 2: a word and its phones"),
        (b"go # G OW\n", "line 1: a word and its phones"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    path = tmp_path / "bad.dict"
    path.write_bytes(content)
    refusal(message, dictionary.read, path)


def test_many_variants_and_long_words_take_linear_time_and_memory(path):
    """Work counted rather than timed: the memory of all prefixes of a long word would be quadratic."""
    long = ["AH", "N"] * 5_000
    text = [f"one {' '.join(long)}"]
    text += [f"one({n}) {' '.join('TW'[int(bit)] for bit in f'{n:015b}')}" for n in range(2, 10_000)]
    path.write_text("\n".join([*text, text[5]]))
    tracemalloc.start()
    try:
        words = dictionary.read(path)
        assert len(words["one"]) == 9_999
        assert words["one"][0] == tuple(long)
        marks = lexicon.disambiguate([*words["one"], ("AH",), ("AH",), ("N", "AH")])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert marks[-3:] == [1, 2, 0]
    assert not any(marks[:-3])
    assert peak < 40 << 20


def test_too_many_lines_are_refused(path, monkeypatch):
    monkeypatch.setattr(dictionary, "MAX_PRONUNCIATIONS", 100)
    path.write_text("a K\n" * 101)
    refusal("has 101 lines", dictionary.read, path)


def prefixes_one_by_one(prons):
    """Marks by the definition: each pronunciation against all beginnings of all."""
    beginnings = {p[:i] for p in prons for i in range(1, len(p))}
    used, marks = Counter(), []
    for pron in prons:
        if prons.count(pron) > 1 or pron in beginnings:
            used[pron] += 1
        marks.append(used[pron])
    return marks


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5).map(tuple), max_size=12))
def test_what_tells_homophones_and_beginnings_apart(prons):
    assert lexicon.disambiguate(prons) == prefixes_one_by_one(prons)


HEADER = "#JSGF V1.0;\ngrammar test;\n"


def written(folder, text, name="test.gram"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sentences_of(path):
    grammar = read_grammar(path)
    assert len(grammar.public) == 1
    return sentences(grammar.rules[grammar.public[0]], grammar.rules, longest=3)


@each(
    "rules, expected",
    [
        ("public <a> = /3/ one | /1/ two;", {"one": 0.75, "two": 0.25}),
        ("public <a> = / 3 / one | two three;", {"one": 0.75, "two three": 0.25}),
        ("public <a> = one [two];", {"one": 0.5, "one two": 0.5}),
        ("public <a> = (one | two) three;", {"one three": 0.5, "two three": 0.5}),
        ("public <a> = one+;", {"one": 0.5, "one one": 0.25, "one one one": 0.125}),
        ("public <a> = one two*;", {"one": 0.5, "one two": 0.25, "one two two": 0.125}),
        ("public <a> = <b> <b>; <b> = x | y;", dict.fromkeys(["x x", "x y", "y x", "y y"], 0.25)),
        ("public <a> = <test.b> ; <b> = x;", {"x": 1.0}),
        ('public <a> = "new york" city {the \\} tag} {another};', {"new york city": 1.0}),
        ("// one\rpublic <a> = three; // four\r", {"three": 1.0}),
        ("// one\npublic <a> = /* two */ three // four\n;", {"three": 1.0}),
        ("public <a> = one <NULL> two <NULL>*;", {"one two": 1.0}),
        ("public <a> = one | two <VOID> | <VOID>;", {"one": 1.0}),
        ("public <a> = /0/ one | two;", {"two": 1.0}),
        ("public <a> = one [<VOID>] (<VOID>)*;", {"one": 1.0}),
        ("public <a> = a {out = {d: 'f', e: {}};} b {out.x} {} c;", {"a b c": 1.0}),
        ("public <a> = a {x \\} { } b;", {"a b": 1.0}),
        ("public <a> = a {x { y} b {z} {u {v} c;", {"a b c": 1.0}),
        ("public <a> = don't | o'clock | naïve;", dict.fromkeys(["don't", "o'clock", "naïve"], 1 / 3)),
    ],
)
def test_what_a_grammar_says(tmp_path, rules, expected):
    found = sentences_of(written(tmp_path, HEADER + rules))
    assert {" ".join(s): p for s, p in found.items()} == pytest.approx(expected)


@settings(max_examples=80, deadline=None)
@given(EXPRESSIONS)
def test_writing_and_reading_says_the_same(tmp_path_factory, expression):
    path = written(tmp_path_factory.getbasetemp(), f"{HEADER}public <x> = {jsgf_text(expression)};\n")
    assert sentences_of(path) == pytest.approx(sentences(expression, {}, 3))


@each(
    "text, message",
    [
        ("public <a> = b;", "does not begin with '#JSGF V1.0;'"),
        (HEADER + "import <other.*>;\npublic <a> = b;", "line 3: import is not supported"),
        (HEADER + "public <a> = <other.b>;", "line 3: <other.b> is of another grammar"),
        (HEADER + "\n<a> = b;", "has no public rule"),
        (HEADER + "public <a> = <b>;", "line 3: <b> is not defined"),
        (HEADER + "public <a> = b;\n<a> = c;", "line 4: <a> is defined a second time"),
        (HEADER + "public <NULL> = b;", "line 3: <NULL> cannot be defined"),
        (HEADER + "public <a> = (b [c);", r"line 3: the '\[' of line 3 should be closed where '\)'"),
        (HEADER + "public <a> = b", "line 3: ';' at the end of <a> should stand where the end"),
        (HEADER + "public <a> b;", "'=' after <a> should stand where 'b' does"),
        (HEADER + "public <a> = b | ;", "a word, a rule or a group should stand where ';' does"),
        (HEADER + "public <a> = b\\c;", "line 3: '.*' is no part"),
        (HEADER + "public <a> =\nb {x} }; c;", r"line 4: a '}' ends a tag, .* inside a tag it is written \\}"),
        (HEADER + "public <a> =\nb {x ;\n", "line 4: the tag that begins here has no '}'"),
        (HEADER + "public <a> = " + "{{}" * 100_000, "line 3: a word, a rule or a group"),
        (HEADER + "public <a> = " + "(" * 101 + "b" + ")" * 101 + ";", "more than 100 deep"),
        (HEADER + "public <a> = /1e-300/ b | /1/ c;", "line 3: a weight should be 0 or from"),
        (HEADER + "public <a> = /1e308/ b | /1e308/ c;", "line 3: a weight should be 0 or from"),
        (HEADER + "public <a> = " + "b " * 500_000 + ";", "more than 500,000 words and marks"),
        ("#JSGF V1.0" + " " * 100_000, "does not begin with '#JSGF V1.0;'"),
        (HEADER + "hello", "a rule such as <name> should stand where 'hello' does"),
        ("#JSGF V1.0;\ngrammar", "the grammar's name should stand where the end of the file"),
    ],
)
def test_bad_grammars_are_refused(tmp_path, text, message):
    sentence = refusal(message, read_grammar, written(tmp_path, text))
    assert len(sentence) < 400
    assert sentence.endswith(".")


@each(
    "header, encoding",
    [
        ("#JSGF v1.0;", "utf-8"),
        ("#jsgf V1.0 UTF-8 en;", "utf-8"),
        ("\n#JSGF V1 utf8;", "utf-8-sig"),
        ("#JSGF V1.0 ISO8859-1;", "latin-1"),
        ("#JSGF V1.0 ISO-8859-15 de;", "iso-8859-15"),
        ("#JSGF V1.0 windows-1252;", "cp1252"),
        ("#JSGF V1.0 UTF-16;", "utf-16"),
        ("#JSGF V1.0 UTF-16;", "utf-16-le"),
        ("#JSGF V1.0 UTF-16BE;", "utf-16-be"),
        ("#JSGF V1.0 utf-32;", "utf-32"),
        # What is declared and cannot be.
        ("#JSGF V1.0 UTF-16;", "utf-8"),
        ("#JSGF V1.0 en;", "utf-16"),
    ],
)
@each("name", ["any.gram", "any.txt"])
def test_first_lines_and_encodings(tmp_path, header, encoding, name):
    text = f"{header}\ngrammar g;\npublic <a> = grün | très;"
    assert sentences_of(written(tmp_path, text.encode(encoding), name)) == {("grün",): 0.5, ("très",): 0.5}


@each(
    "declared, message",
    [
        ("", "line 3: the text is not UTF-8; .* as in '#JSGF V1.0 ISO8859-1;'"),
        (" klingon", "line 3: the text is not UTF-8;"),
        (" unicode_escape", "line 3: the text is not UTF-8;"),
        (" ascii", "line 3: the text is not ASCII;"),
    ],
)
def test_text_of_another_encoding_than_declared(tmp_path, declared, message):
    text = f"#JSGF V1.0{declared};\ngrammar g;\npublic <a> = grün | très;"
    refusal(message, read_grammar, written(tmp_path, text.encode("latin-1")))


@each(
    "text, message",
    [
        ("# tidigits\nFSG_BEGIN <digits>\nNUM_STATES 5\n", r"x is a finite-state grammar of Sphinx \(FSG\)"),
        ("oh mighty computer /1e-40/\nhello world /1.0/\n", "line 1 ends with the threshold /1e-40/"),
        ('["oh one two", "[unk]"]', "x is a JSON list, as Vosk takes it: write one word"),
        ('{"phrases": ["go"]}', "x is a JSON file"),
        ('<?xml version="1.0"?>\n<grammar/>', "x is an XML file, as SRGS grammars are: write it as JSGF"),
        ("#ABNF 1.0 UTF-8;\n", "x is an SRGS grammar in ABNF"),
        ("\ufeff\\data\\\nngram 1=3\n", "x is an ARPA language model: name it as graph.language_model"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
        ("# nothing\n\n", "lists no word or phrase"),
        ("ok\nb\x00d\n", "line 2: the word .* has a character that does not show"),
        (b"\xff\xfe\x00", "not UTF-16"),
        ("a " * 500_001, "more than 500,000 words"),
    ],
)
def test_bad_lists_are_refused_and_other_formats_called_by_their_names(tmp_path, text, message):
    refusal(message, read_grammar, written(tmp_path, text, "x"))


def test_a_list_says_its_lines_in_any_order(tmp_path):
    path = written(tmp_path, "# commands\ngo forward\n\nstop\nstop\n", "list.txt")
    found = sentences_of(path)
    assert found[("stop",)] == pytest.approx(1 / 4)
    assert found[("go", "forward", "stop")] == pytest.approx(1 / 16)
    assert ("forward",) not in found
    (rule,) = phrases.read(path).rules.values()
    assert isinstance(rule, Repeat)


PLAIN = "go G OW\nforward F AO R W ER D\nten T EH N\nmeters M IY T ER Z\n"


def language_file(folder, *words):
    """Unigrams, each less probable than the one before."""
    grams = {(word,): (-1.0 - i / 10, 0.0) for i, word in enumerate(["<s>", "</s>", *words])}
    return str(written(folder, arpa_text([grams]), "own.arpa"))


def notes_of(dictionary, **settings):
    recipe = recipe_of(GraphConfig(dictionary=dictionary, **{"vocabulary": 100, **settings}), model())
    return source(recipe, DictionaryEntries(recipe, model().mdef))


def by_language(folder, dictionary, *words, **settings):
    own = written(folder, dictionary, "own.dict")
    return notes_of(str(own), language_model=language_file(folder, *words), **settings)


def by_grammar(folder, dictionary, phrases):
    own, listed = written(folder, dictionary, "own.dict"), written(folder, phrases, "own.txt")
    return notes_of(str(own), grammar=str(listed))


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
    own, language = written(tmp_path, PLAIN, "own.dict"), language_file(tmp_path, "go", "zehn")
    config = GraphConfig(dictionary=str(own), language_model=language)
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
