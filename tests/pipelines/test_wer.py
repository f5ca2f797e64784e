"""Word errors against jiwer and a plain dynamic programme, and the forms that are compared."""

import unicodedata

import jiwer
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.audio import edit_distance
from pipelines.audio import word_errors as wer
from pipelines.audio.word_errors import DELETED, INSERTED, SAME, SUBSTITUTED
from tests.each import each


def fewest_errors(spoken: list[str], recognised: list[str]) -> int:
    row = list(range(len(recognised) + 1))
    for i, word in enumerate(spoken, start=1):
        above, row[0] = row[0], i
        for j, other in enumerate(recognised, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (word != other))
    return row[-1]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d'e"]), max_size=9)
PIECES = st.one_of(
    st.sampled_from(["the", "The", "well-known", "well", "known", "don't", "DON\u2019T", "'em", "dogs'", "<sil>"]),
    st.sampled_from(["read(2)", "[NOISE]", "++UM++", "a.m.", "\u2014", "na\u00efve", "nai\u0308ve"]),
    st.sampled_from(["Stra\u00dfe", "STRASSE", "\u0130stanbul", "4.5", "snake_case", "\u017fo"]),
    st.text(max_size=6),
)
TEXTS = st.lists(PIECES, max_size=12).map(" ".join)


@settings(max_examples=80)
@given(spoken=WORDS, recognised=WORDS)
def test_counts_are_minimal_and_alignments_complete_also_of_texts_that_are_cut_in_two(spoken, recognised):
    count = wer.count(" ".join(spoken), " ".join(recognised))
    assert count.errors == fewest_errors(spoken, recognised)
    assert count.reference_words == len(spoken)
    assert len(spoken) + count.insertions - count.deletions == len(recognised)
    whole = wer.align(spoken, recognised)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_distance, "TABLE_CELLS", 4)  # as if they were long
        cut = wer.align(spoken, recognised)
    for steps in (whole, cut):
        assert wer.counted(steps).errors == count.errors
        assert [s.reference for s in steps if s.reference is not None] == spoken
        assert [s.hypothesis for s in steps if s.hypothesis is not None] == recognised
        assert [s.reference_index for s in steps if s.reference is not None] == [*range(len(spoken))]
        assert [s.hypothesis_index for s in steps if s.hypothesis is not None] == [*range(len(recognised))]
        for step in steps:
            assert (step.kind == SAME) == (step.reference == step.hypothesis)
            assert (step.kind == INSERTED) == (step.reference is None)
            assert (step.kind == DELETED) == (step.hypothesis is None)


@settings(max_examples=80)
@given(reference=TEXTS, hypothesis=TEXTS)
def test_as_many_errors_as_jiwer_counts(reference, hypothesis):
    assume(not wer.unspaced(reference))
    found = wer.count(reference, hypothesis)
    spoken, recognised = wer.words(reference), wer.words(hypothesis)
    if spoken:  # jiwer refuses an empty reference
        truth = jiwer.process_words(" ".join(spoken), " ".join(recognised))
        assert found.errors == truth.substitutions + truth.deletions + truth.insertions
        assert found.rate == pytest.approx(truth.wer)
    assert found.reference_words == len(spoken)


@given(spoken=WORDS, recognised=WORDS)
def test_a_partial_hypothesis_is_held_against_the_beginning_that_fits_best(spoken, recognised):
    found = wer.counted(wer.align(spoken, recognised, partial=True))
    best = min(fewest_errors(spoken[:n], recognised) for n in range(len(spoken) + 1))
    assert found.errors == best
    assert fewest_errors(spoken[: found.reference_words], recognised) == best


def test_kinds_of_errors():
    assert wer.count("\u0915\u093f", "\u0915\u0940").errors == 1  # another vowel sign of Hindi
    for reference, hypothesis, expected in (
        ("a b c", "a x c d", wer.Count(1, 0, 1, 3)),
        ("a b c", "a c", wer.Count(0, 1, 0, 3)),
        ("", "a b", wer.Count(0, 0, 2, 0)),
        ("", "", wer.Count()),
    ):
        assert wer.count(reference, hypothesis) == expected
    # A word in place of another is as many errors as two insertions next to one word, and says what was heard there.
    for reference, hypothesis, kinds in (
        ("abcd", "axy", [SAME, SUBSTITUTED, SUBSTITUTED]),
        ("ab", "x", [SUBSTITUTED]),
        ("ab", "xa", [INSERTED, SAME]),
    ):
        assert [step.kind for step in wer.align([*reference], [*hypothesis], partial=True)] == kinds


def test_rates_sum_counts_not_rates():
    pairs = [("a b c d e f g h i", "a b c d e f g h i"), ("a", "b")]
    assert wer.total(pairs).rate == pytest.approx(0.1)
    assert wer.count("", "a").rate is None
    assert wer.count("a", "b c d").rate == 3.0
    assert wer.total([]) == wer.Count()


@each("reference", [None, "", "   ", "...", "<sil> [NOISE]"])
def test_what_has_no_word_to_be_held_against_is_not_scored(reference):
    assert wer.scored(reference, "so many words") is None
    assert wer.total([(reference, "so many words"), ("a b", "a")]) == wer.Count(0, 1, 0, 2)


@each(
    "text, expected",
    [
        ("Hello, World!", ["hello", "world"]),
        ("don't DON\u2019T", ["don't", "don't"]),
        ("'quoted' the dogs' 'em", ["quoted", "the", "dogs", "em"]),
        ("well-known\u2014thing", ["well", "known", "thing"]),
        ("<s> so <sil> read(2) [NOISE] it ++UM++ </s>", ["so", "read", "it"]),
        ("snake_case caf\u00e9 4.5", ["snake", "case", "caf\u00e9", "4", "5"]),
        ("Cafe\u0301 STRASSE stra\u00dfe", ["caf\u00e9", "strasse", "strasse"]),
        ("\u0130zmir", ["izmir"]),
        ("' ... -- ''", []),
        ("[background noise] two [no audio] nine (laughs)", ["two", "nine"]),
        ('<foreign lang="Spanish"> go </foreign> <#s> T SHIRT', ["go", "t", "shirt"]),
        ("(uh) two (2 3) 3 < 5 > 4", ["uh", "two", "2", "3", "3", "5", "4"]),
        ("we 're here it \u2019S 'em the 's'", ["we're", "here", "it's", "em", "the", "s"]),
    ],
)
def test_the_form_that_is_compared(text, expected):
    assert wer.words(text) == expected


def test_indices_count_the_words_as_given():
    steps = wer.align(["we", "'re", "[back", "noise]", "in"], ["it", "we're", "in"])
    assert [s.reference_index for s in steps] == [None, 0, 4]
    assert [s.hypothesis_index for s in steps] == [0, 1, 2]
    steps = wer.align(["a", "well-known", "cat"], ["a", "<sil>", "well", "known", "CAT,"])
    assert [s.kind for s in steps] == [SAME] * 4
    assert [s.reference_index for s in steps] == [0, 1, 1, 2]
    assert [s.hypothesis_index for s in steps] == [0, 2, 3, 4]


APOSTROPHES = "'\u2018\u2019\u201b\u02bb\u02bc`\u00b4\u2032\uff07\uff40"
INVISIBLE = (
    "\u00ad\u0640\u07fa\u180a\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200e\u200f\u202a\u202e\u2060\u2064"
    "\u2066\u3164\ufe0f\ufeff\uffa0\U000e0001\U000e0101"
)
LETTERS = st.characters(
    categories=["L", "M", "Nd"],
    exclude_characters=APOSTROPHES
    + INVISIBLE
    + "\u0149\u0307\u180c\u180d\u180f"
    + "".join(map(chr, [*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)])),
).filter(lambda letter: all(unicodedata.category(c)[0] in "LMN" for c in unicodedata.normalize("NFKC", letter)))
WORDS_SCRIPTS = st.lists(st.text(LETTERS, min_size=1, max_size=5), min_size=1, max_size=8)


def form(words: list[str]) -> str:
    """Unicode's compatibility caseless form (3.13, D146), in small letters without the dot of a capital."""
    text = unicodedata.normalize("NFD", " ".join(words)).casefold()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    return text.replace("i\u0307", "i")


@settings(max_examples=80)
@given(spoken=WORDS_SCRIPTS, recognised=WORDS_SCRIPTS, how=st.sampled_from(["NFC", "NFD"]))
def test_letters_and_marks_of_all_scripts_make_words_as_jiwer_has_them(spoken, recognised, how):
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
def test_a_text_without_spaces_is_compared_by_its_characters(reference, hypothesis, errors):
    assert wer.unspaced(reference)
    found = wer.count(reference, hypothesis)
    letters = "".join(c for c in reference if c.isalpha())
    assert (found.errors, found.reference_words) == (errors, len(letters))
    assert wer.count(reference, "").deletions == len(letters)


@each("text", ["今天 天气 很 好", "I live in 北京", "今日 は 天気 が いい", "สวัสดี ครับ", "한국어 를", "二", "a b"])
def test_a_text_with_spaces_between_its_words_is_compared_by_them(text):
    assert not wer.unspaced(text)
    assert wer.count(text, text).reference_words == len(text.split())


def test_apostrophes_are_one_and_invisible_characters_none():
    for mark in APOSTROPHES:
        assert wer.words(f"don{mark}t {mark}quoted{mark} a {mark} b") == ["don't", "quoted", "a", "b"]
    for mark in INVISIBLE:
        assert wer.words(f"{mark}co{mark}operate{mark} e{mark}\u0301") == ["cooperate", "\u00e9"]


def test_joiners_stay_inside_words_alone_and_the_space_without_width_parts_them():
    for mark in "\u200c\u200d\u200b":
        assert wer.words(f"{mark}one{mark} {mark}{mark} {mark}'two'{mark}") == ["one", "two"]
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
def test_case_is_folded_in_full_and_accents_are_the_same_either_way(one, other):
    assert wer.count(one, other) == wer.Count(reference_words=1)


@settings(max_examples=80)
@given(text=st.text(max_size=30))
def test_any_text_has_one_form_whole_or_word_by_word(text):
    found = wer.words(text)
    assert [word for each in wer.compared(text.split()) for word in each] == found
    assert wer.words(" ".join(found)) == found
    assert wer.words(unicodedata.normalize("NFD", text)) == found
    assert wer.words(unicodedata.normalize("NFC", text)) == found
