"""Pronouncing dictionaries."""

import pytest
from search_graphs import full_dictionary

from pipelines.models import dictionary
from pipelines.models.dictionary import DictionaryError


def test_alternates_comments_and_repetitions(tmp_path):
    path = tmp_path / "words.dict"
    path.write_text(";;; a comment\n## another\nto T UW\nto(2) T AH\nto(3) T UW\n\n'em AH M\n")
    read = dictionary.read(path)
    assert read.words() == ["to", "'em"]
    assert read["to"] == (("T", "UW"), ("T", "AH"))
    assert read.path == path


def test_write_and_read_again(tmp_path):
    words = full_dictionary().restrict(["read", "the", "a"])
    dictionary.write(words, tmp_path / "out.dict")
    assert dictionary.read(tmp_path / "out.dict").pronunciations == words.pronunciations


def test_pocketsphinx_agrees_on_a_written_dictionary(tmp_path):
    import pocketsphinx

    words = full_dictionary().restrict(["read", "live", "tomato"])
    dictionary.write(words, tmp_path / "out.dict")
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"word\n", "line 1"),
        (b"ok K\n\x00\x01 K\n", "line 2"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b";;; nothing\n", "no pronunciation"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    path = tmp_path / "bad.dict"
    path.write_bytes(content)
    with pytest.raises(DictionaryError, match=message):
        dictionary.read(path)


def test_missing_file_and_missing_word(tmp_path):
    with pytest.raises(DictionaryError, match="cannot be read"):
        dictionary.read(tmp_path / "nothing")
    with pytest.raises(DictionaryError, match="no pronunciation of 'zzz', 'zzy'"):
        full_dictionary().restrict(["zzz", "the", "zzy"])
