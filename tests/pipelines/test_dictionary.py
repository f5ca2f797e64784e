"""Pronouncing dictionaries."""

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_models import restricted, write_dictionary
from search_graphs import full_dictionary

from pipelines.models import dictionary
from pipelines.models.dictionary import DictionaryError
from pipelines.search.graph import lexicon
from tests.each import each


def test_alternates_comments_and_repetitions(tmp_path):
    path = tmp_path / "words.dict"
    path.write_text(";;; a comment\n## another\nto T UW\nto(2) T AH\nto(3) T UW\n\n'em AH M\n")
    read = dictionary.read(path)
    assert read.words() == ["to", "'em"]
    assert read["to"] == (("T", "UW"), ("T", "AH"))
    assert read.path == path


def test_joiners_and_any_end_of_line(tmp_path):
    path = tmp_path / "words.dict"
    path.write_bytes("\ufeffമഴ\u200d M\r\nنمی\u200cدانم N # the rest\rto T UW\n\tnew\xa0york  N\tY \n".encode())
    assert dictionary.read(path).pronunciations == {
        "മഴ\u200d": (("M",),),
        "نمی\u200cدانم": (("N",),),
        "to": (("T", "UW"),),
        "new\xa0york": (("N", "Y"),),
    }


def test_write_and_read_again(tmp_path):
    words = restricted(full_dictionary(), ["read", "the", "a"])
    write_dictionary(words, tmp_path / "out.dict")
    assert dictionary.read(tmp_path / "out.dict").pronunciations == words.pronunciations


def test_pocketsphinx_agrees_on_a_written_dictionary(tmp_path):
    import pocketsphinx

    words = restricted(full_dictionary(), ["read", "live", "tomato"])
    write_dictionary(words, tmp_path / "out.dict")
    decoder = pocketsphinx.Decoder(dict=str(tmp_path / "out.dict"), lm=None, loglevel="FATAL")
    for word in words.words():
        assert decoder.lookup_word(word) == " ".join(words[word][0])
        assert decoder.lookup_word(f"{word}(2)") == " ".join(words[word][1])


def test_the_default_dictionary_is_whole():
    words = full_dictionary()
    assert len(words) > 120_000
    assert words["forward"] == (("F", "AO", "R", "W", "ER", "D"),)


def test_phones_that_the_model_lacks_are_named_with_their_words():
    prons = {f"w{i}": (("AH", "Q"), ("EY",)) for i in range(6)} | {"b": (("B", "IY"),)}
    words = dictionary.Dictionary(prons)
    words.check_phones(["AH", "Q", "EY", "B", "IY"])
    message = "pronounces 'w0', 'w1', 'w2', 'w3' and 2 more with phones .* lacks: 'Q'"
    with pytest.raises(DictionaryError, match=message):
        words.check_phones(["AH", "EY", "B", "IY"])


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
    with pytest.raises(DictionaryError, match=message):
        dictionary.read(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DictionaryError, match="cannot be read"):
        dictionary.read(tmp_path / "nothing")


def test_many_variants_and_long_words_take_linear_time_and_memory(tmp_path):
    """Work counted rather than timed: the memory of all prefixes of a long word would be quadratic."""
    long = ["AH", "N"] * 5_000
    text = [f"one {' '.join(long)}"]
    text += [
        f"one({n}) {' '.join(f'{n:015b}'.replace('0', ' T').replace('1', ' W').split())}" for n in range(2, 10_000)
    ]
    (tmp_path / "many.dict").write_text("\n".join([*text, text[5]]))
    tracemalloc.start()
    try:
        words = dictionary.read(tmp_path / "many.dict")
        assert len(words["one"]) == 9_999
        assert words["one"][0] == tuple(long)
        marks = lexicon.disambiguate([*words["one"], ("AH",), ("AH",), ("N", "AH")])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert marks[-3:] == [1, 2, 0]
    assert not any(marks[:-3])
    assert peak < 40 << 20


def test_too_many_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(dictionary, "MAX_PRONUNCIATIONS", 100)
    (tmp_path / "much.dict").write_text("a K\n" * 101)
    with pytest.raises(DictionaryError, match="has 101 lines"):
        dictionary.read(tmp_path / "much.dict")


def test_words_that_do_not_show_are_written_out():
    words = dictionary.Dictionary({"\x1b[31m" + "x" * 5000: (("AH",),)})
    with pytest.raises(DictionaryError) as caught:
        words.check_phones([])
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


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
