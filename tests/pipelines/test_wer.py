"""Word errors against jiwer and a plain dynamic programme, and the forms that are compared."""

import subprocess
import sys

import jiwer
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.audio import edit_distance
from pipelines.audio import word_errors as wer
from pipelines.audio.word_errors import DELETED, INSERTED, SAME, SUBSTITUTED
from tests.each import each


def fewest_errors(spoken: list[str], recognised: list[str]) -> int:
    """Levenshtein distance, row by row."""
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
def test_counts_are_minimal_and_alignments_complete(spoken: list[str], recognised: list[str]) -> None:
    reference, hypothesis = " ".join(spoken), " ".join(recognised)
    count = wer.count(reference, hypothesis)
    assert count.errors == fewest_errors(spoken, recognised)
    assert count.reference_words == len(spoken)
    assert len(spoken) + count.insertions - count.deletions == len(recognised)
    steps = wer.align(spoken, recognised)
    assert [s.reference for s in steps if s.reference is not None] == spoken
    assert [s.hypothesis for s in steps if s.hypothesis is not None] == recognised
    assert [s.reference_index for s in steps if s.reference is not None] == list(range(len(spoken)))
    assert [s.hypothesis_index for s in steps if s.hypothesis is not None] == [*range(len(recognised))]
    for step in steps:
        assert (step.kind == SAME) == (step.reference == step.hypothesis)
        assert (step.kind == INSERTED) == (step.reference is None)
        assert (step.kind == DELETED) == (step.hypothesis is None)


@settings(max_examples=80)
@given(reference=TEXTS, hypothesis=TEXTS)
def test_as_many_errors_as_jiwer_counts(reference: str, hypothesis: str) -> None:
    assume(not wer.unspaced(reference))
    found = wer.count(reference, hypothesis)
    spoken, recognised = wer.words(reference), wer.words(hypothesis)
    if spoken:  # jiwer refuses an empty reference
        truth = jiwer.process_words(" ".join(spoken), " ".join(recognised))
        assert found.errors == truth.substitutions + truth.deletions + truth.insertions
        assert found.rate == pytest.approx(truth.wer)
    assert found.reference_words == len(spoken)


@given(spoken=WORDS, recognised=WORDS)
def test_long_texts_are_cut_in_two_and_cost_the_same(spoken: list[str], recognised: list[str]) -> None:
    whole = wer.count(" ".join(spoken), " ".join(recognised))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_distance, "TABLE_CELLS", 4)
        cut = wer.align(spoken, recognised)
    assert wer.counted(cut).errors == whole.errors
    assert [s.reference for s in cut if s.reference is not None] == spoken
    assert [s.hypothesis for s in cut if s.hypothesis is not None] == recognised


@given(spoken=WORDS, recognised=WORDS)
def test_a_partial_hypothesis_is_held_against_the_beginning_that_fits_best(
    spoken: list[str], recognised: list[str]
) -> None:
    found = wer.counted(wer.align(spoken, recognised, partial=True))
    best = min(fewest_errors(spoken[:n], recognised) for n in range(len(spoken) + 1))
    assert found.errors == best
    assert fewest_errors(spoken[: found.reference_words], recognised) == best


def test_a_word_in_place_of_another_is_no_insertion() -> None:
    """Both are as many errors, and two insertions next to one word of reference say nothing of what was said there."""
    kinds = [step.kind for step in wer.align(["a", "b", "c", "d"], ["a", "x", "y"], partial=True)]
    assert kinds == [SAME, SUBSTITUTED, SUBSTITUTED]
    (first,) = wer.align(["a", "b"], ["x"], partial=True)
    assert first.kind == SUBSTITUTED
    kinds = [step.kind for step in wer.align(["a", "b"], ["x", "a"], partial=True)]
    assert kinds == [INSERTED, SAME]


def test_kinds_of_errors() -> None:
    assert wer.count("a b c", "a x c d") == wer.Count(1, 0, 1, 3)
    assert wer.count("a b c", "a c") == wer.Count(0, 1, 0, 3)
    assert wer.count("", "a b") == wer.Count(0, 0, 2, 0)
    assert wer.count("a b", "") == wer.Count(0, 2, 0, 2)
    assert wer.count("", "") == wer.Count()
    steps = wer.align(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"])
    assert [s.kind for s in steps] == [SAME, SUBSTITUTED, SAME, SAME, INSERTED]


def test_rates_sum_counts_not_rates() -> None:
    pairs = [("a b c d e f g h i", "a b c d e f g h i"), ("a", "b")]
    assert wer.total(pairs).rate == pytest.approx(0.1)
    assert wer.count("", "a").rate is None
    assert wer.count("a", "b c d").rate == 3.0
    assert wer.total([]) == wer.Count()


@each("reference", [None, "", "   ", "...", "<sil> [NOISE]"])
def test_what_has_no_word_to_be_held_against_is_not_scored(reference: str | None) -> None:
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
def test_the_form_that_is_compared(text: str, expected: list[str]) -> None:
    assert wer.words(text) == expected


def test_indices_count_the_words_as_given() -> None:
    steps = wer.align(["we", "'re", "[back", "noise]", "in"], ["it", "we're", "in"])
    assert [s.reference_index for s in steps] == [None, 0, 4]
    assert [s.hypothesis_index for s in steps] == [0, 1, 2]
    steps = wer.align(["a", "well-known", "cat"], ["a", "<sil>", "well", "known", "CAT,"])
    assert [s.kind for s in steps] == [SAME] * 4
    assert [s.reference_index for s in steps] == [0, 1, 1, 2]
    assert [s.hypothesis_index for s in steps] == [0, 2, 3, 4]


def test_the_window_can_afford_to_load_it() -> None:
    code = (
        "import sys; from pipelines.audio import word_errors as wer; wer.count('a b', 'b c');"
        "assert not {'jiwer', 'torch', 'numba', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
