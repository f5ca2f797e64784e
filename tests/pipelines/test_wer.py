"""Word errors against a plain dynamic programme, and the forms that are compared."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import wer


def fewest_errors(said: list[str], heard: list[str]) -> int:
    """Levenshtein distance, row by row."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, start=1):
        above, row[0] = row[0], i
        for j, other in enumerate(heard, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (word != other))
    return row[-1]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d'e"]), max_size=9)


@settings(deadline=None, max_examples=300)
@given(said=WORDS, heard=WORDS)
def test_counts_are_minimal_and_alignments_complete(said: list[str], heard: list[str]) -> None:
    reference, hypothesis = " ".join(said), " ".join(heard)
    count = wer.count(reference, hypothesis)
    assert count.errors == fewest_errors(said, heard)
    assert count.reference_words == len(said)
    assert len(said) + count.insertions - count.deletions == len(heard)
    steps = wer.align(reference, hypothesis)
    assert [s.reference for s in steps if s.reference is not None] == said
    assert [s.hypothesis for s in steps if s.hypothesis is not None] == heard
    assert [s.reference_index for s in steps if s.reference is not None] == list(range(len(said)))
    assert [s.hypothesis_index for s in steps if s.hypothesis is not None] == [*range(len(heard))]
    for step in steps:
        assert (step.kind == "equal") == (step.reference == step.hypothesis)
        assert (step.kind == "insert") == (step.reference is None)
        assert (step.kind == "delete") == (step.hypothesis is None)


def test_kinds_of_errors() -> None:
    assert wer.count("a b c", "a x c d") == wer.Count(1, 0, 1, 3)
    assert wer.count("a b c", "a c") == wer.Count(0, 1, 0, 3)
    assert wer.count("", "a b") == wer.Count(0, 0, 2, 0)
    assert wer.count("a b", "") == wer.Count(0, 2, 0, 2)
    assert wer.count("", "") == wer.Count()


def test_rates_sum_counts_not_rates() -> None:
    pairs = [("a b c d e f g h i", "a b c d e f g h i"), ("a", "b")]
    assert wer.total(pairs).rate == pytest.approx(0.1)
    assert wer.count("", "a").rate is None
    assert wer.count("a", "b c d").rate == 3.0
    assert wer.total([]) == wer.Count()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("don't DON\u2019T", ["don't", "don't"]),
        ("'quoted' the dogs' 'em", ["quoted", "the", "dogs", "em"]),
        ("well-known\u2014thing", ["well", "known", "thing"]),
        ("<s> so <sil> read(2) [NOISE] it ++UM++ </s>", ["so", "read", "it"]),
        ("snake_case caf\u00e9 4.5", ["snake", "case", "caf\u00e9", "4", "5"]),
        ("' ... -- ''", []),
    ],
)
def test_the_form_that_is_compared(text: str, expected: list[str]) -> None:
    assert wer.words(text) == expected


def test_indices_count_the_words_as_given() -> None:
    steps = wer.align("a well-known cat", "a <sil> well known CAT,")
    assert [s.kind for s in steps] == ["equal"] * 4
    assert [s.reference_index for s in steps] == [0, 1, 1, 2]
    assert [s.hypothesis_index for s in steps] == [0, 2, 3, 4]


def test_jiwer_is_imported_only_when_needed() -> None:
    code = "import sys; from pipelines import wer; wer.count('a', ''); assert 'jiwer' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
