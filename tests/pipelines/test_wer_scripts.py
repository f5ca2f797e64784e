"""Words of all scripts: what is part of a word, what vanishes, and what is an apostrophe; errors against jiwer."""

import unicodedata

import jiwer
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.audio import word_errors as wer
from tests.each import each

SPOKEN = "\u0926\u094b \u0928\u094c \u0924\u0940\u0928 \u091a\u093e\u0930 \u0936\u0942\u0928\u094d\u092f"
"""Two nine three four zero in Hindi."""
WRONG = "\u0926\u0947 \u0928\u0942 \u0924\u093e\u0928 \u091a\u093f\u0930 \u0936\u093f\u0928\u094d\u092f\u0941"
"""The same with other vowel signs."""

APOSTROPHES = "'\u2018\u2019\u201b\u02bb\u02bc`\u00b4\u2032\uff07\uff40"
INVISIBLE = (
    "\u00ad\u0640\u07fa\u180a\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200e\u200f\u202a\u202e\u2060\u2064"
    "\u2066\u3164\ufe0f\ufeff\uffa0\U000e0001\U000e0101"
)
JOINERS = "\u200c\u200d"

LETTERS = st.characters(
    categories=["L", "M", "Nd"],
    exclude_characters=APOSTROPHES
    + INVISIBLE
    + "\u0149\u0307\u180c\u180d\u180f"
    + "".join(map(chr, [*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)])),
).filter(lambda letter: all(unicodedata.category(c)[0] in "LMN" for c in unicodedata.normalize("NFKC", letter)))
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=5), min_size=1, max_size=8)


def form(words: list[str]) -> str:
    """Unicode's compatibility caseless form (3.13, D146), in small letters without the dot of a capital."""
    text = unicodedata.normalize("NFD", " ".join(words)).casefold()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    return text.replace("i\u0307", "i")


@settings(max_examples=80)
@given(spoken=WORDS, recognised=WORDS, how=st.sampled_from(["NFC", "NFD"]))
def test_letters_and_marks_of_all_scripts_make_words_as_jiwer_has_them(
    spoken: list[str], recognised: list[str], how: str
) -> None:
    reference = unicodedata.normalize(how, " ".join(spoken))
    assert wer.words(reference) == form(spoken).split(" ")
    assume(not wer.unspaced(reference))
    truth = jiwer.process_words(form(spoken), form(recognised))
    found = wer.count(reference, " ".join(recognised))
    assert found.errors == truth.substitutions + truth.deletions + truth.insertions
    assert found.rate == pytest.approx(truth.wer)


@each(
    "reference, hypothesis, errors",
    [
        ("二九三四零", "二 九 三 四 零", 0),
        ("二九三四零", "二 九 四 零 零", 2),
        ("今天天气很好，我们去公园。", "今天 天气 很 好 我们 去 公园", 0),
        ("今天天气很好 我们去公园", "今天 天气 不 好 我们 去 公园", 1),
        ("我爱 Python 编程", "我 爱 python 编程", 0),
        ("東京に行きます", "東京 に 行き ます", 0),
        ("สวัสดีครับ", "สวัสดี ครับ", 0),
        ("ប្រទេសកម្ពុជា", "ប្រទេស កម្ពុជា", 0),
        ("ພາສາລາວ", "ພາສາ ລາວ", 0),
        ("မြန်မာစာ", "မြန်မာ စာ", 0),
    ],
)
def test_a_text_without_spaces_is_compared_by_its_characters(reference: str, hypothesis: str, errors: int) -> None:
    assert wer.unspaced(reference)
    found = wer.count(reference, hypothesis)
    letters = "".join(c for c in reference if c.isalpha())
    assert (found.errors, found.reference_words) == (errors, len(letters))
    assert wer.count(reference, "").deletions == len(letters)


@each("text", ["今天 天气 很 好", "I live in 北京", "今日 は 天気 が いい", "สวัสดี ครับ", "한국어 를", "二", "a b"])
def test_a_text_with_spaces_between_its_words_is_compared_by_them(text: str) -> None:
    assert not wer.unspaced(text)
    assert wer.count(text, text).reference_words == len(text.split())


def test_five_wrong_words_of_hindi_are_five_and_one_is_one() -> None:
    assert wer.words(SPOKEN) == SPOKEN.split()
    assert wer.count(SPOKEN, WRONG) == wer.Count(5, 0, 0, 5)
    one = " ".join([*SPOKEN.split()[:4], "\u090f\u0915"])
    assert wer.count(SPOKEN, one) == wer.Count(1, 0, 0, 5)
    assert wer.count("\u0915\u093f", "\u0915\u0940").errors == 1


@each("mark", [*APOSTROPHES])
def test_what_stands_for_an_apostrophe_is_one(mark: str) -> None:
    assert wer.words(f"don{mark}t {mark}quoted{mark} a {mark} b") == ["don't", "quoted", "a", "b"]


@each("mark", [*INVISIBLE])
def test_invisible_characters_vanish(mark: str) -> None:
    assert wer.words(f"{mark}co{mark}operate{mark} e{mark}\u0301") == ["cooperate", "\u00e9"]


@each("mark", [*JOINERS, "\u200b"])
def test_no_joiner_and_no_space_without_width_at_the_edge_of_a_word(mark: str) -> None:
    assert wer.words(f"{mark}one{mark} {mark}{mark} {mark}'two'{mark}") == ["one", "two"]


def test_joiners_stay_inside_words_and_the_space_without_width_parts_them() -> None:
    persian = "\u0645\u06cc\u200c\u0631\u0648\u0645"
    assert wer.words(f"{persian}, {persian}") == [persian] * 2
    assert wer.words("\u0e2a\u0e27\u0e31\u0e2a\u200b\u0e14\u0e35") == ["\u0e2a\u0e27\u0e31\u0e2a", "\u0e14\u0e35"]


@each(
    "one, other",
    [
        ("\u0130stanbul", "i\u0307stanbul"),
        ("I\u0307stanbul", "\u0130stanbul"),
        ("\u1e9e", "ss"),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"),
        ("\ufb01ve", "FIVE"),
        ("\u1fb3", "\u0391\u0345"),
        ("\uac00", "\u1100\u1161"),
        ("\u0130stanbul", "istanbul"),
        ("\u0627\u062b\u0640\u0640\u0646", "\u0627\u062b\u0646"),
        ("\uff12\uff19", "29"),
        ("\ufefb", "\u0644\u0627"),
    ],
)
def test_case_is_folded_in_full_and_accents_are_the_same_either_way(one: str, other: str) -> None:
    assert wer.count(one, other) == wer.Count(reference_words=1)


@settings(max_examples=80)
@given(text=st.text(max_size=30))
def test_any_text_has_one_form_whole_or_word_by_word(text: str) -> None:
    found = wer.words(text)
    assert [word for each in wer.compared(text.split()) for word in each] == found
    assert wer.words(" ".join(found)) == found
    assert wer.words(unicodedata.normalize("NFD", text)) == found
    assert wer.words(unicodedata.normalize("NFC", text)) == found
